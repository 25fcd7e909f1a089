//! Faults that show beside the successful runs of the same task, or against an order its policy sets.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Detector, Run, finding, quoted_at};
use crate::diagnosis::actions::Action;
use crate::diagnosis::effects::{Effect, effect, words};
use crate::diagnosis::siblings::{agreed_changes, first_of, is_change, mutating_tools};
use crate::diagnosis::words::words as words_of;
use crate::trajectory::{Citation, Part, Role};
use crate::verdict::Finding;

/// A change made without the look-up that policy or success puts before it.
pub(super) struct MutationWithoutLookup;

/// Two changes in the reverse of the order in which every success makes them.
pub(super) struct WrongOrder;

/// A change that no success makes.
pub(super) struct DeviatingMutation;

impl Detector for MutationWithoutLookup {
    fn name(&self) -> &'static str {
        "mutation-without-lookup"
    }

    fn capability(&self) -> &'static str {
        "precondition_checking"
    }

    fn describe(&self) -> &'static str {
        "changes something without the look-up that the policy or every successful run makes first"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        for tool in mutating_tools(&run.actions) {
            let Some(at) = first_of(&run.actions, tool) else { continue };
            let by_policy = policy_lookups(run, tool);
            let by_success = shared_lookups(run, tool);
            let missing = |needed: &&&str| {
                !run.actions[..at].iter().any(|action| action.name == **needed && !action.failed())
            };
            let (strength, missed) = match (by_policy.iter().find(missing), by_success.iter().find(missing)) {
                (Some(lookup), _) => (0.7, *lookup),
                (None, Some(lookup)) if run.successes.len() > 1 => (0.6, *lookup),
                (None, Some(lookup)) => (0.45, *lookup),
                (None, None) => continue,
            };
            let action = &run.actions[at];
            if by_policy.iter().all(|lookup| lookup != &missed) && is_object_observed(run, action) {
                continue;
            }
            let named = if run.is_visible(missed) { format!(", `{missed}`,") } else { String::new() };
            let message =
                format!("The agent calls `{tool}` before the look-up{named} that has to come first.");
            let mut found = finding(self, action.node, strength, message, action.citation());
            let looked = run.actions[at..].iter().position(|later| later.name == missed && later.succeeded());
            found.resolved_at = looked.and_then(|looked| {
                let again =
                    run.actions[at + looked..].iter().find(|later| later.name == tool && later.succeeded());
                again.map(|again| again.node)
            });
            findings.push(found);
        }
    }
}

/// Whether every identifier that a change is about stands in an earlier observation, so that it was
/// looked up one way or another.
fn is_object_observed(run: &Run<'_>, action: &Action<'_>) -> bool {
    let before = || run.actions.iter().take_while(|other| other.index < action.index);
    let observed: BTreeSet<u64> = before()
        .filter_map(|other| other.observation.as_ref())
        .flat_map(|seen| words_of(seen.text).map(|word| word.hash))
        .collect();
    words_of(action.raw)
        .filter(|word| word.has_digit && word.range.len() >= 4)
        .all(|word| observed.contains(&word.hash))
}

/// Look-ups that every success which makes this change makes before it.
fn shared_lookups<'a>(run: &Run<'a>, tool: &str) -> BTreeSet<&'a str> {
    let mut shared: Option<BTreeSet<&str>> = None;
    for success in &run.successes {
        let Some(at) = first_of(success, tool) else { continue };
        let lookups =
            success[..at].iter().filter(|action| is_lookup(action.name)).map(|action| action.name).collect();
        shared = Some(match shared {
            None => lookups,
            Some(known) => known.intersection(&lookups).copied().collect(),
        });
    }
    shared.unwrap_or_default()
}

/// It reads, and not only the agent's own mind.
fn is_lookup(name: &str) -> bool {
    effect(name) == Effect::Read
        && !words(name).iter().any(|word| matches!(word.as_str(), "think" | "calculate" | "plan"))
}

