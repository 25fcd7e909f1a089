//! What the user typed. Nothing here does work: paths are not opened, names are not looked up.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use recoup::exporters::formats;
#[cfg(debug_assertions)]
use recoup::failpoint::{Failpoint, Side};
use recoup::interleaving::{Prefixes, Schedule};
use recoup::models::Cost;
use recoup::pipeline::{LeftOut, Stratum};
use recoup::rollout::Difficulties;
use recoup::rollout::forms::{self, FORMS, Form};
use recoup::rollout::interleave::{Aggregate, LabelSettings};
use recoup::templates::LocalTime;
use recoup::verdict::{Arm, LabelMark};
use recoup::views::{DiagnosisAnswer, PreventionTarget};
use serde::Deserialize;

/// Most requests in flight that may be asked for.
pub(crate) const CONCURRENCY_MAX: u16 = 1024;

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

/// How a worker runs.
#[derive(Debug, Args)]
pub(crate) struct EnvWorkerArgs {
    /// Run even where the system cannot shut the process in
    #[arg(long)]
    pub trust: bool,
}

/// What to do about environments.
#[derive(Debug, Subcommand)]
pub(crate) enum EnvCommand {
    /// List the environments that come with the program
    List,
    /// Run the admission gates that need no student
    Check(CheckArgs),
    /// Play a task by hand
    Play(PlayArgs),
    /// Write tasks for programs that run environments of their own
    Export(EnvExportArgs),
    /// Serve tasks to agents and trainers
    Serve(ServeArgs),
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
    /// Labelled runs, or runs and the files with their labels: Who&When, AgentRx, labelled chat rows.
    /// They are read into a project of their own that is dropped again, or into `--project` where named
    #[arg(long, value_name = "PATH", num_args = 1.., required_unless_present = "against")]
    pub labels: Vec<String>,
    /// Predictions to score in place of the rules': JSONL of `{"file", "agent", "step"}`, steps from 0,
    /// or a log of `Prediction for FILE.json:` blocks
    #[arg(long, value_name = "FILE")]
    pub predictions: Option<PathBuf>,
    /// Only runs on this side of the split
    #[arg(long, value_name = "SIDE", value_enum)]
    pub side: Option<SideChoice>,
    /// Compare instead with what `recoup replay --sweep` found in the project
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with_all = ["labels", "predictions", "side"])]
    pub against: Option<Against>,
    /// Seed of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
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

/// Which task of an environment.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// Seed of the task
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// Difficulty: 1, 2 or 3
    #[arg(long, value_name = "D", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub difficulty: u8,
    /// Family of the task: the first seed of it from `--seed` on
    #[arg(long, value_name = "NAME")]
    pub family: Option<String>,
}

/// Which environment.
#[derive(Debug, Args)]
pub(crate) struct NamedArgs {
    /// Name of a bundled environment, or a folder with an environment.toml
    pub package: String,
    /// Run a bridge's program, and a package without walls where the system has none
    #[arg(long)]
    pub trust: bool,
}

/// Where environments are that do not come with the program.
#[derive(Debug, Args)]
pub(crate) struct WorldArgs {
    /// Folder of the package or bridge that runs record under this name; goes before a bundled one
    #[arg(long = "environment", value_name = "NAME=DIR", value_parser = parse_world)]
    pub environments: Vec<(String, PathBuf)>,
    /// Run a bridge's program, and a package where the system cannot shut it in
    #[arg(long)]
    pub trust: bool,
}

/// What to play.
#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    #[command(flatten)]
    pub named: NamedArgs,
    #[command(flatten)]
    pub task: TaskArgs,
}

/// What to write for whom.
#[derive(Debug, Args)]
pub(crate) struct EnvExportArgs {
    #[command(flatten)]
    pub named: NamedArgs,
    /// Who will read it
    #[arg(long, value_enum)]
    pub to: EnvTarget,
    /// Folder to write into
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Number of tasks; difficulties take turns
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub seeds: u64,
}

