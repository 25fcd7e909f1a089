//! Candidates: the repair that a finding itself implies, where rules can derive one soundly.
//!
//! Five faults carry their own repair: a misspelled tool; a value whose text is right and whose type is
//! wrong; a value that nothing showed, next to one alike that was shown; a repetition, which the run
//! itself leaves by another call; and a stop with goals open, where looking again goes on. For any other
//! fault the rules propose nothing; a judge may. None is proved before a replay.

use serde_json::{Value, json};

use super::Run;
use super::actions::Action;
use super::effects::Effect;
use super::words::{Word, words};
use crate::json::Json;
use crate::json_schema::{Kind, violation};
use crate::verdict::{Candidate, Finding};

/// Edits by which a misspelled tool's name may differ from the one offered.
const EDITS_MAX: usize = 2;
/// Words of one observation among which a value is looked for.
const SPANS_MAX: usize = 4096;

/// The repair of a finding, or `None`.
pub(crate) fn candidate(run: &Run<'_>, finding: &Finding) -> Option<Candidate> {
    let action = run.actions.iter().find(|action| action.is_call && action.node == finding.node);
    let proposed = match (finding.detector.as_str(), action) {
        ("unknown-tool", Some(action)) => misspelled(run, action),
        ("schema-violation", Some(action)) => retyped(run, action),
        ("ungrounded-argument", Some(action)) => grounded(run, action, finding),
        ("repeated-call" | "loop" | "limit-reached", Some(action)) => moved_on(run, action),
        ("premature-stop" | "claimed-action", None) => looked_again(run, finding.node),
        _ => None,
    };
    proposed.filter(|candidate| is_taken(run, &candidate.action.to_value()))
}

/// Whether a tool is offered that takes such a call.
fn is_taken(run: &Run<'_>, call: &Value) -> bool {
    let tool = call.get("name").and_then(Value::as_str).and_then(|name| run.trajectory.tool(name));
    let Some((tool, arguments)) = tool.zip(call.get("arguments")) else { return false };
    tool.parameters.as_ref().is_none_or(|schema| violation(&schema.to_value(), arguments).is_none())
}

/// The same call with the value that the run had seen and that is most like the one it made up.
fn grounded(run: &Run<'_>, action: &Action<'_>, finding: &Finding) -> Option<Candidate> {
    let made_up = finding.citations.first()?.quote(run.trajectory).ok()?;
    let arguments = action.arguments.as_ref()?;
    let (key, value) = arguments.as_object()?.iter().find(|(_, value)| value.as_str() == Some(made_up))?;
    let wrong = value.as_str()?;
    let seen = run.actions.iter().take_while(|other| other.index < action.index);
    let texts = seen.filter_map(|other| Some(other.observation.as_ref()?.text));
    let mut near: Vec<(usize, &str)> = Vec::new();
    for text in texts.chain([run.trajectory.task.goal.as_str()]) {
        for span in spans(text, wrong) {
            let distance = edits(span, wrong);
            if distance * 2 <= wrong.chars().count() && !near.iter().any(|(_, known)| *known == span) {
                near.push((distance, span));
            }
        }
    }
    near.sort_unstable();
    // Two that are as near as each other: nothing says which.
    let (nearest, right) = near.first().copied()?;
    if near.get(1).is_some_and(|(distance, _)| *distance == nearest) {
        return None;
    }
    let mut arguments = arguments.clone();
    arguments.as_object_mut()?.insert(key.clone(), Value::String(right.to_owned()));
    let rationale = format!("The same call with \"{right}\", which was shown before.");
    Some(Candidate { action: write(action.name, &arguments)?, rationale })
}

/// Stretches of a text with as many words as a value, of the same shape where it holds digits.
fn spans<'a>(text: &'a str, like: &str) -> Vec<&'a str> {
    let shape =
        |text: &str| -> String { text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect() };
    let has_digit = like.contains(|c: char| c.is_ascii_digit());
    let found: Vec<Word> = words(text).take(SPANS_MAX).collect();
    let stretches = found.windows(words(like).count().max(1)).filter_map(|window| {
        let (first, last) = (window.first()?, window.last()?);
        text.get(first.range.start..last.range.end)
    });
    stretches
        .filter(|span| span.len() <= 64 && *span != like)
        .filter(|span| !has_digit || shape(span) == shape(like))
        .collect()
}

