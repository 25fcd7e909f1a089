//! Candidates: the repair that a finding itself implies, where rules can derive one soundly.
//!
//! Two faults carry their own repair: a misspelled tool, and a value whose text is right and whose type
//! is wrong. For any other fault the rules propose nothing; a judge may.

use serde_json::{Value, json};

use super::Run;
use super::actions::Action;
use super::schema::{Kind, violation};
use crate::json::Json;
use crate::verdict::{Candidate, Finding};

/// Edits by which a misspelled tool's name may differ from the one offered.
const EDITS_MAX: usize = 2;

/// The repair of a finding, or `None`.
pub(crate) fn candidate(run: &Run<'_>, finding: &Finding) -> Option<Candidate> {
    let action = run.actions.iter().find(|action| action.is_call && action.node == finding.node)?;
    match finding.detector.as_str() {
        "unknown-tool" => misspelled(run, action),
        "schema-violation" => retyped(run, action),
        _ => None,
    }
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
