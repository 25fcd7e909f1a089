//! Conversations: which one a request belongs to, and from which of its messages it goes on.
//!
//! A client that names its session is believed, within what its key may see. Any other request goes to
//! the conversation whose messages it repeats up to an answer; where several do, to one that waits for
//! its next request. A history without a known answer, but with a message so particular that only one
//! conversation can have said it, is that conversation's, compacted or edited. Anything else begins a
//! new conversation, so two attempts at one task never become one.
//!
//! Nothing of a message is kept here but its fingerprint.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use recoup::importers::recoup_proxy::Api;
use tokio::sync::watch;

use super::fingerprint::Fingerprint;

/// Conversations under one fingerprint that are looked at.
const CANDIDATES_MAX: usize = 64;
/// Numbers that a journal may leave out between two messages.
const GAP_MAX: usize = 1 << 16;

/// A conversation of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ConversationId(pub u64);

/// A message of the history that a request brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// `None` where it says nothing of its own.
    pub fingerprint: Option<Fingerprint>,
    /// Whether a model said it.
    pub answer: bool,
    /// Whether no other conversation would hold it by chance.
    pub particular: bool,
}

/// What says whose request it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking<'a> {
    pub api: Api,
    /// Keyed hash of the client's key.
    pub scope: Fingerprint,
    /// Whether the task that the request names, or else asks for, is held out of training, where it says one.
    pub held_out: Option<bool>,
    /// The session that the client names.
    pub session: Option<&'a str>,
    /// Whether the client says that it asks again.
    pub again: bool,
    /// The upstream's id of the answer that the request goes on from.
    pub previous: Option<&'a str>,
    /// Milliseconds since the process began.
    pub now: u64,
}

/// A request, as a journal holds it.
pub(super) struct Restored<'a> {
    pub name: &'a str,
    pub api: Api,
    pub scope: Fingerprint,
    pub session: Option<&'a str>,
    pub request: u32,
    pub parent: Option<u32>,
    /// Number of its first new message.
    pub first: u32,
}

/// What was answered to a request.
pub(super) struct Given<'a> {
    /// The request's last message.
    pub last: Option<u32>,
    /// Number of the first message, where a journal says it; else it is the next one.
    pub first: Option<u32>,
    pub alternatives: &'a [Vec<Shown>],
    /// The upstream's id of it.
    pub id: Option<&'a str>,
    pub scope: Fingerprint,
    /// Milliseconds since the process began.
    pub now: u64,
}

/// Where a request was put.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub id: ConversationId,
    /// The conversation's name in the log.
    pub name: Arc<str>,
    /// Which request of the conversation, from 0.
    pub request: u32,
    /// The message it goes on from.
    pub parent: Option<u32>,
    /// Messages at the start of the history that are known.
    pub known: usize,
    /// Number of the first message that is new.
    pub first: u32,
    /// Turns of the agent before this one on its branch.
    pub turn: u32,
    /// What the coins are tossed with where the client names neither task nor session: the first history's
    /// fingerprint, the same under any key.
    pub told: Fingerprint,
    /// How many conversations began like this one before it.
    pub ordinal: u64,
    /// What must be on the disk before this request is forwarded.
    pub waits: Vec<watch::Receiver<Durable>>,
    /// Whether the tools are others than at the request before.
    pub tools_changed: bool,
}

/// How far a turn has come on its way to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Durable {
    /// It is not there yet.
    #[default]
    NotYet,
    /// It is there.
    Yes,
    /// It is in the log, and nobody knows whether on the disk.
    Failed,
    /// It is not in the log.
    Unwritten,
}

/// An answer on its way to the disk.
struct Wait {
    state: watch::Receiver<Durable>,
    /// The numbers of its messages.
    messages: Range<u32>,
}

/// A message of a conversation.
struct Message {
    /// Of the history up to it.
    history: Fingerprint,
    /// Whether a model said it.
    answer: bool,
    /// Turns of the agent up to it.
    turns: u32,
    /// Whether an answer that was given here is among the messages up to it.
    ours: bool,
    /// Whether a request or an answer followed it.
    followed: bool,
}

