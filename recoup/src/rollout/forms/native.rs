//! Native: calls stand in the provider's own field, beside the text.

use super::hermes::{OPEN, bare_call};
use super::{Form, Hermes, NoPlace, ToolTypes, Written, loose, words};
use crate::models::{ChatMessage, ModelCall};
use crate::trajectory::{Role, Tool};
use crate::verdict::{CallAst, TurnAst};

/// See the module.
pub struct Native;

impl Form for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn is_native(&self) -> bool {
        true
    }

    fn instructions(&self, _: &[Tool]) -> Option<String> {
        None
    }

    fn write(&self, turn: &TurnAst, first: usize) -> Result<Written, NoPlace> {
        let call = |(offset, call): (usize, &CallAst)| ModelCall {
            id: format!("call_{}", first + offset),
            name: call.name.clone(),
            arguments: call.arguments.as_str().to_owned(),
        };
        Ok(Written { content: turn.text.clone(), calls: turn.calls.iter().enumerate().map(call).collect() })
    }

    fn strict(&self, written: &Written, _: &ToolTypes) -> Result<TurnAst, String> {
        if written.calls.is_empty() {
            // A server that does not take calls out of the text leaves them there.
            let is_call = written.content.contains(OPEN) || bare_call(&written.content).is_some();
            return if is_call {
                Err("a call stands in the text".to_owned())
            } else {
                words(&written.content)
            };
        }
        let calls = written.calls.iter().map(|call| CallAst::read(&call.name, &call.arguments));
        let calls = calls.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        Ok(TurnAst { text: written.content.clone(), calls })
    }

    /// Arguments that are nearly JSON, and calls in the text where the server did not take them out.
    fn lenient(&self, written: &Written, tools: &ToolTypes) -> Result<TurnAst, String> {
        if written.calls.is_empty() {
            return Hermes.lenient(written, tools);
        }
        let call = |call: &ModelCall| {
            let arguments = loose::object(&call.arguments).unwrap_or_default();
            CallAst::read(&call.name, &arguments)
                .ok()
                .filter(|_| !arguments.is_empty())
                .ok_or_else(|| format!("the arguments of `{}` are no JSON object", call.name))
        };
        let calls = written.calls.iter().map(call).collect::<Result<_, _>>()?;
        Ok(TurnAst { text: written.content.clone(), calls })
    }

    fn result(&self, call_id: &str, text: &str) -> ChatMessage {
        ChatMessage {
            role: Role::Tool,
            content: text.to_owned(),
            calls: Vec::new(),
            call_id: Some(call_id.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Native;
    use crate::interleaving::Reading;
    use crate::models::ModelCall;
    use crate::rollout::forms::{ToolTypes, Written, read};

    #[test]
    fn arguments_that_are_nearly_json_are_read_leniently() {
        let reading = |arguments: &str| {
            let call =
                ModelCall { id: "c".to_owned(), name: "go".to_owned(), arguments: arguments.to_owned() };
            let written = Written { content: String::new(), calls: vec![call] };
            let read = read(&Native, &written, &ToolTypes::default());
            (
                read.reading,
                read.turn.map(|turn| turn.calls[0].arguments.as_str().to_owned()).unwrap_or_default(),
            )
        };
        assert_eq!(reading(r#"{"to":"x"}"#), (Reading::Strict, r#"{"to":"x"}"#.to_owned()));
        assert_eq!(reading(""), (Reading::Strict, "{}".to_owned()));
        assert_eq!(reading("{'to': 'x'}"), (Reading::Lenient, r#"{"to":"x"}"#.to_owned()));
        assert_eq!(reading("north").0, Reading::Unreadable);
    }
}
