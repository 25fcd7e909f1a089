//! OpenEnv's verbs: reset, step, state. The client speaks them over a WebSocket, one episode a connection; the
//! same verbs are there over plain HTTP, where a request names its episode.
//!
//! The reward is 0 until the episode is over and then whether the goal was reached: 1 or 0. An environment that
//! fails is an error of the server, never a reward.

use std::sync::atomic::{AtomicU64, Ordering};

use recoup::environments::{Action, Environment, EnvironmentError};
use recoup::json::Json;
use serde_json::{Map, Value, json};

use super::super::episode::Episode;

/// A request that was not carried out.
#[derive(Debug)]
pub(super) struct Refused {
    /// OpenEnv's code.
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { code: "VALIDATION_ERROR", message: message.into() }
    }
}

impl From<EnvironmentError> for Refused {
    fn from(error: EnvironmentError) -> Self {
        Self { code: "EXECUTION_ERROR", message: error.to_string() }
    }
}

/// Where episodes start.
pub(super) struct Tasks {
    pub(super) environment: Box<dyn Environment>,
    /// Difficulty where a reset names none.
    pub(super) difficulty: u8,
    /// Seed of the next reset that names none.
    next: AtomicU64,
    /// Distance between such seeds: families take turns, or one is kept.
    distance: u64,
}

impl Tasks {
    pub(super) fn new(environment: Box<dyn Environment>, first: u64, distance: u64, difficulty: u8) -> Self {
        Self { environment, difficulty, next: AtomicU64::new(first), distance }
    }

    /// Starts the episode that a reset asks for: `seed` and `difficulty`, each optional.
    pub(super) fn reset(&self, data: &Map<String, Value>) -> Result<Episode, Refused> {
        let given = |name: &str| data.get(name).filter(|value| !value.is_null());
        let seed = match given("seed") {
            None => self.next.fetch_add(self.distance, Ordering::Relaxed) & i64::MAX as u64,
            Some(value) => value
                .as_u64()
                .filter(|seed| i64::try_from(*seed).is_ok())
                .ok_or_else(|| Refused::invalid("`seed` is a whole number from 0 to 2^63 - 1"))?,
        };
        let difficulty = match given("difficulty") {
            None => self.difficulty,
            Some(value) => value
                .as_u64()
                .and_then(|number| u8::try_from(number).ok())
                .filter(|number| (1..=3).contains(number))
                .ok_or_else(|| Refused::invalid("`difficulty` is 1, 2 or 3"))?,
        };
        Ok(Episode::start(&*self.environment, seed, difficulty)?)
    }

    /// What a reset shows: the goal, the rules and the tools with the first observation.
    pub(super) fn started(&self, episode: &Episode) -> Value {
        let task = episode.task();
        json!({
            "observation": {
                "text": episode.observation(),
                "is_error": false,
                "goal": task.goal,
                "policy": self.environment.identity().policy,
                "max_steps": task.max_steps,
                "tools": tools(episode),
            },
            "reward": null,
            "done": false,
        })
    }

    /// Where an episode stands, without what its agent must not read.
    pub(super) fn state(&self, episode: Option<&Episode>, id: &str) -> Value {
        let Some(episode) = episode else { return json!({ "episode_id": null, "step_count": 0 }) };
        let (task, identity) = (episode.task(), self.environment.identity());
        json!({
            "episode_id": id,
            "step_count": episode.steps(),
            "environment": identity.manifest.name,
            "version": identity.version(),
            "seed": task.seed,
            "difficulty": task.difficulty,
            "family": task.family,
            "max_steps": task.max_steps,
            "done": episode.over().is_some(),
        })
    }
}

/// Takes an action, `{"tool", "arguments"}` or `{"say"}`, and tells what it showed.
pub(super) fn step(episode: &mut Episode, action: &Map<String, Value>) -> Result<Value, Refused> {
    let mut action = action.clone();
    // Every action of OpenEnv may carry it.
    action.shift_remove("metadata");
    let action = Action::from_json(&Value::Object(action).to_string()).map_err(Refused::invalid)?;
    let step = episode.act(action)?;
    let done = episode.over().is_some();
    let score = if done { Some(episode.score()?) } else { None };
    Ok(json!({
        "observation": {
            "text": step.observation,
            "is_error": step.is_error,
            "score": score.as_ref().map(|score| score.score),
            "checks": score.as_ref().map(|score| &score.checks),
        },
        "reward": if score.is_some_and(|score| score.success) { 1.0 } else { 0.0 },
        "done": done,
    }))
}

/// The tools as a model is told of them.
fn tools(episode: &Episode) -> Vec<Value> {
    let tools = episode.tools().iter().map(|tool| {
        json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema.to_value(),
        })
    });
    tools.collect()
}

/// The schemas of actions, observations and states.
pub(super) fn schema() -> Value {
    let string = json!({ "type": "string" });
    json!({
        "action": {
            "type": "object",
            "properties": { "tool": string, "arguments": { "type": "object" }, "say": string },
            "oneOf": [{ "required": ["tool", "arguments"] }, { "required": ["say"] }],
        },
        "observation": {
            "type": "object",
            "properties": { "text": string, "is_error": { "type": "boolean" } },
            "required": ["text", "is_error"],
        },
        "state": {
            "type": "object",
            "properties": { "episode_id": string, "step_count": { "type": "integer" } },
            "required": ["step_count"],
        },
    })
}

/// One message of the WebSocket, and its answer; `None` closes.
pub(super) fn answer(tasks: &Tasks, episode: &mut Option<Episode>, message: &str) -> Option<Value> {
    let refused = |refused: Refused| json!({ "type": "error", "data": { "message": refused.message, "code": refused.code } });
    let Ok(Value::Object(message)) = serde_json::from_str::<Value>(message) else {
        return Some(refused(Refused {
            code: "INVALID_JSON",
            message: "a message is a JSON object".to_owned(),
        }));
    };
    let data = match message.get("data") {
        Some(Value::Object(data)) => data.clone(),
        _ => Map::new(),
    };
    let kind = message.get("type").and_then(Value::as_str).unwrap_or_default();
    let answered = match kind {
        "reset" => tasks.reset(&data).map(|started| {
            let shown = tasks.started(&started);
            *episode = Some(started);
            json!({ "type": "observation", "data": shown })
        }),
        "step" => match episode {
            Some(episode) => {
                step(episode, &data).map(|shown| json!({ "type": "observation", "data": shown }))
            }
            None => Err(Refused { code: "SESSION_ERROR", message: "reset comes before step".to_owned() }),
        },
        "state" => Ok(json!({ "type": "state", "data": tasks.state(episode.as_ref(), "connection") })),
        "close" => return None,
        other => Err(Refused {
            code: "UNKNOWN_TYPE",
            message: format!("there is no message of type {}", Json::string(other).as_str()),
        }),
    };
    Some(answered.unwrap_or_else(refused))
}
