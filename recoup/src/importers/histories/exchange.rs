//! An exchange: one request to a model with what came back.
//!
//! Logs keep the two under names of their own, batches wrap each once more and keep them in two files,
//! and the request's members may stand in the record itself.

use serde_json::value::RawValue;

use super::batch;
use crate::importers::RecordError;
use crate::importers::dialect::{self, Aside, Dialect, Thread, offered};
use crate::importers::object::{Object, missing, wrong_type};
use crate::importers::value::{is_object, json_object, text, text_or_source};
use crate::json::Json;
use crate::trajectory::{Call, Node, Role, Tool};

/// Names under which logs keep the request.
const REQUESTS: [&str; 3] = ["request", "params", "body"];
/// Names under which logs keep the response.
const RESPONSES: [&str; 3] = ["response", "result", "completion"];
/// Members of a request that set how the model samples, where they stand in the record itself.
const PARAMETERS: [&str; 12] = [
    "frequency_penalty",
    "generationConfig",
    "generation_config",
    "max_output_tokens",
    "max_tokens",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning",
    "temperature",
    "thinking",
    "tool_choice",
    "top_p",
];
/// Errors within errors that are followed.
const ERROR_DEPTH_MAX: usize = 4;

/// What one record says.
#[derive(Debug, Default)]
pub(in crate::importers) struct Exchange<'a> {
    /// The messages that were sent.
    pub context: Vec<Node>,
    /// The message that came back; none where the request failed or nothing is known of it.
    pub answer: Vec<Node>,
    /// Tools that were offered.
    pub tools: Vec<Tool>,
    /// Media and losses of the messages.
    pub aside: Aside,
    /// The provider's id of the response.
    pub id: Option<String>,
    /// Id of the response that `context` goes on from.
    pub previous: Option<String>,
    /// The source's name of the conversation that the record belongs to.
    pub conversation: Option<String>,
    /// Sent in a batch, beside others that it does not continue.
    pub alone: bool,
    /// Why the request failed.
    pub error: Option<String>,
    /// Model that was asked, and how it was to sample.
    pub asked: Call,
    /// What else the record says.
    pub row: Object<'a>,
}

/// Reads a record of a request and its response. `sent` is the request where it lies in another file.
///
/// # Errors
/// When the record holds neither, or something of them cannot be read.
pub(super) fn exchange<'a>(
    mut row: Object<'a>,
    sent: Option<&RawValue>,
    dialect: Dialect,
) -> Result<Exchange<'a>, RecordError> {
    let mut read = Exchange { alone: batch::name(&row).is_some(), ..Exchange::default() };
    let received = RESPONSES.iter().find_map(|key| row.take_if(key, is_object));
    let kept = REQUESTS.iter().find_map(|key| row.take_if(key, is_object));
    let asked = sent.or(kept).map(|raw| within(raw, &REQUESTS));
    match asked {
        Some(raw) => {
            let mut object = Object::parse(raw, "request")?;
            read.ask(&mut object, dialect)?;
            read.asked.parameters = json_object(object.filled_rest());
        }
        None => {
            read.ask(&mut row, dialect)?;
            let parameters = row.take_object(|key| PARAMETERS.contains(&key));
            read.asked.parameters = (parameters != "{}").then(|| Json::from_foreign(&parameters));
        }
    }
    let mut answer = Thread::default();
    match received {
        Some(raw) => read.receive(within(raw, &["body", "message"]), asked, &mut answer, dialect)?,
        // A stored response with its own input, or a response alone.
        None if dialect::answer(&mut row, &mut answer, &mut read.aside)? => read.id = row.text("id"),
        None => {}
    }
    read.error = read.error.or_else(|| failure(&mut row));
    read.answer = answer.finish();
    if read.context.is_empty() && read.answer.is_empty() && read.error.is_none() {
        return Err(missing("request"));
    }
    let at = ["timestamp", "time", "created_at", "processed_time"].into_iter().find_map(|key| row.id(key));
    if let Some(node) = read.answer.last_mut().filter(|node| node.role == Role::Assistant) {
        let call = node.occurrence.call.get_or_insert_default();
        call.model = call.model.take().or(read.asked.model.take());
        call.parameters = read.asked.parameters.take();
        node.occurrence.at = node.occurrence.at.take().or(at);
    }
    read.row = row;
    Ok(read)
}

impl<'a> Exchange<'a> {
    /// A list of messages without what asked for them.
    ///
    /// # Errors
    /// When a message cannot be read.
    pub(in crate::importers) fn of_messages(
        raw: &RawValue,
        dialect: Dialect,
        mut row: Object<'a>,
    ) -> Result<Self, RecordError> {
        let mut aside = Aside::default();
        let tools = row.take("tools").map(|raw| offered(raw, &mut aside)).unwrap_or_default();
        let context = dialect::messages(raw, hint(dialect), Role::User, &mut aside)?;
        Ok(Self { context, tools, aside, row, ..Self::default() })
    }

    /// A response without its request.
    ///
    /// # Errors
    /// When it is no message.
    pub(super) fn of_answer(
        raw: &RawValue,
        dialect: Dialect,
        id: Option<String>,
    ) -> Result<Self, RecordError> {
        let mut aside = Aside::default();
        let answer = dialect::message(raw, hint(dialect), Role::Assistant, &mut aside)?;
        Ok(Self { answer, aside, id, ..Self::default() })
    }

