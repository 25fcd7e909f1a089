//! What a message says and calls, as a hash: equal for a turn and for the form in which a client sends
//! it again.

use crate::id::Hash;
use crate::json::Json;
use crate::trajectory::{Node, Part};

/// The hash of what a message says; `None` for one that says nothing. Reasoning, seals, names and ids
/// are left out, since clients drop or rewrite them; of white space around a text likewise.
fn said(node: &Node) -> Option<Hash> {
    let mut said = Vec::new();
    collect(&node.parts, &mut said);
    if said.is_empty() {
        return None;
    }
    let mut fields: Vec<&[u8]> = vec![node.role.as_str().as_bytes()];
    fields.extend(said.iter().map(String::as_bytes));
    Some(Hash::of_all(&fields))
}

fn collect(parts: &[Part], said: &mut Vec<String>) {
    for part in parts {
        match part {
            Part::Text(text) if text.text.trim().is_empty() => {}
            Part::Text(text) => said.push(format!("t{}", text.text.trim())),
            Part::ToolCall(call) => {
                let arguments = Json::from_foreign(&call.arguments_raw);
                said.push(format!("c{}\n{}", call.name, arguments.as_str()));
            }
            Part::ToolResult(result) => {
                said.push("r".to_owned());
                collect(&result.parts, said);
            }
            Part::Media(media) => {
                let bytes = media.blob.map(|hash| hash.to_string());
                said.push(format!("m{}", bytes.or_else(|| media.reference.clone()).unwrap_or_default()));
            }
            Part::Reasoning { .. } | Part::Opaque { .. } => {}
        }
    }
}

/// The hash of a thread up to each of its messages; a message that says nothing adds nothing.
pub(super) fn chain<'n>(start: Hash, nodes: impl IntoIterator<Item = &'n Node>) -> Vec<Hash> {
    let mut at = start;
    let step = |node| {
        if let Some(said) = said(node) {
            at = Hash::of_all(&[&at.0, &said.0]);
        }
        at
    };
    nodes.into_iter().map(step).collect()
}

/// The hash of a thread without messages.
pub(super) fn start() -> Hash {
    Hash::of(b"")
}

#[cfg(test)]
mod tests {
    use super::{chain, start};
    use crate::trajectory::{ArgumentsForm, Node, Part, Role, ToolCall};

    #[test]
    fn a_turn_sent_again_without_its_reasoning_is_the_same() {
        let call = |raw: &str| {
            Part::ToolCall(ToolCall {
                call_id: None,
                name: "f".to_owned(),
                arguments_raw: raw.to_owned(),
                arguments_form: ArgumentsForm::Object,
            })
        };
        let thought = Part::Reasoning { text: "hm".to_owned(), signature: Some("s".to_owned()) };
        let first = Node::new(Role::Assistant, "a", vec![thought, Part::text("x\n"), call("{\"a\": 1}")]);
        let again = Node::new(Role::Assistant, "b", vec![Part::text("x"), call("{\"a\":1}")]);
        assert_eq!(chain(start(), [&first]), chain(start(), [&again]));
        let other = Node::new(Role::Assistant, "b", vec![Part::text("x"), call("{\"a\":2}")]);
        assert_ne!(chain(start(), [&first]), chain(start(), [&other]));
        let silent = Node::new(Role::Assistant, "a", Vec::new());
        assert_eq!(chain(start(), [&silent]), [start()]);
    }
}
