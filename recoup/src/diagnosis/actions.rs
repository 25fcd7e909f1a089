//! Actions: what the agent did on a branch, each with the observation it got.
//!
//! A tool call is an action; so is the code block or the `Action:` line of a turn that calls no tool.
//! Results are paired to calls by order within the branch: ids repeat in real data.

use std::collections::VecDeque;

use serde_json::Value;

use super::effects::{Effect, effect_of};
use super::text_actions::text_action;
use crate::canonical::canonicalize;
use crate::id::Hash;
use crate::trajectory::{Branch, Citation, Node, Part, Role, Tool, ToolCall, ToolResult};
use crate::triage::failure_text;

/// One action of the agent.
#[derive(Debug)]
pub struct Action<'a> {
    /// Position of its node in the trajectory.
    pub node: usize,
    /// 0-based position of its node on the branch.
    pub index: usize,
    /// Tool's name, the code block's language or the verb of an `Action:` line.
    pub name: &'a str,
    /// Arguments as the source wrote them; the code or the action's text where it is no call.
    pub raw: &'a str,
    /// Arguments as a tree, where it is a call and they are JSON.
    pub arguments: Option<Value>,
    /// Equal for equal actions: name and canonical arguments, or the text without spacing.
    pub key: Hash,
    /// True for a tool call, false for an action in text.
    pub is_call: bool,
    /// What it does to the world.
    pub effect: Effect,
    /// What came back, where something did.
    pub observation: Option<Observation<'a>>,
    part: usize,
    offset: usize,
}

/// What an action got back.
#[derive(Debug)]
pub struct Observation<'a> {
    /// Position of its node in the trajectory.
    pub node: usize,
    /// 0-based position of its node on the branch.
    pub index: usize,
    /// Its first text; empty where it holds none.
    pub text: &'a str,
    /// Part of that text.
    pub part_path: Vec<usize>,
    /// Equal for equal observations.
    pub hash: Hash,
    /// Whether it reports a failure.
    pub failed: bool,
    /// The bytes that report it.
    pub failure: Option<Citation>,
}

impl Action<'_> {
    /// The bytes of its arguments, or of its text; `None` for a call without arguments.
    pub fn citation(&self) -> Option<Citation> {
        self.cite(0, self.raw.len())
    }

    /// Bytes `start..end` of [`Self::raw`].
    pub fn cite(&self, start: usize, end: usize) -> Option<Citation> {
        (start < end && end <= self.raw.len()).then(|| Citation {
            node: self.node,
            part_path: vec![self.part],
            start: self.offset + start,
            end: self.offset + end,
        })
    }

    /// Whether its observation reports a failure.
    pub fn failed(&self) -> bool {
        self.observation.as_ref().is_some_and(|observation| observation.failed)
    }

    /// Whether it got an answer that reports no failure.
    pub fn succeeded(&self) -> bool {
        self.observation.as_ref().is_some_and(|observation| !observation.failed)
    }
}

impl Observation<'_> {
    /// The bytes that report its failure, else its first line.
    pub fn citation(&self) -> Option<Citation> {
        self.failure.clone().or_else(|| {
            failure_text::first_line(self.text).map(|range| Citation {
                node: self.node,
                part_path: self.part_path.clone(),
                start: range.start,
                end: range.end,
            })
        })
    }
}

/// The agent's actions on a branch, in order. Turns copied in from elsewhere are not its own.
pub(super) fn actions<'a>(branch: &Branch<'a>) -> Vec<Action<'a>> {
    let mut actions: Vec<Action<'a>> = Vec::new();
    let mut pending: VecDeque<Pending<'a>> = VecDeque::new();
    for (index, (position, node)) in branch.nodes().enumerate() {
        if node.occurrence.sampled && !node.occurrence.copied_context {
            pending.clear();
            push_calls(&mut actions, &mut pending, &branch.trajectory().tools, (node, position, index));
        } else if node.tool_calls().next().is_some() {
            // Calls by the simulated user or in a copied turn: they take their results, no more.
            pending.extend(node.tool_calls().map(|(_, call)| Pending { action: None, call: Some(call) }));
        }
        let mut answered = false;
        for (part, result) in node.tool_results() {
            answered = true;
            if let Some(action) = take(&mut pending, result.call_id.as_deref()) {
                actions[action].observation = Some(from_result(result, node, position, index, part));
            }
        }
        if !answered && !node.occurrence.sampled && matches!(node.role, Role::Tool | Role::User) {
            // A tool's plain text, or the harness's answer in the user's place to an action in text.
            let waits = pending.front().is_some_and(|front| front.call.is_none() || node.role == Role::Tool);
            if waits
                && let Some(action) = pending.pop_front().and_then(|front| front.action)
                && let Some((part_path, text)) = node.texts().next()
            {
                actions[action].observation = Some(from_text(text, part_path, position, index));
            }
        }
    }
    actions
}

/// A call that waits for its result; `action` is `None` where it is not the agent's.
struct Pending<'a> {
    action: Option<usize>,
    call: Option<&'a ToolCall>,
}

