//! What a journal gives back to conversations, and what it failed to take from them.

use std::ops::Range;
use std::sync::Arc;

use tokio::sync::watch;

use super::conversation::{Said, Wait};
use super::histories::{histories, opening, root};
use super::{Asking, ConversationId, Conversations, Durable, Place, Restored, Shown};
use crate::proxy::fingerprint::Fingerprint;

impl Conversations {
    /// Adds a request that a journal holds, by the numbers it has there.
    pub(in crate::proxy) fn restore(&mut self, begun: &Restored<'_>, shown: &[Shown]) -> ConversationId {
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
            let opening = opening(histories(&asking, shown).last().copied().unwrap_or(Fingerprint(0)));
            let before = self.begun.get(&opening).copied().unwrap_or(0);
            let id = self.begin(&asking, shown);
            // It may be among those that the project holds.
            self.begun.insert(opening, before.max(begun.ordinal + 1));
            let name: Arc<str> = begun.name.into();
            self.by_log_name.insert(Arc::clone(&name), id);
            if let Some(conversation) = self.by_id.get_mut(&id) {
                conversation.ordinal = begun.ordinal;
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
            let said = Said { parent: last, history, answer: message.answer, given: false };
            if !self.index.put(id, conversation, number, &said) {
                break;
            }
            last = Some(number);
        }
        id
    }

    /// Keeps what makes the turn of a request durable. The answer's messages begin at `first`.
    pub(in crate::proxy) fn wait(&mut self, id: ConversationId, first: u32, state: watch::Receiver<Durable>) {
        if let Some(conversation) = self.by_id.get_mut(&id) {
            let keep = |wait: &Wait| matches!(*wait.state.borrow(), Durable::NotYet | Durable::Unwritten);
            conversation.waits.retain(keep);
            let messages = first..conversation.messages.len() as u32;
            conversation.waits.push(Wait { state, messages });
        }
    }

    /// Takes answers back that the log does not hold. Returns whether there were any.
    pub(super) fn take_back(&mut self, id: ConversationId) -> bool {
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
            self.index.take(id, number, message.history);
        }
    }

    /// Takes a request's messages back: the log does not hold them, so nothing may hang under them.
    pub(in crate::proxy) fn withdraw(&mut self, place: &Place, last: Option<u32>) {
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
}
