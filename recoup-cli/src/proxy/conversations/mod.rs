//! Conversations: which one a request belongs to, and from which of its messages it goes on.
//!
//! A client that names its session is believed, within what its key may see. Any other request goes to
//! the conversation whose messages it repeats up to an answer; where several do, to one that waits for
//! its next request. A history without a known answer, but with a message so particular that only one
//! conversation can have said it, is that conversation's, compacted or edited. Anything else begins a
//! new conversation, so two attempts at one task never become one.
//!
//! Nothing of a message is kept here but its fingerprint.

mod conversation;
mod histories;
mod index;
mod journaled;
mod place;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use recoup::importers::recoup_proxy::Api;

use self::conversation::{Conversation, Said};
use self::histories::{histories, histories_from, mark, opening, opening_in, root};
use self::index::Index;
pub(super) use self::place::{Asking, ConversationId, Durable, Given, Place, Restored, Shown};
use super::fingerprint::Fingerprint;

/// Conversations under one fingerprint that are looked at.
const CANDIDATES_MAX: usize = 64;

/// All of them.
#[derive(Default)]
pub(super) struct Conversations {
    next: u64,
    stamp: String,
    by_id: HashMap<ConversationId, Conversation>,
    by_session: HashMap<(Fingerprint, String), ConversationId>,
    index: Index,
    /// `None` where two conversations have said it.
    by_particular: HashMap<Fingerprint, Option<ConversationId>>,
    by_answer: HashMap<(Fingerprint, String), (ConversationId, u32)>,
    by_log_name: HashMap<Arc<str>, ConversationId>,
    /// How many conversations began alike, by how they did. Those that are forgotten count, so that no two of them have
    /// the same coins.
    begun: HashMap<u64, u64>,
    names: HashMap<String, Fingerprint>,
    taken: HashSet<String>,
}

impl Conversations {
    /// None yet; `stamp` tells the names of this process from those of another, and `taken` are names of
    /// runs in the project.
    pub(super) fn new(stamp: String, taken: HashSet<String>) -> Self {
        let mut begun = HashMap::new();
        for opening in taken.iter().filter_map(|name| opening_in(name)) {
            *begun.entry(opening).or_default() += 1;
        }
        Self { stamp, begun, taken, ..Self::default() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// How many messages they have.
    pub(super) fn message_count(&self) -> usize {
        self.index.message_count()
    }

    /// Puts a request where it belongs and adds its new messages.
    pub(super) fn place(
        &mut self,
        asking: &Asking<'_>,
        shown: &[Shown],
        tools: Option<Fingerprint>,
    ) -> Place {
        let previous = self.by_previous(asking);
        let resumes = previous.is_some();
        // What goes on from a kept answer begins where that ends, and not anew.
        let kept = previous.and_then(|(id, message, _)| self.by_id.get(&id)?.message(message?));
        let start = kept.map_or_else(|| root(asking.scope, asking.api, asking.session), |kept| kept.history);
        let histories = histories_from(start, shown);
        let found = previous
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
        let place = self.add_request(id, parent, known, asking, shown, &histories, tools);
        Place { resumes, ..place }
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
            let holders = self.index.holders(*history);
            if let Some((_, message)) = holders.iter().rev().find(|(candidate, _)| *candidate == id) {
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
            let whole = index + 1 == histories.len();
            let mut best: Option<((bool, u64), ConversationId, u32)> = None;
            for (id, number) in self.index.holders(*history).iter().rev().take(CANDIDATES_MAX) {
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
        let begun = self.begun.entry(opening(origin)).or_default();
        let ordinal = *begun;
        *begun += 1;
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
            None => format!("{:012x}-{}-{}", opening(origin), self.stamp, id.0),
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
            resumes: false,
            waits: conversation.waits.iter().map(|wait| wait.state.clone()).collect(),
            tools_changed: tools != conversation.tools || !conversation.said_tools,
        };
        conversation.tools = tools;
        conversation.said_tools = true;
        let mut last = parent;
        for (number, (message, history)) in (first..u32::MAX).zip(shown.iter().zip(histories).skip(known)) {
            let said = Said { parent: last, history: *history, answer: message.answer, given: false };
            self.index.put(id, conversation, number, &said);
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
                let said = Said { parent, history, answer: true, given: true };
                if !self.index.put(id, conversation, number, &said) {
                    return first;
                }
                parent = Some(number);
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
        for (number, message) in (0..u32::MAX).zip(&conversation.messages) {
            if let Some(message) = message {
                self.index.take(id, number, message.history);
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