/// Programs that environments are exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnvTarget {
    /// A Harbor task folder for each seed
    Harbor,
    /// A Python module for the library `verifiers`
    Verifiers,
}

/// What to serve, and where.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub named: NamedArgs,
    /// First task; every reset that names no seed takes the next one
    #[command(flatten)]
    pub task: TaskArgs,
    /// Speak MCP on standard input and output, about this one task, instead of opening a port
    #[arg(long, conflicts_with_all = ["host", "port", "token"])]
    pub mcp: bool,
    /// Address to listen on; one that others can reach needs `--token`
    #[arg(long, value_name = "IP", default_value_t = std::net::IpAddr::from([127, 0, 0, 1]))]
    pub host: std::net::IpAddr,
    /// Port to listen on; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub port: u16,
    /// What clients must show: `Authorization: Bearer TOKEN`, or `/TOKEN` before the path
    #[arg(long, value_name = "TOKEN", env = "RECOUP_SERVE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// Where to listen, and where requests go.
#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    /// Where requests go: `https://HOST/v1`, or `openai=URL` and `anthropic=URL` for each API by itself;
    /// `#MODEL` behind it asks for that model whatever clients name
    #[arg(long, value_name = "URL", required = true)]
    pub upstream: Vec<String>,
    /// Who acts, and whether a teacher labels [default: record, or shadow with `--teacher`]
    #[arg(long, value_name = "MODE", value_enum)]
    pub mode: Option<ProxyMode>,
    /// Model that labels every visited state, as `openai:MODEL`, `openai-responses:MODEL`, `anthropic:MODEL` or
    /// `http://HOST/v1#MODEL`; one for each API that clients speak
    #[arg(long, value_name = "MODEL")]
    pub teacher: Vec<String>,
    /// Round of collection, from 1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub round: u32,
    /// Under `mix`, the probability that a turn is the teacher's, by round: `1,0.8,0.6` (the last goes on) or
    /// `linear:FIRST,FALL,FLOOR` [default: linear:1,0.2,0.6]
    #[arg(long, value_name = "SCHEDULE")]
    pub beta: Option<Schedule>,
    /// Under `prefix`, the most turns that the student acts for, by round [default: 2,4,8,16,32]
    #[arg(long, value_name = "SCHEDULE")]
    pub kappa: Option<Prefixes>,
    /// Seed of the coins
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Send the teacher requests as they are, secrets and personal data included
    #[arg(long)]
    pub teacher_raw: bool,
    /// Member of requests that the teacher is not sent (`temperature`); several may be named
    #[arg(long, value_name = "NAME")]
    pub teacher_without: Vec<String>,
    /// How long a label may take
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    pub label_within: Duration,
    /// Most labels that are asked for at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub label_concurrency: u16,
    /// Address to listen on; one that others can reach needs `--token`
    #[arg(long, value_name = "IP", default_value_t = std::net::IpAddr::from([127, 0, 0, 1]))]
    pub host: std::net::IpAddr,
    /// Port to listen on; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub port: u16,
    /// What clients must show, as `x-recoup-token` or in place of their API key
    #[arg(long, value_name = "TOKEN", env = "RECOUP_PROXY_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Longest body of a request
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    pub max_body: u64,
    /// Most requests under way; more are refused with 503
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_in_flight: u16,
    /// How long a conversation rests before it is put into the project
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = humantime::parse_duration)]
    pub rest: Duration,
    /// How long a conversation can be gone on with
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    pub forget: Duration,
}

/// Who acts in the conversations that pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyMode {
    /// The student; there is no teacher
    Record,
    /// The student; the teacher only labels
    Shadow,
    /// A coin decides turn by turn (`--beta`)
    Mix,
    /// The student for some turns, then the teacher (`--kappa`)
    Prefix,
}

/// What to check, and how long.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub named: NamedArgs,
    /// Seeds for the gates that play solutions
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub seeds: u64,
    /// Seeds for the cheaters
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub cheater_seeds: u64,
}