fn push_calls<'a>(
    actions: &mut Vec<Action<'a>>,
    pending: &mut VecDeque<Pending<'a>>,
    tools: &[Tool],
    (node, position, index): (&'a Node, usize, usize),
) {
    let before = actions.len();
    for (part, call) in node.tool_calls() {
        pending.push_back(Pending { action: Some(actions.len()), call: Some(call) });
        let arguments = call.arguments();
        let canonical = canonicalize(&call.arguments_raw).unwrap_or_else(|_| call.arguments_raw.clone());
        actions.push(Action {
            node: position,
            index,
            name: &call.name,
            raw: &call.arguments_raw,
            arguments,
            key: Hash::of_all(&[call.name.as_bytes(), canonical.as_bytes()]),
            is_call: true,
            effect: effect_of(&call.name, tools),
            observation: None,
            part,
            offset: 0,
        });
    }
    if actions.len() > before {
        return;
    }
    for (part, text) in node.parts.iter().enumerate().filter_map(|(part, body)| Some((part, body.as_text()?)))
    {
        if let Some(found) = text_action(text) {
            pending.push_back(Pending { action: Some(actions.len()), call: None });
            let raw = &text[found.body.clone()];
            actions.push(Action {
                node: position,
                index,
                name: &text[found.name.clone()],
                raw,
                arguments: None,
                key: text_key(raw),
                is_call: false,
                effect: effect_of(&text[found.name], tools),
                observation: None,
                part,
                offset: found.body.start,
            });
            return;
        }
    }
}

/// Equal for actions in text that differ in their spacing only.
pub(super) fn text_key(action: &str) -> Hash {
    let words: Vec<&str> = action.split_whitespace().collect();
    Hash::of(words.join(" ").as_bytes())
}

/// The waiting call with this id, else the one that waits longest.
fn take(pending: &mut VecDeque<Pending<'_>>, id: Option<&str>) -> Option<usize> {
    let named = id.and_then(|id| {
        pending
            .iter()
            .position(|waiting| waiting.call.is_some_and(|call| call.call_id.as_deref() == Some(id)))
    });
    pending.remove(named.unwrap_or(0))?.action
}

fn from_result<'a>(
    result: &'a ToolResult,
    node: &'a Node,
    position: usize,
    index: usize,
    part: usize,
) -> Observation<'a> {
    let texts: Vec<(usize, &str)> =
        result.parts.iter().enumerate().filter_map(|(at, inner)| Some((at, inner.as_text()?))).collect();
    let (inner, text) = texts.first().copied().unwrap_or((0, ""));
    // A result without parts of its own may stand beside the text it means.
    let beside = text.is_empty().then(|| node.parts.iter().enumerate().find_map(beside_text)).flatten();
    let (part_path, text) = beside.unwrap_or((vec![part, inner], text));
    Observation {
        node: position,
        index,
        text,
        part_path,
        hash: Hash::of_all(&texts.iter().map(|(_, text)| text.as_bytes()).collect::<Vec<_>>()),
        failed: failure_text::is_failure(result),
        failure: failure_text::in_result(result, position, part),
    }
}

fn beside_text((at, part): (usize, &Part)) -> Option<(Vec<usize>, &str)> {
    part.as_text().filter(|text| !text.is_empty()).map(|text| (vec![at], text))
}

fn from_text(text: &str, part_path: Vec<usize>, position: usize, index: usize) -> Observation<'_> {
    let failure = failure_text::in_text(text).map(|range| Citation {
        node: position,
        part_path: part_path.clone(),
        start: range.start,
        end: range.end,
    });
    Observation {
        node: position,
        index,
        text,
        part_path,
        hash: Hash::of_all(&[text.as_bytes()]),
        failed: failure.is_some(),
        failure,
    }
}

#[cfg(test)]
mod tests {
    use super::actions;
    use crate::diagnosis::fixture::{call, chat, result, say, user};

    #[test]
    fn results_are_paired_by_order_when_ids_repeat() {
        let run = chat(vec![
            user("go"),
            call("look", r#"{"id":1}"#),
            result("one"),
            call("look", r#"{ "id" : 1 }"#),
            result("Error: gone"),
        ]);
        let actions = actions(&run.main_branch());
        let texts: Vec<_> = actions.iter().map(|action| action.observation.as_ref().unwrap().text).collect();
        assert_eq!(texts, ["one", "Error: gone"]);
        assert_eq!(actions[0].key, actions[1].key);
        assert!(actions[0].succeeded() && actions[1].failed());
    }

    #[test]
    fn a_code_block_is_an_action_and_the_next_message_its_observation() {
        let run = chat(vec![
            user("fix it"),
            say("I look.\n```bash\nls -la\n```"),
            user("<returncode>1</returncode>"),
            say("Done."),
        ]);
        let actions = actions(&run.main_branch());
        assert_eq!((actions.len(), actions[0].name, actions[0].raw), (1, "bash", "ls -la"));
        assert!(actions[0].failed());
        assert_eq!(actions[0].citation().unwrap().quote(&run), Ok("ls -la"));
    }
}
