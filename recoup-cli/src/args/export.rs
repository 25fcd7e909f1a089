//! `recoup export` and `recoup release`, and what nothing is learned from.

use super::ModelArgs;
use super::StateLabelArgs;
use super::values::parse_answer;
use super::values::parse_left_out;
use super::values::parse_target;
use clap::Args;
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use recoup::exporters::formats;
use recoup::pipeline::LeftOut;
use recoup::views::DiagnosisAnswer;
use recoup::views::PreventionTarget;
use serde::Deserialize;
use std::path::PathBuf;

/// What nothing is learned from.
#[derive(Debug, Default, Args)]
pub(crate) struct SelectionArgs {
    /// Keep an environment or a harness for measuring: nothing is learned from its runs
    #[arg(long, value_name = "environment=NAME|harness=NAME", value_parser = parse_left_out, help_heading = "Selection")]
    pub leave_out: Vec<LeftOut>,
    /// Which of several like runs to drop: only equal examples, or all but the first of near-duplicates
    #[arg(long, value_name = "HOW", value_enum, help_heading = "Selection")]
    pub deduplicate: Option<DeduplicateChoice>,
    /// List of a benchmark's ids and texts, JSONL or plain lines: nothing is learned from runs that hold them
    #[arg(long, value_name = "FILE", help_heading = "Selection")]
    pub contaminated: Vec<PathBuf>,
}

/// What `--deduplicate` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeduplicateChoice {
    /// Equal examples
    Exact,
    /// Near-duplicates too
    Near,
}

/// What to export.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Views to export, all without any; and ids of runs, or the start of them, all that the filters leave
    /// without any
    #[arg(value_name = "VIEW|ID")]
    pub words: Vec<String>,
    /// Format to write: `atif` for whole runs, any other for training rows; `trl` is the one of TRL's forms that
    /// fits the view, tokens where a model is named
    #[arg(long, value_parser = PossibleValuesParser::new(formats()))]
    pub format: String,
    /// Folder to write into
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Keep secrets and personal data in the files; not for training rows
    #[arg(long)]
    pub no_redact: bool,
    /// Read what was written again, and hold it against its manifest and the format's own shape
    #[arg(long)]
    pub check: bool,
    /// Repeat rows, or leave them out, by their weight, where the format carries none
    #[arg(long)]
    pub resample: bool,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub views: ViewArgs,
    #[arg(long, value_name = "OUTCOME")]
    /// Only runs with this outcome
    pub outcome: Option<String>,
    #[arg(long, value_name = "KEY")]
    /// Only runs of this task
    pub task: Option<String>,
}

/// What is learned; each also a key of `[views]` in the settings file.
#[derive(Debug, Default, Args)]
pub(crate) struct ViewArgs {
    /// What `diagnosis_sft` answers: step, agent, explanation and fix, or agent and step as benchmarks ask
    #[arg(long, value_name = "ANSWER", value_parser = parse_answer, help_heading = "Views")]
    pub diagnosis_answer: Option<DiagnosisAnswer>,
    /// What `prevention_sft` learns: the repair's `action`, the `continuation` too, or `reflection+action`
    #[arg(long, value_name = "TARGET", value_parser = parse_target, help_heading = "Views")]
    pub prevention_target: Option<PreventionTarget>,
    /// Let `step_masked_sft` learn steps after an error that was made up for
    #[arg(long, help_heading = "Views")]
    pub after_recovery: bool,
    /// Let `preference` pair runs of a task whose earlier messages are the same byte for byte
    #[arg(long, help_heading = "Views")]
    pub sibling_pairs: bool,
    #[command(flatten)]
    pub labels: StateLabelArgs,
}

/// What to release.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// Folder to write into
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Leave out runs whose licence is unknown, instead of writing nothing
    #[arg(long)]
    pub skip_unknown: bool,
}
