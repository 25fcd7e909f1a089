//! Where the lines of each session stand, and reading one session at a time.
//!
//! A session that goes on from another in the same file has that one's lines for its history: they are copied
//! context there, as are lines that an earlier session has told word for word under the same `uuid`.

use std::collections::{BTreeMap, BTreeSet};

use super::line::Line;
use crate::id::Hash;
use crate::importers::object::Object;
use crate::importers::slice::{self, Again, Joined, Layout, Place, RawRecord, RecordError};
use crate::importers::{ImportError, Sink, Source};
use crate::warning::Loss;

/// One session of a file: its id, its subagent, and the places of its lines in file order, each with whether
/// another session has told it.
pub(super) struct Session {
    id: String,
    agent: Option<String>,
    lines: Vec<(Place, bool)>,
    /// The session that it goes on from, and where in the file it begins to.
    goes_on_from: Option<(usize, u64)>,
}

impl Session {
    /// The run's own name: the session, and the subagent within it.
    pub(super) fn native_id(&self) -> String {
        match &self.agent {
            Some(agent) => format!("{}/{agent}", self.id),
            None => self.id.clone(),
        }
    }

    /// The session whose agent called this subagent.
    pub(super) fn parent(&self) -> Option<&str> {
        self.agent.is_some().then_some(self.id.as_str())
    }
}

/// Goes through the file once and notes which line belongs to which session, in the order in which
/// sessions begin. Lines that are no line of a session are quarantined.
pub(super) fn stage(source: &Source, sink: &mut dyn Sink) -> Result<Vec<Session>, ImportError> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut by_name: BTreeMap<(String, Option<String>), usize> = BTreeMap::new();
    // Which sessions hold a message: summaries name a message only, and so does a line that goes on.
    let mut by_uuid: BTreeSet<(Hash, usize)> = BTreeSet::new();
    // Which session told a message first.
    let mut told: BTreeMap<Hash, usize> = BTreeMap::new();
    let mut summaries: Vec<(Hash, Place)> = Vec::new();
    slice::each_in_order(source, Layout::Lines, sink, |record, sink| {
        let place = (record.span, record.line);
        let label = Label::read(record)?;
        if let Some(id) = label.session {
            let number = *by_name.entry((id.clone(), label.agent.clone())).or_insert_with(|| {
                sessions.push(Session { id, agent: label.agent, lines: Vec::new(), goes_on_from: None });
                sessions.len() - 1
            });
            let told = label.message.is_some_and(|message| *told.entry(message).or_insert(number) != number);
            // A subagent does not read what its caller has read.
            let talks =
                |holder: &usize| sessions[*holder].agent.is_none() && sessions[number].agent.is_none();
            let is_own = |uuid: &Hash| by_uuid.contains(&(*uuid, number));
            let from =
                label.parent.filter(|parent| !is_own(parent)).and_then(|parent| first(&by_uuid, parent));
            let from = from.filter(talks).map(|other| (other, record.span.start));
            let session = &mut sessions[number];
            session.goes_on_from = session.goes_on_from.or(from);
            session.lines.push((place, told));
            by_uuid.extend(label.uuid.map(|uuid| (uuid, number)));
        } else if let Some(leaf) = label.leaf {
            summaries.push((leaf, place));
        } else {
            let reason = "a line that belongs to no session";
            sink.loss(Loss::new("claude-code", label.kind, reason))?;
        }
        Ok(())
    })?;
    for (leaf, place) in summaries {
        if let Some(number) = first(&by_uuid, leaf) {
            sessions[number].lines.push((place, false));
        } else {
            let reason = "summarizes a message in another file";
            sink.loss(Loss::new("claude-code", "summary", reason))?;
        }
    }
    for session in &mut sessions {
        session.lines.sort_by_key(|((span, _), _)| span.start);
    }
    let histories: Vec<Vec<Place>> = sessions.iter().map(|session| history(&sessions, session)).collect();
    for (session, history) in sessions.iter_mut().zip(histories) {
        session.lines.splice(..0, history.into_iter().map(|place| (place, true)));
    }
    Ok(sessions)
}

/// The session that began first of those that hold a line.
fn first(by_uuid: &BTreeSet<(Hash, usize)>, uuid: Hash) -> Option<usize> {
    by_uuid.range((uuid, 0)..=(uuid, usize::MAX)).next().map(|(_, number)| *number)
}

/// The lines that stand before a session's own, in the sessions that it goes on from: all that stood in the
/// file by then.
fn history(sessions: &[Session], session: &Session) -> Vec<Place> {
    let mut before = Vec::new();
    let (mut next, mut limit) = (session.goes_on_from, u64::MAX);
    // Each session back must begin to go on before the last one did, so that circles end.
    while let Some((number, start)) = next.filter(|(_, start)| *start < limit) {
        limit = start;
        let Some(other) = sessions.get(number) else { break };
        let places = other.lines.iter().map(|(place, _)| *place);
        before.extend(places.filter(|(span, _)| span.start < start));
        next = other.goes_on_from;
    }
    before.sort_by_key(|(span, _)| span.start);
    before.dedup();
    before
}

/// What a line says about where it belongs.
struct Label {
    kind: String,
    session: Option<String>,
    agent: Option<String>,
    /// Hashes of the ids of the line, of its parent, and of the line that it sums up.
    uuid: Option<Hash>,
    parent: Option<Hash>,
    leaf: Option<Hash>,
    /// Hash of the line's id, its time and its message, which a copy leaves as they are.
    message: Option<Hash>,
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
        let mut hash = |key: &str| -> Result<Option<Hash>, RecordError> {
            Ok(fields.optional::<String>(key)?.map(|id| Hash::of(id.as_bytes())))
        };
        let (uuid, parent, leaf) = (hash("uuid")?, hash("parentUuid")?, hash("leafUuid")?);
        let at = fields.get("timestamp").map_or("", |at| at.get());
        let message = uuid.zip(fields.get("message"));
        let message =
            message.map(|(uuid, raw)| Hash::of_all(&[&uuid.0, at.as_bytes(), raw.get().as_bytes()]));
        Ok(Self { kind, session, agent, uuid, parent, leaf, message })
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
    for (place, told) in &session.lines {
        let record = again.record(*place)?;
        match Line::read(&record.bytes) {
            Ok(mut line) => {
                line.copied |= told;
                lines.push(line);
                joined.get_or_insert_with(|| Joined::new(&record)).add(&record);
            }
            Err(error) => sink.event(record.quarantine(&error))?,
        }
    }
    Ok((lines, joined.map(Joined::finish)))
}
