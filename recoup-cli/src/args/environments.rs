//! `recoup env`, and the flags that name environments.

use super::values::parse_world;
use clap::Args;
use clap::Subcommand;
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use recoup::synthesis::admission::gate_names;
use std::path::PathBuf;

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
    /// Run these gates alone, which admits nothing
    #[arg(long = "gate", value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::new(gate_names()))]
    pub gates: Vec<String>,
    /// Tools that the environment's must be like: a JSON list of definitions
    #[arg(long, value_name = "FILE")]
    pub target: Option<PathBuf>,
    /// Tasks that no text of the environment may repeat: a text a line, or JSON lines with texts
    #[arg(long, value_name = "FILE")]
    pub held_out: Vec<PathBuf>,
}
