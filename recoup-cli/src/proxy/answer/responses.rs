//! OpenAI's responses: the last event of a stream holds the whole response.

use recoup::trajectory::Call;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Answer, NoAnswer, said, usage};

/// Reads a response.
pub(super) fn whole(body: &[u8]) -> Result<Answer, NoAnswer> {
    #[derive(Deserialize)]
    struct Response {
        id: Option<String>,
        model: Option<String>,
        status: Option<String>,
        output: Option<Vec<Box<RawValue>>>,
        usage: Option<Value>,
        error: Option<Value>,
        incomplete_details: Option<Value>,
    }
    let response: Response =
        serde_json::from_slice(body).map_err(|error| NoAnswer::Form(error.to_string()))?;
    if let Some(error) = response.error {
        return Err(NoAnswer::Upstream(said(&error)));
    }
    let output = response.output.ok_or_else(|| NoAnswer::Form("there is no output".to_owned()))?;
    if response.status.as_deref().is_some_and(|status| matches!(status, "queued" | "in_progress")) {
        return Err(NoAnswer::Form("the response goes on in the background".to_owned()));
    }
    let why = response.incomplete_details.as_ref().and_then(|details| details.get("reason")?.as_str());
    let call = Call {
        model: response.model,
        finish_reason: why.map(str::to_owned).or(response.status),
        usage: response.usage.as_ref().and_then(usage),
        ..Call::default()
    };
    Ok(Answer { alternatives: vec![output], call, id: response.id })
}

/// A response while its events come.
#[derive(Default)]
pub(super) struct Assembling {
    response: Option<Box<RawValue>>,
    error: Option<String>,
}

impl Assembling {
    pub(super) fn event(&mut self, data: &[u8]) {
        #[derive(Deserialize)]
        struct Event {
            r#type: String,
            response: Option<Box<RawValue>>,
        }
        // Of the many events only the last ones matter, and their types stand early.
        let head = data.get(..data.len().min(80)).unwrap_or(data);
        if ["response.completed", "response.incomplete", "response.failed", "\"error\""]
            .iter()
            .all(|kind| memchr::memmem::find(head, kind.as_bytes()).is_none())
            && memchr::memmem::find(data, b"\"response\"").is_none()
        {
            return;
        }
        let Ok(event) = serde_json::from_slice::<Event>(data) else { return };
        match &*event.r#type {
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.response = event.response;
            }
            "error" => {
                self.error = Some(
                    serde_json::from_slice(data).map_or_else(|_| String::new(), |value: Value| said(&value)),
                );
            }
            _ => {}
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.response.is_some()
    }

    pub(super) fn finish(self) -> Result<Answer, NoAnswer> {
        match (self.response, self.error) {
            (_, Some(error)) => Err(NoAnswer::Upstream(error)),
            (Some(response), None) => whole(response.get().as_bytes()),
            (None, None) => Err(NoAnswer::Cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Assembling, NoAnswer, whole};

    #[test]
    fn the_last_event_is_the_response() {
        let mut assembling = Assembling::default();
        for event in [
            r#"{"type":"response.created","response":{"id":"r","output":[]}}"#,
            r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
            r#"{"type":"response.completed","sequence_number":3,"response":{"id":"r","model":"m","status":"completed","output":[{"type":"message","role":"assistant","content":[]},{"type":"function_call","call_id":"c"}],"usage":{"input_tokens":1,"output_tokens":2},"error":null}}"#,
        ] {
            assembling.event(event.as_bytes());
        }
        let answer = assembling.finish().unwrap();
        assert_eq!((answer.alternatives[0].len(), answer.id.as_deref()), (2, Some("r")));
        assert_eq!(answer.call.usage.map(|usage| usage.output), Some(2));
    }

    #[test]
    fn failures_are_told_apart() {
        assert_eq!(Assembling::default().finish().unwrap_err(), NoAnswer::Cut);
        let failed =
            br#"{"id":"r","status":"failed","output":[],"error":{"code":"server_error","message":"broke"}}"#;
        assert_eq!(whole(failed).unwrap_err(), NoAnswer::Upstream("broke".to_owned()));
        assert!(matches!(whole(br#"{"status":"queued","output":[]}"#), Err(NoAnswer::Form(_))));
    }
}
