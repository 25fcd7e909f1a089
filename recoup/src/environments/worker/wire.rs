//! What passes between a package's worker and this process: a request a line, an answer a line.
//!
//! States, tasks and actions travel as the bytes they are, because order and spelling count.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::{EnvironmentError, Fault};

/// What a worker says first.
pub(super) const READY: &str = r#"{"ready":"recoup-worker-1"}"#;

/// What is asked of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verb {
    /// Load a package: `manifest`, `program`, `policy`.
    #[default]
    Load,
    /// The task of `seed` and `difficulty`.
    Generate,
    /// Open `task`, which all that follows is about; answers with its tools.
    Open,
    /// The first state and observation.
    Start,
    /// Take `actions[0]` in `state`.
    Step,
    /// Score `state` after `transcript`.
    Verify,
    /// The teacher's action in `state`.
    Expert,
    /// Goals that `state` fulfills.
    Achieved,
    /// Take all `actions` in order, from `state` or the start.
    Run,
}

/// A request.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Request<'a> {
    #[serde(rename = "do")]
    pub verb: Verb,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<u8>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub task: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub state: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Vec::is_empty")]
    pub transcript: Vec<WireExchange<'a>>,
}

/// An answer: one of the two.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WireError>,
}

/// An [`EnvironmentError`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireError {
    pub code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    pub message: String,
}

/// A [`Step`](super::super::Step).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WireStep {
    pub observation: String,
    pub is_error: bool,
    pub done: bool,
}

/// An [`Exchange`](super::super::Exchange).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WireExchange<'a> {
    #[serde(borrow)]
    pub action: &'a RawValue,
    pub step: WireStep,
}

/// A state with what led to it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireState<'a> {
    #[serde(borrow)]
    pub state: &'a RawValue,
    pub steps: Vec<WireStep>,
}

/// A [`Goal`](super::super::Goal).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireGoal<'a> {
    pub goal: String,
    #[serde(borrow)]
    pub task: &'a RawValue,
}

impl From<EnvironmentError> for WireError {
    fn from(error: EnvironmentError) -> Self {
        Self { code: error.fault.code().to_owned(), at: error.at, message: error.message }
    }
}

impl WireError {
    /// The error as it was in the worker; a code that this version does not know is a broken contract.
    pub(super) fn into_error(self, environment: &Arc<str>) -> EnvironmentError {
        let fault = Fault::ALL.into_iter().find(|fault| fault.code() == self.code).unwrap_or(Fault::Contract);
        EnvironmentError { environment: environment.to_string(), fault, at: self.at, message: self.message }
    }
}