/// Look-ups that a sentence of the prompts puts before this tool: `call get_x before set_y`.
fn policy_lookups<'a>(run: &Run<'a>, tool: &str) -> Vec<&'a str> {
    let offered: Vec<&str> =
        run.trajectory.tools.iter().map(|tool| tool.name.as_str()).filter(|name| is_lookup(name)).collect();
    if offered.is_empty() {
        return Vec::new();
    }
    let prompts =
        run.branch.nodes().filter(|(_, node)| node.role == Role::System).flat_map(|(_, node)| &node.parts);
    let descriptions = run.trajectory.tools.iter().map(|tool| tool.description.as_str());
    let mut found = Vec::new();
    for text in prompts.filter_map(Part::as_text).chain(descriptions) {
        if !text.contains(tool) {
            continue;
        }
        for sentence in text.split(['\n', ';']).flat_map(|line| line.split(". ")) {
            let Some(change) = sentence.find(tool) else { continue };
            for name in &offered {
                let Some(lookup) = sentence.find(name) else { continue };
                let between = sentence.get(lookup + name.len()..change).unwrap_or_default();
                if between.contains("before") || (lookup < change && sentence[..lookup].contains("first")) {
                    found.push(*name);
                }
            }
        }
    }
    found
}

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
    use super::{DeviatingMutation, MutationWithoutLookup, WrongOrder};
    use crate::diagnosis::fixture::{call, chat, detect, result, succeeded, system, user, with_tool};
    use crate::trajectory::Trajectory;

    fn run(calls: &[(&str, &str)]) -> Trajectory {
        let mut nodes = vec![user("go")];
        for (name, arguments) in calls {
            nodes.extend([call(name, arguments), result("ok")]);
        }
        chat(nodes)
    }

    const LOOK: (&str, &str) = ("get_order", r#"{"id":"W101"}"#);
    const CANCEL: (&str, &str) = ("cancel_order", r#"{"id":"W101"}"#);
    const REFUND: (&str, &str) = ("refund_order", r#"{"id":1}"#);

    #[test]
    fn a_lookup_that_every_success_makes_is_missed() {
        let success = succeeded(run(&[LOOK, CANCEL]));
        let found = detect(&MutationWithoutLookup, &run(&[CANCEL]), &[&success]);
        assert_eq!((found.len(), found[0].node), (1, 1));
        assert!(!found[0].message.contains("get_order"), "a name the run never saw stays out of the message");
        assert!(detect(&MutationWithoutLookup, &run(&[LOOK, CANCEL]), &[&success]).is_empty());
        let redone = detect(&MutationWithoutLookup, &run(&[CANCEL, LOOK, CANCEL]), &[&success]);
        assert_eq!(redone[0].resolved_at, Some(5));
        let other = succeeded(run(&[CANCEL]));
        assert!(detect(&MutationWithoutLookup, &run(&[CANCEL]), &[&success, &other]).is_empty());
    }

    #[test]
    fn a_policy_sentence_is_enough() {
        let mut nodes = vec![system("Always call get_order before cancel_order."), user("cancel")];
        nodes.extend([call(CANCEL.0, CANCEL.1), result("ok")]);
        let policy = with_tool(chat(nodes), "get_order", r#"{"type":"object"}"#);
        assert_eq!(detect(&MutationWithoutLookup, &policy, &[]).len(), 1);
        let nodes = vec![
            system("get_order and cancel_order exist."),
            user("x"),
            call(CANCEL.0, CANCEL.1),
            result("ok"),
        ];
        let free = with_tool(chat(nodes), "get_order", r#"{"type":"object"}"#);
        assert!(detect(&MutationWithoutLookup, &free, &[]).is_empty());
    }

    #[test]
    fn the_reverse_order_is_found_and_a_shared_one_not() {
        let success = succeeded(run(&[CANCEL, REFUND]));
        assert_eq!(detect(&WrongOrder, &run(&[REFUND, CANCEL]), &[&success]).len(), 1);
        assert!(detect(&WrongOrder, &run(&[CANCEL, REFUND]), &[&success]).is_empty());
        let both = succeeded(run(&[REFUND, CANCEL]));
        assert!(detect(&WrongOrder, &run(&[REFUND, CANCEL]), &[&success, &both]).is_empty());
    }

    #[test]
    fn a_deviation_names_its_fields_and_no_value_of_another_run() {
        let success = succeeded(run(&[("pay_bill", r#"{"card":"C9","sum":70,"note":"n","hidden":1}"#)]));
        let wrong = run(&[("pay_bill", r#"{"card":"C1","sum":80,"note":"n"}"#)]);
        let found = detect(&DeviatingMutation, &wrong, &[&success]);
        assert_eq!(
            found[0].message,
            "The change that the agent makes with `pay_bill` is not the one the task needs: \
             it differs in `card`, `sum`."
        );
        let more = run(&[CANCEL, ("cancel_order", r#"{"id":"W7"}"#)]);
        let found = detect(&DeviatingMutation, &more, &[&succeeded(run(&[CANCEL]))]);
        assert!(found[0].message.contains("W7"), "{}", found[0].message);
        let extra = run(&[CANCEL, ("send_mail", r#"{"to":"W7","n":1}"#)]);
        let found = detect(&DeviatingMutation, &extra, &[&succeeded(run(&[CANCEL]))]);
        assert_eq!(
            found[0].message,
            "The agent makes a change with `send_mail` that the task does not need."
        );
    }

    #[test]
    fn a_change_of_its_own_deviates_unless_corrected_or_successes_differ() {
        let success = succeeded(run(&[LOOK, CANCEL]));
        let wrong = ("cancel_order", r#"{"id":2}"#);
        assert_eq!(detect(&DeviatingMutation, &run(&[wrong]), &[&success])[0].resolved_at, None);
        assert_eq!(detect(&DeviatingMutation, &run(&[wrong, CANCEL]), &[&success])[0].resolved_at, Some(3));
        assert!(detect(&DeviatingMutation, &run(&[CANCEL]), &[&success]).is_empty());
        let differing = run(&[("cancel_order", r#"{"id":"W999"}"#)]);
        let found = detect(&DeviatingMutation, &differing, &[&success]);
        assert_eq!(found[0].citations[0].quote(&differing), Ok("W999"));
        let other = succeeded(run(&[REFUND]));
        assert!(detect(&DeviatingMutation, &run(&[wrong]), &[&success, &other]).is_empty());
    }
}
