//! OpenInference: spans whose messages are flattened into numbered attributes.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::attributes::Attributes;
use super::genai::plain;
use super::span::{Kind, Score, Span, Trace, Value, made};
use crate::importers::object::Object;
use crate::importers::value::{text, write_object};
use crate::json::Json;
use crate::trajectory::{Tool, Usage};

/// Takes what these conventions say out of a span's attributes.
pub(super) fn read<'a>(attributes: &mut Attributes<'a>, span: &mut Span<'a>, trace: &mut Trace<'a>) {
    let kind = attributes.text("openinference.span.kind").unwrap_or_default();
    span.kind = match kind.as_str() {
        "LLM" => Kind::Model,
        "TOOL" => Kind::Tool,
        "AGENT" => Kind::Agent,
        "" => Kind::Unknown,
        other => Kind::Other(other.to_lowercase()),
    };
    span.agent = attributes.text("agent.name");
    if span.kind == Kind::Agent && span.agent.is_none() {
        span.agent = Some(span.name.clone()).filter(|name| !name.is_empty());
    }
    call(attributes, span);
    tools(attributes, span);
    let input = attributes.take("input.value");
    let output = attributes.take("output.value");
    attributes.take("input.mime_type");
    attributes.take("output.mime_type");
    if span.kind == Kind::Tool {
        run(attributes, span, input.as_deref(), output.as_deref());
    } else {
        span.input = messages(attributes, "llm.input_messages.").or(input);
        let said = messages(attributes, "llm.output_messages.");
        // The flattened names have none for reasoning; the response as it came may hold some.
        let whole = output.as_deref().is_some_and(|raw| raw.get().contains("reasoning_content"));
        span.output = if whole { output.or(said) } else { said.or(output) };
    }
    for (_, mut annotation) in attributes.take_numbered("annotations.") {
        let said = annotation.take_under("annotation.");
        if let Some(name) = said.peek("name").map(Cow::into_owned) {
            score(name, said, &span.id, trace);
        }
    }
}

fn call(attributes: &mut Attributes<'_>, span: &mut Span<'_>) {
    let asked = attributes.text("llm.request_model_name");
    span.call.model = attributes.text("llm.model_name").or(asked);
    span.call.parameters =
        attributes.text("llm.invocation_parameters").map(|parameters| Json::from_foreign(&parameters));
    span.call.finish_reason = attributes.text("llm.finish_reason");
    span.call.cost = attributes.number("llm.cost.total");
    let input = attributes.count(&["llm.token_count.prompt"]);
    let output = attributes.count(&["llm.token_count.completion"]);
    attributes.take("llm.token_count.total");
    let cached = attributes.count(&["llm.token_count.prompt_details.cache_read"]);
    let reasoning = attributes.count(&["llm.token_count.completion_details.reasoning"]);
    if input.or(output).is_some() {
        span.call.usage = Some(Usage {
            input: input.unwrap_or_default(),
            output: output.unwrap_or_default(),
            cached: cached.unwrap_or_default(),
            reasoning: reasoning.unwrap_or_default(),
        });
    }
}

fn tools(attributes: &mut Attributes<'_>, span: &mut Span<'_>) {
    for (_, mut tool) in attributes.take_numbered("llm.tools.") {
        let schema = tool.text("tool.json_schema").unwrap_or_default();
        let raw = serde_json::from_str::<&RawValue>(&schema).ok();
        let Some(mut outer) = raw.and_then(Object::of) else { continue };
        let mut inner = if outer.has("function") { outer.object("function") } else { outer };
        let name = inner.text("name").or_else(|| tool.text("tool.name"));
        let Some(name) = name else { continue };
        let description = inner.text("description").or_else(|| tool.text("tool.description"));
        let parameters =
            ["parameters", "input_schema"].iter().find_map(|key| inner.take(key)).map(Json::from);
        span.tools.push(Tool {
            name,
            description: description.unwrap_or_default(),
            parameters,
            read_only: None,
        });
    }
}

fn run(
    attributes: &mut Attributes<'_>,
    span: &mut Span<'_>,
    input: Option<&RawValue>,
    output: Option<&RawValue>,
) {
    span.tool.name = attributes.text("tool.name").or_else(|| Some(span.name.clone()));
    span.tool.call_id = attributes.text("tool.id").or_else(|| attributes.text("tool_call.id"));
    let given = attributes.take("tool.parameters").map(|raw| match Object::of(&raw) {
        // A column of a data frame has the members of every tool.
        Some(members) => write_object(members.members().into_iter().map(|(name, raw)| (name, raw.get()))),
        None => plain(&raw),
    });
    span.tool.arguments = given.or_else(|| input.map(plain));
    span.tool.result = output.map(plain);
}

