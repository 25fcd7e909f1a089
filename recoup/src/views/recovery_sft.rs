//! `recovery_sft`: the state before the decisive step, the wrong action with its rejection, and the repair that
//! passed.
//!
//! The wrong action and what answers it are context. The repair was executed from the state before the wrong
//! action, so the answer must be one that leaves that state as it is: the recorded reply where it is an error
//! that changed nothing, else [`REJECTION`].

use std::sync::Arc;

use super::turn::{calls, repaired};
use super::{Example, Exclusion, Fork, Message, Objective, View, ViewInput};
use crate::trajectory::{Node, Part, Role, ToolResult, Trajectory};
use crate::verdict::Arm;

/// What is said of a wrong action whose recorded reply does not reject it.
pub const REJECTION: &str = "This action was not carried out: it is wrong here. Choose another one.";

/// See the module.
pub struct RecoverySft;

impl View for RecoverySft {
    fn name(&self) -> &'static str {
        "recovery_sft"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let examples: Vec<Example> = repaired(input)?
            .into_iter()
            .filter_map(|(fork, mut turn)| {
                let lineage = fork.lineage(self, &turn, input);
                let (wrong, replies) = wrong(input, fork)?;
                let is_rejected = !changed_state(input.run, fork.pair.node) && is_rejection(&replies);
                let replies = if is_rejected { replies } else { rejection(&wrong) };
                turn.state.extend([wrong].into_iter().chain(replies).map(context_only).map(Arc::new));
                Some(turn.example(lineage))
            })
            .collect();
        if examples.is_empty() { Err(Exclusion::because("no-wrong-action")) } else { Ok(examples) }
    }
}

/// The original action and what it was answered: as it was executed again, else as it was recorded.
fn wrong(input: &ViewInput<'_>, fork: &Fork) -> Option<(Message, Vec<Message>)> {
    let (message, rest) = if let Some(turn) = fork.turn(Arm::Retry) {
        (turn.message, turn.rest)
    } else {
        let mut messages = Message::of_branch(input.run, &input.run.main_branch());
        let at = messages.iter().position(|message| message.node == Some(fork.pair.node))?;
        let rest = messages.split_off(at + 1);
        (messages.pop()?, rest)
    };
    let replies = rest.iter().take_while(|reply| matches!(reply.role, Role::Tool | Role::User));
    Some((Message::clone(&message), replies.map(|reply| Message::clone(reply)).collect()))
}

fn is_rejection(replies: &[Message]) -> bool {
    let mut parts = replies.iter().flat_map(|reply| &reply.parts).peekable();
    parts.peek().is_some()
        && parts.all(|part| matches!(part, Part::ToolResult(result) if result.is_error == Some(true)))
}

/// Whether a turn led to another state than it found, as far as the record tells.
fn changed_state(run: &Trajectory, turn: usize) -> bool {
    let branch = run.main_branch();
    let hash = |(_, node): (usize, &Node)| node.occurrence.state_hash;
    let before = branch.nodes().take_while(|(position, _)| *position < turn).filter_map(hash).last();
    let is_own = |(position, node): &(usize, &Node)| *position == turn || !node.occurrence.sampled;
    let after = branch.nodes().skip_while(|(position, _)| *position < turn).take_while(is_own);
    after.filter_map(hash).any(|after| Some(after) != before)
}

/// One answer to each call, or to the words.
fn rejection(wrong: &Message) -> Vec<Message> {
    let text = || vec![Part::text(REJECTION)];
    let calls = calls(wrong);
    if calls.is_empty() {
        return vec![Message::written(Role::User, "user", text())];
    }
    let answer = |call: &&crate::trajectory::ToolCall| {
        let call_id = call.call_id.clone();
        let result = ToolResult { call_id, parts: text(), is_error: Some(true), exit_code: None };
        Message::written(Role::Tool, &call.name, vec![Part::ToolResult(result)])
    };
    calls.iter().map(answer).collect()
}

/// The message as context that stands in no node of the example's own run.
fn context_only(message: Message) -> Message {
    Message { node: None, sampled: None, ..message }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{WRONG, fixture};
    use super::{REJECTION, RecoverySft};
    use crate::id::Hash;
    use crate::trajectory::{Part, Role};
    use crate::verdict::Arm;
    use crate::views::{Example, View};

    /// What the wrong action is answered, with the example checked.
    fn reply(example: &Example) -> &str {
        assert_eq!(example.context.len(), 6);
        assert_eq!(example.context[3].parts[0].cited_text(), Some(r#"{"id":"B2"}"#));
        assert_eq!((example.context[3].node, example.context[4].node), (None, None));
        assert_eq!(example.context[4].role, Role::Tool);
        assert!(example.segments.iter().all(|segment| segment.message == 5) && example.learns_all_of(5));
        let Part::ToolResult(result) = &example.context[4].parts[0] else { panic!("a result") };
        result.parts[0].cited_text().unwrap()
    }

    #[test]
    fn the_wrong_action_and_its_error_are_context() {
        let mut fixture = fixture();
        let example = RecoverySft.build(&fixture.input()).unwrap().remove(0);
        assert_eq!(reply(&example), "no such order");
        fixture.forks[0].branches.retain(|branch| branch.arm != Arm::Retry);
        assert_eq!(RecoverySft.build(&fixture.input()).unwrap().remove(0).context, example.context);
    }

    #[test]
    fn a_reply_that_rejects_nothing_is_replaced() {
        let mut fixture = fixture();
        let answered = &mut fixture.forks[0].branches[0].run.nodes[WRONG + 1];
        let Part::ToolResult(result) = &mut answered.parts[0] else { panic!("a result") };
        result.is_error = Some(false);
        assert_eq!(reply(&RecoverySft.build(&fixture.input()).unwrap().remove(0)), REJECTION);
    }

    #[test]
    fn an_error_that_changed_something_is_replaced_too() {
        let mut fixture = fixture();
        fixture.run.nodes[WRONG - 1].occurrence.state_hash = Some(Hash::of(b"before"));
        fixture.run.nodes[WRONG + 1].occurrence.state_hash = Some(Hash::of(b"after"));
        assert_eq!(reply(&RecoverySft.build(&fixture.input()).unwrap().remove(0)), REJECTION);
    }
}
