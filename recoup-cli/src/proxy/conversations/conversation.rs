//! A conversation: its messages by their numbers, and what is open in it.

use std::ops::Range;
use std::sync::Arc;

use recoup::importers::recoup_proxy::Api;
use tokio::sync::watch;

use super::Durable;
use crate::proxy::fingerprint::Fingerprint;

/// Numbers that a journal may leave out between two messages.
const GAP_MAX: usize = 1 << 16;

/// A message that is to be put into a conversation.
pub(super) struct Said {
    pub parent: Option<u32>,
    /// Of the history up to it.
    pub history: Fingerprint,
    /// Whether a model said it.
    pub answer: bool,
    /// Whether it was answered here.
    pub given: bool,
}

/// An answer on its way to the disk.
pub(super) struct Wait {
    pub state: watch::Receiver<Durable>,
    /// The numbers of its messages.
    pub messages: Range<u32>,
}

/// A message of a conversation.
pub(super) struct Message {
    /// Of the history up to it.
    pub history: Fingerprint,
    /// Whether a model said it.
    pub answer: bool,
    /// Turns of the agent up to it.
    pub turns: u32,
    /// Whether an answer that was given here is among the messages up to it.
    pub ours: bool,
    /// Whether a request or an answer followed it.
    pub followed: bool,
}

/// One of them.
pub(super) struct Conversation {
    pub name: Arc<str>,
    pub api: Api,
    pub session: Option<(Fingerprint, String)>,
    pub told: Fingerprint,
    pub held_out: Option<bool>,
    pub ordinal: u64,
    /// By their numbers; `None` is one that is not known, or that the log does not hold.
    pub messages: Vec<Option<Message>>,
    pub requests: u32,
    pub open: u32,
    pub waits: Vec<Wait>,
    pub tools: Option<Fingerprint>,
    /// Whether a request of this process has said its tools.
    pub said_tools: bool,
    pub particular: Vec<Fingerprint>,
    pub answers: Vec<(Fingerprint, String)>,
    pub used: u64,
}

impl Conversation {
    pub(super) fn session_name(&self) -> Option<&str> {
        self.session.as_ref().map(|(_, name)| name.as_str())
    }

    pub(super) fn message(&self, number: u32) -> Option<&Message> {
        self.messages.get(number as usize)?.as_ref()
    }

    /// Puts a message at its number; those between it and the last one are not known. Returns whether it
    /// could be: a number that is taken, or far out, is none of this conversation.
    pub(super) fn put(&mut self, number: u32, said: &Said) -> bool {
        let Said { parent, history, answer, given } = *said;
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
