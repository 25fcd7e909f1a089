//! How the run ended: with goals open, or at a limit.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Detector, Run, finding, quoted_at};
use crate::diagnosis::effects::Effect;
use crate::diagnosis::idle::last_idle_stretch;
use crate::diagnosis::run::Step;
use crate::diagnosis::siblings::{agreed_changes, is_change, mutating_tools};
use crate::trajectory::{Citation, Role, TerminationKind};
use crate::verdict::Finding;

/// The run stopped by itself while something that it had to do was not tried.
pub(super) struct PrematureStop;

/// A limit ended the run.
pub(super) struct LimitReached;

/// Idle turns in a row that a budget bears: a stall no longer than this decides where it starts.
const STALL_BEARABLE: usize = 5;

/// Of what a stall is longer, one part in so many is let pass. Both numbers were chosen on the flip
/// labels of weak policies' runs in the bundled environments.
const STALL_SHARE: usize = 4;

/// Openings by which a last sentence announces what then never comes, in lower case.
const ANNOUNCEMENTS: &[&str] =
    &["i will now ", "i'll now ", "let me ", "next, i will ", "now i will ", "now, let me "];

impl Detector for PrematureStop {
    fn name(&self) -> &'static str {
        "premature-stop"
    }

    fn capability(&self) -> &'static str {
        "task_completion"
    }

    fn describe(&self) -> &'static str {
        "stops, or hands over, while goals are open"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let Some(last) = run.last_step().filter(|_| !run.was_cut_off()) else { return };
        if let Some(missing) = unmade_change(run) {
            let strength = if run.successes.len() > 1 { 0.6 } else { 0.5 };
            let handoff = run.actions.iter().find(|action| action.effect == Effect::Handoff);
            if let Some(handoff) = handoff {
                let message =
                    format!("The agent gives the case away with `{}` while it can be solved.", handoff.name);
                let citations = handoff.citation().or_else(|| handoff.observation.as_ref()?.citation());
                findings.push(finding(self, handoff.node, strength, message, citations));
                return;
            }
            let turn = closing_turn(run).unwrap_or(last);
            let lack = if run.actions.iter().any(|own| own.name == missing && is_change(own)) {
                format!("makes fewer changes with `{missing}` than the task needs")
            } else if run.is_visible(missing) {
                format!("never makes a change with `{missing}`, which the task needs")
            } else {
                "never makes a change that the task needs".to_owned()
            };
            let at = run.cite_step(turn);
            let message = match (run.actions.get(turn.actions.clone()).and_then(<[_]>::first), &at) {
                (Some(action), _) => format!("The agent ends with `{}` and {lack}.", action.name),
                (None, Some(at)) => format!("The agent says {} and {lack}.", quoted_at(run, at)),
                (None, None) => format!("The agent says nothing more and {lack}."),
            };
            findings.push(finding(self, turn.node, strength, message, at));
            return;
        }
        let announced = run.messages.last().filter(|message| {
            message.node == last.node && !run.user_speaks_after(message.index) && announces(message.text)
        });
        if let Some(message) = announced {
            let words = "The agent announces a next action and stops without taking it.";
            let Range { start, end } = last_line(message.text);
            let at = Citation { node: message.node, part_path: vec![message.part], start, end };
            findings.push(finding(self, message.node, 0.45, words, [at]));
        }
    }
}

/// Words of a user's turn up to which it is taken for a courtesy (`Thank you, goodbye!`).
const COURTESY_WORDS: usize = 20;

/// The last turn without an action that answers more than a courtesy: there the agent gave up, and what
/// follows is farewell or the same words again. A question that the user answers is no end: the turn after the answer is.
pub(in crate::diagnosis) fn closing_turn<'a>(run: &'a Run<'_>) -> Option<&'a Step> {
    let answers_courtesy = |step: &Step| {
        let before = run.branch.nodes().take(step.index).last();
        before.is_some_and(|(_, node)| {
            node.role == Role::User && node.text().split_whitespace().count() <= COURTESY_WORDS
        })
    };
    let asks = |step: &Step| {
        let mut messages = run.messages.iter().filter(|message| message.node == step.node);
        messages.any(|message| asks_for_an_answer(message.text))
    };
    let quiet = run.steps.iter().rposition(|step| !step.actions.is_empty()).map_or(0, |acting| acting + 1);
    let silent = &run.steps[quiet..];
    let at = silent.iter().rposition(|step| !answers_courtesy(step))?;
    let end = silent[at..].iter().find(|step| !asks(step)).or_else(|| silent.last())?;
    // What is only said again was the end the first time.
    let says = |step: &Step| run.trajectory.nodes[step.node].text();
    let last = says(end);
    silent.iter().find(|step| says(step) == last)
}

