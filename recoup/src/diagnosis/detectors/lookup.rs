//! A change that comes before the look-up which its policy, or every success, puts first.

use std::collections::BTreeSet;

use super::{Detector, Run, finding};
use crate::diagnosis::actions::Action;
use crate::diagnosis::effects::{Effect, effect, words};
use crate::diagnosis::siblings::{first_of, mutating_tools};
use crate::diagnosis::words::words as words_of;
use crate::trajectory::{Part, Role};
use crate::verdict::Finding;

/// A change made without the look-up that policy or success puts before it.
pub(super) struct MutationWithoutLookup;

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

#[cfg(test)]
mod tests {
    use super::MutationWithoutLookup;
    use crate::diagnosis::fixture::{call, calls, chat, detect, result, succeeded, system, user, with_tool};

    const LOOK: (&str, &str) = ("get_order", r#"{"id":"W101"}"#);
    const CANCEL: (&str, &str) = ("cancel_order", r#"{"id":"W101"}"#);

    #[test]
    fn a_lookup_that_every_success_makes_is_missed() {
        let success = succeeded(calls(&[LOOK, CANCEL]));
        let found = detect(&MutationWithoutLookup, &calls(&[CANCEL]), &[&success]);
        assert_eq!((found.len(), found[0].node), (1, 1));
        assert!(!found[0].message.contains("get_order"), "a name the run never saw stays out of the message");
        assert!(detect(&MutationWithoutLookup, &calls(&[LOOK, CANCEL]), &[&success]).is_empty());
        let redone = detect(&MutationWithoutLookup, &calls(&[CANCEL, LOOK, CANCEL]), &[&success]);
        assert_eq!(redone[0].resolved_at, Some(5));
        let other = succeeded(calls(&[CANCEL]));
        assert!(detect(&MutationWithoutLookup, &calls(&[CANCEL]), &[&success, &other]).is_empty());
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
}
