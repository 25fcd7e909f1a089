//! `replay` and `relabel`: what failed runs are tried for.

use clap::Args;
use recoup::verdict::Arm;

use super::values::parse_arm;
use super::{JudgeArgs, WorldArgs};

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
