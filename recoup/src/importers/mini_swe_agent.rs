//! mini-swe-agent runs: a bare array of `{role, content}`, or, in newer versions, an object with
//! `messages` and `info`. An agent's turn is text with one fenced shell block; the next user message is
//! the observation. The harness scores nothing.

use serde_json::value::RawValue;

use super::harness_message::message;
use super::object::Object;
use super::slice::{self, Stop};
use super::value::{elements, json_object};
use super::{ImportError, Importer, Outline, Probe, RawRecord, RecordError, Shape, Sink, Source, instance};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Call, Harness, Node, Outcome, Role, TerminationKind, Trajectory, Usage};
use crate::warning::Loss;

const FORMAT: &str = "mini-swe-agent";
/// What every prompt of the harness asks for at the end, over its versions.
const SENTINELS: [&str; 2] = ["COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT"];
/// Languages of the fence that holds the action.
const FENCES: [&str; 2] = ["```mswea_bash_command\n", "```bash\n"];

/// mini-swe-agent runs, old and new.
pub(super) struct MiniSweAgent;

impl Importer for MiniSweAgent {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "a run with `messages` and `info` of mini-swe-agent, or an array of messages with its prompt"
    }

    fn detect(&self, probe: &Probe) -> bool {
        match probe.shape {
            Shape::Array => is_bare(probe),
            Shape::Object | Shape::Lines => probe.values.iter().any(is_run),
            _ => false,
        }
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        if Probe::read(source)?.shape == Shape::Lines {
            return slice::each(source, slice::Layout::Lines, sink, |record, sink| {
                read(source, record, sink)
            });
        }
        if let Some(record) = slice::document(source, sink)? {
            record.attempt(sink, |record, sink| read(source, record, sink))?;
        }
        Ok(())
    }
}

/// An array of bare messages whose first agent turn holds a fenced shell block and whose prompt names
/// the harness's closing command.
fn is_bare(probe: &Probe) -> bool {
    let messages = probe.records();
    let is_message = |message: &Outline| match message {
        Outline::Object(members) => {
            message.has_all(&["role", "content"])
                && members
                    .iter()
                    .all(|(key, _)| ["role", "content", "extra", "timestamp"].contains(&key.as_str()))
        }
        _ => false,
    };
    let role = |index: usize| messages.get(index).and_then(|message| message.get("role")?.as_str());
    let head = probe.text();
    messages.iter().all(is_message)
        && role(0) == Some("system")
        && role(1) == Some("user")
        && role(2) == Some("assistant")
        && SENTINELS.iter().any(|sentinel| head.contains(sentinel))
        && FENCES.iter().any(|fence| head.contains(&fence.replace('\n', "\\n")))
}

fn is_run(record: &Outline) -> bool {
    let named = record.get("trajectory_format").and_then(Outline::as_str);
    let by_name = named.is_some_and(|name| name.starts_with(FORMAT));
    let by_version = record.get("info").is_some_and(|info| info.get("mini_version").is_some());
    record.is_object() && (by_name || by_version && record.get("messages").is_some_and(Outline::is_array))
}

fn read(source: &Source, record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let raw: &RawValue = record.parse()?;
    let (mut file, messages) = if let Some(messages) = elements(raw) {
        (Object::default(), messages)
    } else {
        let mut file = Object::parse(raw, "run")?;
        let messages = file.list("messages");
        let missing = || RecordError::new("missing-field", "expected an array `messages`");
        (file, messages.ok_or_else(missing)?)
    };
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let (mut acted, mut answered) = (false, false);
    for raw in messages {
        let mut message = message(raw, acted, &mut run.media)?;
        if message.node.role == Role::Assistant {
            acted = true;
            message.node.occurrence.sampled = true;
            if let Some(command) = command(&message.node.text()) {
                message.rest.insert("action".to_owned(), Json::string(command));
            }
            if let Some(details) = message.rest.remove("extra") {
                let (call, rest) = call(&details);
                answered |= call.is_some();
                message.node.occurrence.call = call;
                message.rest.extend(rest.map(|rest| ("extra".to_owned(), rest)));
            }
        }
        message.node.occurrence.extra = json_object(&message.rest);
        run.push(message.node);
    }
    if answered {
        let reason = "model, finish reason and usage are kept, the provider's envelope is not";
        sink.loss(Loss::new(FORMAT, "messages[].extra.response", reason))?;
    }
    let named_by_file = describe(&mut run, source, &mut file);
    run.extra.extend(file.filled_rest());
    let native = named_by_file.map(|instance| format!("{instance}/{}", record.sha256));
    record.emit(sink, run, native, Vec::new(), 0)?;
    Ok(())
}

