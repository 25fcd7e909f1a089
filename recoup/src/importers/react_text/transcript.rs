//! One run of a transcript: its labeled lines, and the messages they tell.

use crate::importers::Importer as _;
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{ArgumentsForm, Node, Outcome, Part, Role, TerminationKind, ToolCall, Trajectory};

/// What the harness puts between a question and the reflections it adds.
const REFLECTIONS_START: &str = "You have attempted to answer following question before and failed.";

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Line<'a> {
    /// `####…`, a trial's summary, nothing.
    Banner,
    Trial(i64),
    /// The heading's word: CORRECT, INCORRECT, HALTED.
    Section(&'a str),
    Question(&'a str),
    Thought(&'a str),
    Action(&'a str),
    Observation(&'a str),
    Answer(&'a str),
    /// The text before goes on.
    More(&'a str),
}

impl<'a> Line<'a> {
    /// Tells what a line is by how it begins.
    pub(super) fn of(line: &'a str) -> Self {
        let bare = line.trim_start_matches('\u{feff}').trim();
        if bare.chars().all(|letter| letter == '#') || bare.starts_with("Trial summary: ") {
            return Self::Banner;
        }
        if let Some(trial) = bare.strip_prefix("BEGIN TRIAL ").and_then(|trial| trial.parse().ok()) {
            return Self::Trial(trial);
        }
        let heading = bare.trim_matches('-').trim();
        if bare.starts_with("---")
            && let Some(section) =
                heading.strip_prefix("BEGIN ").and_then(|rest| rest.strip_suffix(" AGENTS"))
        {
            return Self::Section(section);
        }
        let after = |label: &str| bare.strip_prefix(label).map(str::trim);
        if let Some(text) = after("Question:") {
            return Self::Question(text);
        }
        if let Some(text) = after("Correct answer:") {
            return Self::Answer(text);
        }
        match numbered(bare) {
            Some(("Thought", text)) => Self::Thought(text),
            Some(("Action", text)) => Self::Action(text),
            Some(("Observation", text)) => Self::Observation(text),
            _ => Self::More(line),
        }
    }
}

/// Label and text of `Thought 3: …`.
fn numbered(line: &str) -> Option<(&str, &str)> {
    let (label, rest) = line.split_once(' ')?;
    let (number, text) = rest.split_once(':')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| (label, text.trim()))
}

/// Reads one run; `section` is the heading it stands under.
pub(super) fn transcript(text: &str, section: Option<&str>) -> Trajectory {
    // A label and the lines that its text goes on over.
    let mut entries: Vec<(Line, String)> = Vec::new();
    for line in text.lines() {
        match (Line::of(line), entries.last_mut()) {
            (Line::More(_) | Line::Banner, Some((_, text))) => {
                text.push('\n');
                text.push_str(line);
            }
            (label, _) => {
                let text = match label {
                    Line::Question(text)
                    | Line::Thought(text)
                    | Line::Action(text)
                    | Line::Observation(text)
                    | Line::Answer(text) => text,
                    _ => line,
                };
                entries.push((label, text.to_owned()));
            }
        }
    }
    let mut run = Trajectory::new(super::ReactText.format(), Task::from_goal(""));
    let mut verdict = None;
    let mut thought: Option<String> = None;
    for (label, text) in entries {
        let text = text.trim_end().to_owned();
        match label {
            Line::Question(_) => {
                let at = text.find(REFLECTIONS_START).unwrap_or(text.len());
                let (question, reflections) = text.split_at(at);
                run.task = Task::from_goal(question.trim());
                let reflections = (!reflections.is_empty()).then_some(reflections);
                let parts = [Some(question.trim()), reflections].into_iter().flatten().map(Part::text);
                run.push(Node::new(Role::User, "user", parts.collect()));
            }
            Line::Thought(_) => {
                flush(&mut run, thought.replace(text));
            }
            Line::Action(_) => {
                let said = thought.take().map(Part::text);
                let parts = said.into_iter().chain([action(&text)]).collect();
                run.push(Node::new(Role::Assistant, "assistant", parts).sampled());
            }
            Line::Observation(_) => match text.as_str() {
                "Answer is CORRECT" => verdict = Some((true, text)),
                "Answer is INCORRECT" => verdict = Some((false, text)),
                _ => {
                    let name = run
                        .nodes
                        .last()
                        .and_then(|node| node.tool_calls().next())
                        .map(|(_, call)| call.name.clone());
                    let agent = name.unwrap_or_else(|| "tool".to_owned());
                    run.push(Node::new(Role::Tool, agent, vec![Part::text_result(None, text)]));
                }
            },
            Line::Answer(_) => run.hidden.gold = Some(Json::string(&text)),
            _ => {}
        }
    }
    flush(&mut run, thought);
    run.finish(match (&verdict, section) {
        (Some((correct, _)), _) => {
            Outcome::from_flag(*correct, "answer is correct").ended(TerminationKind::Completed, "Finish")
        }
        (None, Some("HALTED")) => Outcome::unknown().ended(TerminationKind::StepLimit, "HALTED"),
        (None, Some("CORRECT")) => Outcome::from_flag(true, "heading is CORRECT"),
        (None, Some("INCORRECT")) => Outcome::from_flag(false, "heading is CORRECT"),
        (None, _) => Outcome::unknown(),
    });
    run.hidden.verifier_output = verdict.map(|(_, text)| Json::string(&text));
    if let Some(section) = section {
        run.extra.insert("heading".to_owned(), Json::string(section));
    }
    run
}

/// A thought without an action is a turn too.
fn flush(run: &mut Trajectory, thought: Option<String>) {
    if let Some(thought) = thought {
        run.push(Node::new(Role::Assistant, "assistant", vec![Part::text(thought)]).sampled());
    }
}

/// `Search[text]` as a call; anything else stays text.
fn action(text: &str) -> Part {
    let word = text.split_once('[').and_then(|(name, rest)| Some((name, rest.strip_suffix(']')?)));
    match word {
        Some((name, inside)) if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            Part::ToolCall(ToolCall {
                call_id: None,
                name: name.to_owned(),
                arguments_raw: inside.to_owned(),
                arguments_form: ArgumentsForm::String,
            })
        }
        _ => Part::text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn lines_are_told_apart() {
        assert_eq!(Line::of("------------- BEGIN HALTED AGENTS --------------"), Line::Section("HALTED"));
        assert_eq!(Line::of("BEGIN TRIAL 2"), Line::Trial(2));
        assert_eq!(Line::of("Observation 12: a: b"), Line::Observation("a: b"));
        assert_eq!(Line::of("Action items: none"), Line::More("Action items: none"));
        assert_eq!(Line::of("--- BEGIN"), Line::More("--- BEGIN"));
    }
}
