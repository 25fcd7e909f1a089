//! Labels of a conversation: what the teacher would have done in each state that a request shows.

use super::Api;
use super::said;
use crate::importers::dialect::Aside;
use crate::trajectory::{Call, Node, Part, Status, Trajectory};
use crate::verdict::{Actor, LabelCost, LabelMark, LabelRefusal, RefusalCode, StateLabel, TurnAst};
use serde_json::value::RawValue;

/// The teacher's answer to one request, before its state is known to the run.
#[derive(Default)]
pub(super) struct Taught {
    parts: Vec<Part>,
    call: Option<Call>,
    refused: Option<LabelRefusal>,
}

/// Where a label stands.
pub(super) struct Visit<'a> {
    pub state: usize,
    pub executed: Option<usize>,
    pub turn: u64,
    pub round: u32,
    pub actor: Actor,
    pub teacher: &'a str,
}

impl Taught {
    /// What a teacher that was asked for a label answered.
    pub(super) fn asked(
        api: Api,
        answer: &[&RawValue],
        call: Option<Box<Call>>,
        refused: Option<LabelRefusal>,
    ) -> Self {
        // Only what the turn means is kept of it.
        let nodes = said::nodes(api, answer, &mut Aside::default());
        let parts = nodes.into_iter().flatten().flat_map(|node| node.parts).collect();
        Self { parts, call: call.map(|call| *call), refused }
    }

    /// What a teacher that acted did.
    pub(super) fn executed(node: &Node) -> Self {
        Self { parts: node.parts.clone(), call: node.occurrence.call.as_deref().cloned(), refused: None }
    }

    /// Nothing.
    pub(super) fn missing() -> Self {
        let reason = "the teacher gave no answer".to_owned();
        Self { refused: Some(LabelRefusal { code: RefusalCode::Missing, reason }), ..Self::default() }
    }

    /// The label of a visited state.
    pub(super) fn label(self, run: &Trajectory, visit: &Visit<'_>) -> StateLabel {
        let read = match self.refused {
            Some(refused) => Err(refused),
            None => read(&self.parts, run),
        };
        let executed = visit.executed.and_then(|node| run.nodes.get(node));
        let did = executed.and_then(|node| Some(TurnAst::of_parts(&node.parts).ok()?.0));
        let (action, reasoning, refused) = match read {
            Ok((action, reasoning)) => (Some(action), reasoning, None),
            Err(refused) => (None, None, Some(refused)),
        };
        let agrees = action.as_ref().map(|label| did.is_some_and(|did| did.does_the_same(label)));
        let ends = action.as_ref().is_some_and(TurnAst::is_answer) && agrees == Some(true);
        let is_last = visit.executed.is_some()
            && run.leaves.get(run.main_leaf).and_then(|leaf| leaf.node) == visit.executed;
        let unsolved = ends && is_last && run.outcome().status == Status::Failure;
        let usage = self.call.as_ref().and_then(|call| call.usage).unwrap_or_default();
        StateLabel {
            state: visit.state,
            executed: visit.executed,
            turn: visit.turn,
            round: visit.round,
            actor: visit.actor,
            teacher: visit.teacher.to_owned(),
            action,
            reasoning,
            agrees,
            refused,
            marks: if unsolved { vec![LabelMark::UnsolvedFinish] } else { Vec::new() },
            verified: None,
            cost: LabelCost {
                prompt_tokens: usage.input,
                completion_tokens: usage.output,
                usd: self.call.as_ref().and_then(|call| call.cost),
            },
            shift: None,
        }
    }
}

fn read(parts: &[Part], run: &Trajectory) -> Result<(TurnAst, Option<String>), LabelRefusal> {
    let (turn, reasoning) = TurnAst::of_parts(parts).map_err(LabelRefusal::unreadable)?;
    let foreign = turn.calls.iter().find(|call| run.tool(&call.name).is_none());
    if let Some(call) = foreign {
        let reason = format!("the student has no tool `{}`", call.name);
        return Err(LabelRefusal { code: RefusalCode::ForeignTool, reason });
    }
    Ok((turn, reasoning))
}
