//! OpenAI's chat completions, as OpenAI, vLLM, SGLang, llama.cpp, Ollama, LiteLLM and OpenRouter speak them.
//!
//! Servers differ in what they take. A part of the question that one refuses by name is left out, or said
//! in another way, from then on: the schema of the answer is asked for strictly, then loosely, then as a
//! JSON object with a schema, and at last in words.

mod completion;
mod dialect;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use self::completion::Completion;
use self::dialect::{Dialect, Scoring, Spare};
use super::answer::{self, Endpoint};
use super::http::{ANSWER_MAX, Client, JSON, Received, Sending};
use super::{ChatModel, ChatReply, ChatRequest, Logprobs, ModelError, ModelIdentity, Secret};

/// A model behind chat completions.
pub struct OpenAiModel {
    identity: ModelIdentity,
    endpoint: Endpoint,
    client: Arc<Client>,
    dialect: Mutex<Dialect>,
}

impl OpenAiModel {
    /// A model at the identity's base URL.
    pub fn new(identity: ModelIdentity, key: Option<Secret<String>>, client: Arc<Client>) -> Self {
        let endpoint = Endpoint::new(&identity.base_url, key);
        // OpenAI's reasoning models refuse the older word, other servers do not know the newer one.
        let dialect = Dialect { new_limit: endpoint.host == "api.openai.com", ..Dialect::default() };
        Self { identity, endpoint, client, dialect: Mutex::new(dialect) }
    }

    /// The body of a request.
    pub(super) fn body(&self, request: &ChatRequest) -> Value {
        self.dialect().body(&self.identity.model, request)
    }

    /// What the server is known to take, as a text.
    pub(super) fn dialect_text(&self) -> String {
        serde_json::to_string(&*self.dialect()).unwrap_or_default()
    }

    /// Takes in that a question was refused that was written in the dialect `spoken`; whether it can be asked in
    /// another way.
    pub(super) fn learns(&self, spoken: Option<&str>, error: &ModelError) -> bool {
        let spoken = spoken.and_then(|text| serde_json::from_str(text).ok());
        let spoken = spoken.unwrap_or_else(|| *self.dialect());
        self.learn(spoken, error, Spare { seed: true, schema: true }).is_some()
    }

    /// Leaves out from now on what a server has refused of a dialect; what that is.
    fn learn(&self, spoken: Dialect, error: &ModelError, spare: Spare) -> Option<&'static str> {
        let (next, what) = spoken.without(error, spare)?;
        let mut dialect = self.dialect();
        *dialect = dialect.join(next);
        Some(what)
    }

    /// Reads how likely given tokens are; a server that has passed the question over is asked in another way.
    fn scored(
        &self,
        spoken: Dialect,
        request: &ChatRequest,
        completion: Completion,
    ) -> Result<ChatReply, ModelError> {
        let host = &self.endpoint.host;
        let learned = match spoken.scoring {
            Scoring::Prompt if completion.prompt_logprobs.is_none() && request.can_be_forced() => {
                Scoring::Probe
            }
            Scoring::Probe if request.can_be_forced() => {
                // A server that passes the grammar over too may say the given tokens of its own accord, and then only.
                let reply = completion.into_reply(host)?;
                if spoken.is_kept_to(request, &reply) { Scoring::Grammar } else { Scoring::Never }
            }
            Scoring::Grammar if request.can_be_forced() => {
                let reply = completion.into_reply(host)?;
                let is_forced = spoken.is_kept_to(request, &reply);
                return Ok(ChatReply { tokens: reply.tokens.filter(|_| is_forced), ..reply });
            }
            _ => return completion.into_reply(host),
        };
        let mut dialect = self.dialect();
        *dialect = dialect.join(Dialect { scoring: learned, ..Dialect::default() });
        Err(ModelError::Adapted { host: host.clone(), what: "this way to score given tokens".to_owned() })
    }

    fn dialect(&self) -> MutexGuard<'_, Dialect> {
        self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the body of an answer.
    pub(super) fn read_completion(&self, body: Value) -> Result<ChatReply, ModelError> {
        let host = &self.endpoint.host;
        let completion: Completion = serde_json::from_value(body)
            .map_err(|error| ModelError::Malformed { host: host.clone(), message: error.to_string() })?;
        completion.into_reply(host)
    }

    /// Posts a body to a path beneath the base URL, or gets what is there.
    pub(super) fn send(
        &self,
        path: &str,
        content_type: &str,
        body: Option<Vec<u8>>,
        answer_max: usize,
    ) -> Result<Received, ModelError> {
        let content_type = content_type.to_owned();
        self.client.send(Sending {
            content_type,
            body,
            answer_max,
            ..sending(&self.endpoint, path, &Value::Null)
        })
    }
}

impl ChatModel for OpenAiModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let spoken = *self.dialect();
        if spoken.scoring == Scoring::Never {
            request.wants_no_given()?;
        }
        let body = spoken.body(&self.identity.model, request);
        let received = self.client.send(sending(&self.endpoint, "chat/completions", &body))?;
        let host = &self.endpoint.host;
        match answer::read::<Completion>(host, &received) {
            Ok(completion) if request.logprobs == Logprobs::Given => self.scored(spoken, request, completion),
            Ok(completion) => completion.into_reply(host),
            Err(error) => {
                let spare = Spare { seed: request.seed.is_some(), schema: request.schema.is_some() };
                let Some(what) = self.learn(spoken, &error, spare) else { return Err(error) };
                Err(ModelError::Adapted { host: host.clone(), what: what.to_owned() })
            }
        }
    }
}

/// A request with a bearer's key.
pub(super) fn sending(endpoint: &Endpoint, path: &str, body: &Value) -> Sending {
    let bearer = |key: &Secret<String>| ("authorization", Secret::new(format!("Bearer {}", key.reveal())));
    Sending {
        host: endpoint.host.clone(),
        url: format!("{}/{path}", endpoint.base_url),
        headers: endpoint.key.as_ref().map(bearer).into_iter().collect(),
        content_type: JSON.to_owned(),
        body: Some(body.to_string().into_bytes()),
        answer_max: ANSWER_MAX,
    }
}
