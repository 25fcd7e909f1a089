//! ATIF out: the main branch of a run as one document that strict readers accept.
//!
//! Reading what is written gives the run again, as far as ATIF goes. What recoup knows beyond it (an
//! outcome, a tool's exit code, a task's key) stands under `extra.recoup`, and only where it differs
//! from what a reader would assume; what has no place even there is a loss.

mod content;
mod observation;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::importers::Scoring;
use crate::importers::atif::{VERSION, stated_outcome, tool_definitions};
use crate::importers::row;
use crate::json::Json;
use crate::trajectory::{Agent, Harness, Hidden, Role, Trajectory};
use crate::warning::Loss;

/// The format's name.
pub const FORMAT: &str = "atif";
/// What a required name or version says where the run knows none.
const UNKNOWN: &str = "unknown";

/// Writes a run as an ATIF document and appends what it could not carry to `losses`.
pub fn atif(trajectory: &Trajectory, losses: &mut Vec<Loss>) -> Value {
    let mut lost = Lost::default();
    let written = step::steps(trajectory, &mut lost);
    let mut extra = trajectory.extra.clone();
    let mut root = Map::new();
    root.insert("schema_version".to_owned(), version(&mut extra, written.minor_version).into());
    for key in ["session_id", "trajectory_id"] {
        root.extend(take(&mut extra, key, Value::is_string));
    }
    root.insert("agent".to_owned(), agent(trajectory, &mut extra));
    root.insert("steps".to_owned(), written.steps.into());
    for key in ["notes", "continued_trajectory_ref"] {
        root.extend(take(&mut extra, key, Value::is_string));
    }
    root.extend(take(&mut extra, "final_metrics", Value::is_object));
    if extra.remove("subagent_trajectories").is_some() {
        lost.note("subagent_trajectories", "each is a run, and a document, of its own");
    }
    note_losses(trajectory, &mut lost);
    let stated = extra.remove("extra");
    let more = extra.iter().map(|(key, value)| (key.clone(), lost.tree(key, value))).collect();
    let own = own(trajectory, stated.as_ref(), more);
    let stated = stated.map(|stated| lost.tree("extra", &stated));
    root.extend(merged_extra(stated, own).map(|extra| ("extra".to_owned(), extra)));
    losses.extend(lost.0);
    Value::Object(root)
}

/// Losses of one document, each counted once.
#[derive(Debug, Default)]
struct Lost(BTreeSet<Loss>);

impl Lost {
    fn note(&mut self, field: &str, reason: &str) {
        self.0.insert(Loss::new(FORMAT, field, reason));
    }

    /// The tree of a value; one with numbers that a tree rounds is a loss.
    fn tree(&mut self, field: &str, json: &Json) -> Value {
        let value = json.to_value();
        if Json::from_serialize(&value).as_ref() != Ok(json) {
            self.note(field, "integers beyond 64 bits were rounded");
        }
        value
    }
}

/// The source's version, raised to the one that has what was written.
fn version(extra: &mut BTreeMap<String, Json>, minor_needed: u32) -> String {
    let stated = take(extra, "schema_version", Value::is_string).and_then(|(_, value)| {
        let minor: u32 = value.as_str()?.strip_prefix("ATIF-v1.")?.parse().ok()?;
        (minor >= minor_needed).then(|| format!("ATIF-v1.{minor}"))
    });
    let least = format!("ATIF-v1.{minor_needed}");
    stated.unwrap_or_else(|| if least.as_str() > VERSION { least } else { VERSION.to_owned() })
}

/// Takes a member of the type that the format wants; any other stays with recoup's own.
fn take(
    extra: &mut BTreeMap<String, Json>,
    key: &str,
    wanted: fn(&Value) -> bool,
) -> Option<(String, Value)> {
    let value = extra.get(key)?.to_value();
    wanted(&value).then(|| {
        extra.remove(key);
        (key.to_owned(), value)
    })
}

