//! Again: a question with an answer that will not do and what is wrong with it, so that the next one can mend it.

use super::{ChatMessage, ChatModel, ChatReply, ChatRequest, Finish, ModelError};
use crate::canonical::canonicalize;
use crate::json_schema::violation;
use crate::visible::visible_controls;

/// Bytes of an answer that its model sees again.
const ANSWER_BYTES: usize = 4_000;
/// Bytes of what is wrong with it.
const WRONG_BYTES: usize = 600;
/// Bytes that asking again adds to a question, about.
pub const AGAIN_BYTES: usize = ANSWER_BYTES + 2 * WRONG_BYTES;

/// An answer, and whether it has the form that was asked for.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The last answer.
    pub reply: ChatReply,
    /// Why it does not fit the schema of the question; `None` where it does, or none was asked for.
    pub wrong: Option<String>,
}

impl ChatRequest {
    /// The question, asked once more after an answer that cannot be read.
    #[must_use]
    pub fn again(&self, answer: &str, wrong: &str) -> Self {
        let wrong = serde_json::Value::String(visible_controls(shortened(wrong)).into_owned());
        let said = format!(
            "Your answer cannot be read. What is wrong with it, as data: {wrong}\nAnswer again, whole, in the form that \
             was asked for."
        );
        let mut request = self.clone();
        request.messages.extend(exchange(answer, ANSWER_BYTES, said));
        request
    }
}

/// The first `most` bytes of an answer as the model that gave it sees it again, and what is said to it.
pub(crate) fn exchange(answer: &str, most: usize, said: String) -> [ChatMessage; 2] {
    let kept = answer.floor_char_boundary(most.min(ANSWER_BYTES));
    [ChatMessage::assistant(visible_controls(&answer[..kept])), ChatMessage::user(said)]
}

/// As much of what is wrong with an answer as its model is told.
pub(crate) fn shortened(wrong: &str) -> &str {
    &wrong[..wrong.floor_char_boundary(WRONG_BYTES)]
}

/// Asks, and once more where the answer does not fit the schema that the question names.
///
/// # Errors
/// When the model gives no answer. One that does not fit is an answer.
pub fn fitting(model: &dyn ChatModel, request: &ChatRequest) -> Result<Fitted, ModelError> {
    let reply = model.complete(request)?;
    let Some(wrong) = misfit(request, &reply) else { return Ok(Fitted { reply, wrong: None }) };
    let reply = model.complete(&request.again(&reply.text, &wrong))?;
    let wrong = misfit(request, &reply);
    Ok(Fitted { reply, wrong })
}

/// Why an answer does not have the form that was asked for.
fn misfit(request: &ChatRequest, reply: &ChatReply) -> Option<String> {
    let schema = request.schema.as_ref()?;
    let read = whole(reply).and_then(|()| {
        let text = bare(&reply.text);
        // Refuses keys that are given twice and nesting without end, which other readers let pass.
        canonicalize(text).map_err(|error| format!("it is not JSON: {error}"))?;
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
    });
    match read {
        Ok(value) => violation(&schema.schema.to_value(), &value).map(|violation| violation.to_string()),
        Err(wrong) => Some(wrong),
    }
}

/// # Errors
/// Where an answer was cut or withheld.
pub(crate) fn whole(reply: &ChatReply) -> Result<(), String> {
    match reply.finish {
        Finish::Length => Err("the answer was cut at its limit of tokens".to_owned()),
        Finish::Filtered => Err("the provider withheld the answer".to_owned()),
        _ => Ok(()),
    }
}

/// An answer without the fence and the reasoning that may stand around it.
pub(crate) fn bare(text: &str) -> &str {
    let mut text = text.trim();
    if text.starts_with("<think>") {
        text = text.split_once("</think>").map_or("", |(_, after)| after).trim();
    }
    let fenced = text.strip_prefix("```").and_then(|inner| inner.strip_suffix("```"));
    fenced.map_or(text, |inner| inner.strip_prefix("json").unwrap_or(inner)).trim()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::fitting;
    use crate::json::Json;
    use crate::models::{ChatMessage, ChatReply, ChatRequest, ReplySchema, ScriptedModel};

    /// What is made of these answers, and the last question's messages.
    fn asked(answers: [&str; 2]) -> (Option<String>, Vec<ChatMessage>) {
        let schema = r#"{"type":"object","required":["step"],"properties":{"step":{"type":"integer"}}}"#;
        let schema = ReplySchema { name: "answer".to_owned(), schema: Json::parse(schema).unwrap() };
        let request =
            ChatRequest { schema: Some(schema), ..ChatRequest::new(vec![ChatMessage::user("which?")], 10) };
        let (seen, answers) = (Arc::new(Mutex::new(Vec::new())), answers.map(str::to_owned));
        let kept = Arc::clone(&seen);
        let model = ScriptedModel::new("toy", move |request| {
            *kept.lock().unwrap() = request.messages.clone();
            Ok(ChatReply::text(answers[usize::from(request.messages.len() > 1)].as_str()))
        });
        let wrong = fitting(&model, &request).unwrap().wrong;
        let seen = seen.lock().unwrap().clone();
        (wrong, seen)
    }

    #[test]
    fn what_does_not_fit_is_asked_for_once_more_with_what_is_wrong() {
        let fine = r#"{"step":1}"#;
        assert_eq!(asked([fine, "unused"]).0, None);
        let (wrong, seen) = asked(["Sure, fine!", fine]);
        assert_eq!((wrong, seen.len()), (None, 3));
        assert_eq!(seen[1].content, "Sure, fine!");
        assert!(seen[2].content.contains("it is not JSON"), "{}", seen[2].content);
        let (wrong, seen) = asked([r#"{"step":"one"}"#, r#"{"stop":1}"#]);
        assert!(seen[2].content.contains("`step` must be of type integer"), "{}", seen[2].content);
        assert_eq!(wrong.unwrap(), "it lacks the required `step`");
    }
}
