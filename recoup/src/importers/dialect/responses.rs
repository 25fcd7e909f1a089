//! One item of OpenAI's Responses API, and of the session files that keep its items: what the model
//! read or wrote. A response is several items; [`super::thread`] makes one message of them.

use serde_json::value::RawValue;

use super::content::content;
use super::{Aside, opaque};
use crate::importers::RecordError;
use crate::importers::function_call::called;
use crate::importers::object::{Object, missing, unknown_role};
use crate::importers::value::{elements, text, text_or_source};
use crate::trajectory::{Part, Role, ToolResult};

/// An item, read.
#[derive(Debug, PartialEq)]
pub(in crate::importers) enum Item {
    /// A message of a role other than the model's.
    Message(Role, Vec<Part>),
    /// A piece of the model's response.
    Piece(Vec<Part>),
    /// A call's result.
    Output(ToolResult),
    /// Of a kind that recoup does not read.
    Other(String),
}

impl Item {
    /// Reads an item.
    ///
    /// # Errors
    /// When it is no object, or a member that its type demands is missing or of another type.
    pub(in crate::importers) fn read(raw: &RawValue, aside: &mut Aside) -> Result<Self, RecordError> {
        let mut fields = Object::parse(raw, "item")?;
        // Messages come without a type where they stand in a request.
        let kind = match fields.optional::<String>("type")? {
            Some(kind) => kind,
            None if fields.has("role") => "message".to_owned(),
            None => return Err(missing("type")),
        };
        let item = match kind.as_str() {
            "message" => {
                let parts = content(fields.required("content")?, aside)?;
                match fields.required::<String>("role")?.as_str() {
                    "assistant" => Self::Piece(parts),
                    "user" => Self::Message(Role::User, parts),
                    "system" | "developer" => Self::Message(Role::System, parts),
                    role => return Err(unknown_role("role", role)),
                }
            }
            "reasoning" => Self::Piece(reasoning(&mut fields)?),
            "function_call" | "custom_tool_call" => Self::Piece(vec![call(&mut fields)?]),
            "function_call_output" | "custom_tool_call_output" => Self::Output(output(&mut fields, aside)?),
            // What the program that holds the conversation answers to a provider's own tool.
            kind if kind.ends_with("_call_output") => {
                let call_id = fields.optional("call_id")?;
                let parts = vec![opaque(kind, raw)];
                return Ok(Self::Output(ToolResult { call_id, parts, is_error: None, exit_code: None }));
            }
            // Run by the provider or by an older shell tool; carried whole, without a form of their own.
            kind if kind.ends_with("_call") => return Ok(Self::Piece(vec![opaque(kind, raw)])),
            _ => return Ok(Self::Other(kind)),
        };
        // The item's own id and state say nothing of the message.
        fields.take("id");
        fields.take_if("status", |raw| raw.get() == "\"completed\"");
        aside.left(fields, &kind);
        Ok(item)
    }
}

/// The summary, or the full text where the provider shows it; the encrypted form is its seal.
fn reasoning(fields: &mut Object<'_>) -> Result<Vec<Part>, RecordError> {
    let shown = [fields.take("content"), fields.take("summary")];
    let mut texts: Vec<String> = Vec::new();
    for content in shown.into_iter().flatten() {
        if texts.is_empty() {
            let pieces = elements(content).unwrap_or_default().into_iter().filter_map(Object::of);
            texts = pieces.filter_map(|mut piece| piece.text("text")).collect();
            texts.extend(text(content).map(std::borrow::Cow::into_owned));
        }
    }
    let signature: Option<String> = fields.optional("encrypted_content")?;
    if texts.is_empty() && signature.is_none() {
        return Ok(Vec::new());
    }
    Ok(vec![Part::Reasoning { text: texts.join("\n\n"), signature }])
}

fn call(fields: &mut Object<'_>) -> Result<Part, RecordError> {
    let raw = match fields.take("arguments") {
        Some(arguments) => arguments,
        None => fields.required::<&RawValue>("input")?,
    };
    let call_id = fields.optional("call_id")?;
    Ok(Part::ToolCall(called(call_id, fields.required("name")?, Some(raw))))
}

/// An output is a text, a list of contents, or `{content, success}`; a text may itself be JSON of
/// `{output, metadata{exit_code}}`, whose exit code is read and whose text stays.
fn output(fields: &mut Object<'_>, aside: &mut Aside) -> Result<ToolResult, RecordError> {
    let call_id = fields.optional("call_id")?;
    let raw: &RawValue = fields.required("output")?;
    let mut is_error = None;
    let parts = match Object::of(raw) {
        Some(mut object) => {
            is_error = object.optional::<bool>("success")?.map(|success| !success);
            vec![Part::text(object.take("content").map_or_else(|| raw.get().to_owned(), text_or_source))]
        }
        None => content(raw, aside)?,
    };
    let text = parts.first().and_then(Part::as_text).unwrap_or_default();
    let exit_code = serde_json::from_str::<Object<'_>>(text).ok().and_then(|mut wrapped| {
        let mut metadata = Object::of(wrapped.take("metadata")?)?;
        metadata.optional("exit_code").ok()?
    });
    Ok(ToolResult { call_id, parts, is_error, exit_code })
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{Aside, Item};
    use crate::trajectory::Part;

    fn item(text: &str) -> Item {
        Item::read(&RawValue::from_string(text.to_owned()).unwrap(), &mut Aside::default()).unwrap()
    }

    #[test]
    fn arguments_that_are_not_json_stay() {
        let read = item(
            r#"{"type":"function_call","name":"shell","call_id":"c","arguments":"{\"input\": \"*** Begin Patch\n"}"#,
        );
        let Item::Piece(parts) = read else { panic!("{read:?}") };
        let [Part::ToolCall(call)] = parts.as_slice() else { panic!("{parts:?}") };
        assert_eq!(call.arguments_raw, "{\"input\": \"*** Begin Patch\n");
        assert_eq!(call.arguments(), None);
    }

    #[test]
    fn an_exit_code_inside_the_output_is_read() {
        let read = item(
            r#"{"type":"function_call_output","call_id":"c","output":"{\"output\":\"x\",\"metadata\":{\"exit_code\":2}}"}"#,
        );
        assert!(matches!(&read, Item::Output(result) if result.exit_code == Some(2)), "{read:?}");
        let read = item(r#"{"type":"function_call_output","output":{"content":"no","success":false}}"#);
        assert!(matches!(&read, Item::Output(result) if result.is_error == Some(true)), "{read:?}");
    }
}
