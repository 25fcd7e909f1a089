//! OpenAI's chat completions, as OpenAI, vLLM, SGLang, llama.cpp, Ollama, LiteLLM and OpenRouter speak them.
//!
//! Servers differ in what they take. A part of the question that one refuses by name is left out, or said
//! in another way, from then on: the schema of the answer is asked for strictly, then loosely, then as a
//! JSON object with a schema, and at last in words.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::{self, Endpoint};
use super::http::{ANSWER_MAX, Client, JSON, Received, Sending};
use super::{
    ChatMessage, ChatModel, ChatReply, ChatRequest, Finish, Logprobs, ModelCall, ModelError, ModelIdentity,
    ReplySchema, Secret, TokenLogprob, Usage,
};
use crate::json::Json;

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
}

impl OpenAiModel {
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

/// What a server takes, as far as is known. A request is written by what is known when it leaves, and a refusal
/// is read by what that request said: many are under way at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Dialect {
    /// How the schema is said: an index of [`SCHEMA_FORMS`].
    schema_form: u8,
    new_limit: bool,
    no_temperature: bool,
    no_seed: bool,
    /// How given tokens are scored.
    scoring: Scoring,
}

/// How a server says how likely given tokens are, each tried where the one before is passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scoring {
    /// As vLLM does: of the whole prompt.
    #[default]
    Prompt,
    /// Whether a grammar is kept to: it asks for more than anybody would say.
    Probe,
    /// As llama.cpp does: of an answer in which a grammar allows nothing but the given tokens.
    Grammar,
    /// Not at all.
    Never,
}

/// What a question said that it need not.
#[derive(Clone, Copy)]
struct Spare {
    seed: bool,
    schema: bool,
}

/// Ways to say what form the answer must have, from the best.
const SCHEMA_FORMS: [&str; 4] =
    ["a strict schema", "a schema", "a schema for a JSON object", "a schema but in words"];

impl Dialect {
    fn body(self, model: &str, request: &ChatRequest) -> Value {
        let forced = self.forced(request);
        let said = request.messages.len() - usize::from(!forced.is_empty());
        let mut messages: Vec<Value> = request.messages.iter().take(said).map(message).collect();
        let mut body = Map::new();
        body.insert("model".to_owned(), model.into());
        if let Some(schema) = &request.schema {
            match response_format(schema, self.schema_form) {
                Some(format) => {
                    body.insert("response_format".to_owned(), format);
                }
                None => messages.push(json!({ "role": "user", "content": in_words(schema) })),
            }
        }
        body.insert("messages".to_owned(), messages.into());
        let limit = if self.new_limit { "max_completion_tokens" } else { "max_tokens" };
        let most = if forced.is_empty() { request.max_tokens.into() } else { request.said_most() };
        body.insert(limit.to_owned(), most.into());
        if !self.no_temperature {
            body.insert("temperature".to_owned(), request.temperature.into());
        }
        if let Some(seed) = request.seed.filter(|_| !self.no_seed) {
            body.insert("seed".to_owned(), seed.into());
        }
        match request.logprobs {
            Logprobs::No => {}
            Logprobs::Answer => {
                body.insert("logprobs".to_owned(), true.into());
            }
            // As llama.cpp takes it: its grammar allows the given tokens alone, and what it tells of each is how likely it
            // was before the grammar.
            Logprobs::Given if !forced.is_empty() => {
                let tokens: Vec<String> = forced.iter().map(|id| format!("<[{id}]>")).collect();
                body.insert("grammar".to_owned(), format!("root ::= {}", tokens.join(" ")).into());
                body.insert("logprobs".to_owned(), true.into());
            }
            // As vLLM takes it: the template stops after the last message, and of each token only itself is told.
            Logprobs::Given => {
                body.insert("add_generation_prompt".to_owned(), false.into());
                body.insert("prompt_logprobs".to_owned(), 0.into());
            }
        }
        if !request.tools.is_empty() {
            body.insert("tools".to_owned(), request.tools.iter().map(Json::to_value).collect());
        }
        Value::Object(body)
    }

    /// The tokens that a grammar allows; none where it is not asked so.
    fn forced(self, request: &ChatRequest) -> Vec<u32> {
        let again = match self.scoring {
            Scoring::Probe => 1,
            Scoring::Grammar => 0,
            Scoring::Prompt | Scoring::Never => return Vec::new(),
        };
        if !request.can_be_forced() {
            return Vec::new();
        }
        request.given.iter().chain(request.given.iter().take(again)).copied().collect()
    }

