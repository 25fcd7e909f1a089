//! What goes wrong in an environment: always the environment's own fault, never the policy's.

use std::fmt;

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The package cannot be read, parsed, or uses what is forbidden.
    Load,
    /// It broke its contract: a missing function, a value of a wrong shape, an inconsistent score.
    Contract,
    /// It failed while running: a lookup of a missing key, a call of `fail`.
    Crash,
    /// It exceeded its ticks, memory, output or depth.
    Limit,
    /// It did not answer in time.
    Timeout,
    /// Its process ended or cannot be started.
    Process,
    /// It does not offer what was asked of it.
    Unsupported,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Load,
        Self::Contract,
        Self::Crash,
        Self::Limit,
        Self::Timeout,
        Self::Process,
        Self::Unsupported,
    ];

    /// The fault's code in records and `--json`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Load => "environment-load",
            Self::Contract => "environment-contract",
            Self::Crash => "environment-crash",
            Self::Limit => "environment-limit",
            Self::Timeout => "environment-timeout",
            Self::Process => "environment-process",
            Self::Unsupported => "environment-unsupported",
        }
    }
}

/// An environment failed. It costs the episode it happened in, which is recorded as an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct EnvironmentError {
    /// Name of the environment.
    pub environment: String,
    /// What kind of fault.
    pub fault: Fault,
    /// File and line (`environment.star:12`), where known.
    pub at: Option<String>,
    /// In words.
    pub message: String,
}

impl EnvironmentError {
    /// A fault without a place.
    pub fn new(environment: &str, fault: Fault, message: impl Into<String>) -> Self {
        Self { environment: environment.to_owned(), fault, at: None, message: message.into() }
    }
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "environment `{}`: ", self.environment)?;
        if let Some(at) = &self.at {
            write!(f, "{at}: ")?;
        }
        f.write_str(&self.message)
    }
}
