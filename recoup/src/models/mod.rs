//! Models: who is asked, what is asked, and what an answer is.
//!
//! [`ChatModel`] is one blocking call. A stage that asks many questions goes through [`Asking`]: it fans
//! questions out (`batch.rs`), looks each up among the answers that were paid for before ([`cached`]), keeps
//! to the providers' limits and tries again ([`pacer`]), never passes the caps of a [`Budget`], and keeps a
//! [`Ledger`]. The stage sees answers in the order of its questions. Nearly all tests use
//! [`ScriptedModel`], whose answers are a list or a closure.
//!
//! A model is named by a [`ModelSpec`]. What speaks HTTP is behind the feature `models`.

mod again;
#[cfg(feature = "models")]
mod answer;
#[cfg(feature = "models")]
mod anthropic;
mod asking;
mod batch;
mod budget;
pub mod cached;
mod clock;
pub mod deferred;
mod estimate;
mod family;
mod hedge;
mod ledger;
mod message;
pub mod pacer;
mod prices;
mod script_file;
mod scripted;
mod secret;
mod spec;
pub mod tokens;

#[cfg(feature = "models")]
mod http;
#[cfg(feature = "models")]
mod http_date;
#[cfg(feature = "models")]
mod openai;
#[cfg(feature = "models")]
mod price_table;
#[cfg(feature = "models")]
mod provider_batch;
#[cfg(feature = "models")]
mod responses;

pub use self::again::{AGAIN_BYTES, Fitted, fitting};
pub(crate) use self::again::{bare, exchange, shortened, whole};
#[cfg(feature = "models")]
pub use self::anthropic::AnthropicModel;
pub use self::asking::{About, AskedModel, Asking, RetryListener, Rules};
pub use self::budget::{Amount, Budget, Held, Limits, Reservation};
pub use self::clock::{Clock, ManualClock};
pub use self::estimate::Estimate;
pub use self::family::family_of;
#[cfg(feature = "models")]
pub use self::http::{Client, http_client};
pub(crate) use self::ledger::is_other;
pub use self::ledger::{Latency, Ledger, LedgerLine};
pub use self::message::{
    ChatMessage, ChatReply, ChatRequest, Finish, Logprobs, ModelCall, ReplySchema, TokenLogprob, Usage,
};
#[cfg(feature = "models")]
pub use self::openai::OpenAiModel;
#[cfg(feature = "models")]
use self::pacer::Pacer;
#[cfg(feature = "models")]
pub use self::price_table::{PriceTable, PriceTableError};
pub use self::prices::{Cost, Price};
#[cfg(feature = "models")]
pub use self::provider_batch::{Landed, ProviderBatch};
#[cfg(feature = "models")]
pub use self::responses::ResponsesModel;
pub use self::script_file::{ScriptFile, ScriptFileError};
pub use self::scripted::ScriptedModel;
pub use self::secret::Secret;
pub use self::spec::{ModelSpec, SpecError, Wire};
use self::spec::{authority, host_name, is_loopback};
pub use crate::trajectory::Role;

/// Answers conversations.
pub trait ChatModel: Send + Sync {
    /// Which model it is.
    fn identity(&self) -> &ModelIdentity;

    /// Answers, or says why not. Blocks until then.
    ///
    /// # Errors
    /// A [`ModelError`]. It never stands for a bad answer: text that does not parse is an answer.
    fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError>;
}

/// Which model answers, without any secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModelIdentity {
    /// How it is spoken to (`openai`, `anthropic`, `scripted`).
    pub provider: String,
    /// The model's own name (`gpt-4o-mini`).
    pub model: String,
    /// Scheme, host, port and path it is reached at; empty where nothing leaves the machine's memory.
    pub base_url: String,
    /// Family of models that err alike (`gpt`, `claude`, `qwen`): two judges of a panel should differ in it.
    pub family: String,
}

impl ModelIdentity {
    /// Provider and model, as records name them (`openai:gpt-4o-mini`).
    pub fn name(&self) -> String {
        format!("{}:{}", self.provider, self.model)
    }

    /// Host and port it is reached at; `None` where nothing leaves the machine's memory.
    pub fn host(&self) -> Option<&str> {
        (!self.base_url.is_empty()).then(|| authority(&self.base_url))
    }

    /// The host's name or address without port and brackets; `None` where nothing leaves the machine's memory.
    pub fn host_name(&self) -> Option<&str> {
        self.host().map(host_name)
    }

    /// Whether questions stay on this machine.
    pub fn is_local(&self) -> bool {
        self.host().is_none_or(is_loopback)
    }
}

