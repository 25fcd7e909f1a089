//! OpenTelemetry's semantic conventions for generative AI, in all their generations, and the flattened
//! names of OpenLLMetry (Traceloop).

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::attributes::Attributes;
use super::span::{Kind, Span, Trace, made};
use crate::importers::dialect::Dialect;
use crate::importers::object::Object;
use crate::importers::openai_chat::tools;
use crate::importers::value::{elements, is_array, text, value, write_object};
use crate::json::Json;
use crate::trajectory::{Tool, Usage};

/// What stands for the message of an error that has none.
pub(super) const NO_MESSAGE: &str = "error";

/// Takes what these conventions say out of a span's attributes.
pub(super) fn read<'a>(attributes: &mut Attributes<'a>, span: &mut Span<'a>, trace: &mut Trace<'a>) {
    span.kind = kind(attributes, &span.name);
    span.agent = attributes.text("gen_ai.agent.name");
    let answered = attributes.text("gen_ai.response.model");
    let asked = attributes.text("gen_ai.request.model");
    if let (Some(asked), Some(answered)) = (&asked, &answered)
        && asked != answered
    {
        span.rest.insert("gen_ai.request.model".to_owned(), Json::string(asked));
    }
    span.call.model = answered.or(asked);
    span.response = attributes.text("gen_ai.response.id");
    if let Some(id) = &span.response {
        span.rest.insert("gen_ai.response.id".to_owned(), Json::string(id));
    }
    span.continues = attributes.text("gen_ai.request.previous_response.id");
    span.call.finish_reason =
        attributes.take("gen_ai.response.finish_reasons").and_then(|raw| first_text(&raw));
    let parameters = attributes.take_under("gen_ai.request.");
    if !parameters.is_empty() {
        span.call.parameters = Some(Json::from_foreign(&parameters.to_object()));
    }
    span.call.usage = usage(attributes);
    definitions(attributes, span, trace);
    messages(attributes, span);
    run(attributes, span);
    span.error = match (span.error.take(), attributes.text("error.type")) {
        (Some(message), Some(kind)) if message == NO_MESSAGE => Some(kind),
        (Some(message), Some(kind)) if !message.contains(&kind) => Some(format!("{kind}: {message}")),
        (message, kind) => message.or(kind),
    };
}

fn kind(attributes: &mut Attributes<'_>, name: &str) -> Kind {
    let operation =
        attributes.text("gen_ai.operation.name").or_else(|| attributes.text("traceloop.span.kind"));
    let operation = operation.or_else(|| attributes.text("llm.request.type"));
    // Early writers say it in the span's name only.
    let operation = operation.or_else(|| Some(name.split_once(' ')?.0.to_owned()));
    match operation.as_deref() {
        Some("chat" | "text_completion" | "generate_content" | "completion") => Kind::Model,
        Some("execute_tool" | "tool") => Kind::Tool,
        Some("invoke_agent" | "agent") => Kind::Agent,
        // They name a model, and nobody speaks.
        Some(other @ ("embeddings" | "embedding" | "rerank" | "retrieval")) => Kind::Other(other.to_owned()),
        _ if attributes.has("gen_ai.request.model") && !attributes.has("gen_ai.agent.name") => Kind::Model,
        Some(other) => Kind::Other(other.to_owned()),
        None => Kind::Unknown,
    }
}