/// Fills in what the file says of the run beside its messages. Returns which instance it is where only
/// the file's name tells it: then the instance is part of the run's identity.
fn describe(run: &mut Trajectory, source: &Source, file: &mut Object) -> Option<String> {
    let mut info = file.object("info");
    run.harness = Some(Harness { name: FORMAT.to_owned(), version: info.text("mini_version") });
    let file_id = source.name().trim_end_matches(".json").trim_end_matches(".traj");
    let file_id = Some(file_id.to_owned()).filter(|id| instance::repository(id).is_some());
    let goal = run.nodes.iter().find(|node| node.role == Role::User).map(Node::text).unwrap_or_default();
    let inside = file.text("instance_id");
    let named_by_file = file_id.filter(|_| inside.is_none());
    run.task = match inside.as_ref().or(named_by_file.as_ref()) {
        Some(id) => instance::task(FORMAT, id, goal),
        None => Task::from_goal(goal),
    };
    let model = info.object("config").object("model").text("model_name");
    for agent in &mut run.agents {
        agent.model.clone_from(&model);
    }
    let exit_status = info.text("exit_status");
    run.extra.extend(json_object(info.filled_rest()).map(|info| ("info".to_owned(), info)));
    let last_turn = run.nodes.iter().rfind(|node| node.occurrence.sampled).map(Node::text);
    let submitted = last_turn
        .as_deref()
        .and_then(command)
        .and_then(|command| SENTINELS.into_iter().find(|sentinel| command.contains(sentinel)));
    let outcome = Outcome::unknown();
    run.finish(match (exit_status, submitted) {
        (Some(status), _) => outcome.ended(termination(&status), status),
        (None, Some(sentinel)) => outcome.ended(TerminationKind::Completed, sentinel),
        (None, None) => outcome,
    });
    named_by_file
}

/// The action of a turn: the content of its first fenced shell block.
fn command(text: &str) -> Option<&str> {
    let start = FENCES.iter().filter_map(|fence| Some(text.find(fence)? + fence.len())).min()?;
    Some(text.get(start..)?.split_once("\n```")?.0)
}

/// The model call in a message's `extra.response`, as the provider answered it, and what else `extra`
/// says.
fn call(details: &Json) -> (Option<Box<Call>>, Option<Json>) {
    let mut details = details.to_value();
    let response = details.as_object_mut().and_then(|members| members.shift_remove("response"));
    let rest = Json::from_serialize(&details).ok().filter(|rest| rest.as_str() != "{}");
    let Some(response) = response else { return (None, rest) };
    let tokens = |name: &str| response.pointer(&format!("/usage/{name}")).and_then(serde_json::Value::as_u64);
    let usage = tokens("prompt_tokens").zip(tokens("completion_tokens"));
    let text = |pointer: &str| response.pointer(pointer).and_then(|value| value.as_str()).map(str::to_owned);
    let call = Call {
        model: text("/model"),
        finish_reason: text("/choices/0/finish_reason"),
        usage: usage.map(|(input, output)| Usage { input, output, ..Usage::default() }),
        cost: details.get("cost").and_then(serde_json::Value::as_f64),
        ..Call::default()
    };
    (Some(Box::new(call)), rest)
}

/// How a run ended by its `exit_status`.
fn termination(exit_status: &str) -> TerminationKind {
    match exit_status {
        "Submitted" => TerminationKind::Completed,
        "LimitsExceeded" => TerminationKind::BudgetExceeded,
        "TimeExceeded" | "TimeoutExpired" => TerminationKind::Timeout,
        "ContextWindowExceededError" => TerminationKind::ContextOverflow,
        "FormatError" | "RepeatedFormatError" => TerminationKind::TooManyErrors,
        "KeyboardInterrupt" | "UserInterruption" => TerminationKind::Cancelled,
        "APIError"
        | "RateLimitError"
        | "APIConnectionError"
        | "AuthenticationError"
        | "ServiceUnavailableError" => TerminationKind::InfrastructureError,
        _ => TerminationKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::{MiniSweAgent, command};
    use crate::importers::{Importer as _, Probe};

    fn detects(text: &str) -> bool {
        MiniSweAgent.detect(&Probe::of("x.json", text.as_bytes().to_vec(), true))
    }

    #[test]
    fn the_action_is_the_first_fenced_block() {
        assert_eq!(command("Look.\n\n```bash\nls -l\ncat a\n```\n```bash\nrm a\n```"), Some("ls -l\ncat a"));
        assert_eq!(command("```mswea_bash_command\nls\n```"), Some("ls"));
        assert_eq!(command("```python\nls\n```"), None);
        assert_eq!(command("```bash\nls"), None);
    }

    #[test]
    fn only_the_harness_prompt_is_recognized() {
        let chat = r#"[{"role":"system","content":"s"},{"role":"user","content":"u"},
            {"role":"assistant","content":"```bash\nls\n```"}]"#;
        assert!(!detects(chat), "a chat that holds a shell block is no run of this harness");
        assert!(detects(&chat.replace("\"u\"", "\"end with COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\"")));
        assert!(detects(r#"{"info":{"mini_version":"1.9"},"messages":[]}"#));
        assert!(!detects(r#"{"a__b-1":{"instance_id":"a__b-1","model_patch":"","model_name_or_path":"m"}}"#));
    }
}