/// A model did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Nobody answers there: nothing was sent.
    #[error("{host} cannot be reached: {message}")]
    Unreachable {
        /// Host that was asked.
        host: String,
        /// What failed.
        message: String,
    },
    /// The provider failed so often in a row that it is not asked any more.
    #[error("{host} is not asked any more: it failed {failures} times in a row, last: {last}")]
    Down {
        /// Host that is left alone.
        host: String,
        /// Failures in a row.
        failures: u32,
        /// The last of them.
        last: String,
    },
    /// The provider does not know a part of the question, which it will be asked without.
    #[error("{host} does not take {what}")]
    Adapted {
        /// Host that was asked.
        host: String,
        /// What is left out from now on.
        what: String,
    },
    /// The question was taken and is answered later; the same command, run again, collects the answer.
    #[error("{host} answers later: the same command collects the answer")]
    Pending {
        /// Host that will be asked, or is.
        host: String,
    },
    /// The network is forbidden and no answer is stored.
    #[error("{host} may not be asked offline, and no answer of it is stored")]
    Offline {
        /// Host that would have been asked.
        host: String,
    },
    /// Answers that were paid for cannot be read or stored.
    #[error("answers cannot be kept: {0}")]
    Cache(String),
    /// The connection failed before an answer was complete.
    #[error("{host}: {message}")]
    Transport {
        /// Host that was asked.
        host: String,
        /// What failed.
        message: String,
    },
    /// No complete answer in time.
    #[error("{host}: no complete answer within {seconds} s")]
    Timeout {
        /// Host that was asked.
        host: String,
        /// Limit, in seconds.
        seconds: u64,
    },
    /// The provider refused.
    #[error("{host}: HTTP {status}: {message}")]
    Status {
        /// Host that was asked.
        host: String,
        /// HTTP status.
        status: u16,
        /// What the provider said, shortened.
        message: String,
        /// How long it asks to wait, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// What came back is not an answer in the provider's own format.
    #[error("{host}: the answer is not what the API promises: {message}")]
    Malformed {
        /// Host that was asked.
        host: String,
        /// What is wrong.
        message: String,
    },
    /// A limit on cost, tokens, requests or time would be passed.
    #[error("the limit of {limit} is reached")]
    Exhausted {
        /// The limit, in words (`$1.00`, `10000 requests`).
        limit: String,
    },
    /// The question cannot be asked of this model.
    #[error("{0}")]
    Unsupported(String),
}

impl ModelError {
    /// Stable word for the cause.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Down { .. } => "provider-down",
            Self::Adapted { .. } => "adapted",
            Self::Pending { .. } => "pending",
            Self::Offline { .. } => "offline",
            Self::Cache(_) => "cache",
            Self::Transport { .. } => "transport",
            Self::Timeout { .. } => "timeout",
            Self::Status { .. } => "refused",
            Self::Malformed { .. } => "malformed",
            Self::Exhausted { .. } => "budget",
            Self::Unsupported(_) => "unsupported",
        }
    }

    /// Whether asking again may help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Transport { .. }
            | Self::Timeout { .. }
            | Self::Malformed { .. }
            | Self::Adapted { .. } => true,
            // A spent quota is told by the same status as too many requests, and waiting does not fill it.
            Self::Status { status, message, .. } => {
                matches!(status, 408 | 409 | 425 | 429 | 500..=599)
                    && !message.contains("insufficient_quota")
                    && !self.is_context_full()
            }
            Self::Down { .. }
            | Self::Pending { .. }
            | Self::Offline { .. }
            | Self::Cache(_)
            | Self::Exhausted { .. }
            | Self::Unsupported(_) => false,
        }
    }

    /// Whether it says that the question is longer than the model's context.
    pub fn is_context_full(&self) -> bool {
        // What OpenAI, vLLM, llama.cpp, LiteLLM and Anthropic say; there is no code that all use.
        const WORDS: [&str; 6] = [
            "context length",
            "context_length",
            "context window",
            "context size",
            "too long",
            "too many tokens",
        ];
        match self {
            Self::Status { status: 413, .. } => true,
            Self::Status { status: 400 | 422 | 500, message, .. } => {
                let message = message.to_lowercase();
                WORDS.iter().any(|words| message.contains(words))
            }
            _ => false,
        }
    }

    /// Whether the provider may charge for the attempt all the same: it got the question, and its answer
    /// was lost on the way.
    pub fn may_be_charged(&self) -> bool {
        matches!(self, Self::Transport { .. } | Self::Timeout { .. } | Self::Malformed { .. })
    }

    /// Whether it says that the provider is in trouble, and not that the question is.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Transport { .. } | Self::Timeout { .. } => true,
            Self::Status { status, .. } => *status >= 500,
            _ => false,
        }
    }
}
