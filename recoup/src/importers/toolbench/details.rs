//! Converted answers: messages linked by `next`, where a tool message holds call and result together as
//! text. That text is JSON in the better case and a cut-off Python literal in most; the latter is
//! carried as it is.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::AGENT;
use crate::importers::function_call::called;
use crate::importers::harness_message::opaque;
use crate::importers::object::Object;
use crate::importers::value::{text, text_or_source};
use crate::trajectory::{Leaf, Node, Outcome, Part, Role, Trajectory};

/// A message and those that follow it. The parser's limit on nesting bounds its depth.
#[derive(Deserialize)]
pub(super) struct Detail {
    role: String,
    #[serde(default)]
    message: Option<Box<RawValue>>,
    #[serde(default)]
    next: Vec<Detail>,
}

/// Adds the graph's messages to the run; nothing in such a file scores an attempt.
pub(super) fn read(run: &mut Trajectory, roots: Vec<Detail>) {
    let mut open: Vec<(Detail, Option<usize>)> = roots.into_iter().rev().map(|root| (root, None)).collect();
    let mut leaves = Vec::new();
    while let Some((mut detail, mut parent)) = open.pop() {
        for mut node in messages(&detail) {
            node.parent = parent;
            parent = Some(run.push_under(node));
        }
        let next = std::mem::take(&mut detail.next);
        if next.is_empty() {
            leaves.push(Leaf { node: parent, outcome: Outcome::unknown() });
        }
        open.extend(next.into_iter().rev().map(|next| (next, parent)));
    }
    if leaves.is_empty() {
        return run.finish(Outcome::unknown());
    }
    run.main_leaf = leaves.len() - 1;
    run.leaves = leaves;
}

fn messages(detail: &Detail) -> Vec<Node> {
    let raw = detail.message.as_deref();
    let said = raw.and_then(text);
    let part = match (&said, raw) {
        (Some(text), _) => Part::text(&**text),
        (None, Some(raw)) => opaque("message", raw),
        (None, None) => Part::text(""),
    };
    match detail.role.as_str() {
        "system" => vec![Node::new(Role::System, "system", vec![part])],
        "user" => vec![Node::new(Role::User, "user", vec![part])],
        "tool" => call_and_result(said.as_deref(), raw)
            .unwrap_or_else(|| vec![Node::new(Role::Tool, "environment", vec![as_written(part)])]),
        _ => vec![Node::new(Role::Assistant, AGENT, vec![part]).sampled()],
    }
}

/// The call and the result of a tool message that is JSON.
fn call_and_result(text: Option<&str>, raw: Option<&RawValue>) -> Option<Vec<Node>> {
    let mut message = match text {
        Some(text) => serde_json::from_str(text).ok()?,
        None => Object::of(raw?)?,
    };
    let call = called(None, message.text("name")?, message.take("arguments"));
    let response = text_or_source(message.take("response")?);
    Some(vec![
        Node::new(Role::Assistant, AGENT, vec![Part::ToolCall(call)]).sampled(),
        Node::new(Role::Tool, "environment", vec![Part::text_result(None, response)]),
    ])
}

/// A tool's text that holds call and result inseparably.
fn as_written(part: Part) -> Part {
    match part {
        Part::Text(text) => Part::Opaque { kind: "tool".to_owned(), raw: text.text },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{Detail, read};
    use crate::task::Task;
    use crate::trajectory::{Part, Trajectory};

    #[test]
    fn what_is_json_is_call_and_result_and_the_rest_stays_as_written() {
        let details: Vec<Detail> = serde_json::from_str(
            r#"[{"role":"system","message":"","next":[{"role":"user","message":"q","next":[
            {"role":"tool","message":"{\"name\": \"f\", \"arguments\": \"{}\", \"response\": \"ok\"}","next":[
            {"role":"tool","message":"{'name': 'g', 'response': 'it's cut","next":[]}]},
            {"role":"assistant","message":"done","next":[]}]}]}]"#,
        )
        .unwrap();
        let mut run = Trajectory::new("toolbench", Task::from_goal("q"));
        read(&mut run, details);
        run.check().unwrap();
        assert_eq!((run.nodes.len(), run.leaves.len()), (6, 2));
        assert_eq!((run.tool_call_count(), run.tool_result_count()), (1, 1));
        let raw = "{'name': 'g', 'response': 'it's cut".to_owned();
        assert_eq!(run.nodes[4].parts, [Part::Opaque { kind: "tool".to_owned(), raw }]);
    }
}