/// Flattened messages as a list of OpenAI's.
fn messages(attributes: &mut Attributes<'_>, prefix: &str) -> Option<Cow<'static, RawValue>> {
    let messages: Vec<String> = attributes.take_numbered(prefix).into_values().map(message).collect();
    if messages.is_empty() { None } else { made(format!("[{}]", messages.join(","))) }
}

fn message(mut flat: Attributes<'_>) -> String {
    let mut flat = flat.take_under("message.");
    let mut members: Vec<(&str, String)> = Vec::new();
    for key in ["role", "name", "tool_call_id"] {
        members.extend(flat.take(key).map(|value| (key, value.get().to_owned())));
    }
    let parts: Vec<String> = flat.take_numbered("contents.").into_values().map(part).collect();
    let content = flat.take("content");
    if !parts.is_empty() {
        members.push(("content", format!("[{}]", parts.join(","))));
    } else if let Some(content) = content {
        members.push(("content", content.get().to_owned()));
    }
    let calls: Vec<String> = flat.take_numbered("tool_calls.").into_values().map(tool_call).collect();
    if !calls.is_empty() {
        members.push(("tool_calls", format!("[{}]", calls.join(","))));
    } else if let Some(name) = flat.take("function_call_name") {
        let arguments = flat.take("function_call_arguments_json");
        let arguments = arguments.map(|arguments| ("arguments", arguments.get().to_owned()));
        let function = [("name", name.get().to_owned())].into_iter().chain(arguments);
        members.push(("function_call", write_object(function)));
    }
    let rest: Vec<(String, Json)> = flat.rest().into_iter().collect();
    let rest = rest.iter().map(|(name, value)| (name.as_str(), value.as_str().to_owned()));
    write_object(members.into_iter().chain(rest))
}

fn tool_call(mut flat: Attributes<'_>) -> String {
    let mut call = flat.take_under("tool_call.");
    let mut function: Vec<(&str, String)> = Vec::new();
    for key in ["name", "arguments"] {
        function.extend(call.take(&format!("function.{key}")).map(|value| (key, value.get().to_owned())));
    }
    let id = call.take("id").map(|id| ("id", id.get().to_owned()));
    write_object(id.into_iter().chain([("function", write_object(function))]))
}

/// A part of a content, in the form of whose API it comes from.
fn part(mut flat: Attributes<'_>) -> String {
    let mut part = flat.take_under("message_content.");
    let kind = part.text("type").unwrap_or_else(|| "text".to_owned());
    let said = part.take("text").map(|text| text.get().to_owned());
    let mut url = part.text("image.image.url").or_else(|| part.text("image.url"));
    if url.is_none()
        && let Some(raw) = part.take("image")
    {
        let image = text(&raw).filter(|image| image.starts_with('{'));
        url = image.and_then(|image| serde_json::from_str::<Object<'_>>(&image).ok()?.text("image.url"));
        if url.is_none() {
            part.insert("image".to_owned(), raw);
        }
    }
    let mut members: Vec<(&str, String)> = Vec::new();
    match (kind.as_str(), said, url) {
        (_, _, Some(url)) => {
            members.push(("type", r#""image_url""#.to_owned()));
            members.push(("image_url", write_object([("url", Json::string(&url).as_str())])));
        }
        ("reasoning" | "thinking", Some(said), _) => {
            members.push(("type", r#""thinking""#.to_owned()));
            members.push(("thinking", said));
            members.extend(part.take("signature").map(|seal| ("signature", seal.get().to_owned())));
        }
        (kind, said, None) => {
            members.push(("type", Json::string(kind).as_str().to_owned()));
            members.extend(said.map(|said| ("text", said)));
        }
    }
    let rest: Vec<(String, Json)> = part.rest().into_iter().collect();
    let rest = rest.iter().map(|(name, value)| (name.as_str(), value.as_str().to_owned()));
    write_object(members.into_iter().chain(rest))
}

/// Takes what an annotation says of a span, under the names that follow its own, as a score.
pub(super) fn score(name: String, mut said: Attributes<'_>, span: &str, trace: &mut Trace<'_>) {
    if !said.has("name")
        && let Some(quoted) = made(Json::string(&name).as_str().to_owned())
    {
        said.insert("name".to_owned(), quoted);
    }
    let native = Json::from_foreign(&said.to_object());
    let label = said.take("label");
    let value = match (said.number("score"), label.as_deref().and_then(text).as_deref()) {
        (Some(number), _) => Value::Number(number),
        (None, Some("true" | "pass" | "passed")) => Value::Flag(true),
        (None, Some("false" | "fail" | "failed")) => Value::Flag(false),
        (None, None) => return,
        _ => Value::Other,
    };
    let reason = said.text("explanation");
    trace.scores.push(Score { name, span: Some(span.to_owned()), value, reason, native });
}
