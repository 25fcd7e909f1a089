//! The index: which conversations hold which history, and how many messages there are.

use std::collections::HashMap;

use super::ConversationId;
use super::conversation::{Conversation, Said};
use crate::proxy::fingerprint::Fingerprint;

/// Messages of all conversations, by the history up to each.
#[derive(Default)]
pub(super) struct Index {
    by_history: HashMap<Fingerprint, Vec<(ConversationId, u32)>>,
    messages: usize,
}

impl Index {
    /// How many messages there are.
    pub(super) fn message_count(&self) -> usize {
        self.messages
    }

    /// Conversations that hold a history, each with its last message's number, in the order in which they came
    /// to hold it.
    pub(super) fn holders(&self, history: Fingerprint) -> &[(ConversationId, u32)] {
        self.by_history.get(&history).map_or(&[], Vec::as_slice)
    }

    /// Puts a message into a conversation at its number. Returns whether it could be ([`Conversation::put`]).
    pub(super) fn put(
        &mut self,
        id: ConversationId,
        conversation: &mut Conversation,
        number: u32,
        said: &Said,
    ) -> bool {
        if !conversation.put(number, said) {
            return false;
        }
        self.messages += 1;
        self.by_history.entry(said.history).or_default().push((id, number));
        true
    }

    /// Takes a message out that was put in.
    pub(super) fn take(&mut self, id: ConversationId, number: u32, history: Fingerprint) {
        self.messages -= 1;
        if let Some(known) = self.by_history.get_mut(&history) {
            known.retain(|found| *found != (id, number));
            if known.is_empty() {
                self.by_history.remove(&history);
            }
        }
    }
}
