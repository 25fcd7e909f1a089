//! A node's body: the bytes that are stored once and hashed into the chain.
//!
//! The body is the `canonical-1` JSON of `{"agent", "parts", "role"}`. It holds strings, integers and
//! booleans only, so writing it in sorted order by hand gives the canonical form directly; a property
//! checks that against [`crate::canonical::canonicalize`].

use std::fmt::Write as _;

use serde::Deserialize;

use super::{ArgumentsForm, Node, Occurrence, Part, Role};
use crate::canonical::write_string;
use crate::id::{Hash, NodeHash};

/// A node's body with its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Hash of the parent's hash and the bytes.
    pub hash: NodeHash,
    /// Position of the parent in the trajectory.
    pub parent: Option<usize>,
    /// Canonical JSON.
    pub bytes: String,
}

/// The canonical body of a message.
pub fn body_bytes(node: &Node) -> String {
    let mut out = String::with_capacity(64 + node.parts.iter().map(part_len).sum::<usize>());
    out.push_str("{\"agent\":");
    write_string(&mut out, &node.agent);
    out.push_str(",\"parts\":");
    write_parts(&mut out, &node.parts);
    out.push_str(",\"role\":");
    write_string(&mut out, node.role.as_str());
    out.push('}');
    out
}

/// Reads a body back; the parent and the occurrence are not in it.
///
/// # Errors
/// When the bytes are not a body.
pub fn body_from_bytes(bytes: &[u8]) -> Result<Node, serde_json::Error> {
    #[derive(Deserialize)]
    struct Stored {
        agent: String,
        parts: Vec<Part>,
        role: Role,
    }
    let stored: Stored = serde_json::from_slice(bytes)?;
    Ok(Node {
        parent: None,
        role: stored.role,
        agent: stored.agent,
        parts: stored.parts,
        occurrence: Occurrence::default(),
    })
}

/// The hash of a message in its context; a root's parent counts as 32 zero bytes.
pub fn chain(parent: Option<NodeHash>, body: &str) -> NodeHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&parent.map_or([0; 32], |parent| parent.0.0));
    hasher.update(body.as_bytes());
    NodeHash(Hash(hasher.finalize().into()))
}

fn part_len(part: &Part) -> usize {
    48 + match part {
        Part::ToolResult(result) => result.parts.iter().map(part_len).sum(),
        part => part.cited_text().map_or(96, str::len),
    }
}

fn write_parts(out: &mut String, parts: &[Part]) {
    out.push('[');
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_part(out, part);
    }
    out.push(']');
}

/// Writes one part with its keys in UTF-8 order, absent options left out.
fn write_part(out: &mut String, part: &Part) {
    match part {
        Part::Text(text) => {
            out.push_str("{\"text\":");
            write_string(out, &text.text);
            out.push_str(",\"type\":\"text\"}");
        }
        Part::Reasoning { text, signature } => {
            out.push('{');
            write_optional(out, "signature", signature.as_deref());
            out.push_str("\"text\":");
            write_string(out, text);
            out.push_str(",\"type\":\"reasoning\"}");
        }
        Part::ToolCall(call) => {
            out.push_str("{\"arguments_form\":");
            out.push_str(match call.arguments_form {
                ArgumentsForm::String => "\"string\"",
                ArgumentsForm::Object => "\"object\"",
            });
            out.push_str(",\"arguments_raw\":");
            write_string(out, &call.arguments_raw);
            out.push(',');
            write_optional(out, "call_id", call.call_id.as_deref());
            out.push_str("\"name\":");
            write_string(out, &call.name);
            out.push_str(",\"type\":\"tool_call\"}");
        }
        Part::ToolResult(result) => {
            out.push('{');
            write_optional(out, "call_id", result.call_id.as_deref());
            if let Some(exit_code) = result.exit_code {
                let _ = write!(out, "\"exit_code\":{exit_code},");
            }
            if let Some(is_error) = result.is_error {
                let _ = write!(out, "\"is_error\":{is_error},");
            }
            out.push_str("\"parts\":");
            write_parts(out, &result.parts);
            out.push_str(",\"type\":\"tool_result\"}");
        }
        Part::Media(media) => {
            out.push('{');
            write_optional(out, "blob", media.blob.map(|blob| blob.to_string()).as_deref());
            out.push_str("\"mime\":");
            write_string(out, &media.mime);
            out.push(',');
            write_optional(out, "reference", media.reference.as_deref());
            out.push_str("\"type\":\"media\"}");
        }
        Part::Opaque { kind, raw } => {
            out.push_str("{\"kind\":");
            write_string(out, kind);
            out.push_str(",\"raw\":");
            write_string(out, raw);
            out.push_str(",\"type\":\"opaque\"}");
        }
    }
}

fn write_optional(out: &mut String, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        write_string(out, key);
        out.push(':');
        write_string(out, value);
        out.push(',');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    use super::{body_bytes, body_from_bytes, chain};
    use crate::canonical::canonicalize;
    use crate::id::Hash;
    use crate::trajectory::{ArgumentsForm, Media, Node, Part, Role, ToolCall, ToolResult};

    fn leaf_part() -> impl Strategy<Value = Part> {
        let form = prop_oneof![Just(ArgumentsForm::String), Just(ArgumentsForm::Object)];
        prop_oneof![
            any::<String>().prop_map(Part::text),
            (any::<String>(), any::<Option<String>>())
                .prop_map(|(text, signature)| Part::Reasoning { text, signature }),
            (any::<Option<String>>(), any::<String>(), any::<String>(), form).prop_map(
                |(call_id, name, arguments_raw, arguments_form)| {
                    Part::ToolCall(ToolCall { call_id, name, arguments_raw, arguments_form })
                }
            ),
            (any::<String>(), any::<Option<[u8; 32]>>(), any::<Option<String>>()).prop_map(
                |(mime, blob, reference)| Part::Media(Media { mime, blob: blob.map(Hash), reference })
            ),
            (any::<String>(), any::<String>()).prop_map(|(kind, raw)| Part::Opaque { kind, raw }),
        ]
    }

    fn part() -> impl Strategy<Value = Part> {
        let result = (
            any::<Option<String>>(),
            proptest::collection::vec(leaf_part(), 0..3),
            any::<Option<bool>>(),
            any::<Option<i64>>(),
        )
            .prop_map(|(call_id, parts, is_error, exit_code)| {
                Part::ToolResult(ToolResult { call_id, parts, is_error, exit_code })
            });
        prop_oneof![4 => leaf_part(), 1 => result]
    }

    proptest! {
        #[test]
        fn a_body_is_canonical_and_reads_back(
            agent in any::<String>(),
            parts in proptest::collection::vec(part(), 0..4),
        ) {
            let node = Node::new(Role::Assistant, agent, parts);
            let body = body_bytes(&node);
            assert_eq!(canonicalize(&body).as_deref(), Ok(body.as_str()));
            assert_eq!(body_from_bytes(body.as_bytes()).ok(), Some(node));
        }
    }

    #[test]
    fn the_chain_tells_contexts_apart() {
        let root = chain(None, "a");
        assert_ne!(chain(Some(root), "b"), chain(None, "b"));
        assert_ne!(root, chain(None, "b"));
    }
}
