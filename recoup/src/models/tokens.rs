//! Counting tokens without the model's own tokenizer: a likely number, and one that is never passed.

use super::{ChatRequest, Usage};

/// Bytes of a token in English text and JSON, as byte-pair vocabularies of 100,000 entries cut them; rather few.
const BYTES_PER_TOKEN: u64 = 3;
/// Tokens that a chat template puts around one message, at most.
const AROUND_MESSAGE: u64 = 16;
/// Tokens that a provider puts before a conversation of its own accord, at most.
const AROUND_REQUEST: u64 = 512;

/// Bytes of text in a question: messages, calls, tools and the schema.
pub fn request_bytes(request: &ChatRequest) -> u64 {
    let messages: usize = request
        .messages
        .iter()
        .map(|message| {
            let calls: usize =
                message.calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len()).sum();
            message.content.len() + calls + message.call_id.as_deref().map_or(0, str::len)
        })
        .sum();
    let tools: usize = request.tools.iter().map(|tool| tool.as_str().len()).sum();
    let schema = request.schema.as_ref().map_or(0, |schema| schema.schema.as_str().len());
    (messages + tools + schema) as u64
}

/// Tokens that a question likely has.
pub fn likely_prompt(request: &ChatRequest) -> u64 {
    text(request_bytes(request)) + AROUND_MESSAGE / 2 * request.messages.len() as u64
}

/// Tokens that a question has at most: a byte-level vocabulary never makes more tokens than bytes.
pub fn most_prompt(request: &ChatRequest) -> u64 {
    request_bytes(request) + AROUND_MESSAGE * request.messages.len() as u64 + AROUND_REQUEST
}

/// Tokens that a text of so many bytes likely has.
pub fn text(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Tokens that a text of so many bytes has, rather too many: for what a provider does not count or counts
/// falsely.
pub fn cautious(bytes: u64) -> u64 {
    bytes.div_ceil(2)
}

/// Whether a provider's count can be true of a question and an answer of so many bytes.
pub fn is_plausible(usage: Usage, request: &ChatRequest, answer_bytes: u64) -> bool {
    // Nothing that people write has more than 16 bytes a token on average.
    let least = |bytes: u64| bytes / 16;
    usage.prompt >= least(request_bytes(request))
        && usage.prompt <= most_prompt(request)
        && usage.cached_prompt <= usage.prompt
        && usage.completion >= least(answer_bytes)
        && usage.completion <= request.said_most().saturating_add(AROUND_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::{is_plausible, likely_prompt, most_prompt};
    use crate::models::{ChatMessage, ChatRequest, Usage};

    #[test]
    fn a_lie_about_usage_is_seen() {
        let request = ChatRequest::new(vec![ChatMessage::user("a".repeat(3000))], 100);
        assert!(likely_prompt(&request) < most_prompt(&request));
        let usage = |prompt, completion| Usage { prompt, cached_prompt: 0, completion };
        assert!(is_plausible(usage(900, 50), &request, 200));
        assert!(!is_plausible(usage(0, 0), &request, 200));
        assert!(!is_plausible(usage(u64::MAX, 50), &request, 200));
        assert!(!is_plausible(usage(900, 5000), &request, 200));
    }
}
