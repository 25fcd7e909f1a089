//! Arguments that do not parse, or that the tool's own schema forbids.

use super::{Detector, Run, finding, quoted};
use crate::diagnosis::actions::Action;
use crate::json_schema::{Kind, Violation, violation};
use crate::verdict::Finding;

/// Arguments that violate the tool's JSON Schema.
pub(super) struct SchemaViolation;

/// Arguments that are not JSON.
pub(super) struct UnparsableArguments;

impl Detector for SchemaViolation {
    fn name(&self) -> &'static str {
        "schema-violation"
    }

    fn capability(&self) -> &'static str {
        "argument_formatting"
    }

    fn describe(&self) -> &'static str {
        "arguments break the tool's JSON Schema"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        for (at, action) in run.actions.iter().enumerate() {
            let (Some(schema), Some(arguments)) = (run.schemas.get(action.name), &action.arguments) else {
                continue;
            };
            let Some(violation) = violation(schema, arguments) else { continue };
            let Some(citation) = cite(action, &violation) else { continue };
            // A tool that took the arguments all the same is more lenient than its schema.
            let strength = if action.succeeded() { 0.3 } else { 0.85 };
            let mut found = finding(self, action.node, strength, words(action.name, &violation), [citation]);
            found.citations.extend(action.observation.as_ref().and_then(|seen| seen.failure.clone()));
            found.resolved_at = if action.succeeded() {
                action.observation.as_ref().map(|seen| seen.node)
            } else {
                run.later_success(at).map(|later| later.node)
            };
            findings.push(found);
        }
    }
}

fn words(tool: &str, violation: &Violation) -> String {
    let at = violation.path.iter().rev().find(|key| key.parse::<usize>().is_err());
    let place = at.map_or_else(|| "the arguments".to_owned(), |key| format!("`{key}`"));
    let fault = match &violation.kind {
        Kind::Type(expected) => format!("{place} must be of type {expected}"),
        Kind::Missing(key) => format!("{place} lack the required `{key}`").replace("` lack", "` lacks"),
        Kind::Unknown(key) => format!("{place} hold `{key}`, which the tool does not take"),
        Kind::Enum => format!("{place} holds a value that is not among those allowed"),
        Kind::Bounds => format!("{place} is outside the allowed bounds"),
    };
    format!("The arguments of `{tool}` break its schema: {fault}.")
}

/// The key at fault where it can be found in the text, else the whole arguments.
fn cite(action: &Action<'_>, violation: &Violation) -> Option<crate::trajectory::Citation> {
    let key = match &violation.kind {
        Kind::Unknown(key) => Some(key),
        _ => violation.path.first(),
    };
    let range = key.and_then(|key| {
        let start = action.raw.find(&format!("\"{key}\""))?;
        let rest = &action.raw[start..];
        let end = rest.find([',', '}']).unwrap_or(rest.len());
        Some(start..start + rest[..end].trim_end().len())
    });
    range.and_then(|range| action.cite(range.start, range.end)).or_else(|| action.citation())
}

impl Detector for UnparsableArguments {
    fn name(&self) -> &'static str {
        "unparsable-arguments"
    }

    fn capability(&self) -> &'static str {
        "argument_formatting"
    }

    fn describe(&self) -> &'static str {
        "arguments are not JSON"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        for (at, action) in run.actions.iter().enumerate().filter(|(_, action)| action.is_call) {
            // Tools that take free text (a patch, a script) have no schema and no brace.
            let means_json =
                action.raw.trim_start().starts_with('{') || run.schemas.contains_key(action.name);
            if action.arguments.is_some() || action.raw.trim().is_empty() || !means_json || action.succeeded()
            {
                continue;
            }
            let message = format!(
                "The arguments of `{}` are not valid JSON: {}.",
                action.name,
                quoted(action.raw.trim_start_matches(['{', '"', ' ', '\n']))
            );
            let mut found = finding(self, action.node, 0.9, message, action.citation());
            found.resolved_at = run.later_success(at).map(|later| later.node);
            findings.push(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SchemaViolation, UnparsableArguments};
    use crate::diagnosis::fixture::{call, chat, detect, result, user, with_tool};

    const SCHEMA: &str =
        r#"{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"n":{"type":"integer"}}}"#;

    fn run(arguments: &str, answer: &str) -> crate::trajectory::Trajectory {
        let nodes = vec![user("go"), call("pay", arguments), result(answer)];
        with_tool(chat(nodes), "pay", SCHEMA)
    }

    #[test]
    fn a_broken_schema_is_cited_at_its_key() {
        let run = run(r#"{"id": "A", "n": "3"}"#, "Error: bad n");
        let found = detect(&SchemaViolation, &run, &[]);
        assert_eq!(found[0].citations[0].quote(&run), Ok(r#""n": "3""#));
        assert_eq!(found[0].resolved_at, None);
    }

    #[test]
    fn arguments_that_fit_are_silent_and_accepted_ones_resolved() {
        assert!(detect(&SchemaViolation, &run(r#"{"id":"A","n":3}"#, "Error: full"), &[]).is_empty());
        let found = detect(&SchemaViolation, &run(r#"{"n":3}"#, "ok"), &[]);
        assert_eq!((found[0].strength < 0.5, found[0].resolved_at), (true, Some(2)));
    }

    #[test]
    fn cut_json_is_found_and_resolved_by_a_later_call() {
        let broken = run(r#"{"id": "A"#, "Error: arguments");
        assert_eq!(detect(&UnparsableArguments, &broken, &[])[0].resolved_at, None);
        let mut nodes = vec![user("go"), call("pay", r#"{"id": "#), result("Error: arguments")];
        nodes.extend([call("pay", r#"{"id":"A"}"#), result("ok")]);
        assert_eq!(detect(&UnparsableArguments, &chat(nodes), &[])[0].resolved_at, Some(3));
    }

    #[test]
    fn free_text_tools_are_silent() {
        let run = chat(vec![user("go"), call("apply_patch", "*** Begin Patch"), result("Error: x")]);
        assert!(detect(&UnparsableArguments, &run, &[]).is_empty());
    }
}
