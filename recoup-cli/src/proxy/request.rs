//! A request for a turn: its messages, tools and parameters as slices of the body, none of them changed.

use std::borrow::Cow;

use bytes::Bytes;
use recoup::importers::recoup_proxy::Api;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A request that was understood.
pub(super) struct TurnRequest<'a> {
    pub api: Api,
    /// The model that the client names.
    pub model: Cow<'a, str>,
    /// Whether the answer comes in pieces.
    pub stream: bool,
    /// The history, instructions first.
    pub messages: Vec<Cow<'a, RawValue>>,
    pub tools: Option<&'a RawValue>,
    /// The answer that the upstream keeps and that the request goes on from.
    pub previous: Option<Cow<'a, str>>,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// Why a request was not understood, for its client.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadRequest {
    #[error("the body is no JSON object: {0}")]
    Json(String),
    #[error("`{0}` is missing or not {1}")]
    Field(&'static str, &'static str),
}

/// Members that hold the history.
const HISTORY: [&str; 5] = ["messages", "input", "system", "instructions", "tools"];
/// Members that say how the answer travels, not what it is.
const TRANSPORT: [&str; 3] = ["stream", "stream_options", "background"];

impl<'a> TurnRequest<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// What the client should be told.
    pub(super) fn parse(api: Api, body: &'a Bytes) -> Result<Self, BadRequest> {
        let Members(members) =
            serde_json::from_slice(body).map_err(|error| BadRequest::Json(error.to_string()))?;
        let get = |name: &str| {
            let value = members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value);
            value.filter(|value| value.get() != "null")
        };
        let text =
            |name: &str| get(name).and_then(|raw| serde_json::from_str::<Cow<'a, str>>(raw.get()).ok());
        let list = |name: &'static str| {
            let raw = get(name).ok_or(BadRequest::Field(name, "a list"))?;
            let list: Vec<&'a RawValue> =
                serde_json::from_str(raw.get()).map_err(|_| BadRequest::Field(name, "a list"))?;
            Ok::<_, BadRequest>(list.into_iter().map(Cow::Borrowed))
        };
        let mut messages = Vec::new();
        match api {
            Api::Chat => messages.extend(list("messages")?),
            Api::Messages => {
                messages.extend(get("system").and_then(|raw| spoken("system", raw)));
                messages.extend(list("messages")?);
            }
            Api::Responses => {
                messages.extend(get("instructions").and_then(|raw| spoken("system", raw)));
                match get("input") {
                    Some(raw) if raw.get().starts_with('"') => messages.extend(spoken("user", raw)),
                    _ => messages.extend(list("input")?),
                }
            }
        }
        let is_object = |message: &Cow<'_, RawValue>| message.get().starts_with('{');
        if !messages.iter().all(is_object) || messages.is_empty() {
            let field = if api == Api::Responses { "input" } else { "messages" };
            return Err(BadRequest::Field(field, "a list of objects"));
        }
        Ok(Self {
            api,
            model: text("model").ok_or(BadRequest::Field("model", "a string"))?,
            stream: get("stream").is_some_and(|raw| raw.get() == "true"),
            messages,
            tools: get("tools"),
            previous: text("previous_response_id"),
            members,
        })
    }

    /// A member of the body.
    pub(super) fn member(&self, name: &str) -> Option<&'a RawValue> {
        self.members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The request without its history, for the record.
    pub(super) fn parameters(&self) -> Option<Box<RawValue>> {
        let kept = self.members.iter().filter(|(key, _)| !HISTORY.contains(&&**key));
        to_raw_value(&Ordered(kept)).ok()
    }

    /// The body for another model; `stream` says whether its answer may come in pieces. All else stays
    /// but the members `without`.
    pub(super) fn for_model(&self, model: &str, stream: bool, without: &[&str]) -> Option<Vec<u8>> {
        let model = to_raw_value(model).ok()?;
        let kept = self
            .members
            .iter()
            .filter(|(key, _)| (stream || !TRANSPORT.contains(&&**key)) && !without.contains(&&**key));
        let members: Vec<(Cow<'_, str>, &RawValue)> =
            kept.map(|(key, value)| (key.clone(), if key == "model" { &*model } else { *value })).collect();
        serde_json::to_vec(&Ordered(members.iter())).ok()
    }
}

/// A message of a role whose content stands outside of the list.
fn spoken<'a>(role: &str, content: &RawValue) -> Option<Cow<'a, RawValue>> {
    #[derive(Serialize)]
    struct Message<'b> {
        role: &'b str,
        content: &'b RawValue,
    }
    to_raw_value(&Message { role, content }).ok().map(Cow::Owned)
}

/// Members of an object, in their order.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(12);
                while let Some(Key(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Members to be written in their order.
struct Ordered<I>(I);

impl<'m, 'a: 'm, I: Iterator<Item = &'m (Cow<'a, str>, &'a RawValue)> + Clone> Serialize for Ordered<I> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.clone().map(|(key, value)| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Api, BadRequest, TurnRequest};

    #[test]
    fn every_api_shows_its_history() {
        let chat =
            Bytes::from_static(br#"{"model":"m","messages":[{"role":"user","content":"hi"}],"x":[1.0]}"#);
        let read = TurnRequest::parse(Api::Chat, &chat).unwrap();
        assert_eq!((read.messages.len(), read.stream, &*read.model), (1, false, "m"));
        assert_eq!(read.parameters().unwrap().get(), r#"{"model":"m","x":[1.0]}"#);
        let messages = Bytes::from_static(
            br#"{"system":"s","messages":[{"role":"user","content":"hi"}],"model":"m","stream":true}"#,
        );
        let read = TurnRequest::parse(Api::Messages, &messages).unwrap();
        assert_eq!(read.messages[0].get(), r#"{"role":"system","content":"s"}"#);
        assert!(read.stream);
        let responses = Bytes::from_static(br#"{"model":"m","input":"hi","previous_response_id":"r"}"#);
        let read = TurnRequest::parse(Api::Responses, &responses).unwrap();
        assert_eq!(read.messages[0].get(), r#"{"role":"user","content":"hi"}"#);
        assert_eq!(read.previous.as_deref(), Some("r"));
    }

    #[test]
    fn a_body_for_the_teacher_differs_in_the_model_alone() {
        let body = Bytes::from_static(
            br#"{"model":"m","stream":true,"stream_options":{},"messages":[{}],"top_p":1.50}"#,
        );
        let read = TurnRequest::parse(Api::Chat, &body).unwrap();
        let written = |stream| String::from_utf8(read.for_model("t", stream, &[]).unwrap()).unwrap();
        assert_eq!(written(false), r#"{"model":"t","messages":[{}],"top_p":1.50}"#);
        assert_eq!(
            written(true),
            r#"{"model":"t","stream":true,"stream_options":{},"messages":[{}],"top_p":1.50}"#
        );
        let without = read.for_model("t", false, &["top_p", "n"]).unwrap();
        assert_eq!(without, br#"{"model":"t","messages":[{}]}"#);
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = |body: &'static str| {
            let bytes = Bytes::from_static(body.as_bytes());
            TurnRequest::parse(Api::Chat, &bytes).err().unwrap()
        };
        assert_eq!(refused(r#"{"messages":[{}]}"#), BadRequest::Field("model", "a string"));
        assert_eq!(refused(r#"{"model":"m","messages":{}}"#), BadRequest::Field("messages", "a list"));
        assert_eq!(
            refused(r#"{"model":"m","messages":[1]}"#),
            BadRequest::Field("messages", "a list of objects")
        );
        assert!(matches!(refused("[1]"), BadRequest::Json(_)));
    }
}