    /// Whether an answer has the tokens that the grammar allows.
    fn is_kept_to(self, request: &ChatRequest, reply: &ChatReply) -> bool {
        let forced = self.forced(request);
        let told = reply.tokens.iter().flatten().map(|token| token.id);
        told.take(forced.len()).eq(forced.iter().map(|id| Some(*id)))
    }

    /// How to ask again after a refusal of what this dialect said, and what was refused; `None` where nothing
    /// can be left out.
    fn without(self, error: &ModelError, spare: Spare) -> Option<(Self, &'static str)> {
        let ModelError::Status { status: 400 | 422, message, .. } = error else { return None };
        let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if names(&["max_completion_tokens"]) && !self.new_limit {
            return Some((Self { new_limit: true, ..self }, "`max_tokens`"));
        }
        if names(&["temperature"]) && !self.no_temperature {
            return Some((Self { no_temperature: true, ..self }, "this `temperature`"));
        }
        if spare.seed && names(&["seed"]) && !self.no_seed {
            return Some((Self { no_seed: true, ..self }, "`seed`"));
        }
        let form = self.schema_form;
        let is_last = usize::from(form) + 1 == SCHEMA_FORMS.len();
        if spare.schema
            && !is_last
            && names(&["response_format", "json_schema", "schema", "json_object", "grammar"])
        {
            return Some((Self { schema_form: form + 1, ..self }, SCHEMA_FORMS[usize::from(form)]));
        }
        None
    }

    /// Both of what two requests have learned.
    fn join(self, other: Self) -> Self {
        Self {
            schema_form: self.schema_form.max(other.schema_form),
            new_limit: self.new_limit || other.new_limit,
            no_temperature: self.no_temperature || other.no_temperature,
            no_seed: self.no_seed || other.no_seed,
            scoring: self.scoring.max(other.scoring),
        }
    }
}

fn response_format(schema: &ReplySchema, form: u8) -> Option<Value> {
    match form {
        0 | 1 => Some(json!({
            "type": "json_schema",
            "json_schema": { "name": schema.name, "schema": schema.in_order(), "strict": form == 0 },
        })),
        2 => Some(json!({ "type": "json_object", "schema": schema.in_order() })),
        _ => None,
    }
}

/// What asks for a form where the provider has no field for it.
pub(super) fn in_words(schema: &ReplySchema) -> String {
    format!(
        "Answer with one JSON object and nothing else. It must satisfy this JSON Schema:\n{}",
        schema.in_order()
    )
}

fn message(message: &ChatMessage) -> Value {
    let mut out = json!({ "role": message.role.as_str(), "content": message.content });
    if !message.calls.is_empty() {
        let call = |call: &ModelCall| {
            json!({
                "id": call.id, "type": "function",
                "function": { "name": call.name, "arguments": call.arguments },
            })
        };
        out["tool_calls"] = message.calls.iter().map(call).collect();
    }
    if let Some(id) = &message.call_id {
        out["tool_call_id"] = id.as_str().into();
    }
    out
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    prompt_logprobs: Option<Vec<Option<Map<String, Value>>>>,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
    #[serde(default)]
    logprobs: Option<Value>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    content: Value,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Called>>,
}

