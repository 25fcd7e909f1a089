//! `ls`, `show`, `label` and `forget`: stored runs, and what is told of them.

use clap::{Args, ValueEnum};

/// Which runs to list.
#[derive(Debug, Default, Args)]
pub(crate) struct FilterArgs {
    /// Outcome: success, failure, unknown
    #[arg(long)]
    pub outcome: Option<String>,
    /// Party to blame: agent, infrastructure, user_simulator, verifier, environment, task, unknown
    #[arg(long)]
    pub blame: Option<String>,
    /// Failure class: incomplete, constraint_violation, wrong_result, tool_error, hallucination, off_topic
    #[arg(long)]
    pub class: Option<String>,
    /// Format the runs were read from
    #[arg(long)]
    pub format: Option<String>,
    /// Agent
    #[arg(long)]
    pub agent: Option<String>,
    /// Model
    #[arg(long)]
    pub model: Option<String>,
    /// Task key
    #[arg(long)]
    pub task: Option<String>,
    /// Harness
    #[arg(long)]
    pub harness: Option<String>,
    /// Side of the split: train, validation, test, excluded
    #[arg(long)]
    pub split: Option<String>,
    /// Text that occurs in the run, case-sensitive
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,
    /// The runs too that replays have continued from others
    #[arg(long)]
    pub continuations: bool,
}

/// A page of the list.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Most runs to list
    #[arg(long, short = 'n', default_value_t = 50)]
    pub limit: u64,
    /// Runs to pass over first
    #[arg(long, default_value_t = 0)]
    pub offset: u64,
    /// Every run, whatever the limit
    #[arg(long, conflicts_with_all = ["limit", "offset"])]
    pub all: bool,
}

/// Which run to show.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run's id, or the start of it
    pub id: String,
    /// Print long messages whole
    #[arg(long)]
    pub full: bool,
    /// Do not page the output on a terminal
    #[arg(long)]
    pub no_pager: bool,
}

/// What to attach to which runs.
#[derive(Debug, Args)]
pub(crate) struct LabelArgs {
    /// Ids of the runs, or the start of them
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// The outcome
    #[arg(long, value_enum)]
    pub outcome: Option<OutcomeChoice>,
    /// The task's key
    #[arg(long, value_name = "KEY")]
    pub task: Option<String>,
    /// The environment's name
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,
    /// JSON that brings the environment to the run's first state
    #[arg(long, value_name = "JSON", requires = "environment")]
    pub reset: Option<String>,
    /// A note
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
}

/// Outcomes a person may attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutcomeChoice {
    /// Solved
    Success,
    /// Not solved
    Failure,
    /// Nobody knows
    Unknown,
}

/// Which runs to delete.
#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// Ids of runs, or the start of them
    #[arg(value_name = "ID", required_unless_present = "matching")]
    pub ids: Vec<String>,
    /// Every run whose source path or text holds this pattern
    #[arg(long, value_name = "TEXT", conflicts_with = "ids")]
    pub matching: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}