fn agent(trajectory: &Trajectory, extra: &mut BTreeMap<String, Json>) -> Value {
    let Harness { name, version } = harness(trajectory);
    let mut agent = Map::new();
    agent.insert("name".to_owned(), name.into());
    agent.insert("version".to_owned(), version.unwrap_or_else(|| UNKNOWN.to_owned()).into());
    if let Some(model) = trajectory.agents.first().and_then(|agent| agent.model.clone()) {
        agent.insert("model_name".to_owned(), model.into());
    }
    let definitions = take(extra, "tool_definitions", Value::is_array).or_else(|| {
        let definitions = (!trajectory.tools.is_empty()).then(|| tool_definitions(&trajectory.tools));
        Some(("tool_definitions".to_owned(), definitions?.to_value()))
    });
    agent.extend(definitions);
    let more = take(extra, "agent_extra", Value::is_object);
    agent.extend(more.map(|(_, value)| ("extra".to_owned(), value)));
    Value::Object(agent)
}

/// The agent system that a reader will see.
fn harness(trajectory: &Trajectory) -> Harness {
    let known = trajectory.harness.clone();
    let named = trajectory.agents.first().map_or(UNKNOWN, |agent| &agent.name);
    let harness = known.unwrap_or_else(|| Harness { name: named.to_owned(), version: None });
    Harness { version: harness.version.or_else(|| Some(UNKNOWN.to_owned())), ..harness }
}

/// The agents that a reader would find in the document.
fn agents_read(trajectory: &Trajectory) -> Vec<Agent> {
    let agent = |name: &str, model| Agent { name: name.to_owned(), model, system_prompt: None };
    let model = trajectory.agents.first().and_then(|agent| agent.model.clone());
    let mut agents = vec![agent(&harness(trajectory).name, model)];
    for node in trajectory.nodes.iter().filter(|node| node.role == Role::Assistant) {
        if !agents.iter().any(|known| known.name == node.agent) {
            agents.push(agent(&node.agent, None));
        }
    }
    agents
}

/// Recoup's own members of the root: what a reader would assume otherwise.
fn own(trajectory: &Trajectory, stated: Option<&Json>, extra: Map<String, Value>) -> Map<String, Value> {
    let mut own = Map::new();
    let mut set = |key: &str, said: bool, value: Value| {
        if said {
            own.insert(key.to_owned(), value);
        }
    };
    let outcome = trajectory.outcome();
    set("outcome", *outcome != stated_outcome(stated, &Scoring::default()), json!(outcome));
    let task = &trajectory.task;
    set("task", *task != row::derived_task(trajectory), json!(task));
    let harness_read = Some(harness(trajectory));
    set("harness", trajectory.harness != harness_read, json!(trajectory.harness));
    set("agents", trajectory.agents != agents_read(trajectory), json!(trajectory.agents));
    set("environment", trajectory.environment.is_some(), json!(trajectory.environment));
    set("verifier", trajectory.verifier.is_some(), json!(trajectory.verifier));
    set("trial", trajectory.trial.is_some(), json!(trajectory.trial));
    set("seed", trajectory.seed.is_some(), json!(trajectory.seed));
    set("budget", trajectory.budget.is_some(), json!(trajectory.budget));
    set("origin", trajectory.origin.is_some(), json!(trajectory.origin));
    set("extra", !extra.is_empty(), extra.into());
    own
}

/// A source's `extra` with recoup's own members in it.
fn merged_extra(stated: Option<Value>, own: Map<String, Value>) -> Option<Value> {
    if own.is_empty() {
        return stated;
    }
    let mut extra = match stated {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    extra.insert("recoup".to_owned(), Value::Object(own));
    Some(Value::Object(extra))
}

fn note_losses(trajectory: &Trajectory, lost: &mut Lost) {
    if trajectory.leaves.len() > 1 {
        lost.note("branches", "a document is one line of steps: the main branch was written");
    }
    if trajectory.hidden != Hidden::default() {
        lost.note("hidden", "answers and verifier output never leave");
    }
    if trajectory.licence != "own" {
        lost.note("licence", "no field of the format");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::version;
    use crate::json::Json;

    #[test]
    fn a_version_is_kept_unless_it_is_too_old() {
        let stated = |text: &str, needed| {
            version(&mut BTreeMap::from([("schema_version".to_owned(), Json::string(text))]), needed)
        };
        assert_eq!(stated("ATIF-v1.5", 4), "ATIF-v1.5");
        assert_eq!(stated("ATIF-v1.5", 7), "ATIF-v1.7");
        assert_eq!(stated("ATIF-v1.6", 8), "ATIF-v1.8");
        assert_eq!(stated("something", 4), "ATIF-v1.7");
    }
}