/// Where runs come from and how their outcomes are read.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files, folders, globs, archives (`.gz`, `.zst`, `.zip`), or `-` for standard input
    #[arg(required_unless_present_any = ["formats", "map_template"], value_name = "PATH")]
    pub paths: Vec<String>,
    /// List the formats that can be read, and stop
    #[arg(long)]
    pub formats: bool,
    /// Print a mapping file to start from, and stop
    #[arg(long)]
    pub map_template: bool,
    #[command(flatten)]
    pub outcomes: OutcomeArgs,
    #[command(flatten)]
    pub split: SplitArgs,
    /// Show what would be imported, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Say who would take each file and why, what it would give and what would be lost, and stop
    #[arg(long, conflicts_with = "dry_run")]
    pub explain: bool,
    #[command(flatten)]
    pub watch: WatchArgs,
}

/// Following a folder.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Follow the folders and import what is new or has grown, until Ctrl-C
    #[arg(long, conflicts_with_all = ["dry_run", "explain"], help_heading = "Watching")]
    pub watch: bool,
    /// Time between two looks; a file is read when it has not changed for as long
    #[arg(long, requires = "watch", value_name = "TIME", value_parser = humantime::parse_duration, default_value = "2s", help_heading = "Watching")]
    pub interval: Duration,
    /// Time after which to end [default: never]
    #[arg(long = "for", requires = "watch", value_name = "TIME", value_parser = humantime::parse_duration, help_heading = "Watching")]
    pub during: Option<Duration>,
}

/// How outcomes are read or attached.
#[derive(Debug, Default, Args)]
pub(crate) struct OutcomeArgs {
    /// Mapping file that says how logs of your own become runs (`recoup import --map-template` prints one)
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// CSV or JSONL with outcomes by trajectory, session or task id
    #[arg(long, value_name = "FILE")]
    pub outcomes: Option<PathBuf>,
    /// Scorer to trust where a file has several
    #[arg(long, value_name = "NAME")]
    pub score: Option<String>,
    /// Least score that counts as success [default: the scorer's own threshold or maximum]
    #[arg(long, value_name = "X", value_parser = parse_score)]
    pub success_at: Option<f64>,
    /// Outcome to assume for runs without one
    #[arg(long, value_name = "OUTCOME", value_enum)]
    pub assume: Option<AssumeChoice>,
    /// Largest record to read; larger ones are quarantined (`64MiB`, `1GiB`)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_record: Option<u64>,
    /// Licence to record for these runs [default: own]
    #[arg(long, value_name = "NAME")]
    pub licence: Option<String>,
}

/// What keeps runs on one side of the split.
#[derive(Debug, Default, Args)]
pub(crate) struct SplitArgs {
    /// What ties runs to one side of the split from now on: task, goal, lineage and near-duplicates, or
    /// also the task's template, repository and database seed [default: as the project does]
    #[arg(long, value_name = "RULE", value_enum)]
    pub split: Option<SplitChoice>,
}

/// What ties runs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SplitChoice {
    /// Also template, repository and database seed
    Strict,
}

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

/// What `--assume` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AssumeChoice {
    /// They failed
    Failure,
}

/// The main job.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Files, folders, globs, archives (`.gz`, `.zst`, `.zip`), or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
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
    /// Judge this run, by its id or the start of it; several may be named
    #[arg(long, value_name = "ID")]
    pub only: Vec<String>,
    /// Most runs to judge
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Judge that many runs, drawn by their ids
    #[arg(long, value_name = "N")]
    pub sample: Option<usize>,
    /// Pass over runs that these judges have judged
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
            (!self.only.is_empty(), "--only"),
            (self.limit.is_some(), "--limit"),
            (self.sample.is_some(), "--sample"),
            (self.resume, "--resume"),
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
    /// Spread the sample evenly over the values of this
    #[arg(long, value_name = "BY", value_parser = PossibleValuesParser::new(Stratum::ALL.map(Stratum::as_str)))]
    pub stratify: Option<String>,
    /// JSONL file of answers, `{"run", "answer", "note"?}`, instead of showing runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ids", "stratify"])]
    pub answers: Option<PathBuf>,
    /// Print long messages whole
    #[arg(long)]
    pub full: bool,
}

