//! Small runs for the tests of this folder.

use super::{DiagnosisConfig, Run};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{
    ArgumentsForm, Node, Outcome, Part, Role, TerminationKind, Tool, ToolCall, Trajectory,
};
use crate::verdict::Finding;

/// A failed run of these messages.
pub(crate) fn chat(nodes: Vec<Node>) -> Trajectory {
    let mut run = Trajectory::new("test", Task::named("task/1", ""));
    for node in nodes {
        run.push(node);
    }
    run.finish(Outcome::from_score(0.0, 1.0, "reward"));
    run
}

/// A failed run of calls that each get `ok`.
pub(crate) fn calls(calls: &[(&str, &str)]) -> Trajectory {
    let mut nodes = vec![user("go")];
    for (name, arguments) in calls {
        nodes.extend([call(name, arguments), result("ok")]);
    }
    chat(nodes)
}

pub(crate) fn succeeded(mut run: Trajectory) -> Trajectory {
    run.finish(Outcome::from_score(1.0, 1.0, "reward"));
    run
}

pub(crate) fn ended(mut run: Trajectory, kind: TerminationKind) -> Trajectory {
    run.leaves[0].outcome = run.leaves[0].outcome.clone().ended(kind, "word");
    run
}

/// Offers a tool with a schema.
pub(crate) fn with_tool(mut run: Trajectory, name: &str, parameters: &str) -> Trajectory {
    let parameters = Some(Json::parse(parameters).unwrap());
    run.tools.push(Tool { name: name.to_owned(), description: String::new(), parameters, read_only: None });
    run
}

pub(crate) fn user(text: &str) -> Node {
    Node::new(Role::User, "user", vec![Part::text(text)])
}

pub(crate) fn system(text: &str) -> Node {
    Node::new(Role::System, "system", vec![Part::text(text)])
}

pub(crate) fn say(text: &str) -> Node {
    Node::new(Role::Assistant, "assistant", vec![Part::text(text)]).sampled()
}

pub(crate) fn call(name: &str, arguments: &str) -> Node {
    let call = Part::ToolCall(ToolCall {
        call_id: None,
        name: name.to_owned(),
        arguments_raw: arguments.to_owned(),
        arguments_form: ArgumentsForm::String,
    });
    Node::new(Role::Assistant, "assistant", vec![call]).sampled()
}

pub(crate) fn result(text: &str) -> Node {
    Node::new(Role::Tool, "tool", vec![Part::text_result(None, text)])
}

/// What one detector finds; every citation must hold.
pub(crate) fn detect(
    detector: &dyn super::Detector,
    run: &Trajectory,
    siblings: &[&Trajectory],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    detector.detect(&Run::new(run, siblings, &DiagnosisConfig::default()), &mut findings);
    for finding in &findings {
        assert_eq!(finding.detector, detector.name());
        assert!(!finding.citations.is_empty(), "{finding:?}");
        for citation in &finding.citations {
            citation.quote(run).unwrap();
        }
    }
    findings
}
