//! One OpenHands event as a message: what the user or the agent does, what the environment answers, and
//! what the harness notes for itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::model_response::ModelResponse;
use crate::id::Hash;
use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::harness_message::opaque;
use crate::importers::object::Object;
use crate::importers::value::{json_object, text};
use crate::json::Json;
use crate::trajectory::{ArgumentsForm, Node, Part, Role, Tool, ToolCall, ToolResult};

/// Actions by which the harness steers itself: no tool, no words.
const STEERING: [&str; 8] = [
    "change_agent_state",
    "null",
    "pause",
    "resume",
    "stop",
    "recall",
    "condensation",
    "condensation_request",
];
/// Members among an action's arguments that the harness put there, not the model.
const BOOKKEEPING: [&str; 9] = [
    "thought",
    "is_confirmed",
    "confirmation_state",
    "action_risk",
    "security_risk",
    "keep_prompt",
    "kernel_init_code",
    "blocking",
    "hidden",
];

/// Members of every event: in files that keep an action's arguments beside them, no arguments.
const EVENT_MEMBERS: [&str; 7] =
    ["id", "timestamp", "cause", "message", "timeout", "llm_metrics", "tool_call_metadata"];

/// Reads the events of one run, in order.
#[derive(Default)]
pub(super) struct Events {
    /// Call id of each tool-using action, by event id: an observation names its action by `cause`.
    calls: BTreeMap<i64, Option<String>>,
    /// Whether the event before was such an action, for files whose events have no ids.
    awaits_result: bool,
    /// Ids of the model's responses seen: one may call several tools and counts once.
    responses: BTreeSet<String>,
    acted: bool,
    /// Tools that a system message offers.
    pub tools: Vec<Tool>,
    /// Model that answered last.
    pub model: Option<String>,
    /// State of the agent that the harness noted last, or its `finish`.
    pub last_state: Option<String>,
    /// Images that messages hold.
    pub media: BTreeMap<Hash, Vec<u8>>,
}

impl Events {
    /// Reads one event.
    pub(super) fn node(&mut self, raw: &RawValue) -> Result<Node, RecordError> {
        let mut event = Object::parse(raw, "event")?;
        let at = event.text("timestamp");
        let mut node = if let Some(action) = event.text("action") {
            self.action(raw, &mut event, &action)
        } else if let Some(observation) = event.text("observation") {
            self.observation(raw, &mut event, &observation)
        } else {
            return Err(RecordError::new("missing-field", "an event without action or observation"));
        };
        node.occurrence.at = at;
        let is_opaque = matches!(node.parts.as_slice(), [Part::Opaque { .. }]);
        if !is_opaque {
            node.occurrence.extra = json_object(event.filled_rest());
        }
        Ok(node)
    }

    fn action(&mut self, raw: &RawValue, event: &mut Object, action: &str) -> Node {
        let source = event.text("source");
        // In files without sources the first message is the user's and the rest the agent's.
        let by_agent = source.as_deref().map_or(self.acted, |source| source == "agent");
        self.acted = true;
        if STEERING.contains(&action) {
            return Node::new(Role::System, "harness", vec![opaque(action, raw)]);
        }
        let whole = event.get("args");
        let mut arguments = if whole.is_some() { event.object("args") } else { std::mem::take(event) };
        let mut node = match action {
            "system" => {
                let tools = arguments.list("tools").unwrap_or_default();
                self.tools.extend(tools.into_iter().filter_map(offered_tool));
                let content = arguments.text("content").unwrap_or_default();
                Node::new(Role::System, "system", vec![Part::text(content)])
            }
            "message" => {
                let mut parts = vec![Part::text(arguments.text("content").unwrap_or_default())];
                for key in ["image_urls", "images_urls"] {
                    let urls = arguments.list(key).unwrap_or_default();
                    let urls = urls.into_iter().filter_map(text);
                    parts.extend(urls.map(|url| data_url::media(&url, "image/*", &mut self.media)));
                }
                let (role, agent) = if by_agent { (Role::Assistant, "agent") } else { (Role::User, "user") };
                Node::new(role, agent, parts)
            }
            _ => self.call(event, &mut arguments, whole, action, by_agent),
        };
        event.absorb(arguments);
        // `message` is the harness's own rendering of the action.
        if event.get("message").and_then(text).is_some_and(|message| message == node.text()) {
            event.take("message");
        }
        node.occurrence.sampled = node.role == Role::Assistant;
        if action == "finish" {
            self.last_state = Some("finish".to_owned());
        }
        node
    }