/// Who acts where, and how often.
#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    /// Environment: the name of a bundled one, or the folder of a package or bridge
    #[arg(long, value_name = "NAME")]
    pub env: String,
    /// Run a bridge's program, and a package where the system cannot shut it in
    #[arg(long)]
    pub trust: bool,
    /// Who acts: `expert`, `random`, `weak:<style>@<rate>`, `mixture:<a>+<b>@<p>`, `scripted:<JSON>`
    #[arg(long, value_name = "POLICY", required_unless_present = "student")]
    pub policy: Option<String>,
    /// Number of tasks
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub tasks: u64,
    /// Seed of the choice of tasks and of the policy's luck
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Difficulty: 1, 2, 3 or all
    #[arg(long, value_name = "D", value_parser = parse_difficulties, default_value = "all")]
    pub difficulty: Difficulties,
    /// One family of tasks only
    #[arg(long, value_name = "NAME")]
    pub family: Option<String>,
    /// Runs of each task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub trials: u32,
    /// Most turns of a run [default: what the task allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// Keep the state after every step, not its hash only
    #[arg(long)]
    pub checkpoints: bool,
    #[command(flatten)]
    pub round: RoundArgs,
    #[command(flatten)]
    pub labels: StateLabelArgs,
    #[command(flatten)]
    pub spend: SpendArgs,
}

/// A round of runs that a student and a teacher share.
#[derive(Debug, Args)]
#[command(next_help_heading = "Teacher and student")]
pub(crate) struct RoundArgs {
    /// Who is to learn: a model, named as in `--judge`, or a policy. It shares its runs with `--teacher`
    #[arg(long, value_name = "NAME", requires = "teacher", conflicts_with = "policy")]
    pub student: Option<String>,
    /// Who labels every visited state and acts at times: a model, `expert` or another policy
    #[arg(long, value_name = "NAME", requires = "student")]
    pub teacher: Option<String>,
    /// Round, from 1: schedules go by it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), requires = "student")]
    pub round: u32,
    /// How often a turn is the teacher's: a list for the rounds (`1,0.8,0.6`) or `linear:FIRST,FALL,FLOOR`
    /// [default: linear:1,0.2,0.6]
    #[arg(long, value_name = "SCHEDULE", requires = "student", conflicts_with = "prefix")]
    pub beta: Option<Schedule>,
    /// The student acts first, for a number of turns drawn from 0 to this, and then the teacher: a list for the
    /// rounds [default: 2,4,8,16,32]
    #[arg(long, value_name = "TURNS", requires = "student", num_args = 0..=1, default_missing_value = "2,4,8,16,32")]
    pub prefix: Option<Prefixes>,
    /// The form that a student's model writes calls in: native, hermes, qwen-xml, llama-json or react
    #[arg(long, value_name = "FORM", value_parser = parse_form, default_value = "native", requires = "student")]
    pub student_form: FormName,
    /// The same of a teacher's model
    #[arg(long, value_name = "FORM", value_parser = parse_form, default_value = "native", requires = "student")]
    pub teacher_form: FormName,
    /// Sampling temperature of the student; a teacher is asked for its likeliest answer
    #[arg(long, value_name = "T", default_value_t = 0.0, value_parser = parse_temperature, requires = "student")]
    pub temperature: f64,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..), requires = "student")]
    pub max_answer: u32,
    /// Tokens that the student's context holds: states beyond are marked `context_overflow`
    #[arg(long, value_name = "TOKENS", requires = "student")]
    pub context: Option<u64>,
    /// Ask the student's model how likely it finds what it writes, and the teacher's how likely it finds the same: the
    /// reverse KL divergence, where their servers say (vLLM does)
    #[arg(long, requires = "student")]
    pub logprobs: bool,
    /// Let student and teacher also run every task alone, for the report
    #[arg(long, requires = "student")]
    pub alone: bool,
}

