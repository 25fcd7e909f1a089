//! An identifier or a number in an argument that occurs in no earlier message.

use serde_json::Value;

use super::{Detector, FINDINGS_MAX, Run, finding, quoted};
use crate::diagnosis::actions::Action;
use crate::diagnosis::effects::Effect;
use crate::trajectory::Citation;
use crate::verdict::Finding;

/// Arguments whose values the agent is free to word.
const FREE_TEXT: &[&str] = &[
    "action",
    "answer",
    "body",
    "code",
    "command",
    "cmd",
    "content",
    "description",
    "expression",
    "file",
    "file_path",
    "file_text",
    "filename",
    "input",
    "keyword",
    "keywords",
    "limit",
    "line",
    "message",
    "new_str",
    "note",
    "offset",
    "old_str",
    "page",
    "path",
    "pattern",
    "prompt",
    "q",
    "query",
    "question",
    "reason",
    "regex",
    "script",
    "search",
    "search_term",
    "selector",
    "subject",
    "summary",
    "text",
    "thought",
    "timeout",
    "title",
    "url",
    "view_range",
];

/// Forms of a value that stands in for one the agent does not have.
const PLACEHOLDERS: &[&str] =
    &["your_", "your-", "<your", "example.com", "placeholder", "insert_", "xxxx", "<user", "<id", "todo"];

/// See the module.
pub(super) struct UngroundedArgument;

impl Detector for UngroundedArgument {
    fn name(&self) -> &'static str {
        "ungrounded-argument"
    }

    fn capability(&self) -> &'static str {
        "argument_grounding"
    }

    fn describe(&self) -> &'static str {
        "an identifier or number in an argument occurs in no earlier message"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let before = findings.len();
        for (at, action) in run.actions.iter().enumerate() {
            let Some(arguments) = &action.arguments else {
                findings.extend(placeholder_in_text(self, run, at));
                continue;
            };
            if findings.len() - before >= FINDINGS_MAX {
                return;
            }
            let mut leaves = Vec::new();
            collect(arguments, "", 0, &mut leaves);
            let mut cursor = 0;
            let mut worst: Option<(f64, &Leaf<'_>, Citation)> = None;
            for leaf in &leaves {
                let range = locate(action.raw, leaf.value, &mut cursor);
                let Some(strength) = doubt(run, action, leaf) else { continue };
                let Some(citation) = range.and_then(|(start, end)| action.cite(start, end)) else { continue };
                if worst.as_ref().is_none_or(|(most, ..)| strength > *most) {
                    worst = Some((strength, leaf, citation));
                }
            }
            let Some((strength, leaf, citation)) = worst else { continue };
            let value = citation.quote(run.trajectory).unwrap_or_default();
            let message = format!(
                "The call of `{}` gives {} as `{}`, which occurs in no earlier message.",
                action.name,
                quoted(value),
                leaf.key
            );
            let mut found = finding(self, action.node, strength, message, [citation]);
            // A look that found something had the right key, however the agent came by it.
            let found_it =
                action.observation.as_ref().filter(|_| action.effect == Effect::Read && action.succeeded());
            found.resolved_at = found_it.map(|seen| seen.node).or_else(|| resolution(run, at, leaf));
            findings.push(found);
        }
    }
}

/// Stand-ins in code or a command, as they are written for the reader to fill in.
const CODE_PLACEHOLDERS: &[&str] = &["YOUR_", "your_api_key", "your-api-key", "path/to/", "api.example.com"];

fn placeholder_in_text(detector: &dyn Detector, run: &Run<'_>, at: usize) -> Option<Finding> {
    let action = run.actions.get(at).filter(|action| !action.is_call)?;
    let (start, form) =
        CODE_PLACEHOLDERS.iter().filter_map(|form| Some((action.raw.find(form)?, form))).min()?;
    let tail = &action.raw[start..];
    let len = tail.find(|c: char| !(c.is_alphanumeric() || "_-./".contains(c))).unwrap_or(tail.len());
    let value = &tail[..len.max(form.len())];
    if run.is_seen_before(value, action.index) {
        return None;
    }
    let citation = action.cite(start, start + value.len())?;
    let message = format!("The agent runs code with {}, a stand-in that nothing supplied.", quoted(value));
    let mut found = finding(detector, action.node, 0.6, message, [citation]);
    found.resolved_at = run.actions[at + 1..]
        .iter()
        .find(|later| later.name == action.name && later.succeeded() && !later.raw.contains(value))
        .map(|later| later.node);
    Some(found)
}

/// A value inside arguments, with the nearest key above it.
struct Leaf<'a> {
    key: &'a str,
    value: &'a Value,
}

fn collect<'a>(value: &'a Value, key: &'a str, depth: usize, leaves: &mut Vec<Leaf<'a>>) {
    match value {
        _ if depth > 16 || leaves.len() >= 256 => {}
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| collect(member, key, depth + 1, leaves));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, key, depth + 1, leaves)),
        Value::String(_) | Value::Number(_) => leaves.push(Leaf { key, value }),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Bytes of a leaf in the arguments. Leaves come in the order of the text, so each is searched behind
/// the one before it.
fn locate(raw: &str, value: &Value, cursor: &mut usize) -> Option<(usize, usize)> {
    let written = value.to_string();
    let written = match value {
        Value::String(_) => written.get(1..written.len() - 1)?,
        _ => &written,
    };
    let start = *cursor + raw.get(*cursor..)?.find(written)?;
    *cursor = start + written.len();
    Some((start, *cursor))
}

