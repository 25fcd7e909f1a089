//! Where the lines of each session stand, and reading one session at a time.

use std::collections::BTreeMap;

use super::line::Line;
use crate::id::Hash;
use crate::importers::object::Object;
use crate::importers::slice::{self, Again, Joined, Layout, Place, RawRecord, RecordError};
use crate::importers::{ImportError, Sink, Source};
use crate::warning::Loss;

/// One session of a file: its id, its subagent, and the places of its lines in file order.
pub(super) struct Session {
    id: String,
    agent: Option<String>,
    places: Vec<Place>,
}

impl Session {
    /// The run's own name: the session, and the subagent within it.
    pub(super) fn native_id(&self) -> String {
        match &self.agent {
            Some(agent) => format!("{}/{agent}", self.id),
            None => self.id.clone(),
        }
    }
}

/// Goes through the file once and notes which line belongs to which session, in the order in which
/// sessions begin. Lines that are no line of a session are quarantined.
pub(super) fn stage(source: &Source, sink: &mut dyn Sink) -> Result<Vec<Session>, ImportError> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut by_name: BTreeMap<(String, Option<String>), usize> = BTreeMap::new();
    // Which session a message belongs to, for summaries, which name a message only.
    let mut by_uuid: BTreeMap<Hash, usize> = BTreeMap::new();
    let mut summaries: Vec<(Hash, Place)> = Vec::new();
    slice::each_in_order(source, Layout::Lines, sink, |record, sink| {
        let place = (record.span, record.line);
        let label = Label::read(record)?;
        if let Some(id) = label.session {
            let number = *by_name.entry((id.clone(), label.agent.clone())).or_insert_with(|| {
                sessions.push(Session { id, agent: label.agent, places: Vec::new() });
                sessions.len() - 1
            });
            sessions[number].places.push(place);
            if let Some(uuid) = label.uuid {
                by_uuid.entry(Hash::of(uuid.as_bytes())).or_insert(number);
            }
        } else if let Some(leaf) = label.leaf {
            summaries.push((Hash::of(leaf.as_bytes()), place));
        } else {
            let reason = "a line that belongs to no session";
            sink.loss(Loss::new("claude-code", label.kind, reason))?;
        }
        Ok(())
    })?;
    for (leaf, place) in summaries {
        if let Some(number) = by_uuid.get(&leaf) {
            sessions[*number].places.push(place);
        } else {
            let reason = "summarizes a message in another file";
            sink.loss(Loss::new("claude-code", "summary", reason))?;
        }
    }
    for session in &mut sessions {
        session.places.sort_by_key(|(span, _)| span.start);
    }
    Ok(sessions)
}

/// What a line says about where it belongs.
struct Label {
    kind: String,
    session: Option<String>,
    agent: Option<String>,
    uuid: Option<String>,
    leaf: Option<String>,
}

impl Label {
    fn read(record: &RawRecord) -> Result<Self, RecordError> {
        let mut fields: Object<'_> = record.parse()?;
        let kind: String = fields.required("type")?;
        let session: Option<String> = fields.optional("sessionId")?;
        if session.is_none() && matches!(kind.as_str(), "user" | "assistant") {
            return Err(RecordError::new("missing-field", "a message without `sessionId`"));
        }
        let sidechain = fields.optional("isSidechain")?.unwrap_or(false);
        let agent = fields.optional::<String>("agentId")?.filter(|_| sidechain);
        Ok(Self { kind, session, agent, uuid: fields.optional("uuid")?, leaf: fields.optional("leafUuid")? })
    }
}

/// The lines of a session, and the record that stands for all of them; a line that cannot be read is
/// quarantined.
pub(super) fn read(
    again: &mut Again<'_>,
    session: &Session,
    sink: &mut dyn Sink,
) -> Result<(Vec<Line>, Option<RawRecord>), ImportError> {
    let mut lines = Vec::new();
    let mut joined: Option<Joined> = None;
    for place in &session.places {
        let record = again.record(*place)?;
        match Line::read(&record.bytes) {
            Ok(line) => {
                lines.push(line);
                joined.get_or_insert_with(|| Joined::new(&record)).add(&record);
            }
            Err(error) => sink.event(record.quarantine(&error))?,
        }
    }
    Ok((lines, joined.map(Joined::finish)))
}
