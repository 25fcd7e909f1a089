//! Anthropic's Messages API: requests with their responses, and the results of batches.
//!
//! A record is `{request, response}`, `{system, messages, response}`, a conversation in Anthropic's
//! blocks, a response alone, or a batch's result `{custom_id, result: {type, message}}`, whose request
//! is looked for beside it (`…results.jsonl` → `…requests.jsonl`). Requests that repeat what came before
//! make one run ([`super::histories`]).

use super::dialect::Dialect;
use super::histories::import_log;
use super::{ImportError, Importer, Outline, Probe, Sink, Source};

/// Kinds of content blocks that only Anthropic has.
const BLOCKS: [&str; 4] = ["tool_use", "tool_result", "redacted_thinking", "server_tool_use"];

/// Logs of the Messages API.
pub(super) struct AnthropicMessages;

impl Importer for AnthropicMessages {
    fn format(&self) -> &'static str {
        "anthropic-messages"
    }

    fn recognizes(&self) -> &'static str {
        "requests with `messages` of content blocks and their responses, or batch results with `custom_id` and `result`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.is_one_list(is_messages) || probe.records().iter().any(is_record)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        let layout = probe.layout_or_list(is_messages);
        import_log(source, &probe, layout, Dialect::Anthropic, self.format(), sink)
    }
}

fn is_record(record: &Outline) -> bool {
    let request =
        ["request", "params"].iter().find_map(|key| record.get(key).filter(|value| value.is_object()));
    let response = record.get("response").is_some_and(is_response);
    let result = record.get("result").filter(|_| record.get("custom_id").is_some());
    let said = request.unwrap_or(record).get("messages");
    response
        || is_response(record)
        || result.and_then(|result| result.get("type")?.as_str()).is_some_and(is_result)
        || said.is_some_and(is_messages)
}

fn is_response(value: &Outline) -> bool {
    value.get("type").and_then(Outline::as_str) == Some("message")
        && value.has_all(&["role", "content", "stop_reason"])
}

fn is_result(kind: &str) -> bool {
    ["succeeded", "errored", "canceled", "expired"].contains(&kind)
}

/// True for an array of messages of two speakers, of which some of the first has a block that no other
/// format has.
fn is_messages(list: &Outline) -> bool {
    let is_block = |block: &Outline| match block.get("type").and_then(Outline::as_str) {
        Some("image") => block.get("source").is_some_and(Outline::is_object),
        kind => kind.is_some_and(|kind| BLOCKS.contains(&kind)),
    };
    let speaks = |message: &Outline| {
        matches!(message.get("role").and_then(Outline::as_str), Some("user" | "assistant"))
            && message.get("tool_calls").is_none()
    };
    let blocks =
        |message: &Outline| message.get("content").is_some_and(|said| said.elements().iter().any(is_block));
    list.elements().iter().all(speaks) && list.elements().iter().any(blocks)
}
