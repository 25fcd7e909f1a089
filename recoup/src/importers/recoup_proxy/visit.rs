//! Visits: the states that the requests of a shared conversation show, each with what its teacher said there.

use serde_json::value::RawValue;

use super::{Api, said};
use crate::importers::dialect::Aside;
use crate::trajectory::{Call, Part};
use crate::verdict::{Actor, LabelRefusal, RefusalCode};

/// A state that was visited.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Position of its last message.
    pub state: usize,
    /// Position of the turn that was executed there.
    pub executed: Option<usize>,
    /// Which turn of the conversation's branch it is, from 0.
    pub turn: u64,
    /// Round of collection, from 1.
    pub round: u32,
    /// Who was to act.
    pub actor: Actor,
    /// The teacher's name.
    pub teacher: String,
    /// What the teacher said, or why it said nothing.
    pub taught: Result<Taught, LabelRefusal>,
    /// Tokens that the student's context holds, where that is known.
    pub context: Option<u64>,
    /// Whether the student's upstream said that the state is longer than its context.
    pub overflowed: bool,
}

/// A teacher's message, not read as a turn yet.
#[derive(Clone, Debug)]
pub struct Taught {
    /// Its parts.
    pub parts: Vec<Part>,
    /// The model call.
    pub call: Option<Call>,
}

/// What a teacher that was asked for a label answered.
pub(super) fn asked(
    api: Api,
    answer: &[&RawValue],
    call: Option<Box<Call>>,
    refused: Option<LabelRefusal>,
) -> Result<Taught, LabelRefusal> {
    if let Some(refused) = refused {
        return Err(refused);
    }
    // Only what the turn means is kept of it.
    let nodes = said::nodes(api, answer, &mut Aside::default());
    let parts = nodes.into_iter().flatten().flat_map(|node| node.parts).collect();
    Ok(Taught { parts, call: call.map(|call| *call) })
}

/// What stands where no answer came.
pub(super) fn missing() -> Result<Taught, LabelRefusal> {
    let reason = "the teacher gave no answer".to_owned();
    Err(LabelRefusal { code: RefusalCode::Missing, reason })
}
