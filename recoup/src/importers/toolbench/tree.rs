//! The tree of a depth-first search: which message each tree node is, and how each attempt ended.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::AGENT;
use crate::importers::value::json_object;
use crate::json::Json;
use crate::trajectory::{
    ArgumentsForm, Leaf, Node, Outcome, Part, Role, Status, TerminationKind, ToolCall, ToolResult, Trajectory,
};

/// A node of the tree. The parser's limit on nesting bounds its depth (some sixty levels; the
/// search's own limit is a dozen steps).
#[derive(Deserialize)]
pub(super) struct TreeNode {
    node_type: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    observation: Option<String>,
    /// 0 success, 1 no such API name, 2 bad input, 3 final answer, 4 given up by the model, 5 timeout,
    /// 6–12 errors of the API.
    #[serde(default)]
    observation_code: Option<i64>,
    #[serde(default)]
    pruned: bool,
    #[serde(default)]
    finished: bool,
    #[serde(default)]
    is_terminal: bool,
    #[serde(default)]
    depth: i64,
    /// Order in which the search visited the nodes that end a response; 0 for the others.
    #[serde(default)]
    expand_num: i64,
    #[serde(default, rename = "Elo")]
    elo: Option<f64>,
    #[serde(default)]
    io_state: Option<Box<RawValue>>,
    #[serde(default)]
    matching_time: Option<i64>,
    #[serde(default)]
    children: Vec<TreeNode>,
}

/// Where every node's Elo rating starts.
const ELO_START: f64 = 1000.0;

/// Observation codes by what they say.
fn meaning(code: i64) -> &'static str {
    match code {
        0 => "success",
        1 => "no such API name",
        2 => "bad input",
        3 => "final answer",
        4 => "given up by the model",
        5 => "timeout",
        6..=12 => "API error",
        _ => "unknown code",
    }
}

/// Adds the tree's messages to the run, with an outcome for every leaf.
pub(super) fn read(
    run: &mut Trajectory,
    root: TreeNode,
    query: &str,
    win: Option<bool>,
    step_limit: Option<i64>,
) {
    let mut ends = Vec::new();
    let mut open = vec![(root, None)];
    while let Some((mut tree, parent)) = open.pop() {
        let children = std::mem::take(&mut tree.children);
        if children.is_empty() {
            ends.push((run.push_under(message(&tree, parent, query, None)), tree));
            continue;
        }
        // A call for each set of arguments; normally there is one, and nothing beside it.
        let is_call = tree.node_type == "Action";
        let mut first = None;
        let mut below = Vec::new();
        for child in children {
            let arguments = (is_call && child.node_type == "Action Input").then(|| child.description.clone());
            let own = match (first, &arguments) {
                (Some(first), None) => first,
                _ => run.push_under(message(&tree, parent, query, arguments.flatten())),
            };
            first.get_or_insert(own);
            below.push((child, Some(own)));
        }
        // Last in, first out: reversed, so that siblings come in the tree's order.
        open.extend(below.into_iter().rev());
    }
    ends.sort_by_key(|(position, _)| *position);
    // The run's own end: the final answer, else the attempt that the search made last.
    let rank = |index: &usize| (ends[*index].1.is_answer(), ends[*index].1.expand_num);
    run.main_leaf = (0..ends.len()).max_by_key(rank).unwrap_or(0);
    run.leaves = ends
        .iter()
        .map(|(position, end)| Leaf { node: Some(*position), outcome: outcome(end, step_limit) })
        .collect();
    if let (Some(win), Some(leaf)) = (win, run.leaves.get_mut(run.main_leaf)) {
        let termination = leaf.outcome.termination.take();
        leaf.outcome = Outcome { termination, ..Outcome::from_flag(win, "win") };
    }
}

/// The message that a tree node is. `arguments` are those of the call that an `Action` makes.
fn message(tree: &TreeNode, parent: Option<usize>, query: &str, arguments: Option<String>) -> Node {
    let description = tree.description.clone().unwrap_or_default();
    let mut node = match (parent, tree.node_type.as_str()) {
        (None, _) => Node::new(Role::User, "user", vec![Part::text(query)]),
        (_, "Thought") => Node::new(Role::Assistant, AGENT, vec![Part::text(description)]).sampled(),
        (_, "Action") => {
            let call = ToolCall {
                call_id: None,
                name: description,
                arguments_raw: arguments.unwrap_or_default(),
                arguments_form: ArgumentsForm::String,
            };
            Node::new(Role::Assistant, AGENT, vec![Part::ToolCall(call)]).sampled()
        }
        (_, "Action Input") => {
            let is_error = tree.observation_code.map(|code| !matches!(code, 0 | 3 | 4));
            let parts = tree.observation.iter().map(Part::text).collect();
            let result = ToolResult { call_id: None, parts, is_error, exit_code: None };
            Node::new(Role::Tool, "environment", vec![Part::ToolResult(result)])
        }
        (_, kind) => {
            let raw = Part::Opaque { kind: kind.to_owned(), raw: description };
            Node::new(Role::System, "harness", vec![raw])
        }
    };
    node.parent = parent;
    node.occurrence.extra = tree.bookkeeping();
    node
}

