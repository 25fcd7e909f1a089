//! Messages of a client's API, as nodes.

use serde_json::value::RawValue;

use super::Api;
use crate::importers::dialect::{self, Aside, Dialect};
use crate::trajectory::{Node, Part, Role};

/// The nodes of messages that follow each other, a list for each of them. What cannot be read is carried
/// as it stands: the upstream has answered it.
pub(super) fn nodes(api: Api, messages: &[&RawValue], aside: &mut Aside) -> Vec<Vec<Node>> {
    match api {
        Api::Chat => messages.iter().map(|raw| one(Dialect::Chat, raw, aside)).collect(),
        Api::Messages => messages.iter().map(|raw| one(Dialect::Anthropic, raw, aside)).collect(),
        Api::Responses => responses(messages, aside),
    }
}

fn one(dialect: Dialect, raw: &RawValue, aside: &mut Aside) -> Vec<Node> {
    let read = dialect::message(raw, Some(dialect), Role::User, aside);
    read.unwrap_or_else(|_| vec![unread(raw)])
}

fn unread(raw: &RawValue) -> Node {
    let part = Part::Opaque { kind: "message".to_owned(), raw: raw.get().to_owned() };
    Node::new(Role::User, "user", vec![part])
}

/// Items of one answer are one node, which stands with the last of them.
fn responses(items: &[&RawValue], aside: &mut Aside) -> Vec<Vec<Node>> {
    let mut out = Vec::with_capacity(items.len());
    let mut rest = items;
    while let Some(first) = rest.first() {
        let length = rest.iter().take_while(|raw| is_answer(raw)).count().max(1);
        let (group, after) = rest.split_at(length);
        rest = after;
        if length == 1 {
            out.push(one(Dialect::Responses, first, aside));
            continue;
        }
        let texts: Vec<&str> = group.iter().map(|raw| raw.get()).collect();
        let joined = RawValue::from_string(format!("[{}]", texts.join(","))).ok();
        let read =
            joined.and_then(|raw| dialect::messages(&raw, Some(Dialect::Responses), Role::User, aside).ok());
        match read {
            Some(nodes) => {
                out.extend((1..length).map(|_| Vec::new()));
                out.push(nodes);
            }
            None => out.extend(group.iter().map(|raw| vec![unread(raw)])),
        }
    }
    out
}

fn is_answer(raw: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct Item<'a> {
        #[serde(borrow)]
        r#type: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow)]
        role: Option<std::borrow::Cow<'a, str>>,
    }
    let Ok(item) = serde_json::from_str::<Item<'_>>(raw.get()) else { return false };
    match (item.r#type.as_deref(), item.role.as_deref()) {
        (_, Some(role)) => role == "assistant",
        (Some(kind), None) => kind == "reasoning" || kind.ends_with("_call"),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{Api, nodes};
    use crate::importers::dialect::Aside;
    use crate::trajectory::{Part, Role};

    fn read(api: Api, messages: &[&str]) -> Vec<Vec<crate::trajectory::Node>> {
        let raws: Vec<&RawValue> = messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        nodes(api, &raws, &mut Aside::default())
    }

    #[test]
    fn items_of_one_answer_are_one_node() {
        let read = read(
            Api::Responses,
            &[
                r#"{"role":"system","content":"Be brief."}"#,
                r#"{"role":"user","content":"hi"}"#,
                r#"{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}]}"#,
                r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#,
                r#"{"type":"function_call","call_id":"d","name":"g","arguments":"{}"}"#,
                r#"{"type":"function_call_output","call_id":"c","output":"done"}"#,
            ],
        );
        let lengths: Vec<usize> = read.iter().map(Vec::len).collect();
        assert_eq!(lengths, [1, 1, 0, 0, 1, 1]);
        assert_eq!(read[0][0].role, Role::System);
        let parts = &read[4][0].parts;
        assert!(
            matches!(parts[..], [Part::Reasoning { .. }, Part::ToolCall(_), Part::ToolCall(_)]),
            "{parts:?}"
        );
        assert_eq!(read[5][0].role, Role::Tool);
    }

    #[test]
    fn results_inside_a_message_become_the_tools_own() {
        let read = read(
            Api::Messages,
            &[
                r#"{"role":"system","content":[{"type":"text","text":"Be brief."}]}"#,
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"},{"type":"text","text":"go on"}]}"#,
            ],
        );
        assert_eq!(read[0][0].text(), "Be brief.");
        let roles: Vec<Role> = read[1].iter().map(|node| node.role).collect();
        assert_eq!(roles, [Role::Tool, Role::User]);
    }

    #[test]
    fn what_cannot_be_read_is_carried() {
        let read = read(Api::Chat, &[r#"{"role":"narrator","content":"hi"}"#]);
        assert!(matches!(read[0][0].parts[..], [Part::Opaque { .. }]));
    }
}
