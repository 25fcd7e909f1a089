//! `recoup import`, and how what it reads is to be taken.

use super::values::parse_score;
use super::values::parse_size;
use clap::Args;
use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

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
    /// CSV or JSONL with outcomes by trajectory, session or task id; of these runs the last part of a task id is enough
    #[arg(long, value_name = "FILE")]
    pub outcomes: Option<PathBuf>,
    /// Scorer to trust where a file has several
    #[arg(long, value_name = "NAME")]
    pub score: Option<String>,
    /// Least score that counts as success [default: the scorer's own threshold or maximum]
    #[arg(long, value_name = "X", value_parser = parse_score)]
    pub success_at: Option<f64>,
    /// Outcome to assume for these runs where they have none
    #[arg(long, value_name = "OUTCOME", value_enum)]
    pub assume: Option<AssumeChoice>,
    /// Largest record to read; larger ones are quarantined (`64MiB`, `1GiB`)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_record: Option<u64>,
    /// Licence to record for these runs [default: own]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
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

/// What `--assume` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AssumeChoice {
    /// They failed
    Failure,
}
