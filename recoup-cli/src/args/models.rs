//! Flags of commands that ask models, and what that may take.

use super::values::Rate;
use super::values::parse_date;
use super::values::parse_dollars;
use super::values::parse_rate;
use super::values::parse_score;
use clap::Args;
use recoup::models::Cost;
use recoup::templates::LocalTime;
use std::path::PathBuf;
use std::time::Duration;

/// Most requests in flight that may be asked for.
pub(crate) const CONCURRENCY_MAX: u16 = 1024;

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
    /// Most time for one answer, which is asked for twice at most [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, help_heading = "Models")]
    pub timeout: Option<Duration>,
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
    /// Most requests a minute to each host, or to one (`api.openai.com=500`)
    #[arg(long, value_name = "[HOST=]N", value_parser = parse_rate, help_heading = "Models")]
    pub rpm: Vec<Rate>,
    /// Most tokens a minute to each host, or to one
    #[arg(long, value_name = "[HOST=]N", value_parser = parse_rate, help_heading = "Models")]
    pub tpm: Vec<Rate>,
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

/// The files of the model that rows are made or proved for.
#[derive(Debug, Args)]
pub(crate) struct ModelFilesArgs {
    /// Folder of a model (tokenizer.json, tokenizer_config.json, chat_template.jinja): every row's mask is proved for it
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Chat template to use in place of the model's own, or with the tokenizer.json beside it
    #[arg(long, value_name = "FILE")]
    pub template: Option<PathBuf>,
    /// Tokenizer to use in place of the model's own
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<PathBuf>,
    /// Date for templates that print one (`2026-11-29`)
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub date: Option<LocalTime>,
    /// Refuse rows in which a token reaches over the edge of what is learned
    #[arg(long)]
    pub strict: bool,
}

/// The model that rows are made or proved for, and what is shown of them.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    pub files: ModelFilesArgs,
    /// Most tokens of a row; longer runs are cut between turns [default: what the tokenizer says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: Option<u32>,
    /// Show the first rows of each file, with what is learned highlighted
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub preview: usize,
}

impl ModelFilesArgs {
    /// Whether anything is said of a model.
    pub(crate) fn is_used(&self) -> bool {
        let Self { model, template, tokenizer, date, strict } = self;
        [model, template, tokenizer].into_iter().any(Option::is_some) || date.is_some() || *strict
    }
}

impl ModelArgs {
    /// Whether anything is said of a model.
    pub(crate) fn is_used(&self) -> bool {
        self.files.is_used() || self.max_tokens.is_some()
    }
}
