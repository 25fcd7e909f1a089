//! `eval`: what is measured, and against which labels.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Compare the blamed step and agent with labels, beside what simple guesses reach
    Attribution(AttributionArgs),
}

/// Which labels, and whose predictions.
#[derive(Debug, Args)]
pub(crate) struct AttributionArgs {
    /// Labelled runs, or runs and the files with their labels: Who&When, AgentRx, TrajErrBench, TracerTraj,
    /// labelled chat rows. They are read into a project of their own that is dropped again, or into `--project`
    /// where named
    #[arg(long, value_name = "PATH", num_args = 1.., required_unless_present = "against")]
    pub labels: Vec<String>,
    /// Whose word to score. That of judges is what `recoup diagnose --judge` left in the project, which the
    /// labels are read into
    #[arg(long, value_name = "WHO", value_enum, default_value_t = By::Rules)]
    pub by: By,
    /// Predictions to score instead: JSONL of `{"file", "agent", "step"}`, steps from 0, or a log of
    /// `Prediction for FILE.json:` blocks
    #[arg(long, value_name = "FILE", conflicts_with = "by")]
    pub predictions: Option<PathBuf>,
    /// Only runs on this side of the split
    #[arg(long, value_name = "SIDE", value_enum)]
    pub side: Option<SideChoice>,
    /// Compare instead with what `recoup replay --sweep` found in the project
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with_all = ["labels", "by", "predictions", "side"])]
    pub against: Option<Against>,
    /// Seed of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// Those whose word is scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The rules
    Rules,
    /// Judges
    Judge,
    /// Judges that were shown the right answer
    JudgeWithGroundTruth,
}

/// Sides of the split that runs are measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SideChoice {
    /// For training
    Train,
    /// For choosing
    Validation,
    /// For the final figure
    Test,
}

/// Labels that recoup makes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Against {
    /// Turns whose correction changes the outcome
    Flips,
}