/// How the attempt that ends here ended; the search's own verdict is for the main leaf alone.
fn outcome(end: &TreeNode, step_limit: Option<i64>) -> Outcome {
    let mut outcome = Outcome::unknown();
    if end.pruned {
        outcome.status = Status::Failure;
        "pruned = true".clone_into(&mut outcome.evidence);
    }
    match end.observation_code {
        Some(3) => outcome.ended(TerminationKind::Completed, "give_answer"),
        Some(4) => outcome.ended(TerminationKind::Completed, "give_up_and_restart"),
        _ if end.pruned && step_limit.is_some_and(|limit| end.depth >= limit) => {
            outcome.ended(TerminationKind::StepLimit, "single_chain_max_step")
        }
        _ if end.pruned => outcome.ended(TerminationKind::Other, "pruned"),
        _ => outcome,
    }
}

impl TreeNode {
    fn is_answer(&self) -> bool {
        self.finished && self.observation_code == Some(3)
    }

    /// The search's notes on the node, where they say something.
    fn bookkeeping(&self) -> Option<Json> {
        let mut notes = BTreeMap::new();
        let mut note = |key: &str, value: Option<Json>| {
            notes.extend(value.map(|value| (key.to_owned(), value)));
        };
        let number = |value: i64| Json::from_serialize(&value).ok();
        let flag = |value: bool| if value { Json::from_serialize(&true).ok() } else { None };
        if let Some(code) = self.observation_code {
            note("observation_code", number(code));
            note("observation_meaning", Some(Json::string(meaning(code))));
        }
        note("pruned", flag(self.pruned));
        note("finished", flag(self.finished));
        note("is_terminal", flag(self.is_terminal));
        note("expand_num", Some(self.expand_num).filter(|count| *count != 0).and_then(number));
        note("matching_time", self.matching_time.and_then(number));
        let elo = self.elo.filter(|elo| (elo - ELO_START).abs() > f64::EPSILON);
        note("Elo", elo.and_then(|elo| Json::from_serialize(&elo).ok()));
        let io_state =
            self.io_state.as_deref().filter(|state| !matches!(state.get(), "null" | "{}" | "\"\""));
        note("io_state", io_state.map(Json::from));
        json_object(&notes)
    }
}

#[cfg(test)]
mod tests {
    use super::{TreeNode, read};
    use crate::task::Task;
    use crate::trajectory::{Status, TerminationKind, Trajectory};

    fn run(tree: &str, win: bool) -> Trajectory {
        let root: TreeNode = serde_json::from_str(tree).unwrap();
        let mut run = Trajectory::new("toolbench", Task::from_goal("q"));
        read(&mut run, root, "q", Some(win), Some(12));
        run.check().unwrap();
        run
    }

    const FORKED: &str = r#"{"node_type":"Action Input","description":"","children":[
        {"node_type":"Action","description":"search","children":[
            {"node_type":"Action Input","description":"{ \"q\": 1 }","observation":"none","observation_code":11,"children":[
                {"node_type":"Thought","description":"No luck.","pruned":true,"depth":3,"expand_num":2,"children":[]},
                {"node_type":"Thought","description":"Again.","children":[
                    {"node_type":"Action","description":"Finish","children":[
                        {"node_type":"Action Input","description":"{}","observation":"done","observation_code":3,
                         "finished":true,"expand_num":4,"children":[]}]}]}]}]}]}"#;

    #[test]
    fn each_tree_node_is_a_message_and_each_leaf_an_attempt() {
        let run = run(FORKED, true);
        assert_eq!((run.nodes.len(), run.leaves.len()), (7, 2));
        let (_, call) = run.nodes[1].tool_calls().next().unwrap();
        assert_eq!((call.name.as_str(), call.arguments_raw.as_str()), ("search", "{ \"q\": 1 }"));
        assert_eq!(run.nodes[2].tool_results().next().unwrap().1.is_error, Some(true));
        assert_eq!(run.leaves[0].outcome.status, Status::Failure);
        assert_eq!(run.outcome().evidence, "win = true");
        assert_eq!(run.main_branch().len(), 6);
        assert_eq!(run.outcome().termination_kind(), Some(TerminationKind::Completed));
    }

    #[test]
    fn without_an_answer_the_last_attempt_is_the_runs_end() {
        let run = run(&FORKED.replace("\"observation_code\":3", "\"observation_code\":4"), false);
        assert_eq!(run.main_leaf, 1);
        assert_eq!(run.outcome().status, Status::Failure);
        assert_eq!(run.outcome().termination.as_ref().unwrap().native, "give_up_and_restart");
    }

    #[test]
    fn codes_tell_errors_from_answers() {
        let is_error = |code: &str| {
            let tree = FORKED.replace("\"observation_code\":11", &format!("\"observation_code\":{code}"));
            let run = run(&tree, true);
            run.nodes[2].tool_results().next().unwrap().1.is_error
        };
        for answer in ["0", "3", "4"] {
            assert_eq!(is_error(answer), Some(false), "{answer}");
        }
        for error in ["1", "2", "5", "11", "12"] {
            assert_eq!(is_error(error), Some(true), "{error}");
        }
        assert_eq!(is_error("null"), None);
    }

    #[test]
    fn a_call_is_made_again_for_other_arguments() {
        let run = run(
            r#"{"node_type":"Action Input","children":[{"node_type":"Action","description":"f","children":[
            {"node_type":"Action Input","description":"1","observation":"a","children":[]},
            {"node_type":"Action Input","description":"2","observation":"b","children":[]}]}]}"#,
            false,
        );
        assert_eq!((run.tool_call_count(), run.tool_result_count(), run.leaves.len()), (2, 2, 2));
    }

    #[test]
    fn hostile_nesting_is_refused() {
        let deep = "{\"node_type\":\"Thought\",\"children\":[".repeat(10_000);
        assert!(serde_json::from_str::<TreeNode>(&deep).is_err());
    }
}