    /// An action that uses a tool: the model's own call where the event keeps it, else one of the
    /// action's name and arguments.
    fn call(
        &mut self,
        event: &mut Object,
        arguments: &mut Object,
        whole: Option<&RawValue>,
        action: &str,
        by_agent: bool,
    ) -> Node {
        let whole = whole.filter(|_| !BOOKKEEPING.iter().any(|key| arguments.has(key)));
        let id = number(event, "id").or_else(|| number(arguments, "id"));
        let thought = arguments.text("thought").filter(|thought| !thought.is_empty());
        let mut metadata = event.object("tool_call_metadata");
        let response = metadata.take("model_response").and_then(ModelResponse::read);
        let call_id = metadata.text("tool_call_id");
        let name = metadata.text("function_name");
        event.absorb(metadata);
        let is_own = |call: &&ToolCall| call.call_id.is_some() && call.call_id == call_id;
        let own = response.as_ref().and_then(|response| response.calls.iter().find(is_own)).cloned();
        let call = own.unwrap_or_else(|| {
            let is_argument = |key: &str| !BOOKKEEPING.contains(&key) && !EVENT_MEMBERS.contains(&key);
            let written = arguments.take_object(is_argument);
            ToolCall {
                call_id: call_id.or_else(|| id.map(|id| id.to_string())),
                name: name.unwrap_or_else(|| action.to_owned()),
                arguments_raw: whole.map_or(written, |whole| whole.get().to_owned()),
                arguments_form: ArgumentsForm::Object,
            }
        });
        self.awaits_result = true;
        if let Some(id) = id {
            self.calls.insert(id, call.call_id.clone());
        }
        let (role, agent) = if by_agent { (Role::Assistant, "agent") } else { (Role::User, "user") };
        let mut node = Node::new(role, agent, Vec::new());
        let mut said = None;
        if let Some(response) = response.filter(|response| self.responses.insert(response.id.clone())) {
            self.model.clone_from(&response.call.model);
            node.occurrence.call = Some(Box::new(response.call));
            said = response.content;
        }
        node.parts.extend(said.or(thought).map(Part::text));
        node.parts.push(Part::ToolCall(call));
        node
    }

    fn observation(&mut self, raw: &RawValue, event: &mut Object, observation: &str) -> Node {
        let mut extras = event.object("extras");
        if let Some(state) = extras.text("agent_state") {
            self.last_state = Some(state);
            return Node::new(Role::System, "harness", vec![opaque(observation, raw)]);
        }
        let cause = number(event, "cause");
        let own_id = event.object("tool_call_metadata").text("tool_call_id");
        // By cause where the file has one; a file without ids puts the answer right after its call.
        let answered = match cause {
            Some(cause) => self.calls.get(&cause).cloned(),
            None if event.has("id") => own_id.clone().map(Some),
            None => std::mem::take(&mut self.awaits_result).then_some(None),
        };
        let content = event.text("content").unwrap_or_default();
        if observation == "null" || (answered.is_none() && content.is_empty()) {
            return Node::new(Role::System, "harness", vec![opaque(observation, raw)]);
        }
        let exit_code = event
            .read("exit_code")
            .or_else(|| extras.read("exit_code"))
            .or_else(|| extras.object("metadata").read("exit_code"));
        let is_error = (observation == "error").then_some(true).or_else(|| extras.read("error"));
        event.absorb(extras);
        if event.get("message").and_then(text).is_some_and(|message| message == content) {
            event.take("message");
        }
        let call_id = answered.flatten().or(own_id);
        let parts = vec![Part::text(content)];
        let result = Part::ToolResult(ToolResult { call_id, parts, is_error, exit_code });
        Node::new(Role::Tool, "environment", vec![result])
    }
}

/// An id that stays where it is.
fn number(event: &Object, key: &str) -> Option<i64> {
    event.get(key).and_then(|raw| raw.get().parse().ok())
}

