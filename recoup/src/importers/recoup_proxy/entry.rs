//! The entries of the proxy's log: one JSON object a line, `recoup_proxy` first.
//!
//! Messages are numbered within their conversation, in the order in which the log first holds them. A
//! request names the message that it goes on from and brings only those that the log does not hold yet,
//! so a conversation is logged once however often its client sends it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::interleaving::Mixing;
use crate::trajectory::{Call, Status};
use crate::verdict::{Actor, LabelRefusal};

/// The member that every entry starts with.
pub(super) const KIND: &str = "recoup_proxy";

/// The code of a [`Problem`] in which an upstream says that a state is longer than its model's context.
pub const CONTEXT_FULL: &str = "context-full";
/// The code of a [`Problem`] in which a turn was not asked for, since a cap on spending is reached.
pub const BUDGET: &str = "budget";

/// An API that clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
}

/// A request that is about to be forwarded.
#[derive(Debug, Serialize, Deserialize)]
pub struct Begin<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation: Cow<'a, str>,
    /// Which request of the conversation, from 0.
    pub request: u32,
    /// When it came, in RFC 3339.
    pub at: Cow<'a, str>,
    /// What the client speaks.
    pub api: Api,
    /// Whose request it is: a keyed hash of the client's key, hexadecimal.
    pub client: Cow<'a, str>,
    /// The session that the client names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Cow<'a, str>>,
    /// The task that the client names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Cow<'a, str>>,
    /// Which attempt at the task, as the client counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode: Option<u64>,
    /// The client's program, as it names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<Cow<'a, str>>,
    /// Who is asked to act.
    pub actor: Actor,
    /// How turns are shared; absent where there is no teacher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing<'a>>,
    /// How many conversations began like this one before it: coins are tossed with that.
    #[serde(default, skip_serializing_if = "is_none_before")]
    pub ordinal: u64,
    /// Turns of the agent before this one, on its branch.
    pub turn: u32,
    /// Number of the message that the request goes on from; none where nothing of it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// Number of the first of `messages`.
    pub first: u32,
    /// What the request adds.
    #[serde(borrow)]
    pub messages: Vec<&'a RawValue>,
    /// Tools offered, where they are others than at the conversation's request before.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<&'a RawValue>,
    /// The request without messages and tools.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<&'a RawValue>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none_before(ordinal: &u64) -> bool {
    *ordinal == 0
}

/// How a student and a teacher share a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sharing<'a> {
    /// The teacher.
    #[serde(borrow)]
    pub teacher: Cow<'a, str>,
    /// Round of collection, from 1.
    pub round: u32,
    /// Who acts when.
    pub mixing: Mixing,
    /// Tokens that the student's context holds, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
}

/// What came of a request.
#[derive(Debug, Serialize, Deserialize)]
pub struct End<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation: Cow<'a, str>,
    /// The request.
    pub request: u32,
    /// When its answer was whole, in RFC 3339.
    pub at: Cow<'a, str>,
    /// The upstream's own name of the answer, where a later request may go on from it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    /// Number of the first message of the answer.
    pub first: u32,
    /// Alternatives, mostly one, each a list of messages; their numbers run on.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Vec<&'a RawValue>>,
    /// The model call, tokens and log-probabilities where the upstream sends them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Call>>,
    /// Why there is no whole answer.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem<'a>>,
    /// From the request to the end of its answer.
    pub seconds: f64,
}

/// What the teacher would do in the state that a request shows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Label<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation: Cow<'a, str>,
    /// The request.
    pub request: u32,
    /// When, in RFC 3339.
    pub at: Cow<'a, str>,
    /// The teacher.
    pub teacher: Cow<'a, str>,
    /// Its action, as messages; none where there is no label.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<&'a RawValue>,
    /// The model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Call>>,
    /// Why it is missing or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<LabelRefusal>,
}

/// How the task ended, as the harness says.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation: Cow<'a, str>,
    /// When it was said, in RFC 3339.
    pub at: Cow<'a, str>,
    /// Solved or not.
    pub status: Status,
    /// The harness's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem<'a> {
    /// Stable word of the cause (`upstream-status`, `client-gone` …).
    pub code: Cow<'a, str>,
    /// For a person; the upstream's own words where it sent some.
    pub message: Cow<'a, str>,
}

/// One entry.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A request.
    Begin(Begin<'a>),
    /// What came of it.
    End(End<'a>),
    /// The teacher's action there.
    Label(Label<'a>),
    /// The task's outcome.
    Outcome(Outcome<'a>),
}

impl<'a> Entry<'a> {
    /// The entry as a line, with its line feed.
    ///
    /// # Errors
    /// When a number is not finite.
    pub fn to_line(&self) -> serde_json::Result<Vec<u8>> {
        fn line<T: Serialize>(kind: &str, entry: &T) -> serde_json::Result<Vec<u8>> {
            let mut line = format!("{{\"{KIND}\":\"{kind}\",").into_bytes();
            let start = line.len();
            serde_json::to_writer(&mut line, entry)?;
            line.remove(start);
            // Between the tokens of what a client sent, never inside a string.
            line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
            line.push(b'\n');
            Ok(line)
        }
        match self {
            Self::Begin(begin) => line("begin", begin),
            Self::End(end) => line("end", end),
            Self::Label(label) => line("label", label),
            Self::Outcome(outcome) => line("outcome", outcome),
        }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// When it is no entry.
    pub fn parse(line: &'a [u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow)]
            recoup_proxy: Cow<'a, str>,
        }
        let head: Head<'_> = serde_json::from_slice(line)?;
        match &*head.recoup_proxy {
            "begin" => serde_json::from_slice(line).map(Self::Begin),
            "end" => serde_json::from_slice(line).map(Self::End),
            "label" => serde_json::from_slice(line).map(Self::Label),
            "outcome" => serde_json::from_slice(line).map(Self::Outcome),
            _ => Err(serde::de::Error::custom("the entry is of a kind that is not known")),
        }
    }

    /// The conversation that it belongs to.
    pub fn conversation(&self) -> &str {
        match self {
            Self::Begin(begin) => &begin.conversation,
            Self::End(end) => &end.conversation,
            Self::Label(label) => &label.conversation,
            Self::Outcome(outcome) => &outcome.conversation,
        }
    }
}