#[derive(Deserialize)]
struct Called {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl Completion {
    fn into_reply(self, host: &str) -> Result<ChatReply, ModelError> {
        let Some(choice) = self.choices.into_iter().next() else {
            if let Some(error) = &self.error {
                return Err(answer::routed(host, error));
            }
            let message = "it has no choices".to_owned();
            return Err(ModelError::Malformed { host: host.to_owned(), message });
        };
        let tokens = match &self.prompt_logprobs {
            Some(given) => given_tokens(given),
            None => choice.logprobs.as_ref().and_then(answer_tokens),
        };
        let said = choice.message;
        let mut text = plain(&said.content);
        let mut finish = match choice.finish_reason.as_deref() {
            Some("stop") => Finish::Stop,
            Some("length") => Finish::Length,
            Some("tool_calls" | "function_call") => Finish::Calls,
            Some("content_filter") => Finish::Filtered,
            _ => Finish::Other,
        };
        if let Some(refusal) = said.refusal.filter(|refusal| !refusal.is_empty() && text.is_empty()) {
            (text, finish) = (refusal, Finish::Filtered);
        }
        let calls = said.tool_calls.unwrap_or_default().into_iter().map(|call| ModelCall {
            id: call.id.unwrap_or_default(),
            name: call.function.name,
            arguments: match call.function.arguments {
                Value::String(text) => text,
                Value::Null => String::new(),
                other => other.to_string(),
            },
        });
        let usage = self.usage.as_ref().and_then(|usage| {
            Some(Usage {
                prompt: answer::count(usage, "prompt_tokens")?,
                cached_prompt: usage
                    .get("prompt_tokens_details")
                    .and_then(|details| answer::count(details, "cached_tokens"))
                    .unwrap_or(0),
                completion: answer::count(usage, "completion_tokens")?,
            })
        });
        Ok(ChatReply {
            text,
            reasoning: said.reasoning_content.or(said.reasoning).filter(|text| !text.is_empty()),
            calls: calls.collect(),
            finish,
            usage,
            model: self.model.unwrap_or_default(),
            tokens,
            took_ms: 0,
        })
    }
}

/// The tokens of an answer; nothing where one of them has no number.
fn answer_tokens(logprobs: &Value) -> Option<Vec<TokenLogprob>> {
    logprobs.get("content")?.as_array()?.iter().map(|entry| token(entry, "token")).collect()
}

/// The tokens of a conversation. The first has none before it, and so no number.
fn given_tokens(given: &[Option<Map<String, Value>>]) -> Option<Vec<TokenLogprob>> {
    let entries = given.iter().flatten();
    entries.map(|entry| token(entry.values().next()?, "decoded_token")).collect()
}

fn token(entry: &Value, name: &str) -> Option<TokenLogprob> {
    let logprob = entry.get("logprob")?.as_f64().filter(|number| number.is_finite())?;
    let id = entry.get("id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
    Some(TokenLogprob { token: entry.get(name)?.as_str()?.to_owned(), logprob, id })
}

/// A content as text: a string, or the texts of its parts.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Completion, Dialect, Scoring, Spare};
    use crate::json::Json;
    use crate::models::{ChatMessage, ChatRequest, Finish, Logprobs, ModelError, ReplySchema};

    fn request() -> ChatRequest {
        let schema = Json::parse(r#"{"type":"object"}"#).unwrap();
        ChatRequest {
            schema: Some(ReplySchema { name: "verdict".to_owned(), schema }),
            seed: Some(7),
            ..ChatRequest::new(vec![ChatMessage::system("be brief"), ChatMessage::user("?")], 50)
        }
    }

    fn refused(message: &str) -> ModelError {
        ModelError::Status {
            host: "h".to_owned(),
            status: 400,
            message: message.to_owned(),
            retry_after_ms: None,
        }
    }

    const ALL: Spare = Spare { seed: true, schema: true };

    #[test]
    fn how_likely_tokens_are_is_asked_for_and_read() {
        let asks = |logprobs| {
            let request = ChatRequest { logprobs, ..ChatRequest::new(vec![ChatMessage::user("?")], 1) };
            Dialect::default().body("m", &request)
        };
        assert_eq!(asks(Logprobs::Answer)["logprobs"], true);
        assert_eq!(asks(Logprobs::Given)["prompt_logprobs"], 0);
        assert_eq!(asks(Logprobs::Given)["add_generation_prompt"], false);
        assert!(asks(Logprobs::No).get("logprobs").is_none());
        let tokens = |text: &str| {
            let completion: Completion = serde_json::from_str(text).unwrap();
            let tokens = completion.into_reply("h").unwrap().tokens?;
            Some(tokens.into_iter().map(|it| (it.token, it.logprob)).collect::<Vec<_>>())
        };
        let answered = r#"{"choices":[{"message":{"content":"hi"},"logprobs":{"content":[
            {"token":"h","logprob":-0.5,"top_logprobs":[]},{"token":"i","logprob":-1}]}}]}"#;
        assert_eq!(tokens(answered).unwrap(), [("h".to_owned(), -0.5), ("i".to_owned(), -1.0)]);
        let given = r#"{"choices":[{"message":{"content":""}}],"prompt_logprobs":[null,
            {"72":{"logprob":-2.5,"rank":3,"decoded_token":"h"}},{"73":{"logprob":-3,"decoded_token":"i"}}]}"#;
        assert_eq!(tokens(given).unwrap(), [("h".to_owned(), -2.5), ("i".to_owned(), -3.0)]);
        let without = r#"{"choices":[{"message":{"content":"hi"},"logprobs":{"content":[{"token":"h"}]}}]}"#;
        assert_eq!(tokens(without), None);
    }

    #[test]
    fn given_tokens_are_scored_by_letting_nothing_else_be_said() {
        let dialect = Dialect { scoring: Scoring::Grammar, ..Dialect::default() };
        let messages = vec![ChatMessage::user("?"), ChatMessage::assistant("hi")];
        let request =
            ChatRequest { logprobs: Logprobs::Given, given: vec![72, 73], ..ChatRequest::new(messages, 1) };
        let body = dialect.body("m", &request);
        assert_eq!(body["grammar"], "root ::= <[72]> <[73]>");
        assert_eq!((&body["max_tokens"], &body["logprobs"]), (&4.into(), &true.into()));
        let probe = Dialect { scoring: Scoring::Probe, ..dialect };
        assert_eq!(probe.body("m", &request)["grammar"], "root ::= <[72]> <[73]> <[72]>");
        assert_eq!(body["messages"].as_array().unwrap().len(), 1);
        // Where a server has tools beside, it takes no grammar.
        let with_tools = ChatRequest { tools: vec![Json::parse("{}").unwrap()], ..request };
        assert!(dialect.body("m", &with_tools).get("grammar").is_none());
    }

    #[test]
    fn a_server_is_asked_as_it_can_be() {
        let mut dialect = Dialect::default();
        let request = request();
        let body = dialect.body("m", &request);
        assert_eq!((&body["max_tokens"], &body["seed"]), (&50.into(), &7.into()));
        assert_eq!(body["response_format"]["json_schema"]["strict"], true);
        assert_eq!(body["messages"][0]["role"], "system");
        for complaint in [
            "Unsupported parameter: use 'max_completion_tokens' instead",
            "'temperature' does not support 0",
            "unknown field seed",
            "response_format: not strict enough",
            "response_format: unknown type json_schema",
            "response_format: no schema, please",
        ] {
            let next = dialect.without(&refused(complaint), ALL);
            dialect = next.unwrap_or_else(|| panic!("{complaint}")).0;
        }
        let body = dialect.body("m", &request);
        let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["model", "messages", "max_completion_tokens"]);
        assert!(body["messages"][2]["content"].as_str().unwrap().contains(r#"{"type":"object"}"#));
        let nothing = dialect.without(&refused("response_format"), ALL);
        assert_eq!(nothing, None, "nothing is left to leave out");
        assert_eq!(dialect.without(&refused("the prompt is too long"), ALL), None);
    }

    #[test]
    fn requests_refused_for_the_same_reason_are_all_asked_again_and_learn_one_step() {
        let spoken = Dialect::default();
        let mut known = spoken;
        for complaint in ["'temperature' does not support 0", "response_format: not strict enough"] {
            for _ in 0..16 {
                let (next, _) = spoken.without(&refused(complaint), ALL).unwrap();
                known = known.join(next);
            }
        }
        assert_eq!(known, Dialect { schema_form: 1, no_temperature: true, ..spoken });
    }

    #[test]
    fn answers_of_several_servers_are_read() {
        let read = |text: &str| serde_json::from_str::<Completion>(text).unwrap().into_reply("h");
        let plain = read(
            r#"{"model":"m-1","choices":[{"message":{"role":"assistant","content":"hi","reasoning_content":"so"},
                "finish_reason":"stop"}],
                "usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#,
        )
        .unwrap();
        let usage = plain.usage.unwrap();
        assert_eq!((plain.text.as_str(), plain.finish, plain.model.as_str()), ("hi", Finish::Stop, "m-1"));
        assert_eq!((usage.prompt, usage.cached_prompt, usage.completion), (9, 4, 2));
        assert_eq!(plain.reasoning.as_deref(), Some("so"));
        let calls = read(
            r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c","type":"function",
                "function":{"name":"f","arguments":"{\"a\": 1}"}}]},"finish_reason":"tool_calls"}]}"#,
        )
        .unwrap();
        assert_eq!((calls.calls[0].arguments.as_str(), calls.usage), ("{\"a\": 1}", None));
        let refused =
            read(r#"{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}"#)
                .unwrap();
        assert_eq!((refused.text.as_str(), refused.finish), ("no", Finish::Filtered));
        let parts =
            read(r#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"text":"b"}]}}]}"#);
        assert_eq!(parts.unwrap().text, "ab");
        assert!(read("{}").unwrap_err().to_string().contains("no choices"));
        let lied = read(r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":-5}}"#).unwrap();
        assert_eq!(lied.usage, None, "a count that is none costs no answer");
        let routed = read(r#"{"error":{"message":"upstream is full","code":503}}"#).unwrap_err();
        assert!(routed.is_retryable() && routed.to_string().contains("upstream is full"), "{routed}");
    }
}