/// A tool in OpenAI's form, as a system message lists it.
fn offered_tool(raw: &RawValue) -> Option<Tool> {
    let mut function = Object::of(raw)?.object("function");
    Some(Tool {
        name: function.text("name")?,
        description: function.text("description").unwrap_or_default(),
        parameters: function.take("parameters").map(Json::from),
        read_only: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::Events;
    use crate::trajectory::{ArgumentsForm, Node, Part, Role};

    fn nodes(events: &[&str]) -> Vec<Node> {
        let mut reader = Events::default();
        let read = |text: &&str| reader.node(&RawValue::from_string((*text).to_owned()).unwrap()).unwrap();
        events.iter().map(read).collect()
    }

    fn answered(node: &Node) -> Option<String> {
        node.tool_results().next().and_then(|(_, result)| result.call_id.clone())
    }

    #[test]
    fn a_result_is_found_by_its_cause_and_not_by_its_place() {
        let nodes = nodes(&[
            r#"{"id":1,"source":"agent","action":"run","args":{"command":"a"}}"#,
            r#"{"id":4,"source":"agent","action":"run","args":{"command":"b"}}"#,
            r#"{"id":9,"source":"environment","observation":"run","cause":1,"content":"A","extras":{"exit_code":2}}"#,
            r#"{"id":10,"source":"environment","observation":"error","cause":4,"content":"B"}"#,
        ]);
        assert_eq!(answered(&nodes[2]).as_deref(), Some("1"));
        assert_eq!(answered(&nodes[3]).as_deref(), Some("4"));
        assert_eq!(nodes[2].tool_results().next().unwrap().1.exit_code, Some(2));
        assert_eq!(nodes[3].tool_results().next().unwrap().1.is_error, Some(true));
    }

    #[test]
    fn arguments_are_the_models_own_bytes_or_the_actions() {
        let nodes = nodes(&[
            r#"{"id":1,"source":"agent","action":"run","args":{"command":"x"},"tool_call_metadata":{"function_name":
            "bash","tool_call_id":"c","model_response":{"id":"r","model":"m","choices":[{"message":{"content":"So.",
            "tool_calls":[{"id":"c","function":{"name":"bash","arguments":"{ \"command\":\"x\" }"}}]}}]}}}"#,
            r#"{"id":2,"source":"agent","action":"run","args":{ "command": 1.0 }}"#,
            r#"{"id":3,"source":"agent","action":"run","args":{"command":"y","thought":"Now.","hidden":false}}"#,
        ]);
        let raw = |index: usize| {
            let (_, call) = nodes[index].tool_calls().next().unwrap();
            (call.arguments_raw.clone(), call.arguments_form)
        };
        assert_eq!(raw(0), (r#"{ "command":"x" }"#.to_owned(), ArgumentsForm::String));
        assert_eq!(raw(1), (r#"{ "command": 1.0 }"#.to_owned(), ArgumentsForm::Object));
        assert_eq!(raw(2), (r#"{"command":"y"}"#.to_owned(), ArgumentsForm::Object));
        assert_eq!(nodes[2].parts[0], Part::text("Now."));
        assert_eq!(nodes[0].occurrence.call.as_ref().unwrap().model.as_deref(), Some("m"));
    }

    #[test]
    fn what_the_harness_notes_for_itself_is_opaque() {
        let nodes = nodes(&[
            r#"{"id":0,"observation":"agent_state_changed","content":"","extras":{"agent_state":"loading"}}"#,
            r#"{"id":1,"source":"user","action":"message","args":{"content":"hi"}}"#,
            r#"{"id":7,"source":"user","observation":"null","cause":1,"content":"","extras":{}}"#,
        ]);
        for node in [&nodes[0], &nodes[2]] {
            assert!(matches!(node.parts.as_slice(), [Part::Opaque { .. }]), "{node:?}");
            assert_eq!(node.role, Role::System);
        }
        assert_eq!((nodes[1].role, nodes[1].text().as_str()), (Role::User, "hi"));
    }

    #[test]
    fn a_file_without_sources_and_ids_pairs_by_place() {
        let nodes = nodes(&[
            r#"{"action":"message","content":"fix it","images_urls":null}"#,
            r#"{"action":"run","command":"ls","thought":"Look.","is_confirmed":"confirmed"}"#,
            r#"{"observation":"run","content":"a\r\n","command":"ls","exit_code":0}"#,
        ]);
        assert_eq!(nodes[0].role, Role::User);
        assert!(nodes[1].occurrence.sampled);
        assert_eq!(nodes[1].tool_calls().next().unwrap().1.arguments_raw, r#"{"command":"ls"}"#);
        assert_eq!(nodes[2].tool_results().count(), 1);
    }
}
