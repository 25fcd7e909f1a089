//! The conversation with a bridge's program: `hello`, `reset`, `step`, `snapshot`, `expert`, `verify`,
//! `close`, one JSON object a line.
//!
//! A request has an `id`, which its answer repeats: an answer out of order is seen. An answer is what the
//! request asks for, or `{"id", "error": text}`. An unknown field is an error: what nobody reads, nobody checks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::super::child::{Child, ChildCommand, shortened};
use super::super::{EnvironmentError, Fault};
use crate::id::Hash;

/// The version of the protocol that a program must speak.
const PROTOCOL: &str = "recoup-bridge-1";
/// Longest answer, in bytes.
const LINE_BYTES: usize = 16 << 20;

/// The state before any action.
pub(super) const START: &str = "[]";

/// What a program says of itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hello {
    protocol: String,
    /// Name and version of the simulator and all that decides its behavior.
    pub version: String,
    /// Whether it answers `expert`.
    #[serde(default)]
    pub expert: bool,
    /// Whether it answers `snapshot`.
    #[serde(default)]
    pub snapshots: bool,
}

/// A task at its start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reset {
    pub task: Value,
    pub observation: String,
    pub tools: Value,
}

/// What an action has shown.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shown {
    pub observation: String,
    #[serde(default)]
    pub is_error: bool,
    #[serde(default)]
    pub done: bool,
    /// Hash of the whole state, where the program can tell.
    #[serde(default)]
    pub hash: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Verified {
    pub success: bool,
    pub score: f64,
    #[serde(default)]
    pub checks: BTreeMap<String, bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advised {
    action: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Snapped {
    snapshot: String,
}

/// What a task is reset by.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResetBy<'a> {
    pub seed: u64,
    pub difficulty: u8,
    pub family: &'a str,
}

/// A running program, and where it stands.
pub(super) struct Talk {
    environment: Arc<str>,
    child: Child,
    patience: Duration,
    next: u64,
    /// Key of the task and the actions taken in it; none where that is not known.
    pub at: Option<(Hash, String)>,
    /// What it showed at the start of the task.
    pub first: Option<Reset>,
    /// Snapshots of the task, by the actions that led there.
    pub snapshots: BTreeMap<String, String>,
}

impl Talk {
    /// Starts the program and lets it say hello.
    pub(super) fn start(
        environment: &Arc<str>,
        command: &ChildCommand,
        start: Duration,
        call: Duration,
    ) -> Result<(Self, Hello), EnvironmentError> {
        let child = Child::spawn(environment, command, LINE_BYTES)?;
        let mut talk = Self {
            environment: environment.clone(),
            child,
            patience: start,
            next: 0,
            at: None,
            first: None,
            snapshots: BTreeMap::new(),
        };
        let hello: Hello = talk.ask("hello", json!({ "protocol": PROTOCOL }))?;
        if hello.protocol != PROTOCOL {
            let message = format!("it speaks {}, not {PROTOCOL}", shortened(&hello.protocol));
            return Err(talk.child.fault(Fault::Contract, &message));
        }
        talk.patience = call;
        Ok((talk, hello))
    }

    /// Puts a task at its start, or at a snapshot of it; snapshots of another task are forgotten.
    pub(super) fn reset(
        &mut self,
        by: ResetBy<'_>,
        snapshot: Option<&str>,
    ) -> Result<Reset, EnvironmentError> {
        let mut fields = json!({ "seed": by.seed, "difficulty": by.difficulty, "family": by.family });
        if let (Some(snapshot), Some(fields)) = (snapshot, fields.as_object_mut()) {
            fields.insert("snapshot".to_owned(), snapshot.into());
        }
        let first: Reset = self.ask("reset", fields)?;
        if self.first.as_ref().is_none_or(|known| known.task != first.task) {
            self.snapshots.clear();
        }
        self.at = Some((Hash::of(first.task.to_string().as_bytes()), START.to_owned()));
        self.first = Some(first.clone());
        Ok(first)
    }

    /// Takes an action, given as JSON.
    pub(super) fn step(&mut self, action: &Value) -> Result<Shown, EnvironmentError> {
        self.ask("step", json!({ "action": action }))
    }

    /// Keeps the state as it is now under a name.
    pub(super) fn snapshot(&mut self) -> Result<String, EnvironmentError> {
        Ok(self.ask::<Snapped>("snapshot", json!({}))?.snapshot)
    }

    /// The teacher's next action, as JSON; null where it has none.
    pub(super) fn expert(&mut self) -> Result<Value, EnvironmentError> {
        Ok(self.ask::<Advised>("expert", json!({}))?.action)
    }

    /// Scores the state.
    pub(super) fn verify(&mut self) -> Result<Verified, EnvironmentError> {
        self.ask("verify", json!({}))
    }

    /// Where it stands is not known until it answers: an error leaves `at` empty.
    fn ask<T: DeserializeOwned>(&mut self, verb: &str, fields: Value) -> Result<T, EnvironmentError> {
        let at = self.at.take();
        let id = self.next;
        self.next += 1;
        let mut request = Map::from_iter([("id".to_owned(), id.into()), ("do".to_owned(), verb.into())]);
        if let Value::Object(fields) = fields {
            request.extend(fields);
        }
        let line = self.child.ask(&Value::Object(request).to_string(), self.patience)?;
        let Ok(Value::Object(mut answer)) = serde_json::from_str::<Value>(&line) else {
            let message = format!("its answer to `{verb}` is no JSON object: {}", shortened(&line));
            return Err(self.child.fault(Fault::Contract, &message));
        };
        let answered = answer.remove("id").unwrap_or_default();
        if answered != id {
            let message = format!("it answered request {answered} when asked `{verb}`, request {id}");
            return Err(self.child.fault(Fault::Contract, &message));
        }
        if let Some(error) = answer.get("error") {
            let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            return Err(EnvironmentError::new(
                &self.environment,
                Fault::Crash,
                format!("{verb}: {}", text.trim()),
            ));
        }
        let answer = serde_json::from_value(Value::Object(answer)).map_err(|error| {
            self.child.fault(Fault::Contract, &format!("its answer to `{verb}` is of a wrong shape: {error}"))
        })?;
        self.at = at;
        Ok(answer)
    }

    /// Asks the program to end; it is ended in any case when it is dropped.
    pub(super) fn close(&mut self) {
        self.patience = Duration::from_millis(500);
        let _ = self.ask::<Map<String, Value>>("close", json!({}));
    }
}