/// Which labels of visited states are learned from; each also a key of `[views.labels]` in the settings file.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StateLabelArgs {
    /// Turn a filter of labels on: `verified` executes each label and has the teacher go on from it, and takes
    /// those that pass; the others are on
    #[arg(long = "label-filter", value_name = "FILTER", value_parser = parse_label_filter, help_heading = "Views")]
    pub label_filters: Vec<LabelFilter>,
    /// Turn a filter off: non_parsing, context_overflow, loop, unsolved_finish or verified
    #[arg(long = "no-label-filter", value_name = "FILTER", value_parser = parse_label_filter, help_heading = "Views")]
    pub no_label_filters: Vec<LabelFilter>,
    /// Rounds that count: `all`, or the `latest`
    #[arg(long, value_name = "ROUNDS", value_parser = parse_aggregate, help_heading = "Views")]
    pub aggregate: Option<Aggregate>,
    /// Let `dagger` learn the teacher's reasoning too
    #[arg(long, help_heading = "Views")]
    pub teacher_reasoning: bool,
}

/// A filter of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabelFilter {
    /// One that marks labels.
    Mark(LabelMark),
    /// A label must have been executed and passed.
    Verified,
}

impl StateLabelArgs {
    /// The settings file's choice with what flags say.
    pub(crate) fn over(&self, file: &LabelSettings) -> LabelSettings {
        let mut labels = file.clone();
        for (filters, is_on) in [(&self.label_filters, true), (&self.no_label_filters, false)] {
            for filter in filters {
                match filter {
                    LabelFilter::Verified => labels.verified = is_on,
                    LabelFilter::Mark(mark) => {
                        labels.off.retain(|off| off != mark);
                        labels.off.extend((!is_on).then_some(*mark));
                    }
                }
            }
        }
        labels.off.sort();
        labels.aggregate = self.aggregate.unwrap_or(labels.aggregate);
        labels.teacher_reasoning |= self.teacher_reasoning;
        labels
    }
}

/// The name of a form.
#[derive(Clone, Copy)]
pub(crate) struct FormName(pub &'static dyn Form);

impl std::fmt::Debug for FormName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
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
    #[command(flatten)]
    pub worlds: WorldArgs,
    #[command(flatten)]
    pub judge: JudgeArgs,
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

/// Which models judge.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JudgeArgs {
    /// Model that judges, for instance `openai:gpt-4o-mini`, `anthropic:claude-sonnet-4-5`,
    /// `http://localhost:8000/v1#qwen3` or `scripted:FILE`; several make a panel
    #[arg(long = "judge", value_name = "MODEL", env = "RECOUP_JUDGE")]
    pub judges: Vec<String>,
    /// Ask no judge, whatever the settings say
    #[arg(long)]
    pub no_judge: bool,
    /// Tokens of a run that a judge sees at once; of a longer one it sees what matters
    #[arg(long, value_name = "TOKENS", help_heading = "Models")]
    pub window: Option<usize>,
    /// Most tokens of a judge's answer, its reasoning included [default: 2000]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Models")]
    pub max_answer: Option<u32>,
    #[command(flatten)]
    pub spend: SpendArgs,
}

