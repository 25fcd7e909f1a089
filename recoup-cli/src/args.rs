//! What the user typed. Nothing here does work: paths are not opened, names are not looked up.

mod collect;
mod environments;
mod export;
mod import;
mod models;
mod proxy;
mod values;

use self::values::parse_arm;
#[cfg(debug_assertions)]
use self::values::parse_failpoint;
use clap::Args;
use clap::Parser;
use clap::Subcommand;
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
#[cfg(debug_assertions)]
use recoup::failpoint::Failpoint;
#[cfg(debug_assertions)]
use recoup::failpoint::Side;
use recoup::pipeline::Stratum;
use recoup::verdict::Arm;
use std::path::PathBuf;

pub(crate) use self::collect::{CollectArgs, FormName, LabelFilter, StateLabelArgs};
pub(crate) use self::environments::{
    CheckArgs, EnvCommand, EnvExportArgs, EnvTarget, EnvWorkerArgs, PlayArgs, ServeArgs, TaskArgs, WorldArgs,
};
pub(crate) use self::export::{DeduplicateChoice, ExportArgs, ReleaseArgs, SelectionArgs, ViewArgs};
pub(crate) use self::import::{ImportArgs, OutcomeArgs, SplitArgs, SplitChoice};
pub(crate) use self::models::{AskArgs, CONCURRENCY_MAX, JudgeArgs, ModelArgs, ModelFilesArgs, SpendArgs};
pub(crate) use self::proxy::{ProxyArgs, ProxyMode};
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

/// What to diagnose, and with whom.
#[derive(Debug, Args)]
pub(crate) struct DiagnoseArgs {
    #[command(flatten)]
    pub judge: JudgeArgs,
    #[command(flatten)]
    pub judging: JudgingArgs,
}

/// Which runs judges look at.
#[derive(Debug, Args)]
pub(crate) struct JudgingArgs {
    /// Look at this run again, by its id or the start of it; several may be named
    #[arg(long, value_name = "ID")]
    pub only: Vec<String>,
    /// Most runs to judge
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Judge that many runs, drawn by their ids
    #[arg(long, value_name = "N")]
    pub sample: Option<usize>,
    /// Pass over runs that these judges have judged; the rules always do
    #[arg(long)]
    pub resume: bool,
    /// Judge each run that often: the first judgement counts, the others show how sure it is
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeats: u32,
    /// Show judges the right answer, to compare with benchmarks; nothing is learned from such verdicts
    #[arg(long)]
    pub with_ground_truth: bool,
}

impl JudgingArgs {
    /// The first flag that means nothing without judges, where one was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            (self.limit.is_some(), "--limit"),
            (self.sample.is_some(), "--sample"),
            (self.repeats > 1, "--repeats"),
            (self.with_ground_truth, "--with-ground-truth"),
        ]
        .into_iter()
        .find_map(|(is_given, flag)| is_given.then_some(flag))
    }
}

/// Which runs to show to a person, and where the answers come from.
#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Ids of runs, or the start of them [default: a sample of what nobody has reviewed]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Runs to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub sample: usize,
    /// Spread the sample evenly over the values of this [default: judged]
    #[arg(long, value_name = "BY", num_args = 0..=1, default_missing_value = Stratum::Judged.as_str(), value_parser = PossibleValuesParser::new(Stratum::ALL.map(Stratum::as_str)))]
    pub stratify: Option<String>,
    /// JSONL file of answers, `{"run", "answer", "note"?}`, instead of showing runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ids", "stratify"])]
    pub answers: Option<PathBuf>,
    /// Print long messages whole
    #[arg(long)]
    pub full: bool,
}

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

/// Which runs to re-execute, and how.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Ids of runs, or the start of them [default: every failed run]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Arms to run: retry, resample, reconsider, guided, repair
    #[arg(long, value_name = "ARMS", value_delimiter = ',', value_parser = parse_arm, default_value = "retry,resample,reconsider,guided,repair")]
    pub arms: Vec<Arm>,
    /// Continuations of each arm
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub continuations: u32,
    /// Where repairs come from: `rules` (and successful runs of the task where they have none), `expert`, or a JSONL file of `{"run", "step"?, "action", "rationale"?}`
    #[arg(long, value_name = "SOURCE", default_value = "rules")]
    pub candidate: String,
    /// Who continues [default: the policy that acted in the run]
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    #[command(flatten)]
    pub worlds: WorldArgs,
    /// Find the decisive turn by experiment: until when the expert could save the run, and which turn's
    /// correction saves it
    #[arg(long)]
    pub sweep: bool,
    /// Put a fault into each of the first N successful runs instead, and keep those that fail by it
    #[arg(long, value_name = "N", conflicts_with_all = ["ids", "sweep", "candidate", "arms"])]
    pub inject: Option<usize>,
    /// Seed of the policies' luck
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Most runs to re-execute
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Show what would be re-executed, and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// Which runs to relabel, and how.
#[derive(Debug, Args)]
pub(crate) struct RelabelArgs {
    /// Ids of runs, or the start of them [default: every run that failed by the agent's own fault]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Withhold the environment from proposals and gates, and only score what they accept
    #[arg(long)]
    pub blind: bool,
    /// Most runs to relabel
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Seed of the choice of runs that a goal must stand out among, where there are more than 1,000
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Let the judge that proposes quote facts first, one question more a run; a quote that does not stand in the run is dropped
    #[arg(long)]
    pub quote_facts: bool,
    #[command(flatten)]
    pub worlds: WorldArgs,
    #[command(flatten)]
    pub judge: JudgeArgs,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Arguments;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