struct Conversation {
    name: Arc<str>,
    api: Api,
    session: Option<(Fingerprint, String)>,
    origin: Fingerprint,
    told: Fingerprint,
    held_out: Option<bool>,
    ordinal: u64,
    /// By their numbers; `None` is one that is not known, or that the log does not hold.
    messages: Vec<Option<Message>>,
    requests: u32,
    open: u32,
    waits: Vec<Wait>,
    tools: Option<Fingerprint>,
    /// Whether a request of this process has said its tools.
    said_tools: bool,
    particular: Vec<Fingerprint>,
    answers: Vec<(Fingerprint, String)>,
    used: u64,
}

/// Conversations that began alike.
#[derive(Default)]
struct Begun {
    all: u64,
    live: u64,
}

/// All of them.
#[derive(Default)]
pub(super) struct Conversations {
    next: u64,
    stamp: String,
    by_id: HashMap<ConversationId, Conversation>,
    by_session: HashMap<(Fingerprint, String), ConversationId>,
    by_history: HashMap<Fingerprint, Vec<(ConversationId, u32)>>,
    /// `None` where two conversations have said it.
    by_particular: HashMap<Fingerprint, Option<ConversationId>>,
    by_answer: HashMap<(Fingerprint, String), (ConversationId, u32)>,
    by_log_name: HashMap<Arc<str>, ConversationId>,
    begun: HashMap<Fingerprint, Begun>,
    messages: usize,
    names: HashMap<String, Fingerprint>,
    taken: HashSet<String>,
}