    /// How many messages of the request only repeat the instructions: a request that goes on from a
    /// response gives them again.
    pub(super) fn instructions(&self) -> usize {
        let leading = self.context.iter().take_while(|node| node.role == Role::System).count();
        if self.previous.is_some() { leading } else { 0 }
    }

    /// Takes the request's messages, tools and model out of its object.
    fn ask(&mut self, object: &mut Object<'_>, dialect: Dialect) -> Result<(), RecordError> {
        // Google's library keeps instructions and tools beside how to sample.
        let config = object.object("config");
        object.absorb(config);
        let mut thread = Thread::default();
        dialect::request(object, &mut thread, hint(dialect), Role::User, &mut self.aside)?;
        self.context = thread.finish();
        self.previous = object.text("previous_response_id");
        if let Some(raw) = object.take("tools") {
            self.tools = offered(raw, &mut self.aside);
        }
        self.asked.model = object.text("model");
        Ok(())
    }

    /// Reads a response, or why there is none.
    fn receive(
        &mut self,
        raw: &RawValue,
        asked: Option<&RawValue>,
        answer: &mut Thread,
        dialect: Dialect,
    ) -> Result<(), RecordError> {
        let mut object = Object::parse(raw, "response")?;
        self.id = ["id", "responseId", "response_id"].into_iter().find_map(|key| object.clone().text(key));
        if object.has("role") {
            return answer.add(raw, hint(dialect), Role::Assistant, &mut self.aside);
        }
        let answered = dialect::answer(&mut object, answer, &mut self.aside)?;
        self.error = failure(&mut object);
        if !answered {
            // A batch says in a word why a request was not answered.
            let word = self.error.take().or_else(|| blocked(&mut object));
            let word = word.or_else(|| object.clone().text("type"));
            object.take("type");
            self.error = Some(word.ok_or_else(|| wrong_type("response", "an answer of a known form"))?);
        }
        self.echoed(&mut object, asked);
        if let Some(node) = answer.answered() {
            node.occurrence.at = ["created_at", "created", "createTime", "create_time"]
                .into_iter()
                .find_map(|key| object.id(key));
            let said = node.occurrence.extra.take();
            let said = said.as_ref().and_then(|said| serde_json::from_str(said.as_str()).ok());
            object.absorb(said.unwrap_or_default());
            node.occurrence.extra = json_object(object.filled_rest());
        } else {
            self.aside.left(object, "response");
        }
        Ok(())
    }
}

impl Exchange<'_> {
    /// Takes out of a response what it only repeats of its request, and how the model sampled.
    fn echoed(&mut self, response: &mut Object<'_>, request: Option<&RawValue>) {
        let request = request.and_then(Object::of).unwrap_or_default();
        for key in ["instructions", "tools", "previous_response_id"] {
            let asked = request.get(key).map(Json::from);
            response.take_if(key, |raw| asked.as_ref() == Some(&Json::from(raw)));
        }
        response.take("object");
        let sampled = response.take_object(|key| PARAMETERS.contains(&key));
        let asked = self.asked.parameters.take();
        let mut asked: Object<'_> =
            asked.as_ref().and_then(|asked| serde_json::from_str(asked.as_str()).ok()).unwrap_or_default();
        asked.absorb(serde_json::from_str(&sampled).unwrap_or_default());
        self.asked.parameters = json_object(asked.filled_rest());
    }
}

/// What messages are read as. Plain ones among Anthropic's are OpenAI's as well, and logs mix the two.
fn hint(dialect: Dialect) -> Option<Dialect> {
    (dialect != Dialect::Anthropic).then_some(dialect)
}

/// What stands inside the object that a batch or a proxy wraps around it.
fn within<'a>(raw: &'a RawValue, names: &[&str]) -> &'a RawValue {
    let inner = Object::of(raw).and_then(|object| {
        let inner = names.iter().find_map(|key| object.get(key).filter(|raw| is_object(raw)));
        inner.filter(|_| !object.has("role"))
    });
    inner.unwrap_or(raw)
}

/// Why Google's API did not answer.
fn blocked(object: &mut Object<'_>) -> Option<String> {
    let mut feedback = ["promptFeedback", "prompt_feedback"].into_iter().map(|key| object.object(key));
    feedback.find_map(|mut said| said.text("blockReason").or_else(|| said.text("block_reason")))
}

/// The error that an object tells of, in one line.
fn failure(object: &mut Object<'_>) -> Option<String> {
    let mut raw = object.take("error")?;
    for _ in 0..ERROR_DEPTH_MAX {
        match Object::of(raw).and_then(|error| error.get("error")) {
            Some(inner) => raw = inner,
            None => break,
        }
    }
    let Some(mut error) = Object::of(raw) else { return Some(text_or_source(raw)) };
    let kind = ["type", "status", "code"].into_iter().find_map(|key| error.id(key));
    let message = error.get("message").and_then(text);
    Some(match (kind, message) {
        (Some(kind), Some(message)) => format!("{kind}: {message}"),
        (None, Some(message)) => message.into_owned(),
        (Some(kind), None) => kind,
        (None, None) => raw.get().to_owned(),
    })
}