fn usage(attributes: &mut Attributes<'_>) -> Option<Usage> {
    let input = attributes.count(&["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]);
    let output = attributes.count(&["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"]);
    let cached = [
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.input_tokens.cached",
    ];
    let reasoning = ["gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"];
    let (cached, reasoning) = (attributes.count(&cached), attributes.count(&reasoning));
    input.or(output)?;
    Some(Usage {
        input: input.unwrap_or_default(),
        output: output.unwrap_or_default(),
        cached: cached.unwrap_or_default(),
        reasoning: reasoning.unwrap_or_default(),
    })
}

fn definitions(attributes: &mut Attributes<'_>, span: &mut Span<'_>, trace: &mut Trace<'_>) {
    let mut losses = BTreeSet::new();
    if let Some(raw) = attributes.take("gen_ai.tool.definitions") {
        match tools(&raw, "", &mut losses) {
            Some(read) => span.tools = read,
            None => trace.lose("gen_ai.tool.definitions", "no list of tools"),
        }
    }
    for (_, mut function) in attributes.take_numbered("llm.request.functions.") {
        let Some(name) = function.text("name") else { continue };
        let parameters = function.text("parameters").map(|text| Json::from_foreign(&text));
        let description = function.text("description").unwrap_or_default();
        span.tools.push(Tool { name, description, parameters, read_only: None });
    }
    for loss in losses {
        trace.lose(loss.field, "a tool has no place for it");
    }
}

fn messages<'a>(attributes: &mut Attributes<'a>, span: &mut Span<'a>) {
    span.system = attributes.take("gen_ai.system_instructions").as_deref().and_then(instructions);
    // Events may have given them already.
    span.input = attributes.take_any(&["gen_ai.input.messages", "gen_ai.prompt"]).or(span.input.take());
    span.output =
        attributes.take_any(&["gen_ai.output.messages", "gen_ai.completion"]).or(span.output.take());
    if span.input.is_none() {
        span.input = numbered(attributes, "gen_ai.prompt.", span);
    }
    if span.output.is_none() {
        span.output = numbered(attributes, "gen_ai.completion.", span);
    }
    let entity = ["traceloop.entity.input", "traceloop.entity.output"];
    let (input, output) = (attributes.take(entity[0]), attributes.take(entity[1]));
    if span.kind == Kind::Tool {
        span.tool.arguments = input.as_deref().map(plain);
        span.tool.result = output.as_deref().map(plain);
    } else {
        span.input = span.input.take().or(input);
        span.output = span.output.take().or(output);
    }
}

/// The parts of an instruction, which stand apart from the messages, as a message.
fn instructions(raw: &RawValue) -> Option<Cow<'static, RawValue>> {
    let decoded = text(raw);
    let source = decoded.as_deref().unwrap_or(raw.get());
    if source.trim_start().starts_with('[') {
        return made(format!(r#"[{{"role":"system","parts":{source}}}]"#));
    }
    let quoted = Json::string(source);
    made(format!(r#"[{{"role":"system","content":{}}}]"#, quoted.as_str()))
}

/// Messages under numbered names, as a list of OpenAI's.
fn numbered(
    attributes: &mut Attributes<'_>,
    prefix: &str,
    span: &mut Span<'_>,
) -> Option<Cow<'static, RawValue>> {
    let mut messages = Vec::new();
    for (_, mut message) in attributes.take_numbered(prefix) {
        let mut members: Vec<(&str, String)> = Vec::new();
        for key in ["role", "content", "tool_call_id", "name"] {
            let Some(value) = message.take(key) else { continue };
            members.push((key, if key == "content" { content(&value) } else { value.get().to_owned() }));
        }
        if let Some(reason) = message.text("finish_reason") {
            span.call.finish_reason.get_or_insert(reason);
        }
        let calls: Vec<String> = message.take_numbered("tool_calls.").into_values().map(call).collect();
        if !calls.is_empty() {
            members.push(("tool_calls", format!("[{}]", calls.join(","))));
        }
        for (name, value) in message.rest() {
            span.rest.insert(format!("{prefix}{name}"), value);
        }
        messages.push(write_object(members));
    }
    if messages.is_empty() { None } else { made(format!("[{}]", messages.join(","))) }
}

fn call(mut call: Attributes<'_>) -> String {
    let mut function: Vec<(&str, String)> = Vec::new();
    for key in ["name", "arguments"] {
        function.extend(call.take(key).map(|value| (key, value.get().to_owned())));
    }
    let id = call.take("id").map(|id| ("id", id.get().to_owned()));
    write_object(id.into_iter().chain([("function", write_object(function))]))
}

/// A content that was made a string of because attributes hold no lists.
pub(super) fn content(raw: &RawValue) -> String {
    let list = text(raw).filter(|text| text.starts_with("[{")).and_then(|text| {
        let parts: &RawValue = serde_json::from_str(&text).ok()?;
        is_typed(parts).then(|| parts.get().to_owned())
    });
    list.unwrap_or_else(|| raw.get().to_owned())
}

fn is_typed(parts: &RawValue) -> bool {
    let parts = elements(parts).unwrap_or_default();
    !parts.is_empty() && parts.into_iter().all(|raw| Object::of(raw).is_some_and(|part| part.has("type")))
}

/// What a span says of a tool's run.
fn run(attributes: &mut Attributes<'_>, span: &mut Span<'_>) {
    span.tool.call_id = attributes.text("gen_ai.tool.call.id");
    let name = attributes.text("gen_ai.tool.name");
    let name = name.or_else(|| attributes.text("traceloop.entity.name").filter(|_| span.kind == Kind::Tool));
    span.tool.name = name.or_else(|| Some(span.name.strip_prefix("execute_tool ")?.to_owned()));
    if let Some(raw) = attributes.take("gen_ai.tool.call.arguments") {
        span.tool.arguments = Some(plain(&raw));
    }
    if let Some(raw) = attributes.take("gen_ai.tool.call.result") {
        span.tool.result = Some(plain(&raw));
    }
    if span.kind == Kind::Agent && span.agent.is_none() {
        let named = attributes.text("traceloop.entity.name");
        span.agent = named.or_else(|| Some(span.name.strip_prefix("invoke_agent ")?.to_owned()));
    }
}

/// A string's content, or the source of any other value.
pub(super) fn plain(raw: &RawValue) -> String {
    text(raw).map_or_else(|| raw.get().to_owned(), Cow::into_owned)
}

/// The first of a list of strings, the list being a JSON array, a string of one, or the string alone.
fn first_text(raw: &RawValue) -> Option<String> {
    let words: Option<Vec<String>> = value(raw);
    let said = text(raw);
    let inner = said.as_deref().and_then(|said| serde_json::from_str::<Vec<String>>(said).ok());
    words.or(inner).map_or_else(|| said.map(Cow::into_owned), |words| words.into_iter().next())
}

/// One message of the generation that wrote each as an event of its own (`gen_ai.user.message`,
/// `gen_ai.choice` …). Its body becomes a message of OpenAI's form, added to the span's.
#[derive(Debug, Default)]
pub(super) struct Events {
    input: Vec<String>,
    output: Vec<String>,
    finish_reason: Option<String>,
}

impl Events {
    /// Takes an event; false where it is none of these.
    pub(super) fn take(&mut self, name: &str, mut body: Attributes<'_>) -> bool {
        let role = match name {
            "gen_ai.system.message" => "system",
            "gen_ai.user.message" => "user",
            "gen_ai.assistant.message" => "assistant",
            "gen_ai.tool.message" => "tool",
            "gen_ai.choice" => {
                self.choice(body);
                return true;
            }
            _ => return false,
        };
        let id = body.take("id").map(|id| ("tool_call_id", id.get().to_owned())).filter(|_| role == "tool");
        self.input.push(message(role, &mut body, id));
        true
    }

    fn choice(&mut self, mut body: Attributes<'_>) {
        self.finish_reason = body.text("finish_reason").or(self.finish_reason.take());
        // The message stands in the body, or its text does, or its members beside the reason.
        let said = body.take("message").map(|raw| plain(&raw));
        let inner = said.as_deref().and_then(|said| serde_json::from_str::<&RawValue>(said).ok());
        self.output.push(match (inner.and_then(Object::of), &said) {
            (Some(inner), _) => message("assistant", &mut Attributes::from_object(inner), None),
            (None, Some(said)) => {
                let content = ("content", Json::string(said).as_str().to_owned());
                message("assistant", &mut body, Some(content))
            }
            (None, None) => message("assistant", &mut body, None),
        });
    }

    /// Gives the messages to their span, which has none of its own.
    pub(super) fn settle(self, span: &mut Span<'_>) {
        span.call.finish_reason = span.call.finish_reason.take().or(self.finish_reason);
        for (messages, place) in [(self.input, &mut span.input), (self.output, &mut span.output)] {
            if !messages.is_empty() && place.is_none() {
                *place = made(format!("[{}]", messages.join(",")));
                span.dialect = Some(Dialect::Chat);
            }
        }
    }
}

fn message(role: &str, body: &mut Attributes<'_>, more: Option<(&str, String)>) -> String {
    let mut members: Vec<(&str, String)> = vec![("role", Json::string(role).as_str().to_owned())];
    for key in ["content", "tool_calls", "name"] {
        let Some(value) = body.take(key) else { continue };
        let listed =
            text(&value).filter(|text| key == "tool_calls" && text.starts_with('[')).map(Cow::into_owned);
        let content = (key == "content" && !is_array(&value)).then(|| content(&value));
        members.push((key, listed.or(content).unwrap_or_else(|| value.get().to_owned())));
    }
    members.extend(more);
    write_object(members)
}
