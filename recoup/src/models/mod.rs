//! Models: who is asked, what is asked, and what an answer is.
//!
//! [`ChatModel`] is one blocking call. A stage that asks many questions hands them to a batch, which
//! bounds how many are in flight, how much they may cost and how often they are tried again; the stage
//! sees answers in the order of its questions. Nearly all tests use [`ScriptedModel`], whose answers are
//! a list or a closure.

mod message;
mod scripted;

pub use self::message::{ChatMessage, ChatReply, ChatRequest, Finish, ModelCall, ReplySchema, Role, Usage};
pub use self::scripted::ScriptedModel;

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

/// A model did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
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