/// What asking models may take.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SpendArgs {
    /// Most dollars to spend; models without a price are refused
    #[arg(long, value_name = "USD", env = "RECOUP_MAX_COST", value_parser = parse_dollars, help_heading = "Models")]
    pub max_cost: Option<Cost>,
    /// Most tokens of questions and answers
    #[arg(long, value_name = "N", help_heading = "Models")]
    pub max_tokens: Option<u64>,
    /// Most requests to send, those tried again included
    #[arg(long, value_name = "N", help_heading = "Models")]
    pub max_requests: Option<u64>,
    /// Most time to ask for (`90s`, `30m`, `2h`)
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, help_heading = "Models")]
    pub max_time: Option<Duration>,
    /// Ask even where that may cost more than $1, or nobody knows how much
    #[arg(long, short, help_heading = "Models")]
    pub yes: bool,
    /// Show how many requests there would be and what they may cost, and stop
    #[arg(long, help_heading = "Models")]
    pub dry_run: bool,
    /// Send requests as a batch, at the provider's lower price: answers come within a day, and the same
    /// command, run again, collects them
    #[arg(long, help_heading = "Models")]
    pub batch: bool,
    /// TOML file with prices: `[models."NAME"]`, `input` and `output` in dollars a million tokens
    #[arg(long, value_name = "FILE", env = "RECOUP_PRICES", help_heading = "Models")]
    pub prices: Option<PathBuf>,
    /// Most requests in flight [default: 16]
    #[arg(long, value_name = "N", env = "RECOUP_CONCURRENCY", value_parser = clap::value_parser!(u16).range(1..=i64::from(CONCURRENCY_MAX)), help_heading = "Models")]
    pub concurrency: Option<u16>,
    /// Most requests a minute to one host
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Models")]
    pub rpm: Option<u32>,
    /// Most tokens a minute to one host
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Models")]
    pub tpm: Option<u32>,
    /// Send a request a second time where no answer came within this time (`20s`): the first answer counts, and
    /// both are paid for
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, help_heading = "Models")]
    pub hedge: Option<Duration>,
}

/// Whom to ask what.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// The model, named as in `--judge`
    pub model: String,
    /// The question
    #[arg(required_unless_present = "prompts")]
    pub prompt: Option<String>,
    /// JSONL file of questions, each a text or `{"prompt", "system"?}`; answers are kept in the project
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub prompts: Option<PathBuf>,
    /// Instructions before the question
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// JSON Schema file that the answer must satisfy
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_answer: u32,
    /// Sampling temperature
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = parse_score)]
    pub temperature: f64,
    #[command(flatten)]
    pub spend: SpendArgs,
}

/// The model that tokenized rows are for.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Folder with tokenizer.json, tokenizer_config.json and chat_template.jinja, for tokenized rows
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Chat template to use in place of the model's own
    #[arg(long, value_name = "FILE")]
    pub template: Option<PathBuf>,
    /// Tokenizer to use in place of the model's own
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<PathBuf>,
    /// Date for templates that print one (`2026-11-29`)
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub date: Option<LocalTime>,
    /// Most tokens of a row; longer runs are cut between turns [default: what the tokenizer says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: Option<u32>,
    /// Refuse rows in which a token reaches over the edge of what is learned
    #[arg(long)]
    pub strict: bool,
    /// Show the first rows of each file, with what is learned highlighted
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub preview: usize,
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

/// Reads a side and the name of a failpoint.
#[cfg(debug_assertions)]
fn parse_failpoint(text: &str) -> Result<(Failpoint, Side), String> {
    let sides = Side::ALL.into_iter().flat_map(|side| Failpoint::ALL.iter().map(move |point| (*point, side)));
    let mut named = sides.filter(|(point, side)| format!("{}-{}", side.as_str(), point.as_str()) == text);
    named.next().ok_or_else(|| "no such failpoint".to_owned())
}

/// Reads a kind of answer.
fn parse_answer(text: &str) -> Result<DiagnosisAnswer, String> {
    let named = DiagnosisAnswer::ALL.into_iter().find(|answer| answer.as_str() == text);
    named.ok_or_else(|| "expected `full` or `benchmark`".to_owned())
}

/// Reads a form's name.
fn parse_form(text: &str) -> Result<FormName, String> {
    let known = || FORMS.iter().map(|form| form.name()).collect::<Vec<_>>().join(", ");
    forms::by_name(text).map(FormName).ok_or_else(|| format!("forms are {}", known()))
}

/// Reads a temperature.
fn parse_temperature(text: &str) -> Result<f64, String> {
    let temperature = text.parse::<f64>().ok().filter(|it| (0.0..=2.0).contains(it));
    temperature.ok_or_else(|| "expected a number from 0 to 2".to_owned())
}

