//! Judges: what they are shown, what of their answers stands, and what a hostile trace can do to it.

mod canaries;
mod panel;
mod windows;

use std::sync::Arc;

use recoup::diagnosis::{DiagnosisConfig, Judged, Known, Run, judge};
use recoup::json::Json;
use recoup::judges::{Case, Judge, JudgeConfig, ModelJudge};
use recoup::models::{ChatReply, ChatRequest, ModelError, ScriptedModel};
use recoup::task::Task;
use recoup::trajectory::{ArgumentsForm, Node, Outcome, Part, Role, Tool, ToolCall, Trajectory};
use serde_json::{Value, json};

/// A failed run of a desk agent: it refunds an order that it never looked up.
pub fn run() -> Trajectory {
    run_with("Please refund my order W77120.", "Error: W77121 does not exist")
}

/// The same run with a user and a tool that say something else.
pub fn run_with(user: &str, result: &str) -> Trajectory {
    let mut run = Trajectory::new("test", Task::named("desk/1", "refund the order"));
    let schema =
        Json::parse(r#"{"type":"object","required":["order"],"properties":{"order":{"type":"string"}}}"#);
    run.tools.push(Tool {
        name: "refund".to_owned(),
        description: "Refunds.".to_owned(),
        parameters: schema.ok(),
        read_only: None,
    });
    run.push(Node::new(Role::User, "user", vec![Part::text(user)]));
    let call = ToolCall {
        call_id: None,
        name: "refund".to_owned(),
        arguments_raw: r#"{"order":"W77121"}"#.to_owned(),
        arguments_form: ArgumentsForm::String,
    };
    run.push(Node::new(Role::Assistant, "assistant", vec![Part::ToolCall(call)]).sampled());
    run.push(Node::new(Role::Tool, "refund", vec![Part::text_result(None, result)]));
    run.push(Node::new(Role::Assistant, "assistant", vec![Part::text("Your order is refunded.")]).sampled());
    run.finish(Outcome::from_score(0.0, 1.0, "reward"));
    run
}

/// An answer about [`run`] that stands.
pub fn good() -> Value {
    json!({
        "citations": [{ "node": 1, "quote": "{\"order\":\"W77121\"}" }, { "node": 0, "quote": "W77120" }],
        "decisive_step": 1,
        "responsible_agent": "assistant",
        "explanation": "The call names another order than the user, see node 0.",
        "candidate": { "tool": "refund", "arguments": "{\"order\":\"W77120\"}", "rationale": "The order asked for." },
        "blame": { "party": "agent", "reason": "It made the number up." },
        "failure_class": { "class": "hallucination", "recoverable": true, "severity": 0.6 },
    })
}

/// The good answer with one key changed.
pub fn with(key: &str, value: Value) -> Value {
    let mut answer = good();
    answer[key] = value;
    answer
}

/// An opinion with the same word on everything.
pub fn opinion(word: &str, step: u64) -> String {
    let said = json!({ "reason": "so it is", "verdict": word });
    json!({ "decisive_step": step, "M1": said, "M2": said, "M3": said, "M4": said }).to_string()
}

/// A judge that answers with a function of the request.
pub fn judge_of(
    family: &str,
    script: impl Fn(&ChatRequest) -> Result<ChatReply, ModelError> + Send + Sync + 'static,
) -> Box<dyn Judge> {
    let model = Box::new(ScriptedModel::new(family, script));
    Box::new(ModelJudge::new(model, JudgeConfig::default(), Arc::default()))
}

/// A judge that always says the same.
pub fn saying(family: &str, text: impl Into<String>) -> Box<dyn Judge> {
    let text = text.into();
    judge_of(family, move |_| Ok(ChatReply::text(text.clone())))
}

/// Judges a run without anything that rules know.
pub fn judged(run: &Trajectory, panel: &[Box<dyn Judge>]) -> Result<Judged, ModelError> {
    let case = Case::new(run, &[], false);
    judge(&case, &Run::new(run, &[], &DiagnosisConfig::default()), panel, Known::default())
}

/// The gate that refused the last answer.
pub fn refused(judged: &Judged) -> Option<&str> {
    judged.last().and_then(|last| last.refused.as_ref()).map(|(gate, _)| gate.as_str())
}