/// Whether a text asks something that the work waits for; `anything else?` is a farewell.
fn asks_for_an_answer(text: &str) -> bool {
    text.split_inclusive(['.', '!', '?', '\n']).filter(|sentence| sentence.ends_with('?')).any(|sentence| {
        let sentence = sentence.to_lowercase();
        !["anything else", "any other", "something else"].iter().any(|offer| sentence.contains(offer))
    })
}

/// The tool of a change that is missing: every success changes something by it and this run never
/// calls it, or the successes agree on all changes and this run calls it for fewer of them.
fn unmade_change<'a>(run: &Run<'a>) -> Option<&'a str> {
    if let (Some(agreed), Some(success)) = (agreed_changes(run), run.successes.first()) {
        let lacks = success.iter().filter(|action| is_change(action)).find(|action| {
            let mut own = run.actions.iter().filter(|own| own.name == action.name && is_change(own));
            own.all(|own| own.key != action.key && agreed.contains(&own.key))
        });
        return lacks.map(|action| action.name);
    }
    let mut shared: Option<BTreeSet<&str>> = None;
    for success in &run.successes {
        let tools = mutating_tools(success);
        shared = Some(match shared {
            None => tools,
            Some(known) => known.intersection(&tools).copied().collect(),
        });
    }
    shared?.into_iter().find(|tool| !run.actions.iter().any(|action| action.name == *tool))
}

/// The last line that holds something.
fn last_line(text: &str) -> Range<usize> {
    let end = text.trim_end().len();
    text[..end].rfind('\n').map_or(0, |newline| newline + 1)..end
}

fn announces(text: &str) -> bool {
    let line = text[last_line(text)].trim().to_lowercase();
    let sentence = line.trim_end_matches(['.', ':']).rsplit(". ").next().unwrap_or_default();
    ANNOUNCEMENTS.iter().any(|opening| sentence.starts_with(opening)) && !sentence.contains("know")
}

impl Detector for LimitReached {
    fn name(&self) -> &'static str {
        "limit-reached"
    }

    fn capability(&self) -> &'static str {
        "efficiency"
    }

    fn describe(&self) -> &'static str {
        "a limit of steps, tokens, errors or context ended the run"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let limit = match run.trajectory.outcome().termination_kind() {
            Some(TerminationKind::StepLimit) => "its steps",
            Some(TerminationKind::BudgetExceeded) => "its budget",
            Some(TerminationKind::ContextOverflow) => "its context window",
            Some(TerminationKind::TooManyErrors) => "the errors it may make",
            _ => {
                let steps = run.trajectory.budget.as_ref().and_then(|budget| budget.steps);
                if steps.is_none_or(|steps| (run.steps.len() as u64) < steps) {
                    return;
                }
                "its steps"
            }
        };
        let Some(last) = run.last_step() else { return };
        let (step, message) = match last_idle_stretch(run) {
            // A stall that is left in time costs nothing: a long one decides when the budget runs short.
            Some(idle) => {
                let decisive = idle.start + idle.len().saturating_sub(STALL_BEARABLE) / STALL_SHARE;
                let message = format!(
                    "The agent spends turns on what fails or brings nothing new, until it has used up {limit} \
                     with the task open."
                );
                (&run.steps[decisive], message)
            }
            None => {
                (last, format!("The run ends because the agent has used up {limit}, with the task open."))
            }
        };
        findings.push(finding(self, step.node, 0.4, message, run.cite_step(step)));
    }
}

#[cfg(test)]
mod tests {
    use super::{LimitReached, PrematureStop};
    use crate::diagnosis::fixture::{call, chat, detect, ended, result, say, succeeded, user};
    use crate::trajectory::{Budget, TerminationKind, Trajectory};

