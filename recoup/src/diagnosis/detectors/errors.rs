//! Errors that the agent leaves standing: never addressed, or contradicted.

use super::claims::claim_of_success;
use super::{Detector, Run, finding, quoted_at};
use crate::diagnosis::actions::Observation;
use crate::diagnosis::effects::{Effect, effect};
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
        for (at, action) in run.actions.iter().enumerate() {
            if action.succeeded() {
                open.retain(|name| *name != action.name);
            }
            if !action.failed() || open.contains(&action.name) {
                continue;
            }
            open.push(action.name);
            let chain: Vec<Citation> = run.actions[at..]
                .iter()
                .take_while(|later| later.name != action.name || later.failed())
                .filter(|later| later.name == action.name)
                .take(3)
                .filter_map(|failed| failed.observation.as_ref()?.citation())
                .collect();
            let Some(report) = chain.first().cloned() else { continue };
            let message = format!(
                "A call of `{}` fails with {} and no later call makes it good.",
                action.name,
                quoted_at(run, &report)
            );
            let is_last = run.actions.len() == at + 1;
            let citations = action.citation().into_iter().chain(chain);
            let mut found = finding(self, action.node, if is_last { 0.6 } else { 0.5 }, message, citations);
            found.resolved_at = run.later_success(at).map(|later| later.node).or_else(|| told(run, at));
            findings.push(found);
        }
    }
}

/// The message in which the agent, at its next turn, tells the user, who then has a say.
fn told(run: &Run<'_>, action: usize) -> Option<usize> {
    let index = run.actions[action].index;
    let next = run.steps.iter().find(|step| step.index > index)?;
    (next.actions.is_empty() && run.user_speaks_after(next.index)).then_some(next.node)
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
            if !action.failed() || effect(action.name) != Effect::Mutate || run.later_success(at).is_some() {
                continue;
            }
            // Another change that worked may be what the agent speaks of.
            let moved_on = run.actions[at + 1..]
                .iter()
                .any(|later| effect(later.name) == Effect::Mutate && later.succeeded());
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
            let words = format!(
                "The call of `{}` was refused, yet the agent says {}.",
                action.name,
                quoted_at(run, &cited)
            );
            // The fault is the claim; the refused call stands before it.
            findings.push(finding(self, message.node, 0.85, words, report.into_iter().chain([cited])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IgnoredError, UnaddressedError};
    use crate::diagnosis::fixture::{call, chat, detect, result, say, user};
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
