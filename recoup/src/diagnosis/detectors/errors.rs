//! Errors that the agent leaves standing: never addressed, or contradicted.

use std::collections::BTreeSet;

use super::claims::claim_of_success;
use super::{Detector, Run, finding, quoted_at};
use crate::diagnosis::actions::{Action, Observation};
use crate::diagnosis::effects::{Effect, purpose};
use crate::diagnosis::siblings::{agreed_changes, is_change};
use crate::diagnosis::words::words;
use crate::trajectory::Citation;
use crate::verdict::Finding;

/// An error result that no later call of the tool makes good.
pub(super) struct UnaddressedError;

/// An error result after which the agent claims success.
pub(super) struct IgnoredError;

impl Detector for UnaddressedError {
    fn name(&self) -> &'static str {
        "unaddressed-error"
    }

    fn capability(&self) -> &'static str {
        "error_recovery"
    }

    fn describe(&self) -> &'static str {
        "a call failed and nothing later made it good"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let mut open: Vec<&str> = Vec::new();
        let agreed = agreed_changes(run);
        // A change that goes through and is not one the task needs makes no refused one good.
        let is_wrong = |later: &Action<'_>| {
            agreed.as_ref().is_some_and(|agreed| is_change(later) && !agreed.contains(&later.key))
        };
        for (at, action) in run.actions.iter().enumerate() {
            let wanted = purpose(action.name);
            if action.succeeded() && !is_wrong(action) {
                open.retain(|name| *name != wanted);
            }
            if !action.failed() || open.contains(&wanted) {
                continue;
            }
            let redone = run.later_success(at).filter(|later| !is_wrong(later)).map(|later| later.node);
            let reported = if redone.is_none() { told(run, at) } else { None };
            // What the user was told of is closed: the next failure is one of its own.
            if reported.is_none() {
                open.push(wanted);
            }
            let chain: Vec<Citation> = run.actions[at..]
                .iter()
                .take_while(|later| purpose(later.name) != wanted || later.failed())
                .filter(|later| purpose(later.name) == wanted)
                .take(if reported.is_none() { 3 } else { 1 })
                .filter_map(|failed| failed.observation.as_ref()?.citation())
                .collect();
            let Some(report) = chain.first().cloned() else { continue };
            let resolved_at = redone.or(reported);
            let message = format!(
                "A call of `{}` fails with {}{}.",
                action.name,
                quoted_at(run, &report),
                if resolved_at.is_none() { " and no later call makes it good" } else { "" }
            );
            let is_last = run.actions.len() == at + 1;
            let citations = action.citation().into_iter().chain(chain);
            let mut found = finding(self, action.node, if is_last { 0.6 } else { 0.5 }, message, citations);
            found.resolved_at = resolved_at;
            findings.push(found);
        }
    }
}

/// Pieces of a sentence by which a message reports a failure, in lower case.
const REPORTS: &[&str] = &[
    " not ",
    "n't ",
    "n’t ",
    "cannot",
    "unable",
    "failed",
    "failure",
    "an error",
    "an issue",
    "a problem",
    "unfortunately",
    "refused",
    "declined",
    "denied",
    "rejected",
    "no longer",
    "impossible",
    "invalid",
    "too late",
    "trouble",
];

/// Openings of sentences that offer, ask or part, and so report nothing, in lower case.
const COURTESIES: &[&str] = &[
    "is there ",
    "if ",
    "please ",
    "should you ",
    "would you ",
    "can i ",
    "may i ",
    "feel free",
    "don't hesitate",
    "don’t hesitate",
    "do not hesitate",
];

/// The message in which the agent, at its next turn, reports the failure to the user, who then has a
/// say. A failure that comes back word for word was reported and not dealt with.
fn told(run: &Run<'_>, at: usize) -> Option<usize> {
    let action = &run.actions[at];
    let next = run.steps.iter().find(|step| step.index > action.index)?;
    let reported = run
        .messages
        .iter()
        .filter(|message| message.node == next.node)
        .any(|message| reports_failure(message.text) || repeats_report(action, message.text));
    if !reported || !run.user_speaks_after(next.index) {
        return None;
    }
    let report = |action: &Action<'_>| action.observation.as_ref().map(|seen| seen.hash);
    let comes_back = run.actions[at + 1..].iter().any(|later| {
        later.failed() && purpose(later.name) == purpose(action.name) && report(later) == report(action)
    });
    (!comes_back).then_some(next.node)
}

