//! Structured answers: one JSON object, read strictly, with one round of repair.
//!
//! A provider that takes a JSON Schema is given it ([`ChatRequest::schema`]). Whatever comes back is read
//! by the caller's own strict reader; where that fails, the model sees its answer and what is wrong with
//! it, once.

use super::{ChatMessage, ChatModel, ChatReply, ChatRequest, Finish, ModelError};

/// Characters of a broken answer that the model is shown again.
const SHOWN_MAX: usize = 20_000;

/// A structured answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structured<T> {
    /// What was read.
    pub value: T,
    /// The answer that it was read from.
    pub reply: ChatReply,
    /// Whether it took the round of repair.
    pub repaired: bool,
}

/// No structured answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StructuredError {
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It answered twice, and neither answer could be read.
    #[error("the answer cannot be read: {reason}")]
    Unreadable {
        /// What is wrong with the second answer.
        reason: String,
        /// The second answer.
        reply: Box<ChatReply>,
    },
}

/// Asks until `read` takes the JSON object of an answer, at most twice. `read` says what is wrong in words
/// for the model.
///
/// # Errors
/// [`StructuredError`].
pub fn ask<T>(
    model: &dyn ChatModel,
    request: &ChatRequest,
    read: &dyn Fn(&str) -> Result<T, String>,
) -> Result<Structured<T>, StructuredError> {
    let reply = model.complete(request)?;
    let reason = match read_reply(&reply, read) {
        Ok(value) => return Ok(Structured { value, reply, repaired: false }),
        Err(reason) => reason,
    };
    let mut again = request.clone();
    again.messages.push(ChatMessage::assistant(reply.text.chars().take(SHOWN_MAX).collect::<String>()));
    again.messages.push(ChatMessage::user(format!(
        "That answer cannot be used: {reason}. Answer again, with one JSON object and nothing else."
    )));
    let reply = model.complete(&again)?;
    match read_reply(&reply, read) {
        Ok(value) => Ok(Structured { value, reply, repaired: true }),
        Err(reason) => Err(StructuredError::Unreadable { reason, reply: Box::new(reply) }),
    }
}

fn read_reply<T>(reply: &ChatReply, read: &dyn Fn(&str) -> Result<T, String>) -> Result<T, String> {
    match reply.finish {
        Finish::Length => return Err("it was cut at the limit of tokens".to_owned()),
        Finish::Filtered => return Err("it was refused or withheld".to_owned()),
        _ => {}
    }
    read(object(&reply.text)?)
}

/// The JSON object that an answer is: the whole text, or what its only code fence holds.
///
/// # Errors
/// What is wrong, in words for the model.
pub fn object(text: &str) -> Result<&str, String> {
    let text = text.trim();
    let inner = match text.split_once("```") {
        Some((before, fenced)) if !text.starts_with('{') => {
            let (inside, after) = fenced.split_once("```").ok_or("its code fence has no end")?;
            if !before.trim().is_empty() || !after.trim().is_empty() {
                return Err("it holds more than one JSON object".to_owned());
            }
            inside.strip_prefix("json").unwrap_or(inside).trim()
        }
        _ => text,
    };
    if !inner.starts_with('{') {
        return Err("it is not a JSON object".to_owned());
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(inner) {
        Ok(_) => Ok(inner),
        Err(error) => Err(format!("it is not valid JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{StructuredError, ask, object};
    use crate::models::{ChatMessage, ChatReply, ChatRequest, Finish, ScriptedModel};

    fn number(json: &str) -> Result<u64, String> {
        let value: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        value["step"].as_u64().ok_or_else(|| "`step` must be a whole number".to_owned())
    }

    #[test]
    fn one_object_is_read_and_nothing_around_it() {
        assert_eq!(object(" {\"a\":1}\n"), Ok("{\"a\":1}"));
        assert!(object("```json\n{\"a\":\"```\"}\n```").is_err());
        assert_eq!(object("```json\n{\"a\":1}\n```"), Ok("{\"a\":1}"));
        assert_eq!(object("{\"a\":\"```x```\"}"), Ok("{\"a\":\"```x```\"}"));
        for bad in ["", "[1]", "Sure: {\"a\":1}", "{\"a\":1} {\"a\":1}", "{\"a\":1", "Here:\n```\n{}\n```"] {
            assert!(object(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_broken_answer_is_repaired_once() {
        let request = ChatRequest::new(vec![ChatMessage::user("which step?")], 100);
        let answers = |texts: &[&str]| {
            ScriptedModel::list(
                "toy",
                texts.iter().map(|text| Ok(ChatReply::text(*text))).collect::<Vec<_>>(),
            )
        };
        let whole = ask(&answers(&["{\"step\":3}"]), &request, &number).unwrap();
        assert_eq!((whole.value, whole.repaired), (3, false));
        let repaired = ask(&answers(&["step 3", "{\"step\":3}"]), &request, &number).unwrap();
        assert_eq!((repaired.value, repaired.repaired), (3, true));
        let error = ask(&answers(&["{\"step\":\"x\"}", "{}"]), &request, &number).unwrap_err();
        assert!(matches!(&error, StructuredError::Unreadable { reason, .. } if reason.contains("`step`")));
    }

    #[test]
    fn the_model_is_told_what_is_wrong() {
        let model = ScriptedModel::new("toy", |request| {
            let last = request.messages.last().map(|message| message.content.clone()).unwrap_or_default();
            let cut = ChatReply { finish: Finish::Length, ..ChatReply::text("{\"step\":") };
            Ok(if last.contains("cut at the limit") { ChatReply::text("{\"step\":1}") } else { cut })
        });
        let request = ChatRequest::new(vec![ChatMessage::user("which step?")], 100);
        assert_eq!(ask(&model, &request, &number).unwrap().value, 1);
    }
}
