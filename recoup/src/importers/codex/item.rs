//! One `response_item`: what the model read or wrote.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::id::Hash;
use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::function_call::called;
use crate::importers::object::{Object, wrong_type};
use crate::importers::value::{elements, text, text_or_source};
use crate::trajectory::{Part, Role, ToolResult};

/// The bytes of a run's media.
type Bytes = BTreeMap<Hash, Vec<u8>>;

/// A response item, read.
#[derive(Debug, PartialEq)]
pub(super) enum Item {
    /// A message of a role other than the model's.
    Message(Role, Vec<Part>),
    /// A piece of the model's response.
    Piece(Vec<Part>),
    /// A call's result.
    Output(ToolResult),
    /// Something the model neither read nor wrote.
    Other(String),
}

impl Item {
    /// Reads an item. `media` takes the bytes of its images, `left` the names of members that a record
    /// does not hold.
    pub(super) fn read(
        raw: &RawValue,
        media: &mut Bytes,
        left: &mut Vec<String>,
    ) -> Result<Self, RecordError> {
        let mut fields = Object::parse(raw, "payload")?;
        let kind: String = fields.required("type")?;
        let item = match kind.as_str() {
            "message" => {
                let parts = contents(fields.required("content")?, media)?;
                match fields.required::<String>("role")?.as_str() {
                    "assistant" => Self::Piece(parts),
                    "user" => Self::Message(Role::User, parts),
                    _ => Self::Message(Role::System, parts),
                }
            }
            "reasoning" => Self::Piece(reasoning(&mut fields, media)?),
            "function_call" | "custom_tool_call" => Self::Piece(vec![call(&mut fields)?]),
            "function_call_output" | "custom_tool_call_output" => Self::Output(output(&mut fields, media)?),
            // Run by the provider or by an older shell tool; carried whole, without a form of their own.
            "local_shell_call" | "web_search_call" => {
                return Ok(Self::Piece(vec![Part::Opaque { kind, raw: raw.get().to_owned() }]));
            }
            _ => return Ok(Self::Other(kind)),
        };
        left.extend(fields.keys().map(|key| format!("{kind}.{key}")));
        Ok(item)
    }
}

fn contents(content: &RawValue, media: &mut Bytes) -> Result<Vec<Part>, RecordError> {
    if let Some(text) = text(content) {
        return Ok(vec![Part::text(text)]);
    }
    let items = elements(content).ok_or_else(|| wrong_type("content", "a text or a list of parts"))?;
    let part = |raw: &RawValue| {
        let mut fields = Object::parse(raw, "content[]")?;
        let kind: String = fields.required("type")?;
        if let Some(text) = fields.optional::<String>("text")? {
            return Ok(Part::text(text));
        }
        Ok(match fields.text("image_url") {
            Some(url) if kind == "input_image" => data_url::media(&url, "image/*", media),
            _ => Part::Opaque { kind, raw: raw.get().to_owned() },
        })
    };
    items.into_iter().map(part).collect()
}

/// The summary, or the full text where the provider shows it; the encrypted form is its seal.
fn reasoning(fields: &mut Object<'_>, media: &mut Bytes) -> Result<Vec<Part>, RecordError> {
    let shown = [fields.take("content"), fields.take("summary")];
    let mut texts = Vec::new();
    for content in shown.into_iter().flatten() {
        if texts.is_empty() {
            texts = contents(content, media)?.iter().filter_map(Part::as_text).map(str::to_owned).collect();
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
fn output(fields: &mut Object<'_>, media: &mut Bytes) -> Result<ToolResult, RecordError> {
    let call_id = fields.optional("call_id")?;
    let raw: &RawValue = fields.required("output")?;
    let mut is_error = None;
    let parts = match Object::of(raw) {
        Some(mut object) => {
            is_error = object.optional::<bool>("success")?.map(|success| !success);
            vec![Part::text(object.take("content").map_or_else(|| raw.get().to_owned(), text_or_source))]
        }
        None => contents(raw, media)?,
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

    use super::{Bytes, Item};
    use crate::trajectory::Part;

    fn item(text: &str) -> Item {
        Item::read(&RawValue::from_string(text.to_owned()).unwrap(), &mut Bytes::new(), &mut Vec::new())
            .unwrap()
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