impl Conversations {
    /// None yet; `stamp` tells the names of this process from those of another, and `taken` are names of
    /// runs in the project.
    pub(super) fn new(stamp: String, taken: HashSet<String>) -> Self {
        Self { stamp, taken, ..Self::default() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// How many messages they have.
    pub(super) fn message_count(&self) -> usize {
        self.messages
    }

    /// Puts a request where it belongs and adds its new messages.
    pub(super) fn place(
        &mut self,
        asking: &Asking<'_>,
        shown: &[Shown],
        tools: Option<Fingerprint>,
    ) -> Place {
        let histories = histories(asking, shown);
        let found = self
            .by_previous(asking)
            .or_else(|| self.by_name(asking, shown, &histories))
            .or_else(|| self.by_longest(asking, &histories))
            .or_else(|| self.by_what_is_particular(asking, shown, &histories))
            .filter(|(id, ..)| self.is_on_the_side(*id, asking));
        if let Some((id, ..)) = found
            && self.take_back(id)
        {
            return self.place(asking, shown, tools);
        }
        let (id, parent, known) = found.unwrap_or_else(|| (self.begin(asking, shown), None, 0));
        self.add_request(id, parent, known, asking, shown, &histories, tools)
    }

    /// Whether a request may belong to a conversation: what is held out of training, and what is not, are
    /// told apart, except where the client names its session.
    fn is_on_the_side(&self, id: ConversationId, asking: &Asking<'_>) -> bool {
        let side = self.by_id.get(&id).and_then(|found| found.held_out).zip(asking.held_out);
        asking.session.is_some() || side.is_none_or(|(known, own)| known == own)
    }

    /// The conversation whose answer a request names: of this client, and of the session that it names.
    fn by_previous(&self, asking: &Asking<'_>) -> Option<(ConversationId, Option<u32>, usize)> {
        let answer = asking.previous.filter(|_| asking.api == Api::Responses)?;
        let (id, message) = *self.by_answer.get(&(asking.scope, answer.to_owned()))?;
        let found = self.by_id.get(&id)?;
        let fits = asking.session.is_none() || found.session_name() == asking.session;
        fits.then_some((id, Some(message), 0))
    }

    /// The conversation of the session that is named, be it new.
    fn by_name(
        &mut self,
        asking: &Asking<'_>,
        shown: &[Shown],
        histories: &[Fingerprint],
    ) -> Option<(ConversationId, Option<u32>, usize)> {
        let key = (asking.scope, asking.session?.to_owned());
        let id = match self.by_session.get(&key) {
            Some(id) => *id,
            None => self.begin(asking, shown),
        };
        let (parent, known) = self.deepest(id, histories);
        Some((id, parent, known))
    }

    /// The deepest message of a conversation that a history reaches.
    fn deepest(&self, id: ConversationId, histories: &[Fingerprint]) -> (Option<u32>, usize) {
        for (index, history) in histories.iter().enumerate().rev() {
            let candidates = self.by_history.get(history).map_or(&[][..], Vec::as_slice);
            if let Some((_, message)) = candidates.iter().rev().find(|(candidate, _)| *candidate == id) {
                return (Some(*message), index + 1);
            }
        }
        (None, 0)
    }

    fn by_longest(
        &self,
        asking: &Asking<'_>,
        histories: &[Fingerprint],
    ) -> Option<(ConversationId, Option<u32>, usize)> {
        let mut repeated = None;
        for (index, history) in histories.iter().enumerate().rev() {
            let Some(candidates) = self.by_history.get(history) else { continue };
            let whole = index + 1 == histories.len();
            let mut best: Option<((bool, u64), ConversationId, u32)> = None;
            for (id, number) in candidates.iter().rev().take(CANDIDATES_MAX) {
                let Some(conversation) = self.by_id.get(id) else { continue };
                let Some(message) = conversation.message(*number) else { continue };
                let asked = whole && conversation.open > 0;
                let waits = !message.followed && !asked;
                // The same first request is the same conversation only where it got no answer.
                let fits = message.ours
                    || whole && (waits || asking.again && conversation.messages.len() <= histories.len() + 1);
                if !fits || conversation.session.is_some() {
                    continue;
                }
                let rank = (waits, conversation.used);
                if best.as_ref().is_none_or(|(other, ..)| rank > *other) {
                    best = Some((rank, *id, *number));
                }
            }
            match best {
                // Another conversation has asked just this: it is asked again there, unless one that is
                // like it so far waits for its next request.
                Some(((false, _), id, number)) if whole => repeated = Some((id, Some(number), index + 1)),
                Some(((waits, _), id, number)) if waits || repeated.is_none() => {
                    return Some((id, Some(number), index + 1));
                }
                _ => {}
            }
        }
        repeated
    }

    fn by_what_is_particular(
        &self,
        asking: &Asking<'_>,
        shown: &[Shown],
        histories: &[Fingerprint],
    ) -> Option<(ConversationId, Option<u32>, usize)> {
        let particular = shown.iter().rev().filter(|message| message.answer && message.particular);
        let id = particular
            .filter_map(|message| *self.by_particular.get(&mark(asking.scope, message.fingerprint?))?)
            .find(|id| self.by_id.get(id).is_some_and(|found| found.api == asking.api))?;
        let (parent, known) = self.deepest(id, histories);
        Some((id, parent, known))
    }

    fn begin(&mut self, asking: &Asking<'_>, shown: &[Shown]) -> ConversationId {
        let id = ConversationId(self.next);
        self.next += 1;
        let origin = histories(asking, shown).last().copied().unwrap_or(Fingerprint(0));
        let begun = self.begun.entry(origin).or_default();
        let ordinal = begun.all;
        begun.all += 1;
        begun.live += 1;
        let name = match asking.session {
            // A run of that name that is not known any more would be taken for this one's beginning.
            Some(session) if self.taken.contains(session) => format!("{session}~{}-{}", self.stamp, id.0),
            // Another client may use the same name for a session of its own.
            Some(session)
                if *self.names.entry(session.to_owned()).or_insert(asking.scope) == asking.scope =>
            {
                session.to_owned()
            }
            Some(session) => format!("{session}~{:08x}", asking.scope.0 as u32),
            None => format!("{:012x}-{}-{}", (origin.0 >> 80) as u64, self.stamp, id.0),
        };
        let name: Arc<str> = name.into();
        self.by_log_name.insert(Arc::clone(&name), id);
        let session = asking.session.map(|session| (asking.scope, session.to_owned()));
        if let Some(key) = &session {
            self.by_session.insert(key.clone(), id);
        }
        let conversation = Conversation {
            name,
            api: asking.api,
            session,
            origin,
            held_out: None,
            told: shown.iter().fold(Fingerprint(0), |told, message| told.then(message.fingerprint)),
            ordinal,
            messages: Vec::new(),
            requests: 0,
            open: 0,
            waits: Vec::new(),
            tools: None,
            said_tools: false,
            particular: Vec::new(),
            answers: Vec::new(),
            used: asking.now,
        };
        self.by_id.insert(id, conversation);
        id
    }

    #[expect(clippy::too_many_arguments, reason = "what was found, and what it was found from")]
    fn add_request(
        &mut self,
        id: ConversationId,
        parent: Option<u32>,
        known: usize,
        asking: &Asking<'_>,
        shown: &[Shown],
        histories: &[Fingerprint],
        tools: Option<Fingerprint>,
    ) -> Place {
        let Some(conversation) = self.by_id.get_mut(&id) else {
            unreachable!("a conversation that was found or made is there")
        };
        conversation.used = asking.now;
        conversation.open += 1;
        let request = conversation.requests;
        conversation.requests += 1;
        let first = conversation.messages.len() as u32;
        let mut place = Place {
            id,
            name: Arc::clone(&conversation.name),
            request,
            parent,
            known,
            first,
            turn: 0,
            told: conversation.told,
            ordinal: conversation.ordinal,
            waits: conversation.waits.iter().map(|wait| wait.state.clone()).collect(),
            tools_changed: tools != conversation.tools || !conversation.said_tools,
        };
        conversation.tools = tools;
        conversation.said_tools = true;
        let mut last = parent;
        for (number, (message, history)) in (first..u32::MAX).zip(shown.iter().zip(histories).skip(known)) {
            self.messages += 1;
            conversation.put(number, last, *history, message.answer, false);
            self.by_history.entry(*history).or_default().push((id, number));
            last = Some(number);
        }
        if let Some(last) = last.and_then(|last| conversation.message(last)) {
            place.turn = last.turns;
        }
        place
    }

    /// Whether a conversation is held out of training, as was decided at its first request.
    pub(super) fn holds_out(&mut self, id: ConversationId, decide: impl FnOnce() -> bool) -> bool {
        let Some(conversation) = self.by_id.get_mut(&id) else { return decide() };
        *conversation.held_out.get_or_insert_with(decide)
    }

    /// Adds a request that a journal holds, by the numbers it has there.
    pub(super) fn restore(&mut self, begun: &Restored<'_>, shown: &[Shown]) -> ConversationId {
        let asking = Asking {
            api: begun.api,
            scope: begun.scope,
            held_out: None,
            session: begun.session,
            again: false,
            previous: None,
            now: 0,
        };
        let root = root(begun.scope, begun.api, begun.session);
        let known = self.by_log_name.get(begun.name).copied();
        let id = if let Some(id) = known {
            id
        } else {
            let id = self.begin(&asking, shown);
            let name: Arc<str> = begun.name.into();
            self.by_log_name.insert(Arc::clone(&name), id);
            if let Some(conversation) = self.by_id.get_mut(&id) {
                let own = std::mem::replace(&mut conversation.name, name);
                if *own != *begun.name {
                    self.by_log_name.remove(&own);
                }
            }
            id
        };
        let Some(conversation) = self.by_id.get_mut(&id) else { return id };
        conversation.requests = conversation.requests.max(begun.request.saturating_add(1));
        // What hangs under a message that the log does not hold is under no history either.
        if begun.parent.is_some_and(|parent| conversation.message(parent).is_none()) {
            return id;
        }
        let before = begun.parent.and_then(|parent| conversation.message(parent));
        let mut history = before.map_or(root, |before| before.history);
        let mut last = begun.parent;
        for (number, message) in (begun.first..u32::MAX).zip(shown) {
            history = history.then(message.fingerprint);
            if !conversation.put(number, last, history, message.answer, false) {
                break;
            }
            self.messages += 1;
            self.by_history.entry(history).or_default().push((id, number));
            last = Some(number);
        }
        id
    }

    /// Keeps what makes the turn of a request durable.
    /// The answer's messages begin at `first`.
    pub(super) fn wait(&mut self, id: ConversationId, first: u32, state: watch::Receiver<Durable>) {
        if let Some(conversation) = self.by_id.get_mut(&id) {
            let keep = |wait: &Wait| matches!(*wait.state.borrow(), Durable::NotYet | Durable::Unwritten);
            conversation.waits.retain(keep);
            let messages = first..conversation.messages.len() as u32;
            conversation.waits.push(Wait { state, messages });
        }
    }

    /// Takes answers back that the log does not hold. Returns whether there were any.
    fn take_back(&mut self, id: ConversationId) -> bool {
        let Some(conversation) = self.by_id.get_mut(&id) else { return false };
        let is_lost = |wait: &mut Wait| *wait.state.borrow() == Durable::Unwritten;
        let lost: Vec<Wait> = conversation.waits.extract_if(.., is_lost).collect();
        for wait in &lost {
            self.take_out(id, wait.messages.clone());
        }
        !lost.is_empty()
    }

    fn take_out(&mut self, id: ConversationId, numbers: Range<u32>) {
        let Some(conversation) = self.by_id.get_mut(&id) else { return };
        for number in numbers {
            let slot = conversation.messages.get_mut(number as usize).and_then(Option::take);
            let Some(message) = slot else { continue };
            self.messages -= 1;
            if let Some(known) = self.by_history.get_mut(&message.history) {
                known.retain(|found| *found != (id, number));
                if known.is_empty() {
                    self.by_history.remove(&message.history);
                }
            }
        }
    }

    /// Takes a request's messages back: the log does not hold them, so nothing may hang under them.
    pub(super) fn withdraw(&mut self, place: &Place, last: Option<u32>) {
        let Some(conversation) = self.by_id.get_mut(&place.id) else { return };
        // The next request says its tools again.
        conversation.tools = None;
        conversation.said_tools = false;
        let Some(last) = last.filter(|last| *last >= place.first) else { return };
        let parent = place.parent.and_then(|parent| conversation.messages.get_mut(parent as usize));
        if let Some(Some(parent)) = parent {
            parent.followed = false;
        }
        self.take_out(place.id, place.first..last.saturating_add(1));
    }

    /// Adds the answer to a request. Returns the number of the answer's first message.
    pub(super) fn answer(&mut self, id: ConversationId, given: &Given<'_>) -> u32 {
        let Some(conversation) = self.by_id.get_mut(&id) else { return 0 };
        conversation.open = conversation.open.saturating_sub(1);
        conversation.used = given.now;
        let scope = given.scope;
        let first = given.first.unwrap_or(conversation.messages.len() as u32);
        let mut number = first;
        for alternative in given.alternatives {
            let mut parent = given.last;
            for message in alternative {
                let before = parent.and_then(|parent| conversation.message(parent));
                if parent.is_some() && before.is_none() {
                    return first;
                }
                let before = before.map_or_else(
                    || root(scope, conversation.api, conversation.session_name()),
                    |before| before.history,
                );
                let history = before.then(message.fingerprint);
                if !conversation.put(number, parent, history, true, true) {
                    return first;
                }
                self.messages += 1;
                parent = Some(number);
                self.by_history.entry(history).or_default().push((id, number));
                number += 1;
                if let (true, Some(fingerprint)) = (message.particular, message.fingerprint) {
                    let mark = mark(scope, fingerprint);
                    conversation.particular.push(mark);
                    let owner = self.by_particular.entry(mark).or_insert(Some(id));
                    if *owner != Some(id) {
                        *owner = None;
                    }
                }
            }
            if let (Some(parent), Some(answer), Api::Responses) = (parent, given.id, conversation.api) {
                let key = (scope, answer.to_owned());
                conversation.answers.push(key.clone());
                self.by_answer.insert(key, (id, parent));
            }
        }
        first
    }

    /// The conversation of a name that a client of this scope uses: a session's, or the log's.
    pub(super) fn named(&self, scope: Fingerprint, name: &str) -> Option<(ConversationId, Arc<str>)> {
        let by_session = self.by_session.get(&(scope, name.to_owned()));
        let id = by_session.or_else(|| self.by_log_name.get(name)).copied()?;
        Some((id, Arc::clone(&self.by_id.get(&id)?.name)))
    }

    /// Conversations that nobody has used since `before` and in which nothing is open, the longest unused first.
    pub(super) fn idle(&self, before: u64) -> Vec<ConversationId> {
        let idle = self.by_id.iter().filter(|(_, found)| found.open == 0 && found.used <= before);
        let mut idle: Vec<(u64, ConversationId)> = idle.map(|(id, found)| (found.used, *id)).collect();
        idle.sort_unstable();
        idle.into_iter().map(|(_, id)| id).collect()
    }

    /// Forgets a conversation; a request that goes on with it begins a new one. Returns whether that was
    /// done: one in which something is under way stays.
    pub(super) fn forget(&mut self, id: ConversationId) -> bool {
        if self.by_id.get(&id).is_some_and(|conversation| conversation.open > 0) {
            return false;
        }
        let Some(conversation) = self.by_id.remove(&id) else { return false };
        self.by_log_name.remove(&conversation.name);
        self.messages -= conversation.messages.iter().flatten().count();
        if let Some(begun) = self.begun.get_mut(&conversation.origin) {
            begun.live -= 1;
            if begun.live == 0 {
                self.begun.remove(&conversation.origin);
            }
        }
        for message in conversation.messages.iter().flatten() {
            if let Some(known) = self.by_history.get_mut(&message.history) {
                known.retain(|(other, _)| *other != id);
                if known.is_empty() {
                    self.by_history.remove(&message.history);
                }
            }
        }
        for mark in &conversation.particular {
            if self.by_particular.get(mark) == Some(&Some(id)) {
                self.by_particular.remove(mark);
            }
        }
        for answer in &conversation.answers {
            if self.by_answer.get(answer).is_some_and(|(owner, _)| *owner == id) {
                self.by_answer.remove(answer);
            }
        }
        if let Some((scope, session)) = conversation.session {
            if self.names.get(&session) == Some(&scope) {
                self.names.remove(&session);
            }
            self.taken.insert(session.clone());
            self.by_session.remove(&(scope, session));
        }
        true
    }
}

impl Conversation {
    fn session_name(&self) -> Option<&str> {
        self.session.as_ref().map(|(_, name)| name.as_str())
    }

    fn message(&self, number: u32) -> Option<&Message> {
        self.messages.get(number as usize)?.as_ref()
    }

    /// Puts a message at its number; those between it and the last one are not known. Returns whether it
    /// could be: a number that is taken, or far out, is none of this conversation.
    fn put(
        &mut self,
        number: u32,
        parent: Option<u32>,
        history: Fingerprint,
        answer: bool,
        given: bool,
    ) -> bool {
        let place = number as usize;
        if self.message(number).is_some() || place > self.messages.len() + GAP_MAX {
            return false;
        }
        if place >= self.messages.len() {
            self.messages.resize_with(place + 1, || None);
        }
        let before = parent.and_then(|parent| self.messages.get_mut(parent as usize)?.as_mut());
        // Several messages of a model in a row, as some APIs write one answer, are one turn.
        let (turns, ours) = before.map_or((u32::from(answer), given), |before| {
            before.followed = true;
            (before.turns + u32::from(answer && !before.answer), before.ours || given)
        });
        if let Some(slot) = self.messages.get_mut(place) {
            *slot = Some(Message { history, answer, turns, ours, followed: false });
        }
        true
    }
}

fn mark(scope: Fingerprint, message: Fingerprint) -> Fingerprint {
    Fingerprint::of(&[b"particular", &scope.0.to_le_bytes(), &message.0.to_le_bytes()])
}

fn root(scope: Fingerprint, api: Api, session: Option<&str>) -> Fingerprint {
    let api = super::api::path(api);
    Fingerprint::of(&[&scope.0.to_le_bytes(), api.as_bytes(), session.unwrap_or_default().as_bytes()])
}

/// The fingerprint of the history up to each message.
fn histories(asking: &Asking<'_>, shown: &[Shown]) -> Vec<Fingerprint> {
    let mut history = root(asking.scope, asking.api, asking.session);
    let mut histories = Vec::with_capacity(shown.len());
    for message in shown {
        history = history.then(message.fingerprint);
        histories.push(history);
    }
    histories
}

#[cfg(test)]
mod tests {
    use super::{
        Api, Asking, ConversationId, Conversations, Durable, Fingerprint, Given, HashSet, Place, Restored,
        Shown, watch,
    };

    const SCOPE: Fingerprint = Fingerprint(1);

    fn said(text: &str, answer: bool) -> Shown {
        let particular = answer && text.len() > 8;
        Shown { fingerprint: Some(Fingerprint::of(&[text.as_bytes()])), answer, particular }
    }

    /// A history of questions (`?`) and answers.
    fn history(texts: &[&str]) -> Vec<Shown> {
        texts.iter().map(|text| said(text, !text.ends_with('?'))).collect()
    }

    fn asking<'a>(
        api: Api,
        session: Option<&'a str>,
        previous: Option<&'a str>,
        held_out: Option<bool>,
    ) -> Asking<'a> {
        Asking { api, scope: SCOPE, held_out, session, again: false, previous, now: 0 }
    }