/// What the run does when it leaves the repetition at last.
fn moved_on(run: &Run<'_>, action: &Action<'_>) -> Option<Candidate> {
    let earlier =
        |key| run.actions.iter().take_while(|other| other.index < action.index).any(|it| it.key == key);
    let next = run.actions.iter().find(|other| {
        other.is_call && other.index > action.index && other.succeeded() && !earlier(other.key)
    })?;
    let rationale = "What the run does after the repetition, at once.".to_owned();
    Some(Candidate { action: write(next.name, next.arguments.as_ref()?)?, rationale })
}

/// The last look that worked, again, in the place of words that end the run.
fn looked_again(run: &Run<'_>, node: usize) -> Option<Candidate> {
    let mut looks = run.actions.iter().rev().filter(|action| {
        action.is_call && action.node < node && action.succeeded() && action.effect == Effect::Read
    });
    let look = looks.next()?;
    let rationale = "The run is not done: look again and go on.".to_owned();
    Some(Candidate { action: write(look.name, look.arguments.as_ref()?)?, rationale })
}

/// The one offered tool whose name is nearest, where its schema takes the same arguments.
fn misspelled(run: &Run<'_>, action: &Action<'_>) -> Option<Candidate> {
    let arguments = action.arguments.as_ref()?;
    let mut near = run.trajectory.tools.iter().filter(|tool| {
        letters(&tool.name) == letters(action.name) || edits(&tool.name, action.name) <= EDITS_MAX
    });
    let tool = near.next().filter(|_| near.next().is_none())?;
    let schema = tool.parameters.as_ref()?.to_value();
    if violation(&schema, arguments).is_some() {
        return None;
    }
    let rationale = format!("`{}` is offered and takes these arguments.", tool.name);
    Some(Candidate { action: write(&tool.name, arguments)?, rationale })
}

/// The same call with `"3"` written as `3`, or `3` as `"3"`, as the schema asks.
fn retyped(run: &Run<'_>, action: &Action<'_>) -> Option<Candidate> {
    let schema = run.schemas.get(action.name)?;
    let mut arguments = action.arguments.clone()?;
    let fault = violation(schema, &arguments)?;
    let Kind::Type(expected) = &fault.kind else { return None };
    let mut place = &mut arguments;
    for key in &fault.path {
        place = match place {
            Value::Object(members) => members.get_mut(key)?,
            Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    *place = match (expected.as_str(), &*place) {
        ("integer" | "number", Value::String(text)) => {
            serde_json::from_str(text).ok().filter(Value::is_number)?
        }
        ("string", Value::Number(number)) => Value::String(number.to_string()),
        ("boolean", Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_boolean)?,
        _ => return None,
    };
    if violation(schema, &arguments).is_some() {
        return None;
    }
    let rationale = format!("The same call, with the type that the schema of `{}` asks for.", action.name);
    Some(Candidate { action: write(action.name, &arguments)?, rationale })
}

fn write(name: &str, arguments: &Value) -> Option<Json> {
    Json::from_serialize(&json!({ "name": name, "arguments": arguments })).ok()
}

/// A name without case and separators.
fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Levenshtein distance; names are short, and longer ones than 64 characters are never near.
fn edits(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    if left.len().max(right.len()) > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, one) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(one != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use crate::diagnosis::fixture::{call, chat, result, user, with_tool};
    use crate::diagnosis::{DiagnosisConfig, diagnose};
    use crate::trajectory::Trajectory;
    use crate::verdict::Candidate;

    const SCHEMA: &str = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#;

    fn proposed(tool: &str, arguments: &str) -> Option<Candidate> {
        let nodes = vec![user("take 3"), call(tool, arguments), result("Error: bad call")];
        let run: Trajectory = with_tool(chat(nodes), "take_item", SCHEMA);
        diagnose(&run, &[], &DiagnosisConfig::default()).diagnosis?.candidate
    }

    #[test]
    fn a_misspelled_tool_and_a_wrong_type_are_repaired() {
        let right = r#"{"arguments":{"n":3},"name":"take_item"}"#;
        assert_eq!(proposed("takeItem", r#"{"n":3}"#).unwrap().action.as_str(), right);
        assert_eq!(proposed("take_itme", r#"{"n":3}"#).unwrap().action.as_str(), right);
        assert_eq!(proposed("take_item", r#"{"n":"3"}"#).unwrap().action.as_str(), right);
    }

    #[test]
    fn nothing_is_guessed() {
        assert_eq!(proposed("drop_all", r#"{"n":3}"#), None);
        assert_eq!(proposed("takeItem", r#"{"m":3}"#), None);
        assert_eq!(proposed("take_item", r#"{"n":"three"}"#), None);
        assert_eq!(proposed("take_item", r#"{}"#), None);
    }
}
