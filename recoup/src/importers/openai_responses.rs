//! OpenAI's Responses API: requests with their responses, stored responses, and lists of items.
//!
//! A record is `{request, response}`, a response object (`object: "response"`) with or without its
//! `input`, a batch's result whose request lies beside it, `{input: […]}`, or a list of items. Requests
//! that repeat what came before, or name the response they go on from, make one run
//! ([`super::histories`]).

use super::dialect::Dialect;
use super::histories::import_log;
use super::{ImportError, Importer, Outline, Probe, Sink, Source};

/// Logs of the Responses API.
pub(super) struct OpenAiResponses;

impl Importer for OpenAiResponses {
    fn format(&self) -> &'static str {
        "openai-responses"
    }

    fn recognizes(&self) -> &'static str {
        "responses whose `object` is response, requests with `input` items, or lists of such items"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.is_one_list(is_items) || probe.records().iter().any(is_record)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        let layout = probe.layout_or_list(is_items);
        import_log(source, &probe, layout, Dialect::Responses, self.format(), sink)
    }
}

fn is_record(record: &Outline) -> bool {
    let member = |key: &str| record.get(key).filter(|value| value.is_object());
    let body = member("response").and_then(|response| response.get("body")).or(member("response"));
    let request = member("request").or(member("body"));
    is_response(record)
        || body.is_some_and(is_response)
        || request.and_then(|request| request.get("input")).is_some_and(is_items)
        || ["input", "items", "data"].iter().any(|key| record.get(key).is_some_and(is_items))
}

fn is_response(value: &Outline) -> bool {
    value.get("object").and_then(Outline::as_str) == Some("response")
        || (value.get("output").is_some_and(is_items) && value.get("status").is_some())
}

/// True for an array in which some of the first elements is an item that no other format has.
fn is_items(list: &Outline) -> bool {
    list.elements().iter().any(|item| {
        let kind = item.get("type").and_then(Outline::as_str).unwrap_or_default();
        let content =
            item.get("content").and_then(Outline::first).and_then(|part| part.get("type")?.as_str());
        let typed = matches!(content, Some("input_text" | "output_text"));
        match kind {
            "function_call" | "custom_tool_call" => item.has_all(&["call_id", "name"]),
            "function_call_output" | "custom_tool_call_output" => item.get("output").is_some(),
            "reasoning" => item.get("summary").is_some(),
            "message" | "" => item.get("role").is_some() && typed,
            _ => false,
        }
    })
}