fn reports_failure(text: &str) -> bool {
    text.to_lowercase().split(['.', '!', '?', '\n']).map(str::trim_start).any(|sentence| {
        let is_courtesy = COURTESIES.iter().any(|opening| sentence.starts_with(opening))
            || sentence.contains("hesitate to ");
        !is_courtesy && REPORTS.iter().any(|piece| sentence.contains(piece))
    })
}

/// Whether a text holds a name or number of the failure's report that the call itself does not.
fn repeats_report(action: &Action<'_>, text: &str) -> bool {
    let Some(report) = &action.observation else { return false };
    let names = |text: &str| -> BTreeSet<u64> {
        words(text).filter(|word| word.has_digit).map(|word| word.hash).take(256).collect()
    };
    let asked = names(action.raw);
    let said = names(text);
    names(report.text).iter().any(|name| said.contains(name) && !asked.contains(name))
}

impl Detector for IgnoredError {
    fn name(&self) -> &'static str {
        "ignored-error"
    }

    fn capability(&self) -> &'static str {
        "honest_reporting"
    }

    fn describe(&self) -> &'static str {
        "a change was refused and the agent says that it was made"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        for (at, action) in run.actions.iter().enumerate() {
            if !action.failed() || action.effect != Effect::Mutate || run.later_success(at).is_some() {
                continue;
            }
            // Another change that worked may be what the agent speaks of.
            let moved_on =
                run.actions[at + 1..].iter().any(|later| later.effect == Effect::Mutate && later.succeeded());
            let next_call = run.actions[at + 1..].first().map_or(usize::MAX, |later| later.index);
            let claim = run
                .messages
                .iter()
                .filter(|message| message.index > action.index && (!moved_on || message.index < next_call))
                .find_map(|message| Some((message, claim_of_success(action.name, message.text)?)));
            let Some((message, range)) = claim else { continue };
            let report = action.observation.as_ref().and_then(Observation::citation);
            let cited = Citation {
                node: message.node,
                part_path: vec![message.part],
                start: range.start,
                end: range.end,
            };
            let message_text = format!(
                "The call of `{}` was refused, yet the agent says {}.",
                action.name,
                quoted_at(run, &cited)
            );
            // The fault is the claim; the refused call stands before it.
            findings.push(finding(self, message.node, 0.85, message_text, report.into_iter().chain([cited])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IgnoredError, UnaddressedError};
    use crate::diagnosis::fixture::{call, chat, detect, result, say, succeeded, user};
    use crate::trajectory::Node;

    fn refused(rest: Vec<Node>) -> crate::trajectory::Trajectory {
        let mut nodes =
            vec![user("cancel AB1"), call("cancel_order", r#"{"id":"AB1"}"#), result("Error: too late")];
        nodes.extend(rest);
        chat(nodes)
    }

    #[test]
    fn an_error_stands_until_the_tool_works_or_the_user_is_told() {
        let open =
            detect(&UnaddressedError, &refused(vec![call("get_order", "{\"id\":1}"), result("x")]), &[]);
        assert_eq!((open.len(), open[0].resolved_at), (1, None));
        let retried = refused(vec![call("cancel_order", r#"{"id":"AB2"}"#), result("ok")]);
        assert_eq!(detect(&UnaddressedError, &retried, &[])[0].resolved_at, Some(3));
        let told = refused(vec![say("That is no longer possible."), user("ok")]);
        assert_eq!(detect(&UnaddressedError, &told, &[])[0].resolved_at, Some(3));
    }

    #[test]
    fn a_closing_message_addresses_no_error() {
        for text in [
            "Is there anything else I can help you with today?",
            "Please don't hesitate to call again. If there is a problem, let me know!",
            "Thank you for your patience.",
        ] {
            let found = detect(&UnaddressedError, &refused(vec![say(text), user("No. Bye.")]), &[]);
            assert_eq!(found[0].resolved_at, None, "{text}");
            assert!(found[0].message.ends_with("and no later call makes it good."));
        }
        let mut nodes = vec![user("refund"), call("refund_item", r#"{"amount":44}"#)];
        nodes.extend([result("Error: at most 34.90"), say("Shall I refund 34.90?"), user("yes")]);
        let found = detect(&UnaddressedError, &chat(nodes), &[]);
        assert_eq!(found[0].resolved_at, Some(3));
        assert!(!found[0].message.contains("no later call"), "{}", found[0].message);
    }

    #[test]
    fn a_wrong_change_makes_no_refused_one_good() {
        let run = refused(vec![call("cancel_order", r#"{"id":"AB2"}"#), result("ok")]);
        let change = |id: &str| vec![user("go"), call("cancel_order", id), result("ok")];
        let success = succeeded(chat(change(r#"{"id":"AB1"}"#)));
        assert_eq!(detect(&UnaddressedError, &run, &[&success])[0].resolved_at, None);
        let success = succeeded(chat(change(r#"{"id":"AB2"}"#)));
        assert_eq!(detect(&UnaddressedError, &run, &[&success])[0].resolved_at, Some(3));
    }

    #[test]
    fn another_way_to_the_same_end_is_a_retry_and_a_new_failure_after_a_report_is_new() {
        let mut nodes = vec![user("hi"), call("find_user_by_email", "{\"m\":1}"), result("Error: unknown")];
        nodes.extend([call("find_user_by_name", "{\"n\":1}"), result("u1")]);
        assert_eq!(detect(&UnaddressedError, &chat(nodes), &[])[0].resolved_at, Some(3));
        let resolved = |second: &str| -> Vec<_> {
            let run = refused(vec![
                say("I could not cancel it."),
                user("try again"),
                call("cancel_order", r#"{"id":"AB1"}"#),
                result(second),
                say("Anything else?"),
                user("no"),
            ]);
            let found = detect(&UnaddressedError, &run, &[]);
            found.iter().map(|one| (one.node, one.resolved_at)).collect()
        };
        assert_eq!(resolved("Error: closed"), [(1, Some(3)), (5, None)]);
        assert_eq!(resolved("Error: too late"), [(1, None)], "the same failure came back");
    }

    #[test]
    fn failures_of_one_tool_in_a_row_are_one_finding() {
        let run =
            refused(vec![call("cancel_order", r#"{"id":"AB1","now":1}"#), result("Error: still too late")]);
        let found = detect(&UnaddressedError, &run, &[]);
        assert_eq!((found.len(), found[0].citations.len()), (1, 3));
    }

    #[test]
    fn results_that_only_mention_errors_are_none() {
        let run = chat(vec![user("go"), call("get_log", "{\"n\":1}"), result("The log mentions Error: 3")]);
        assert!(detect(&UnaddressedError, &run, &[]).is_empty());
    }

    #[test]
    fn claiming_what_was_refused_is_found_at_the_claim() {
        let run = refused(vec![say("Your order has been cancelled."), user("thanks")]);
        let found = detect(&IgnoredError, &run, &[]);
        assert_eq!((found.len(), found[0].node), (1, 3));
        assert_eq!(found[0].citations[1].quote(&run), Ok("has been cancelled"));
    }

    #[test]
    fn reporting_the_refusal_or_a_later_success_is_silent() {
        for text in ["I could not cancel it.", "It has not been cancelled.", "It would be cancelled."] {
            assert!(detect(&IgnoredError, &refused(vec![say(text)]), &[]).is_empty(), "{text}");
        }
        let run =
            refused(vec![call("cancel_order", "{\"id\":2}"), result("ok"), say("It has been cancelled.")]);
        assert!(detect(&IgnoredError, &run, &[]).is_empty());
    }
}