    fn ask(conversations: &mut Conversations, texts: &[&str]) -> Place {
        ask_in(conversations, texts, None)
    }

    fn ask_in(conversations: &mut Conversations, texts: &[&str], session: Option<&str>) -> Place {
        let asking = asking(Api::Chat, session, None, None);
        conversations.place(&asking, &history(texts), None)
    }

    fn given(last: Option<u32>, first: Option<u32>, alternatives: &[Vec<Shown>]) -> Given<'_> {
        Given { last, first, alternatives, id: None, scope: SCOPE, now: 0 }
    }

    fn answer(conversations: &mut Conversations, place: &Place, new: usize, text: &str) {
        let last = if new == 0 { place.parent } else { Some(place.first + new as u32 - 1) };
        conversations.answer(place.id, &given(last, None, &[vec![said(text, true)]]));
    }

    #[test]
    fn equal_conversations_at_one_time_go_on_side_by_side() {
        let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
        let first = [ask(&mut conversations, &["a?"]), ask(&mut conversations, &["a?"])];
        assert_ne!(first[0].id, first[1].id);
        for place in &first {
            answer(&mut conversations, place, 1, "yes");
        }
        let second =
            [ask(&mut conversations, &["a?", "yes", "b?"]), ask(&mut conversations, &["a?", "yes", "b?"])];
        assert_ne!(second[0].id, second[1].id);
        assert_eq!([second[0].parent, second[1].parent], [Some(1), Some(1)]);
        assert_eq!([second[0].turn, second[1].turn], [1, 1]);
        // One answers, the other fails and is asked again.
        answer(&mut conversations, &second[0], 1, "no");
        conversations.answer(second[1].id, &given(Some(2), None, &[]));
        let again = ask(&mut conversations, &["a?", "yes", "b?"]);
        assert_eq!((again.id, again.parent, again.request), (second[1].id, Some(2), 2));
    }

    #[test]
    fn an_edited_history_is_a_branch_and_examples_are_no_history() {
        let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
        let first = ask(&mut conversations, &["example?", "shown", "a?"]);
        answer(&mut conversations, &first, 3, "yes");
        let next = ask(&mut conversations, &["example?", "shown", "a?", "yes", "b?"]);
        answer(&mut conversations, &next, 1, "no");
        let edited = ask(&mut conversations, &["example?", "shown", "a?", "yes", "c?"]);
        assert_eq!((edited.id, edited.parent, edited.known), (first.id, Some(3), 4));
        let other = ask(&mut conversations, &["example?", "shown", "z?"]);
        assert_ne!(other.id, first.id, "examples in a prompt tie nobody together");
    }

    #[test]
    fn a_journal_with_gaps_is_restored_by_its_numbers() {
        let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
        let restored = |request, parent, first| Restored {
            name: "s",
            api: Api::Chat,
            scope: SCOPE,
            session: Some("s"),
            request,
            parent,
            first,
        };
        // The lines of message 1 are lost, and those of 4 come before those of 3.
        let id = conversations.restore(&restored(0, None, 0), &history(&["a?"]));
        conversations.restore(&restored(1, Some(0), 4), &history(&["c?"]));
        conversations.answer(id, &given(Some(0), Some(2), &[vec![said("yes", true)]]));
        conversations.restore(&restored(2, Some(2), 3), &history(&["b?"]));
        conversations.answer(id, &given(Some(1), Some(5), &[vec![said("of nothing", true)]]));
        let place = ask_in(&mut conversations, &["a?", "yes", "b?", "no"], Some("s"));
        assert_eq!((place.parent, place.known, place.first, place.request), (Some(3), 3, 5, 3));
        assert_eq!(ask_in(&mut conversations, &["a?", "c?"], Some("s")).parent, Some(4));
        let far = restored(9, None, u32::MAX);
        conversations.restore(&far, &history(&["z?"]));
        assert_eq!(conversations.message_count(), 5);
    }

    #[test]
    fn a_request_that_is_not_in_the_log_is_nobodys_parent() {
        let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
        let lost = ask_in(&mut conversations, &["a?", "b?"], Some("s"));
        conversations.withdraw(&lost, Some(1));
        conversations.answer(lost.id, &given(Some(1), None, &[]));
        let again = ask_in(&mut conversations, &["a?", "b?"], Some("s"));
        assert_eq!((again.parent, again.known), (None, 0));
        assert!(again.tools_changed);
        assert_eq!(conversations.message_count(), 2);
        // An answer whose line is lost is what the client brings along.
        let (durable, state) = watch::channel(Durable::NotYet);
        answer(&mut conversations, &again, 2, "yes");
        let first = again.first + 2;
        conversations.wait(again.id, first, state);
        durable.send_replace(Durable::Unwritten);
        let next = ask_in(&mut conversations, &["a?", "b?", "yes", "c?"], Some("s"));
        assert_eq!((next.parent, next.known), (Some(first - 1), 2));
        assert!(next.waits.is_empty());
    }

    #[test]
    fn what_two_have_said_is_nobodys_and_a_held_out_task_is_its_own() {
        let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
        let first = ask(&mut conversations, &["a?"]);
        answer(&mut conversations, &first, 1, "a long answer");
        conversations.holds_out(first.id, || true);
        let train = asking(Api::Chat, None, None, Some(false));
        let told = history(&["summary?", "a long answer", "b?"]);
        assert_ne!(conversations.place(&train, &told, None).id, first.id);
        let held_out = asking(Api::Chat, None, None, Some(true));
        assert_eq!(conversations.place(&held_out, &told, None).id, first.id);
        let second = ask(&mut conversations, &["other?"]);
        answer(&mut conversations, &second, 1, "a long answer");
        let neither = ask(&mut conversations, &["short?", "a long answer", "b?"]);
        assert!(neither.id != first.id && neither.id != second.id);
    }

    #[test]
    fn a_previous_answer_belongs_to_its_client_api_and_session() {
        let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
        let first =
            conversations.place(&asking(Api::Responses, Some("s"), None, None), &history(&["a?"]), None);
        let yes = [vec![said("yes", true)]];
        conversations.answer(first.id, &Given { id: Some("r"), ..given(Some(0), None, &yes) });
        let mut place = |asking: Asking<'_>| conversations.place(&asking, &history(&["b?"]), None).id;
        assert_eq!(place(asking(Api::Responses, None, Some("r"), None)), first.id);
        assert_eq!(place(asking(Api::Responses, Some("s"), Some("r"), None)), first.id);
        assert_ne!(place(asking(Api::Responses, Some("t"), Some("r"), None)), first.id);
        assert_ne!(place(asking(Api::Chat, None, Some("r"), None)), first.id);
        let stranger = Asking { scope: Fingerprint(2), ..asking(Api::Responses, None, Some("r"), None) };
        assert_ne!(place(stranger), first.id);
    }

    #[test]
    fn sessions_and_particular_messages_survive_a_new_context() {
        let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
        let first = ask_in(&mut conversations, &["a?"], Some("s"));
        answer(&mut conversations, &first, 1, "yes");
        assert_eq!(ask_in(&mut conversations, &["short?"], Some("s")).id, first.id);
        let open = ask(&mut conversations, &["long?"]);
        answer(&mut conversations, &open, 1, "a long answer");
        let compacted = ask(&mut conversations, &["summary?", "a long answer", "b?"]);
        assert_eq!((compacted.id, compacted.parent, compacted.known), (open.id, None, 0));
        assert!(!conversations.forget(open.id), "a request is under way");
        conversations.answer(open.id, &given(Some(0), None, &[]));
        assert!(conversations.forget(open.id));
        assert_ne!(ask(&mut conversations, &["again?", "a long answer", "b?"]).id, open.id);
        assert_eq!(conversations.idle(u64::MAX), [] as [ConversationId; 0], "something is open in each");
    }
}
