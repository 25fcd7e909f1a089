//! Why a run cannot be replayed. Each is an error on the record, never a failed run.

use crate::environments::EnvironmentError;
use crate::verdict::{Divergence, Unsupported};

/// Why a run cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The run does not say where it happened.
    #[error("the run names no environment")]
    NoEnvironment,
    /// The environment is not one that can be opened.
    #[error("there is no environment `{0}` here")]
    UnknownEnvironment(String),
    /// The environment has changed since.
    #[error("the run happened in `{environment}` {recorded}, and this is {known}")]
    Version {
        /// Its name.
        environment: String,
        /// Version in the record.
        recorded: String,
        /// Version here.
        known: String,
    },
    /// The record's reset names no task.
    #[error("what the run is reset by names no task of `{environment}`")]
    Reset {
        /// The environment's name.
        environment: String,
    },
    /// The record cannot be read as an episode.
    #[error("node {node}: {reason}")]
    Record {
        /// Position of the message.
        node: usize,
        /// In words.
        reason: &'static str,
    },
    /// The execution differs from the record.
    #[error("turn {} shows something else than the record", .0.step)]
    Diverged(Box<Divergence>),
    /// The environment failed.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// Nothing says which turn to replace.
    #[error("no decisive step is known")]
    NoStep,
    /// The node is not one of the policy's turns.
    #[error("node {0} belongs to no turn of the policy")]
    NotATurn(usize),
    /// The policy that acted in the run is not one that can act here.
    #[error("no policy `{0}` can continue the run")]
    UnknownPolicy(String),
    /// The environment has no teacher.
    #[error("the environment has no expert")]
    NoExpert,
}

impl ReplayError {
    /// Code of a run whose environment is not here: the one reason that naming a folder may remove.
    pub const UNKNOWN_ENVIRONMENT: &str = "unknown-environment";
    /// Causes that lie in the run and its diagnosis, and not in what is here to replay it with.
    pub(crate) const OF_THE_RUN: [&str; 5] =
        ["environment-reset", "record", "diverged", "no-step", "not-a-turn"];

    /// The error's code in records and `--json`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoEnvironment => "no-environment",
            Self::UnknownEnvironment(_) => Self::UNKNOWN_ENVIRONMENT,
            Self::Version { .. } => "environment-version",
            Self::Reset { .. } => "environment-reset",
            Self::Record { .. } => "record",
            Self::Diverged(_) => "diverged",
            Self::Environment(error) => error.fault.code(),
            Self::NoStep => "no-step",
            Self::NotATurn(_) => "not-a-turn",
            Self::UnknownPolicy(_) => "unknown-policy",
            Self::NoExpert => "no-expert",
        }
    }
}

impl From<&ReplayError> for Unsupported {
    fn from(error: &ReplayError) -> Self {
        let divergence = match error {
            ReplayError::Diverged(divergence) => Some((**divergence).clone()),
            _ => None,
        };
        Self { code: error.code().to_owned(), reason: error.to_string(), divergence }
    }
}