/// Reads a filter's name.
fn parse_label_filter(text: &str) -> Result<LabelFilter, String> {
    if text == LabelSettings::VERIFIED {
        return Ok(LabelFilter::Verified);
    }
    let mark = LabelMark::ALL.into_iter().find(|mark| mark.as_str() == text);
    let known = || LabelMark::ALL.map(LabelMark::as_str).join(", ");
    mark.map(LabelFilter::Mark).ok_or_else(|| format!("filters are {}, {}", known(), LabelSettings::VERIFIED))
}

/// Reads which rounds count.
fn parse_aggregate(text: &str) -> Result<Aggregate, String> {
    match text {
        "all" => Ok(Aggregate::All),
        "latest" => Ok(Aggregate::Latest),
        _ => Err("expected `all` or `latest`".to_owned()),
    }
}

/// Reads a target.
fn parse_target(text: &str) -> Result<PreventionTarget, String> {
    let named = PreventionTarget::ALL.into_iter().find(|target| target.as_str() == text);
    named.ok_or_else(|| "expected `action`, `continuation` or `reflection+action`".to_owned())
}

/// Reads `2026-11-29`, with a time behind it or without.
fn parse_date(text: &str) -> Result<LocalTime, String> {
    LocalTime::parse(text).ok_or_else(|| "expected a date like 2026-11-29".to_owned())
}

/// Reads `1`, `2`, `3` or `all`.
fn parse_difficulties(text: &str) -> Result<Difficulties, String> {
    match text {
        "all" => Ok(Difficulties::All),
        "1" | "2" | "3" => text.parse().map(Difficulties::Only).map_err(|_| String::new()),
        _ => Err("expected 1, 2, 3 or all".to_owned()),
    }
}

/// Reads `name=folder`.
fn parse_world(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, folder)) if !name.is_empty() && !folder.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(folder)))
        }
        _ => Err("expected a name and a folder, as `shop=environments/shop`".to_owned()),
    }
}

/// Reads what to keep for measuring.
fn parse_left_out(text: &str) -> Result<LeftOut, String> {
    LeftOut::parse(text).ok_or_else(|| "expected `environment=NAME` or `harness=NAME`".to_owned())
}

/// Reads a finite number.
fn parse_score(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(score) if score.is_finite() => Ok(score),
        _ => Err("expected a finite number".to_owned()),
    }
}

/// Reads an amount of dollars.
fn parse_dollars(text: &str) -> Result<Cost, String> {
    match text.strip_prefix('$').unwrap_or(text).parse::<f64>() {
        Ok(usd) if usd.is_finite() && usd >= 0.0 => Ok(Cost::from_usd(usd)),
        _ => Err("expected an amount of dollars, for instance 2.50".to_owned()),
    }
}

/// Reads the word of an arm.
fn parse_arm(text: &str) -> Result<Arm, String> {
    Arm::from_word(text).ok_or_else(|| "expected retry, resample, reconsider, guided or repair".to_owned())
}

/// Reads `64MiB`, `1GiB`, `500kB`, `1048576`.
fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == ' ');
    let unit = text[digits.len()..].trim().to_ascii_lowercase();
    let factor: u64 = match unit.as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "k" | "kib" => 1 << 10,
        "mb" => 1_000_000,
        "m" | "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "g" | "gib" => 1 << 30,
        _ => return Err(format!("unknown unit `{unit}`; use B, kB, MB, GB, KiB, MiB or GiB")),
    };
    let number: u64 = digits.trim().parse().map_err(|_| format!("`{digits}` is not a whole number"))?;
    number.checked_mul(factor).filter(|size| *size > 0).ok_or_else(|| "out of range".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{Arguments, parse_size};

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("1 GB"), Ok(1_000_000_000));
        assert_eq!(parse_size("12"), Ok(12));
        assert!(parse_size("3 lightyears").is_err());
        assert!(parse_size("0").is_err());
    }
}
