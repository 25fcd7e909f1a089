//! One line of a session file.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::importers::RecordError;
use crate::importers::dialect::{Aside, anthropic_blocks};
use crate::importers::object::Object;
use crate::importers::value::json_object;
use crate::json::Json;
use crate::trajectory::{Part, Usage};

/// A line, read.
#[derive(Debug)]
pub(super) struct Line {
    /// `user`, `assistant`, `summary`, or the word of an event.
    pub(super) kind: String,
    pub(super) uuid: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) sidechain: bool,
    /// Written by the harness, though in the user's name.
    pub(super) meta: bool,
    /// Copied in when the session was forked from another.
    pub(super) copied: bool,
    pub(super) at: Option<String>,
    /// Only on lines of kind `user` and `assistant`.
    pub(super) message: Option<Message>,
    /// What the session is called, for lines that say so.
    pub(super) title: Option<Json>,
    /// What hardly changes within a session: folder, branch, kind of user, version.
    pub(super) place: BTreeMap<&'static str, Json>,
    /// The result in the harness's own structure.
    pub(super) tool_use_result: Option<Json>,
    /// Whatever else the line and its message say.
    pub(super) rest: BTreeMap<String, Json>,
    pub(super) aside: Aside,
}

/// A message, or one block of it.
#[derive(Debug, PartialEq)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) parts: Vec<Part>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Option<Usage>,
    /// The provider's error, which the harness shows as an answer.
    pub(super) error: bool,
}

impl Line {
    pub(super) fn read(text: &[u8]) -> Result<Self, RecordError> {
        let mut fields: Object<'_> = serde_json::from_slice(text)?;
        let kind: String = fields.required("type")?;
        let is_message = matches!(kind.as_str(), "user" | "assistant");
        let error = fields.optional("isApiErrorMessage")?.unwrap_or(false);
        let (mut aside, mut beside) = (Aside::default(), BTreeMap::new());
        let message = if is_message {
            Some(Message::read(fields.required("message")?, error, &mut beside, &mut aside)?)
        } else {
            None
        };
        let title = match kind.as_str() {
            "summary" => fields.take("summary").map(Json::from),
            "custom-title" => fields.take("customTitle").map(Json::from),
            _ => None,
        };
        let mut place = BTreeMap::new();
        for key in ["cwd", "gitBranch", "userType", "version"] {
            place.extend(fields.take(key).map(Json::from).map(|value| (key, value)));
        }
        Ok(Self {
            kind,
            uuid: fields.optional("uuid")?,
            parent: fields.optional("parentUuid")?,
            sidechain: fields.optional("isSidechain")?.unwrap_or(false),
            meta: fields.optional("isMeta")?.unwrap_or(false),
            copied: fields.take("forkedFrom").is_some(),
            at: fields.optional("timestamp")?,
            message,
            title,
            place,
            tool_use_result: fields.take("toolUseResult").map(Json::from),
            rest: {
                // What every line of a session repeats and the run's own name holds.
                fields.take("sessionId");
                beside.extend(fields.rest());
                beside
            },
            aside,
        })
    }

    /// Whether it sums up the context that a compaction has cut off.
    pub(super) fn is_compact_summary(&self) -> bool {
        self.rest.get("isCompactSummary").is_some_and(|flag| flag.as_str() == "true")
    }
}

impl Message {
    /// Reads a message; what it says beside what a record holds goes to `beside`.
    fn read(
        raw: &RawValue,
        error: bool,
        beside: &mut BTreeMap<String, Json>,
        aside: &mut Aside,
    ) -> Result<Self, RecordError> {
        let mut fields = Object::parse(raw, "message")?;
        let model: Option<String> = fields.optional("model")?;
        let usage = match fields.optional::<Object<'_>>("usage")? {
            Some(mut tokens) => {
                let usage = usage(&mut tokens)?;
                beside.extend(json_object(tokens.rest()).map(|rest| ("message.usage".to_owned(), rest)));
                Some(usage)
            }
            None => None,
        };
        let message = Self {
            id: fields.optional("id")?,
            // What the harness itself puts in the model's place has this name.
            error: error || model.as_deref() == Some("<synthetic>"),
            model,
            parts: anthropic_blocks(fields.required("content")?, aside)?,
            stop_reason: fields.optional("stop_reason")?,
            usage,
        };
        // The line's own type says both.
        fields.take("role");
        fields.take("type");
        beside.extend(fields.rest().into_iter().map(|(key, value)| (format!("message.{key}"), value)));
        Ok(message)
    }
}

/// The source counts cached tokens apart; a [`Usage`] counts them in.
fn usage(tokens: &mut Object<'_>) -> Result<Usage, RecordError> {
    let cached: u64 = tokens.optional("cache_read_input_tokens")?.unwrap_or(0);
    let input: [Option<u64>; 2] =
        [tokens.optional("input_tokens")?, tokens.optional("cache_creation_input_tokens")?];
    let input = input.into_iter().flatten().fold(cached, u64::saturating_add);
    Ok(Usage { input, output: tokens.optional("output_tokens")?.unwrap_or(0), cached, reasoning: 0 })
}

#[cfg(test)]
mod tests {
    use super::Line;
    use crate::trajectory::{ArgumentsForm, Part};

    fn message_parts(content: &str) -> Vec<Part> {
        let line = format!(r#"{{"type":"assistant","message":{{"role":"assistant","content":{content}}}}}"#);
        Line::read(line.as_bytes()).unwrap().message.unwrap().parts
    }

    #[test]
    fn arguments_keep_their_bytes() {
        let parts =
            message_parts(r#"[{"type":"tool_use","id":"t","name":"Bash","input":{ "b":1.0,"a":2 }}]"#);
        let [Part::ToolCall(call)] = parts.as_slice() else { panic!("{parts:?}") };
        assert_eq!(call.arguments_raw, r#"{ "b":1.0,"a":2 }"#);
        assert_eq!(call.arguments_form, ArgumentsForm::Object);
    }

    #[test]
    fn results_are_texts_or_lists_and_strange_blocks_stay() {
        let parts = message_parts(
            r#"[{"type":"tool_result","tool_use_id":"t","content":"a"},
                {"type":"tool_result","tool_use_id":"u","content":[{"type":"text","text":"b"}]},
                {"type":"redacted_thinking","data":"zz"}, "odd", {"type":"text"}]"#,
        );
        assert!(matches!(&parts[0], Part::ToolResult(result) if result.parts == [Part::text("a")]));
        assert!(matches!(&parts[1], Part::ToolResult(result) if result.parts == [Part::text("b")]));
        assert!(matches!(&parts[2], Part::Opaque { kind, .. } if kind == "redacted_thinking"));
        assert!(matches!(&parts[3], Part::Opaque { kind, raw } if kind == "block" && raw == "\"odd\""));
        assert!(matches!(&parts[4], Part::Opaque { kind, .. } if kind == "text"));
    }

    #[test]
    fn a_message_without_content_is_an_error() {
        let read = |text: &str| Line::read(text.as_bytes()).map(|_| ()).unwrap_err().code;
        assert_eq!(read(r#"{"type":"user","message":"error"}"#), "wrong-type");
        assert_eq!(read(r#"{"type":"user","message":{"contenst":[]}}"#), "missing-field");
        assert_eq!(read(r#"{"type":"user"}"#), "missing-field");
    }
}
