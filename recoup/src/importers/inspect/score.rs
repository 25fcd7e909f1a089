//! Scores of a sample: letters, numbers, truth values, lists and dictionaries become named numbers; and
//! how a sample came to its end.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::importers::object::Object;
use crate::trajectory::TerminationKind;

/// Named numbers of all scorers, in order of their names. A list or a dictionary gives one for each
/// of its entries (`scorer/entry`); what is no number on Inspect's scale gives none.
pub(super) fn named(scores: Object) -> Vec<(String, f64)> {
    let mut out = Vec::new();
    for (scorer, raw) in scores.members() {
        let value = value(raw);
        match value {
            Value::Array(entries) => {
                let numbered = entries.iter().enumerate();
                out.extend(
                    numbered.filter_map(|(index, entry)| Some((format!("{scorer}/{index}"), number(entry)?))),
                );
            }
            Value::Object(entries) => {
                out.extend(
                    entries
                        .iter()
                        .filter_map(|(name, entry)| Some((format!("{scorer}/{name}"), number(entry)?))),
                );
            }
            value => out.extend(number(&value).map(|number| (scorer, number))),
        }
    }
    out
}

/// A score's value: `{"value": …}`, or the bare value of early logs.
fn value(raw: &RawValue) -> Value {
    let scored = Object::of(raw).filter(|score| score.has("value"));
    let raw = scored.map_or(Some(raw), |mut score| score.take("value"));
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// A value on Inspect's scale: correct 1, partial 0.5, incorrect and no answer 0, words as in its
/// `value_to_float`.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(passed) => Some(f64::from(u8::from(*passed))),
        Value::String(text) => match text.as_str() {
            "C" => Some(1.0),
            "P" => Some(0.5),
            "I" | "N" => Some(0.0),
            _ => match text.to_ascii_lowercase().as_str() {
                "yes" | "true" => Some(1.0),
                "no" | "false" => Some(0.0),
                number => number.parse().ok().filter(|number: &f64| number.is_finite()),
            },
        },
        _ => None,
    }
}

/// The kind of end in a sample's `limit.type`.
pub(super) fn limit(kind: &str) -> TerminationKind {
    match kind {
        "message" | "turn" => TerminationKind::StepLimit,
        "token" | "cost" => TerminationKind::BudgetExceeded,
        "time" | "working" => TerminationKind::Timeout,
        "context" => TerminationKind::ContextOverflow,
        "operator" => TerminationKind::Cancelled,
        _ => TerminationKind::Other,
    }
}

/// The kind of end in the last response's `stop_reason`.
pub(super) fn stop(reason: &str) -> TerminationKind {
    match reason {
        "stop" | "tool_calls" => TerminationKind::Completed,
        "max_tokens" => TerminationKind::BudgetExceeded,
        "model_length" => TerminationKind::ContextOverflow,
        _ => TerminationKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::named;
    use crate::importers::object::Object;

    #[test]
    fn every_kind_of_value_becomes_named_numbers() {
        let scores = br#"{"a":{"value":"C"},"b":{"value":"I"},"c":{"value":0.25},"d":{"value":[1,"P"]},
            "e":{"value":{"x":true,"y":"N"}},"f":{"value":"free text"},"g":{"value":null},"h":{"value":"1.0"}}"#;
        let named = named(serde_json::from_slice::<Object<'_>>(scores).unwrap());
        let named: Vec<(&str, f64)> = named.iter().map(|(name, score)| (name.as_str(), *score)).collect();
        let expected = [
            ("a", 1.0),
            ("b", 0.0),
            ("c", 0.25),
            ("d/0", 1.0),
            ("d/1", 0.5),
            ("e/x", 1.0),
            ("e/y", 0.0),
            ("h", 1.0),
        ];
        assert_eq!(named, expected);
    }
}
