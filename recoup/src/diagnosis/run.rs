//! A run as the detectors read it: its main branch, indexed once.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use super::DiagnosisConfig;
use super::actions::{Action, actions};
use super::effects::{Effect, purpose};
use super::siblings::Divergence;
use super::words::{Seen, Word};
use crate::trajectory::{Branch, Citation, Part, Role, Status, TerminationKind, ToolCall, Trajectory};
use crate::triage::failure_text;

/// A turn of the agent.
#[derive(Clone, Debug)]
pub struct Step {
    /// Position of its node in the trajectory.
    pub node: usize,
    /// 0-based position of its node on the branch.
    pub index: usize,
    /// Its actions, as a range of [`Run::actions`].
    pub actions: Range<usize>,
}

/// Something the agent says: a text of a turn that takes no action.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Position of its node in the trajectory.
    pub node: usize,
    /// 0-based position of its node on the branch.
    pub index: usize,
    /// Part of the text.
    pub part: usize,
    /// The text.
    pub text: &'a str,
}

/// See the module.
pub struct Run<'a> {
    /// The run.
    pub trajectory: &'a Trajectory,
    /// The path to its main leaf.
    pub branch: Branch<'a>,
    /// What the agent did, in order.
    pub actions: Vec<Action<'a>>,
    /// The agent's turns, in order.
    pub steps: Vec<Step>,
    /// What the agent said, in order.
    pub messages: Vec<Message<'a>>,
    /// Actions of the successful runs of the same task.
    pub successes: Vec<Vec<Action<'a>>>,
    /// Schemas of the tools that were called.
    pub schemas: BTreeMap<&'a str, Value>,
    seen: OnceCell<Seen>,
    divergence: OnceCell<Option<Divergence>>,
}

impl<'a> Run<'a> {
    /// Indexes a run. Of `siblings`, the other runs of its task, those that succeeded are compared
    /// with, up to [`DiagnosisConfig::siblings_max`] of them.
    pub fn new(trajectory: &'a Trajectory, siblings: &[&'a Trajectory], config: &DiagnosisConfig) -> Self {
        let branch = trajectory.main_branch();
        let actions = actions(&branch);
        let (steps, messages) = turns(&branch, &actions);
        let successes = siblings
            .iter()
            .filter(|sibling| sibling.outcome().status == Status::Success)
            .take(config.siblings_max)
            .map(|sibling| super::actions::actions(&sibling.main_branch()))
            .collect();
        let mut schemas = BTreeMap::new();
        for tool in &trajectory.tools {
            if let Some(parameters) = &tool.parameters
                && actions.iter().any(|action| action.is_call && action.name == tool.name)
            {
                schemas.insert(tool.name.as_str(), parameters.to_value());
            }
        }
        Self {
            trajectory,
            branch,
            actions,
            steps,
            messages,
            successes,
            schemas,
            seen: OnceCell::new(),
            divergence: OnceCell::new(),
        }
    }

    /// Whether a name, or every word of a phrase, stands in a message before the one at a branch
    /// index, in the prompts or in the tools.
    pub fn is_seen_before(&self, value: &str, index: usize) -> bool {
        self.seen().has_before(value, index + 1)
    }

    /// Whether a word stands in a prompt, a tool's description or a message before a branch index that
    /// no agent wrote.
    pub(crate) fn is_observed_before(&self, word: &Word, index: usize) -> bool {
        self.seen().is_observed_before(word, index + 1)
    }

    /// Whether it stands anywhere that the agents could see.
    pub fn is_visible(&self, value: &str) -> bool {
        self.seen().has_before(value, usize::MAX)
    }

    /// Whether a number, in hundredths, stands before a branch index or can be reckoned from what
    /// stands there.
    pub fn is_number_grounded(&self, hundredths: i64, index: usize) -> bool {
        let seen = self.seen();
        seen.has_number_before(hundredths, index + 1) || seen.is_reckoned(hundredths, index + 1)
    }

    /// The last turn.
    pub fn last_step(&self) -> Option<&Step> {
        self.steps.last()
    }

    /// The first later action of the same purpose that succeeded.
    pub fn later_success(&self, action: usize) -> Option<&Action<'a>> {
        let wanted = purpose(self.actions.get(action)?.name);
        self.actions[action + 1..].iter().find(|later| purpose(later.name) == wanted && later.succeeded())
    }

    /// Actions that change something and were not refused.
    pub fn mutations(&self) -> impl Iterator<Item = &Action<'a>> {
        self.actions.iter().filter(|action| action.effect == Effect::Mutate && !action.failed())
    }

    /// Whether a limit or a failure, not the agent or its user, ended the run.
    pub fn was_cut_off(&self) -> bool {
        !matches!(
            self.trajectory.outcome().termination_kind(),
            None | Some(TerminationKind::Completed | TerminationKind::UserStop | TerminationKind::Other)
        )
    }

    /// Whether the user (or who stands in the user's place) speaks after a branch index.
    pub fn user_speaks_after(&self, index: usize) -> bool {
        self.branch
            .nodes()
            .skip(index + 1)
            .any(|(_, node)| node.role == Role::User && !node.occurrence.sampled)
    }

    /// Bytes that stand for a turn: its action, else the first line it holds.
    pub fn cite_step(&self, step: &Step) -> Option<Citation> {
        let action = self.actions.get(step.actions.clone()).and_then(|actions| actions.first());
        action.and_then(Action::citation).or_else(|| self.cite_line(step.node))
    }

    /// First line of the last node, up to this one on the branch, that holds a line: what a turn with no
    /// bytes of its own, a call without arguments, answers to. `None` where there is none.
    pub fn cite_up_to(&self, node: usize) -> Option<Citation> {
        let upto = self.branch.positions().partition_point(|position| *position <= node);
        self.branch.positions()[..upto].iter().rev().find_map(|position| self.cite_line(*position))
    }

    /// The first line of a node that the agents could see: of a text, a thought, arguments or a result.
    fn cite_line(&self, node: usize) -> Option<Citation> {
        let line = |part_path: Vec<usize>, text: &str| {
            let range = failure_text::first_line(text)?;
            Some(Citation { node, part_path, start: range.start, end: range.end })
        };
        self.trajectory.nodes[node].parts.iter().enumerate().find_map(|(at, part)| match part {
            Part::ToolResult(result) => {
                let mut inner = result.parts.iter().enumerate();
                inner.find_map(|(inner, part)| line(vec![at, inner], part.as_text()?))
            }
            Part::Opaque { .. } => None,
            _ => line(vec![at], part.cited_text()?),
        })
    }

    /// Every word that could be seen: who reads the run for its actions alone does not need them.
    fn seen(&self) -> &Seen {
        self.seen.get_or_init(|| seen(self.trajectory, &self.branch))
    }

    /// Where the run leaves the path of the successful run that is most like it.
    pub fn divergence(&self) -> Option<Divergence> {
        *self.divergence.get_or_init(|| super::siblings::divergence(self))
    }
}

