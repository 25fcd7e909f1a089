//! `diagnose` and `review`: which runs judges and people look at.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use recoup::pipeline::Stratum;

use super::JudgeArgs;

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
