//! `recoup proxy`.

use super::values::parse_dollars;
use super::values::parse_size;
use clap::Args;
use clap::ValueEnum;
use recoup::interleaving::Prefixes;
use recoup::interleaving::Schedule;
use recoup::models::Cost;
use std::path::PathBuf;
use std::time::Duration;

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
    /// `http://HOST/v1#MODEL`. Of several, the one that speaks a client's API is asked
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
    /// Tokens that the student's context holds: labels of longer states are marked `context_overflow`
    #[arg(long, value_name = "TOKENS")]
    pub context: Option<u64>,
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
    /// Most dollars that teachers may cost while the proxy runs; then labels are missing, turns of the teacher are
    /// refused, and the student goes on [default: 1, where the teacher has a price]
    #[arg(long, value_name = "USD", env = "RECOUP_MAX_COST", value_parser = parse_dollars)]
    pub max_cost: Option<Cost>,
    /// Most tokens of teachers' questions and answers
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Most requests that teachers are sent
    #[arg(long, value_name = "N")]
    pub max_requests: Option<u64>,
    /// Ask a teacher even where that may cost more than $1, or nobody knows how much
    #[arg(long, short)]
    pub yes: bool,
    /// TOML file with prices: `[models."NAME"]`, `input` and `output` in dollars a million tokens
    #[arg(long, value_name = "FILE", env = "RECOUP_PRICES")]
    pub prices: Option<PathBuf>,
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
