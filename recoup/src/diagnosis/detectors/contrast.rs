//! Changes that the successful runs of the same task make in another order, or not at all.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Detector, Run, finding, quoted_at};
use crate::diagnosis::actions::Action;
use crate::diagnosis::siblings::{agreed_changes, first_of, is_change, mutating_tools};
use crate::trajectory::Citation;
use crate::verdict::Finding;

/// Two changes in the reverse of the order in which every success makes them.
pub(super) struct WrongOrder;

/// A change that no success makes.
pub(super) struct DeviatingMutation;

impl Detector for WrongOrder {
    fn name(&self) -> &'static str {
        "wrong-order"
    }

    fn capability(&self) -> &'static str {
        "planning"
    }

    fn describe(&self) -> &'static str {
        "makes changes in the reverse of the order in which every successful run makes them"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let tools: Vec<&str> = mutating_tools(&run.actions).into_iter().collect();
        for (at, one) in tools.iter().enumerate() {
            for other in &tools[at + 1..] {
                let (Some(first), Some(second)) =
                    (first_of(&run.actions, one), first_of(&run.actions, other))
                else {
                    continue;
                };
                let orders: Vec<bool> = run
                    .successes
                    .iter()
                    .filter_map(|success| Some(first_of(success, one)? < first_of(success, other)?))
                    .collect();
                if orders.is_empty() || orders.contains(&(first < second)) {
                    continue;
                }
                let (early, late) = (&run.actions[first.min(second)], &run.actions[first.max(second)]);
                let strength = if orders.len() > 1 { 0.5 } else { 0.35 };
                let message = format!(
                    "The agent calls `{}` before `{}`; the task needs them the other way round.",
                    early.name, late.name
                );
                let citations = early.citation().into_iter().chain(late.citation());
                findings.push(finding(self, early.node, strength, message, citations));
            }
        }
    }
}

impl Detector for DeviatingMutation {
    fn name(&self) -> &'static str {
        "deviating-mutation"
    }

    fn capability(&self) -> &'static str {
        "decision_making"
    }

    fn describe(&self) -> &'static str {
        "makes a change that none of the successful runs of the task makes"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let Some(expected) = agreed_changes(run) else { return };
        for (at, action) in run.actions.iter().enumerate() {
            if !is_change(action) || expected.contains(&action.key) {
                continue;
            }
            let (message, citation) = match wrong_argument(run, action) {
                Some((key, at)) => {
                    let value = quoted_at(run, &at);
                    let call = format!("The agent calls `{}` with {value} as `{key}`", action.name);
                    (format!("{call}, which is not what the task needs."), Some(at))
                }
                None => (deviation(run, action), action.citation()),
            };
            let strength = if run.successes.len() > 1 { 0.65 } else { 0.5 };
            let mut found = finding(self, action.node, strength, message, citation);
            if found.citations.is_empty() {
                continue;
            }
            found.resolved_at = run.actions[at + 1..]
                .iter()
                .find(|later| later.name == action.name && is_change(later) && expected.contains(&later.key))
                .map(|later| later.node);
            findings.push(found);
        }
    }
}

/// Fields that a message names at most.
const FIELDS_NAMED: usize = 4;

/// In what a change differs from the nearest change by the same tool that the task needs and the run
/// lacks: the fields by name, of which every one stands in the run, and never the value they should have.
fn deviation(run: &Run<'_>, action: &Action<'_>) -> String {
    let name = action.name;
    let made = |key| run.actions.iter().any(|own| own.key == key && is_change(own));
    let needed = run
        .successes
        .iter()
        .flatten()
        .filter(|other| other.name == name && is_change(other) && !made(other.key));
    let nearest = needed.map(|other| differing_fields(action, other)).min_by_key(BTreeSet::len);
    let Some(fields) = nearest else {
        return format!("The agent makes a change with `{name}` that the task does not need.");
    };
    let is_plain =
        |field: &&&str| field.chars().all(|c| c.is_alphanumeric() || c == '_') && run.is_visible(field);
    let named: Vec<String> =
        fields.iter().filter(is_plain).take(FIELDS_NAMED).map(|field| format!("`{field}`")).collect();
    if named.is_empty() {
        return format!("The change that the agent makes with `{name}` is not one the task needs.");
    }
    format!(
        "The change that the agent makes with `{name}` is not the one the task needs: it differs in {}.",
        named.join(", ")
    )
}

