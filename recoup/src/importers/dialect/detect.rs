//! Which dialect a message is written in, seen from its keys.

use super::Dialect;
use super::langchain;
use crate::importers::object::Object;
use crate::importers::value::{elements, is_array, text};

/// Kinds of content blocks that only Anthropic's messages have.
const BLOCKS: [&str; 8] = [
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "document",
    "server_tool_use",
    "web_search_tool_result",
    "search_result",
];
/// Kinds of Responses items that do not end in `_call` or `_output`.
const ITEMS: [&str; 3] = ["reasoning", "item_reference", "compaction"];

impl Dialect {
    /// The dialect of a message; `None` for an object that is none.
    pub(in crate::importers) fn of(message: &Object<'_>) -> Option<Self> {
        let word = |key: &str| message.get(key).and_then(text);
        if let Some(parts) = message.get("parts").filter(|raw| is_array(raw)) {
            let typed = elements(parts)?.first().is_some_and(|raw| kind(raw).is_some());
            return Some(if typed { Self::GenAi } else { Self::Gemini });
        }
        if message.has("lc") {
            return Some(Self::LangChain);
        }
        let kinds = kinds(message);
        let has = |names: &[&str]| kinds.iter().any(|kind| names.contains(&kind.as_str()));
        match (word("type"), word("role")) {
            (Some(kind), None) if langchain::role(&kind).is_some() => Some(Self::LangChain),
            (Some(kind), None) => is_item(&kind).then_some(Self::Responses),
            (Some(kind), Some(_)) if kind == "message" => {
                let block = message.has("stop_reason") || has(&BLOCKS) || has(&["text"]);
                Some(if block { Self::Anthropic } else { Self::Responses })
            }
            (_, Some(_)) if has(&BLOCKS) || has_source(message) => Some(Self::Anthropic),
            (_, Some(_)) if has(&["input_text", "output_text", "input_image", "input_file"]) => {
                Some(Self::Responses)
            }
            (_, Some(_)) => Some(Self::Chat),
            (None, None) => None,
        }
    }
}

fn is_item(kind: &str) -> bool {
    kind.ends_with("_call") || kind.ends_with("_output") || ITEMS.contains(&kind)
}

/// The types of a message's content blocks.
fn kinds(message: &Object<'_>) -> Vec<String> {
    let blocks = message.get("content").and_then(elements).unwrap_or_default();
    blocks.into_iter().filter_map(kind).collect()
}

fn kind(block: &serde_json::value::RawValue) -> Option<String> {
    Object::of(block)?.text("type")
}

/// True where an image stands as Anthropic writes it.
fn has_source(message: &Object<'_>) -> bool {
    let blocks = message.get("content").and_then(elements).unwrap_or_default();
    blocks.into_iter().filter_map(Object::of).any(|block| block.has("source") && block.has("type"))
}