/// How doubtful a value is, or `None` where it is grounded or the agent's to choose.
fn doubt(run: &Run<'_>, action: &Action<'_>, leaf: &Leaf<'_>) -> Option<f64> {
    let key = leaf.key.to_lowercase();
    if FREE_TEXT.contains(&key.as_str()) {
        return None;
    }
    let mutates = action.effect == Effect::Mutate;
    let strength = match leaf.value {
        Value::String(text) => {
            let text = text.trim();
            let lower = text.to_lowercase();
            let stands_in = PLACEHOLDERS.iter().any(|form| lower.contains(form)) && text.len() < 80;
            if !(stands_in || is_identifier(text)) || run.is_seen_before(text, action.index) {
                return None;
            }
            if stands_in { 0.9 } else { 0.7 }
        }
        Value::Number(number) => {
            let value = number.as_f64()?;
            // A small or round number is a count or a bound, not something that was read.
            if !mutates || value.abs() < 100.0 || value.abs() > 1e12 || (value % 100.0) == 0.0 {
                return None;
            }
            let hundredths = (value.abs() * 100.0).round() as i64;
            if run.is_seen_before(&number.to_string(), action.index)
                || run.is_number_grounded(hundredths, action.index)
            {
                return None;
            }
            0.4
        }
        _ => return None,
    };
    Some(if !mutates && action.succeeded() { strength * 0.6 } else { strength })
}

/// One word of letters with digits, or digits alone from four on: not a date, a time, a path, a version.
fn is_identifier(text: &str) -> bool {
    let word = text.strip_prefix('#').unwrap_or(text);
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    let plain = word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '@' | '.'));
    let is_date = digits >= 4 && letters <= 1 && word.contains(['-', '.']);
    let is_year = word.len() == 4 && letters == 0 && (word.starts_with("19") || word.starts_with("20"));
    let is_quantity =
        word.bytes().next().is_some_and(|byte| byte.is_ascii_digit()) && letters <= 3 && digits <= 4;
    (4..=64).contains(&word.len())
        && plain
        && !is_date
        && !is_year
        && (word.contains('@')
            || (digits >= 1 && letters >= 1 && !is_quantity)
            || (letters == 0 && digits >= 4))
        && !word
            .rsplit('.')
            .next()
            .is_some_and(|suffix| word.contains('.') && suffix.len() <= 4 && !word.contains('@'))
}

/// A later call of the same tool that succeeded with another value under the same key.
fn resolution(run: &Run<'_>, at: usize, leaf: &Leaf<'_>) -> Option<usize> {
    let action = &run.actions[at];
    run.actions[at + 1..]
        .iter()
        .filter(|later| later.name == action.name && later.succeeded())
        .find(|later| {
            let mut leaves = Vec::new();
            if let Some(arguments) = &later.arguments {
                collect(arguments, "", 0, &mut leaves);
            }
            leaves.iter().all(|other| other.key != leaf.key || other.value != leaf.value)
        })
        .map(|later| later.node)
}

#[cfg(test)]
mod tests {
    use super::{UngroundedArgument, is_identifier};
    use crate::diagnosis::fixture::{call, chat, detect, result, say, system, user, with_tool};

    #[test]
    fn an_identifier_from_nowhere_is_cited() {
        let run = chat(vec![
            user("cancel my order, I am mia_li_36"),
            call("cancel_order", r##"{"order_id": "#W99812", "user": "mia_li_36"}"##),
            result("Error: not found"),
        ]);
        let found = detect(&UngroundedArgument, &run, &[]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].citations[0].quote(&run), Ok("#W99812"));
        assert!(found[0].strength >= 0.6 && found[0].resolved_at.is_none());
    }

    #[test]
    fn the_right_value_later_resolves_it() {
        let run = chat(vec![
            user("hi"),
            call("get_order", r#"{"id":"W99812"}"#),
            result("Error: not found"),
            user("it is W11111"),
            call("get_order", r#"{"id":"W11111"}"#),
            result("total 3"),
        ]);
        assert_eq!(detect(&UngroundedArgument, &run, &[])[0].resolved_at, Some(4));
    }

    #[test]
    fn placeholders_are_the_surest_sign() {
        let run = chat(vec![user("weather"), call("get_weather", r#"{"api_key":"YOUR_API_KEY"}"#)]);
        assert!(detect(&UngroundedArgument, &run, &[])[0].strength > 0.8);
    }

    #[test]
    fn stand_ins_in_code_count_too() {
        let run = chat(vec![user("rain?"), say("```python\nkey = 'YOUR_KEY'\n```")]);
        let found = detect(&UngroundedArgument, &run, &[]);
        assert_eq!(found[0].citations[0].quote(&run), Ok("YOUR_KEY"));
        let told = chat(vec![user("put YOUR_KEY there"), say("```python\nkey = 'YOUR_KEY'\n```")]);
        assert!(detect(&UngroundedArgument, &told, &[]).is_empty());
    }

    #[test]
    fn what_was_said_offered_or_reckoned_is_grounded() {
        let nodes = vec![
            system("Codes start with HAT001."),
            user("refund 120 and 233.50 to card_77 by May 5"),
            call(
                "refund_order",
                r#"{"amount": 353.5, "to": "card_77", "flight": "HAT001", "date": "2024-05-05", "bags": 2, "cabin": "class9"}"#,
            ),
        ];
        let schema = r#"{"type":"object","properties":{"cabin":{"enum":["class9"]}}}"#;
        let run = with_tool(chat(nodes), "refund_order", schema);
        assert!(detect(&UngroundedArgument, &run, &[]).is_empty());
    }

    #[test]
    fn identifiers_are_told_from_dates_versions_and_quantities() {
        for text in ["W99812", "#A12-9", "user_12", "88231", "joe@mail.org"] {
            assert!(is_identifier(text), "{text}");
        }
        for text in ["2024-05-20", "2024", "10kg", "file.py", "economy", "New York 3", "12", "v1.2"] {
            assert!(!is_identifier(text), "{text}");
        }
    }
}