/// Names of the arguments that two calls do not share.
fn differing_fields<'a>(one: &'a Action<'_>, other: &'a Action<'_>) -> BTreeSet<&'a str> {
    let members = |action: &'a Action<'_>| action.arguments.as_ref().and_then(Value::as_object);
    let (Some(own), Some(right)) = (members(one), members(other)) else { return BTreeSet::new() };
    let differs = |key: &&String| own.get(*key) != right.get(*key);
    own.keys().chain(right.keys()).filter(differs).map(String::as_str).collect()
}

/// The one argument that sets a change apart from a call of the same tool in a success, with its bytes.
fn wrong_argument<'a>(run: &Run<'_>, action: &'a Action<'_>) -> Option<(&'a str, Citation)> {
    let own = action.arguments.as_ref()?.as_object()?;
    let calls = run.successes.iter().flatten().filter(|other| other.name == action.name && is_change(other));
    let mut differing = calls.filter_map(|other| {
        let right = other.arguments.as_ref()?.as_object()?;
        let mut keys = own.iter().filter(|(key, value)| right.get(*key) != Some(value));
        let key = keys.next()?.0.as_str();
        (keys.next().is_none() && right.contains_key(key)).then_some(key)
    });
    let key = differing.next()?;
    let start = action.raw.find(&format!("\"{key}\""))? + key.len() + 2;
    let value = own.get(key)?.as_str()?;
    let at = start + action.raw[start..].find(value)?;
    Some((key, action.cite(at, at + value.len())?))
}

#[cfg(test)]
mod tests {
    use super::{DeviatingMutation, WrongOrder};
    use crate::diagnosis::fixture::{calls, detect, succeeded};

    const LOOK: (&str, &str) = ("get_order", r#"{"id":"W101"}"#);
    const CANCEL: (&str, &str) = ("cancel_order", r#"{"id":"W101"}"#);
    const REFUND: (&str, &str) = ("refund_order", r#"{"id":1}"#);

    #[test]
    fn the_reverse_order_is_found_and_a_shared_one_not() {
        let success = succeeded(calls(&[CANCEL, REFUND]));
        assert_eq!(detect(&WrongOrder, &calls(&[REFUND, CANCEL]), &[&success]).len(), 1);
        assert!(detect(&WrongOrder, &calls(&[CANCEL, REFUND]), &[&success]).is_empty());
        let both = succeeded(calls(&[REFUND, CANCEL]));
        assert!(detect(&WrongOrder, &calls(&[REFUND, CANCEL]), &[&success, &both]).is_empty());
    }

    #[test]
    fn a_deviation_names_its_fields_and_no_value_of_another_run() {
        let success = succeeded(calls(&[("pay_bill", r#"{"card":"C9","sum":70,"note":"n","hidden":1}"#)]));
        let wrong = calls(&[("pay_bill", r#"{"card":"C1","sum":80,"note":"n"}"#)]);
        let found = detect(&DeviatingMutation, &wrong, &[&success]);
        assert_eq!(
            found[0].message,
            "The change that the agent makes with `pay_bill` is not the one the task needs: \
             it differs in `card`, `sum`."
        );
        let more = calls(&[CANCEL, ("cancel_order", r#"{"id":"W7"}"#)]);
        let found = detect(&DeviatingMutation, &more, &[&succeeded(calls(&[CANCEL]))]);
        assert!(found[0].message.contains("W7"), "{}", found[0].message);
        let extra = calls(&[CANCEL, ("send_mail", r#"{"to":"W7","n":1}"#)]);
        let found = detect(&DeviatingMutation, &extra, &[&succeeded(calls(&[CANCEL]))]);
        assert_eq!(
            found[0].message,
            "The agent makes a change with `send_mail` that the task does not need."
        );
    }

    #[test]
    fn a_change_of_its_own_deviates_unless_corrected_or_successes_differ() {
        let success = succeeded(calls(&[LOOK, CANCEL]));
        let wrong = ("cancel_order", r#"{"id":2}"#);
        assert_eq!(detect(&DeviatingMutation, &calls(&[wrong]), &[&success])[0].resolved_at, None);
        assert_eq!(detect(&DeviatingMutation, &calls(&[wrong, CANCEL]), &[&success])[0].resolved_at, Some(3));
        assert!(detect(&DeviatingMutation, &calls(&[CANCEL]), &[&success]).is_empty());
        let differing = calls(&[("cancel_order", r#"{"id":"W999"}"#)]);
        let found = detect(&DeviatingMutation, &differing, &[&success]);
        assert_eq!(found[0].citations[0].quote(&differing), Ok("W999"));
        let other = succeeded(calls(&[REFUND]));
        assert!(detect(&DeviatingMutation, &calls(&[wrong]), &[&success, &other]).is_empty());
    }
}
