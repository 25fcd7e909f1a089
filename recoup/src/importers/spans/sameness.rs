//! When two messages are the same.
//!
//! They are if they say the same: texts, calls (name and arguments, whatever their spelling as JSON),
//! results. Reasoning and ids do not count, for histories drop them, but ids that are there on both sides must
//! agree. Some recorders drop the text beside calls from a history; then the calls' ids tell.

use crate::id::Hash;
use crate::json::Json;
use crate::trajectory::{Node, Part, Role};

/// What a message says, whatever its spelling.
pub(super) fn essence(node: &Node) -> Hash {
    let mut out = String::from(node.role.as_str());
    say(&node.parts, &mut out);
    Hash::of(out.as_bytes())
}

fn say(parts: &[Part], out: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(&text.text),
            Part::Reasoning { .. } => {}
            Part::ToolCall(call) => {
                let arguments = Json::parse(&call.arguments_raw);
                let arguments = arguments.as_ref().map_or(call.arguments_raw.as_str(), Json::as_str);
                out.extend(["\u{1}", &call.name, "\u{2}", arguments]);
            }
            Part::ToolResult(result) => {
                out.push('\u{3}');
                say(&result.parts, out);
            }
            Part::Media(media) => {
                let blob = media.blob.map(|blob| blob.to_string());
                out.extend(["\u{4}", blob.as_deref().or(media.reference.as_deref()).unwrap_or_default()]);
            }
            Part::Opaque { kind, raw } => out.extend(["\u{5}", kind, "\u{6}", raw]),
        }
    }
}

/// The ids of a turn's calls; `None` without a call, or with one that has none.
pub(super) fn call_ids(node: &Node) -> Option<Vec<String>> {
    let ids: Option<Vec<String>> = node.tool_calls().map(|(_, call)| call.call_id.clone()).collect();
    ids.filter(|ids| !ids.is_empty() && node.role == Role::Assistant)
}

/// False where a call or a result has another id on either side.
pub(super) fn ids_agree(one: &Node, other: &Node) -> bool {
    let ids = |node: &Node| -> Vec<Option<String>> {
        let id = |part: &Part| match part {
            Part::ToolCall(call) => Some(call.call_id.clone()),
            Part::ToolResult(result) => Some(result.call_id.clone()),
            _ => None,
        };
        node.parts.iter().filter_map(id).collect()
    };
    ids(one).into_iter().zip(ids(other)).all(|(one, other)| one.is_none() || other.is_none() || one == other)
}