fn turns<'a>(branch: &Branch<'a>, actions: &[Action<'a>]) -> (Vec<Step>, Vec<Message<'a>>) {
    let (mut steps, mut messages) = (Vec::new(), Vec::new());
    let mut next = 0;
    for (index, (node, body)) in branch.nodes().enumerate() {
        if !body.occurrence.sampled || body.occurrence.copied_context {
            continue;
        }
        let first = next;
        while actions.get(next).is_some_and(|action| action.index == index) {
            next += 1;
        }
        steps.push(Step { node, index, actions: first..next });
        if first == next {
            for (part, text) in
                body.parts.iter().enumerate().filter_map(|(part, body)| Some((part, body.as_text()?)))
            {
                messages.push(Message { node, index, part, text });
            }
        }
    }
    (steps, messages)
}

/// Takes in everything visible: prompts and tools count as before the first message.
fn seen(trajectory: &Trajectory, branch: &Branch<'_>) -> Seen {
    let mut seen = Seen::default();
    seen.add(&trajectory.task.goal, 0, false);
    for agent in &trajectory.agents {
        seen.add(&agent.name, 0, false);
        seen.add(agent.system_prompt.as_deref().unwrap_or_default(), 0, false);
    }
    for tool in &trajectory.tools {
        seen.add(&tool.name, 0, false);
        seen.add(&tool.description, 0, false);
        seen.add(tool.parameters.as_ref().map_or("", |parameters| parameters.as_str()), 0, false);
    }
    for (index, (_, node)) in branch.nodes().enumerate() {
        let index = index + 1;
        let by_agent = node.occurrence.sampled || node.role == Role::Assistant;
        for part in &node.parts {
            match part {
                Part::Text(text) => seen.add(&text.text, index, by_agent),
                Part::Reasoning { text, .. } => seen.add(text, index, by_agent),
                Part::ToolCall(ToolCall { name, arguments_raw, .. }) => {
                    seen.add(name, index, by_agent);
                    seen.add(arguments_raw, index, by_agent);
                }
                Part::ToolResult(result) => {
                    for text in result.parts.iter().filter_map(Part::as_text) {
                        seen.add(text, index, by_agent);
                    }
                }
                Part::Media(_) | Part::Opaque { .. } => {}
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::Run;
    use crate::diagnosis::DiagnosisConfig;
    use crate::diagnosis::fixture::{call, chat, result, say, user};

    #[test]
    fn the_index_knows_turns_messages_and_what_came_before() {
        let run = chat(vec![
            user("cancel ABC12"),
            call("get_order", r#"{"id":"ABC12"}"#),
            result("total 300"),
            say("It costs 300."),
            user("ok"),
        ]);
        let run = Run::new(&run, &[], &DiagnosisConfig::default());
        assert_eq!((run.steps.len(), run.actions.len(), run.messages.len()), (2, 1, 1));
        assert!(run.is_seen_before("abc12", 1) && !run.is_seen_before("300", 2));
        assert!(run.is_number_grounded(60_000, 3) && !run.is_number_grounded(77_700, 3));
        assert!(run.user_speaks_after(3) && !run.user_speaks_after(4));
    }
}
