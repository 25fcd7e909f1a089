//! ReAct: `Thought:`, `Action:` and `Action Input:` lines, and `Final Answer:` for the end. One call a turn.

use super::{Form, NoPlace, ToolTypes, Written, loose, offered, words};
use crate::models::ChatMessage;
use crate::trajectory::Tool;
use crate::verdict::{CallAst, TurnAst};

const THOUGHT: &str = "Thought: ";
const ACTION: &str = "Action: ";
const INPUT: &str = "Action Input: ";
const ANSWER: &str = "Final Answer: ";
const OBSERVATION: &str = "Observation:";

/// See the module.
pub struct React;

impl Form for React {
    fn name(&self) -> &'static str {
        "react"
    }

    fn instructions(&self, tools: &[Tool]) -> Option<String> {
        Some(format!(
            "You have access to the following tools:\n\n{}\n\nUse the following format:\n\nThought: what you think \
             about what to do\nAction: the name of one tool\nAction Input: its arguments, one JSON object\n\nThen stop: \
             you will be shown the observation. When you are done, write instead:\n\nFinal Answer: what you say",
            offered(tools)
        ))
    }

    fn write(&self, turn: &TurnAst, _: usize) -> Result<Written, NoPlace> {
        let content = match turn.calls.as_slice() {
            [] => format!("{ANSWER}{}", turn.text),
            [call] => {
                let thought =
                    if turn.text.is_empty() { String::new() } else { format!("{THOUGHT}{}\n", turn.text) };
                format!("{thought}{ACTION}{}\n{INPUT}{}", call.name, call.arguments.as_str())
            }
            _ => return Err(NoPlace::SeveralCalls(self.name())),
        };
        Ok(Written { content, calls: Vec::new() })
    }

    fn strict(&self, written: &Written, _: &ToolTypes) -> Result<TurnAst, String> {
        let text = &written.content;
        if let Some(answer) = text.strip_prefix(ANSWER) {
            return words(answer);
        }
        let (thought, rest) = match text.strip_prefix(THOUGHT) {
            None => ("", text.as_str()),
            Some(thought) => {
                let action = thought.find(&format!("\n{ACTION}"));
                let answer = thought.find(&format!("\n{ANSWER}"));
                match (action, answer) {
                    (Some(at), answer) if answer.is_none_or(|answer| at < answer) => {
                        (&thought[..at], &thought[at + 1..])
                    }
                    (_, Some(at)) => return words(&thought[at + 1 + ANSWER.len()..]),
                    _ => return Err("a thought leads to no action".to_owned()),
                }
            }
        };
        let action = rest.strip_prefix(ACTION).ok_or("there is neither an action nor an answer")?;
        let (name, input) = action.split_once('\n').ok_or("an action has no input")?;
        let input = input.strip_prefix(INPUT).ok_or("an action has no input")?;
        let call = CallAst::read(name, input).map_err(|error| error.to_string())?;
        if input.trim().is_empty() {
            return Err("an action has no input".to_owned());
        }
        Ok(TurnAst { text: thought.to_owned(), calls: vec![call] })
    }

    /// Labels in any case, with an answer of the environment that the model made up cut off.
    fn lenient(&self, written: &Written, _: &ToolTypes) -> Result<TurnAst, String> {
        let own =
            written.content.find(OBSERVATION).map_or(written.content.as_str(), |at| &written.content[..at]);
        // Same length in bytes, so that places are the same.
        let lower = own.to_ascii_lowercase();
        let find = |label: &str| lower.find(label).map(|at| (at, at + label.len()));
        let unlabeled = |text: &str| {
            let text = text.trim();
            let label = THOUGHT.trim_end();
            match text.get(..label.len()).filter(|start| start.eq_ignore_ascii_case(label)) {
                Some(_) => text[label.len()..].trim().to_owned(),
                None => text.to_owned(),
            }
        };
        match (find("action:"), find("action input:"), find("final answer:")) {
            (Some((start, name)), Some((end, input)), _) if name <= end => {
                let arguments =
                    loose::object(&own[input..]).ok_or("the input of an action is no JSON object")?;
                let tool = own[name..end].trim().trim_matches('`');
                let call = CallAst::read(tool, &arguments).map_err(|error| error.to_string())?;
                Ok(TurnAst { text: unlabeled(&own[..start]), calls: vec![call] })
            }
            (Some(_), _, None) => Err("an action has no input".to_owned()),
            (_, _, Some((_, answer))) => words(own[answer..].trim()),
            _ => words(&unlabeled(own)),
        }
    }

    fn result(&self, _: &str, text: &str) -> ChatMessage {
        ChatMessage::user(format!("{OBSERVATION} {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::React;
    use crate::interleaving::Reading;
    use crate::rollout::forms::{ToolTypes, Written, read};

    #[test]
    fn what_it_says_and_what_it_made_up() {
        for (content, how, text, calls) in [
            ("Thought: hm\nAction: go\nAction Input: {\"n\": 1}", Reading::Strict, "hm", 1),
            ("Thought: enough\nFinal Answer: 4 apples", Reading::Strict, "4 apples", 0),
            (
                "thought: hm\naction: `go`\naction input: {'n': 1}\nObservation: done",
                Reading::Lenient,
                "hm",
                1,
            ),
            ("It is four.", Reading::Lenient, "It is four.", 0),
            ("Action: go north", Reading::Unreadable, "", 0),
        ] {
            let written = Written { content: content.to_owned(), calls: Vec::new() };
            let read = read(&React, &written, &ToolTypes::default());
            let turn = read.turn.unwrap_or_default();
            assert_eq!((read.reading, turn.text.as_str(), turn.calls.len()), (how, text, calls), "{content}");
        }
    }
}
