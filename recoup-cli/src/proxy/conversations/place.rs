//! What a request brings, and where it is put.

use std::sync::Arc;

use recoup::importers::recoup_proxy::Api;
use tokio::sync::watch;

use crate::proxy::fingerprint::Fingerprint;

/// A conversation of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::proxy) struct ConversationId(pub u64);

/// A message of the history that a request brings.
#[derive(Clone, Copy, Debug)]
pub(in crate::proxy) struct Shown {
    /// `None` where it says nothing of its own.
    pub fingerprint: Option<Fingerprint>,
    /// Whether a model said it.
    pub answer: bool,
    /// Whether no other conversation would hold it by chance.
    pub particular: bool,
}

/// What says whose request it is.
#[derive(Clone, Copy, Debug)]
pub(in crate::proxy) struct Asking<'a> {
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
pub(in crate::proxy) struct Restored<'a> {
    pub name: &'a str,
    pub api: Api,
    pub scope: Fingerprint,
    pub session: Option<&'a str>,
    pub request: u32,
    pub parent: Option<u32>,
    /// Number of its first new message.
    pub first: u32,
    /// How many conversations began like this one before it.
    pub ordinal: u64,
}

/// What was answered to a request.
pub(in crate::proxy) struct Given<'a> {
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
pub(in crate::proxy) struct Place {
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
    /// Whether the request names a known answer to go on from.
    pub resumes: bool,
    /// What must be on the disk before this request is forwarded.
    pub waits: Vec<watch::Receiver<Durable>>,
    /// Whether the tools are others than at the request before.
    pub tools_changed: bool,
}

/// How far a turn has come on its way to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::proxy) enum Durable {
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
