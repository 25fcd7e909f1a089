//! What any command says that cannot do its work.

use serde::Serialize;

/// Why a command could not do its work: the last line where the exit code is 2, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failed<'a> {
    /// The failure.
    pub error: Problem<'a>,
}

/// A failure in words.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Problem<'a> {
    /// Stable word for the cause.
    pub code: &'a str,
    /// Who can do something about it.
    pub origin: Origin,
    /// Whether trying again may help.
    pub retryable: bool,
    /// For a person.
    pub message: &'a str,
    /// What to do about it.
    pub hint: Option<&'a str>,
}

/// Who can do something about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The command line, the settings, the place it was started in.
    User,
    /// The machine: disk, memory, permissions.
    Machine,
    /// An environment that was named.
    Environment,
    /// A model's provider.
    Provider,
}
