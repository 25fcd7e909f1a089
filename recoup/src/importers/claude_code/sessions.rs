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
    /// The `uuid` of its first message.
    root: Option<String>,
    /// Its own messages, in file order.
    said: Vec<Said>,
}

/// What tells a message from every other, and what a copy of it leaves as it is.
struct Said {
    /// Hash of its id, its time and its content.
    hash: Hash,
    at: String,
    /// Where its line begins.
    start: u64,
}

impl Session {
    /// The run's own name: the session, and the subagent within it.
    pub(super) fn native_id(&self) -> String {
        match &self.agent {
            Some(agent) => format!("{}/{agent}", self.id),
            None => self.id.clone(),
        }
    }

    /// The `uuid` of the first message, unless it is a subagent's.
    pub(super) fn root(&self) -> Option<&str> {
        self.root.as_deref().filter(|_| self.agent.is_none())
    }

    /// Marks what it has copied from a session in another file: of two that hold a message word for word, the
    /// one that went on later, where both did.
    pub(super) fn mark_copies_of(&mut self, other: &Self) {
        if self.id == other.id || self.agent.is_some() || other.agent.is_some() {
            return;
        }
        let ours: BTreeSet<Hash> = self.said.iter().map(|said| said.hash).collect();
        let theirs: BTreeSet<Hash> = other.said.iter().map(|said| said.hash).collect();
        let went_on = |session: &Self, shared: &BTreeSet<Hash>| {
            let own = session.said.iter().find(|said| !shared.contains(&said.hash));
            (own.map(|said| said.at.clone()), session.id.clone())
        };
        if went_on(self, &theirs) < went_on(other, &ours) {
            return;
        }
        let copies = self.said.iter().filter(|said| theirs.contains(&said.hash));
        let copies: BTreeSet<u64> = copies.map(|said| said.start).collect();
        for (place, copied) in &mut self.lines {
            *copied |= copies.contains(&place.span.start);
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
        let place = Place::in_file(record);
        let label = Label::read(record)?;
        if let Some(id) = label.session {
            let number = *by_name.entry((id.clone(), label.agent.clone())).or_insert_with(|| {
                let agent = label.agent;
                let (lines, said) = (Vec::new(), Vec::new());
                sessions.push(Session { id, agent, lines, goes_on_from: None, root: None, said });
                sessions.len() - 1
            });
            let said = label.said;
            let told = said.as_ref().is_some_and(|said| *told.entry(said.hash).or_insert(number) != number);
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
            by_uuid.extend(label.uuid.as_ref().map(|uuid| (Hash::of(uuid.as_bytes()), number)));
            if said.is_some() {
                session.root = session.root.take().or(label.uuid);
            }
            session.said.extend(said);
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
        session.lines.sort_by_key(|(place, _)| place.span.start);
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
        before.extend(places.filter(|place| place.span.start < start));
        next = other.goes_on_from;
    }
    before.sort_by_key(|place| place.span.start);
    before.dedup();
    before
}

/// What a line says about where it belongs.
struct Label {
    kind: String,
    session: Option<String>,
    agent: Option<String>,
    uuid: Option<String>,
    /// Hashes of the ids of its parent, and of the line that it sums up.
    parent: Option<Hash>,
    leaf: Option<Hash>,
    /// For lines with an id and a message.
    said: Option<Said>,
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
        let (parent, leaf) = (hash("parentUuid")?, hash("leafUuid")?);
        let uuid: Option<String> = fields.optional("uuid")?;
        let at = fields.get("timestamp").map_or("", |at| at.get());
        let said = uuid.as_ref().zip(fields.get("message")).map(|(uuid, raw)| Said {
            hash: Hash::of_all(&[uuid.as_bytes(), at.as_bytes(), raw.get().as_bytes()]),
            at: at.to_owned(),
            start: record.span.start,
        });
        Ok(Self { kind, session, agent, uuid, parent, leaf, said })
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
        let mut record = again.record(*place)?;
        record.rewrite();
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