    fn run(tool: &str) -> Trajectory {
        chat(vec![user("go"), call(tool, r#"{"id":1}"#), result("ok"), say("Done."), user("bye")])
    }

    #[test]
    fn a_change_that_every_success_makes_is_missing() {
        let success = succeeded(run("cancel_order"));
        let found = detect(&PrematureStop, &run("get_order"), &[&success]);
        assert_eq!((found.len(), found[0].node), (1, 3));
        assert!(detect(&PrematureStop, &run("cancel_order"), &[&success]).is_empty());
        let mut polite = run("get_order");
        polite.push(say("You are welcome!"));
        polite.finish(polite.outcome().clone());
        assert_eq!(detect(&PrematureStop, &polite, &[&success])[0].node, 3);
        let cut = ended(run("get_order"), TerminationKind::StepLimit);
        assert!(detect(&PrematureStop, &cut, &[&success]).is_empty());
    }

    #[test]
    fn a_question_that_is_answered_is_no_end() {
        let success = succeeded(run("cancel_order"));
        let mut asked = run("get_order");
        asked.nodes.truncate(3);
        for node in [
            say("It costs 300 to cancel. Do you confirm (yes/no)?"),
            user("Yes, I confirm."),
            say("I cannot do that after all."),
            user("bye"),
            say("Goodbye!"),
        ] {
            asked.push(node);
        }
        asked.finish(asked.outcome().clone());
        let found = detect(&PrematureStop, &asked, &[&success]);
        assert_eq!((found.len(), found[0].node), (1, 5));
        assert!(found[0].message.starts_with("The agent says \"I cannot do that"), "{}", found[0].message);
    }

    #[test]
    fn an_offer_is_an_end_and_a_call_is_not_said() {
        let success = succeeded(run("cancel_order"));
        let mut offered = run("get_order");
        offered.nodes.truncate(3);
        for node in [say("Is there anything else I can do?"), user("No. Bye."), say("Goodbye!")] {
            offered.push(node);
        }
        offered.nodes[0] = user(&"please ".repeat(30));
        offered.finish(offered.outcome().clone());
        assert_eq!(detect(&PrematureStop, &offered, &[&success])[0].node, 3);
        let mut called = run("get_order");
        called.nodes.truncate(3);
        called.finish(called.outcome().clone());
        let message = &detect(&PrematureStop, &called, &[&success])[0].message;
        assert!(message.starts_with("The agent ends with `get_order` and never"), "{message}");
    }

    #[test]
    fn too_few_changes_are_not_called_none() {
        let change = |id: u32| [call("cancel_order", &format!(r#"{{"id":{id}}}"#)), result("ok")];
        let changes = |ids: &[u32]| {
            let mut nodes = vec![user("go")];
            nodes.extend(ids.iter().flat_map(|id| change(*id)));
            nodes.push(say("Done."));
            chat(nodes)
        };
        let found = detect(&PrematureStop, &changes(&[1, 2]), &[&succeeded(changes(&[1, 2, 3]))]);
        assert_eq!(
            found[0].message,
            "The agent says \"Done.\" and makes fewer changes with `cancel_order` than the task needs."
        );
    }

    #[test]
    fn handing_over_counts_only_where_success_does_not() {
        let success = succeeded(run("cancel_order"));
        assert_eq!(detect(&PrematureStop, &run("transfer_to_human_agents"), &[&success])[0].node, 1);
        let refused = succeeded(run("get_order"));
        assert!(detect(&PrematureStop, &run("transfer_to_human_agents"), &[&refused]).is_empty());
        let also = succeeded(run("transfer_to_human_agents"));
        assert!(detect(&PrematureStop, &run("transfer_to_human_agents"), &[&also]).is_empty());
    }

    #[test]
    fn an_announcement_is_no_end() {
        let stop = |text: &str| chat(vec![user("go"), say(text)]);
        assert_eq!(detect(&PrematureStop, &stop("Found it.\nNow. Let me open the file. \n"), &[]).len(), 1);
        assert!(detect(&PrematureStop, &stop("All done. Let me know if you need more."), &[]).is_empty());
        let answered = chat(vec![user("go"), say("Let me look."), user("no, stop")]);
        assert!(detect(&PrematureStop, &answered, &[]).is_empty());
    }

    #[test]
    fn limits_come_from_the_harness_or_the_budget() {
        assert_eq!(
            detect(&LimitReached, &ended(run("get_order"), TerminationKind::StepLimit), &[])[0].node,
            3
        );
        let mut counted = run("get_order");
        counted.budget = Some(Budget { steps: Some(2), ..Budget::default() });
        assert_eq!(detect(&LimitReached, &counted, &[]).len(), 1);
        counted.budget = Some(Budget { steps: Some(3), ..Budget::default() });
        assert!(detect(&LimitReached, &counted, &[]).is_empty());
    }

    #[test]
    fn a_limit_is_reached_where_turns_were_spent_on_nothing() {
        let limited = |looks: usize| {
            let mut nodes = vec![user("go"), call("set_a", "{}"), result("ok")];
            for _ in 0..looks {
                nodes.extend([call("get_a", "{}"), result("x")]);
            }
            nodes.extend([call("set_b", "{}"), result("ok")]);
            ended(chat(nodes), TerminationKind::StepLimit)
        };
        // The first look is new; those behind it are idle.
        assert_eq!(detect(&LimitReached, &limited(3), &[])[0].node, 5);
        assert_eq!(detect(&LimitReached, &limited(10), &[])[0].node, 7);
        assert_eq!(detect(&LimitReached, &limited(1), &[])[0].node, 5);
    }
}
