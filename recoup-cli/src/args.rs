//! What the user typed. Nothing here does work: paths are not opened, names are not looked up.

mod collect;
mod environments;
mod eval;
mod export;
mod import;
mod judging;
mod models;
mod proxy;
mod replay;
mod runs;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
#[cfg(debug_assertions)]
use recoup::failpoint::{Failpoint, Side};

pub(crate) use self::collect::{CollectArgs, FormName, LabelFilter, StateLabelArgs};
pub(crate) use self::environments::{
    CheckArgs, EnvCommand, EnvExportArgs, EnvTarget, EnvWorkerArgs, PlayArgs, ServeArgs, TaskArgs, WorldArgs,
};
pub(crate) use self::eval::{AttributionArgs, By, EvalCommand, SideChoice};
pub(crate) use self::export::{DeduplicateChoice, ExportArgs, ReleaseArgs, SelectionArgs, ViewArgs};
pub(crate) use self::import::{ImportArgs, OutcomeArgs, SplitArgs, SplitChoice};
pub(crate) use self::judging::{DiagnoseArgs, JudgingArgs, ReviewArgs};
pub(crate) use self::models::{AskArgs, CONCURRENCY_MAX, JudgeArgs, ModelArgs, ModelFilesArgs, SpendArgs};
pub(crate) use self::proxy::{ProxyArgs, ProxyMode};
pub(crate) use self::replay::{RelabelArgs, ReplayArgs};
pub(crate) use self::runs::{FilterArgs, ForgetArgs, LabelArgs, LsArgs, OutcomeChoice, ShowArgs};
#[cfg(debug_assertions)]
use self::values::parse_failpoint;
pub(crate) use self::values::{Rate, parse_rate};

/// Turn the failed runs of an LLM agent into a better agent.
#[derive(Debug, Parser)]
#[command(name = "recoup", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Project folder that keeps runs and verdicts [default: .recoup]
    #[arg(long, global = true, value_name = "DIR", env = "RECOUP_PROJECT")]
    pub project: Option<PathBuf>,
    /// Settings file [default: recoup.toml, where it exists]
    #[arg(long, global = true, value_name = "FILE", env = "RECOUP_CONFIG")]
    pub config: Option<PathBuf>,
    /// Print machine-readable JSON on standard output
    #[arg(long, global = true)]
    pub json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, global = true, value_name = "N", env = "RECOUP_THREADS", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Say nothing on standard error but errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Use no network: models give only the answers that are kept
    #[arg(long, global = true)]
    pub offline: bool,
    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// Stop dead at a failpoint (`before-import`): the tests' way to be killed at a chosen instant
    #[cfg(debug_assertions)]
    #[arg(long, global = true, hide = true, value_parser = parse_failpoint)]
    pub stop_at: Option<(Failpoint, Side)>,
}

/// When to use colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Import runs, say what failed and whose fault it was, write training files and a report
    Run(RunArgs),
    /// Import runs
    Import(ImportArgs),
    /// List runs
    Ls(LsArgs),
    /// Show a run, with its decisive step and citations marked
    Show(ShowArgs),
    /// Attach an outcome, a task, an environment or a note to runs
    Label(LabelArgs),
    /// Diagnose runs that have not been diagnosed yet, by rules and by models
    Diagnose(DiagnoseArgs),
    /// Show runs without outcome or verdict, and keep what you say of them: it measures the judges
    Review(ReviewArgs),
    /// Let a policy act in an environment, and keep its runs
    Collect(CollectArgs),
    /// Stand between a harness and its models: record every conversation
    Proxy(ProxyArgs),
    /// List, check, play, serve and export environments
    #[command(subcommand)]
    Env(EnvCommand),
    /// Write runs in a format that other programs read
    Export(ExportArgs),
    /// Write every run with what was decided about it, accepted and rejected, as linked tables with a card
    Release(ReleaseArgs),
    /// Re-execute failed runs in their environments and prove repairs by matched arms
    Replay(ReplayArgs),
    /// Find goals that failed runs did achieve, and keep them for training
    Relabel(RelabelArgs),
    /// Ask a model, to see whether and how it answers
    Ask(AskArgs),
    /// Measure how often recoup is right
    #[command(subcommand)]
    Eval(EvalCommand),
    /// Count what the project holds
    Stats,
    /// Recompute every hash in the project
    Verify,
    /// Drop what nothing refers to
    Gc,
    /// Really delete runs: their records, verdicts and bytes
    Forget(ForgetArgs),
    /// Run a package for another `recoup`, shut in
    #[command(hide = true)]
    EnvWorker(EnvWorkerArgs),
}

/// The main job.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Files, folders, globs, archives (`.gz`, `.zst`, `.zip`), or `-` for standard input; without any, what the
    /// project holds
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,
    /// Folder for the report and the training files [default: recoup-out]
    #[arg(long, value_name = "DIR", env = "RECOUP_OUT")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub outcomes: OutcomeArgs,
    #[command(flatten)]
    pub split: SplitArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub worlds: WorldArgs,
    #[command(flatten)]
    pub judge: JudgeArgs,
    #[command(flatten)]
    pub views: ViewArgs,
    #[command(flatten, next_help_heading = "Model of the training files")]
    pub model: ModelFilesArgs,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Arguments;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
