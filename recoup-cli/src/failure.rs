//! Why a command could not do its work, in words for the person who typed it.
//!
//! One table of codes: each has an origin, says whether trying again may help, and sets the exit code.
//! Messages go to standard error as the cause, then `hint: …`; with `--json` the same stands on the
//! last line of standard output.

use std::{fmt, io};

use recoup::answers::{Failed, Origin, Problem};
use recoup::environments::EnvironmentError;
use recoup::importers::SinkError;
use recoup::models::ModelError;
use recoup::pipeline::PipelineError;
use recoup::rollout::CollectError;
use recoup::rollout::policies::PolicyNameError;
use recoup::store::StoreError;

/// A failure that ends a command with exit code 2.
#[derive(Debug)]
pub(crate) struct Failure {
    origin: Origin,
    code: &'static str,
    message: String,
    hint: Option<String>,
    retryable: bool,
}

impl Failure {
    /// Something about the command line or its surroundings.
    pub(crate) fn user(message: impl Into<String>) -> Self {
        Self { origin: Origin::User, code: "usage", message: message.into(), hint: None, retryable: false }
    }

    /// The machine refused: a file could not be written or read.
    pub(crate) fn machine(doing: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            origin: Origin::Machine,
            code: "io",
            message: format!("{doing}: {}", chain(error)),
            hint: None,
            retryable: true,
        }
    }

    /// Names the file that the message is about.
    #[must_use]
    pub(crate) fn within(mut self, path: &std::path::Path) -> Self {
        self.message = format!("`{}`: {}", path.display(), self.message);
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the stable word of the cause.
    #[must_use]
    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    /// The failure for a program, for the last line of standard output.
    pub(crate) fn answer(&self) -> Failed<'_> {
        Failed {
            error: Problem {
                code: self.code,
                origin: self.origin,
                retryable: self.retryable,
                message: &self.message,
                hint: self.hint.as_deref(),
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = chain(&error);
        let (origin, code, hint, retryable) = match &error {
            StoreError::NoProject { .. } => (
                Origin::User,
                "no-project",
                Some("`recoup import PATH` makes one; `--project DIR` names another"),
                false,
            ),
            StoreError::NotFound { .. } => {
                (Origin::User, "not-found", Some("`recoup ls` lists the runs"), false)
            }
            StoreError::Ambiguous { .. } => (Origin::User, "ambiguous", None, false),
            StoreError::Newer { .. } => (Origin::User, "newer-project", None, false),
            StoreError::DiskFull => (Origin::Machine, "disk-full", None, true),
            StoreError::Busy => (Origin::Machine, "busy", None, true),
            StoreError::ReadOnly => (
                Origin::Machine,
                "read-only",
                Some("make its folder writable, or copy the folder and name the copy with `--project DIR`"),
                false,
            ),
            StoreError::Corrupt(_) => (
                Origin::Machine,
                "damaged",
                Some("move the folder away and import again, or name another with `--project DIR`"),
                false,
            ),
            _ => (Origin::Machine, "store", None, false),
        };
        Self { origin, code, message, hint: hint.map(str::to_owned), retryable }
    }
}

impl From<PipelineError> for Failure {
    fn from(error: PipelineError) -> Self {
        match error {
            PipelineError::Store(error) => error.into(),
            PipelineError::Sink(error) => error.into(),
            PipelineError::UnknownLicence { .. } => Self::user(error.to_string())
                .code("unknown-licence")
                .hint("leave them out with `--skip-unknown`, or `recoup forget` them and import them again with `--licence NAME`"),
            PipelineError::NothingLeft => Self::user(error.to_string())
                .code("nothing-left")
                .hint("`recoup ls` lists the runs; those of unknown licence are left out with `--skip-unknown`"),
            PipelineError::Foreign { .. } => Self::user(error.to_string())
                .code("foreign-file")
                .hint("name another folder with `--out DIR`, or move the file away"),
            error => Self {
                origin: Origin::Machine,
                code: "io",
                message: chain(&error),
                hint: place_hint(&error),
                retryable: true,
            },
        }
    }
}

/// What to do about a place that cannot be written.
fn place_hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let causes = std::iter::successors(Some(error), |error| error.source());
    // A library's error may stand between one of the machine and one that only carries it.
    let mut kinds = causes.filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    let hint = kinds.find_map(|kind| match kind {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            Some("something else stands there: name another folder with `--out DIR`")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some("name a folder that you may write with `--out DIR`")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Some("make room and run it again")
        }
        _ => None,
    });
    hint.map(str::to_owned)
}

impl From<CollectError> for Failure {
    fn from(error: CollectError) -> Self {
        match error {
            CollectError::Plan(error) => Self::user(error.to_string()).code("plan"),
            CollectError::Store(error) => error.into(),
            CollectError::Sink(error) => error.into(),
        }
    }
}

impl From<PolicyNameError> for Failure {
    fn from(error: PolicyNameError) -> Self {
        Self::user(error.to_string()).code("policy").hint(PolicyNameError::hint())
    }
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        Self { origin: Origin::Environment, ..Self::user(error.to_string()).code(error.fault.code()) }
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let (origin, hint) = match &error {
            ModelError::Exhausted { .. } => {
                (Origin::User, Some("run it again with a higher limit: what was answered is kept"))
            }
            ModelError::Offline { .. } => (Origin::User, Some("leave `--offline` out")),
            ModelError::Unsupported(_) => (Origin::User, None),
            full if full.is_context_full() => (
                Origin::Provider,
                Some(
                    "it takes less at once: `--max-answer` leaves less room for an answer, `--window` shows judges less",
                ),
            ),
            ModelError::Cache(_) => (Origin::Machine, None),
            ModelError::Unreachable { .. } | ModelError::Down { .. } => {
                (Origin::Provider, Some("is the server running, and is this its address?"))
            }
            ModelError::Status { status: 401 | 403, .. } => (
                Origin::Provider,
                Some(
                    "the key comes from `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, or `RECOUP_API_KEY` for other hosts",
                ),
            ),
            ModelError::Status { status: 404, .. } | ModelError::Malformed { .. } => {
                (Origin::Provider, Some("is this the address of an API? Most end in `/v1`"))
            }
            _ => (Origin::Provider, None),
        };
        Self {
            origin,
            code: error.code(),
            message: error.to_string(),
            hint: hint.map(str::to_owned),
            retryable: error.is_retryable(),
        }
    }
}

impl From<SinkError> for Failure {
    fn from(error: SinkError) -> Self {
        match error.0.downcast::<StoreError>() {
            Ok(store) => (*store).into(),
            Err(other) => Self::machine("cannot store what was read", other.as_ref()),
        }
    }
}

/// An error with its causes, outermost first.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut out = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !out.contains(&text) {
            out.push_str(": ");
            out.push_str(&text);
        }
        next = cause.source();
    }
    out
}
