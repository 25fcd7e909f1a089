//! A change that the agent itself later calls a mistake.

use super::claims::cite;
use super::{Detector, Run, finding, quoted_at};
use crate::diagnosis::effects::Effect;
use crate::diagnosis::run::Message;
use crate::trajectory::Citation;
use crate::verdict::Finding;

/// Words by which an agent admits a mistake of its own, in lower case.
const ADMISSIONS: &[&str] = &[
    "i made a mistake",
    "i have made a mistake",
    "i've made a mistake",
    "i’ve made a mistake",
    "i made an error",
    "that was my mistake",
    "i should not have ",
    "i shouldn't have ",
    "i shouldn’t have ",
    "i cannot undo",
    "i can't undo",
    "i can’t undo",
];

/// See the module.
pub(super) struct AdmittedMistake;

impl Detector for AdmittedMistake {
    fn name(&self) -> &'static str {
        "admitted-mistake"
    }

    fn capability(&self) -> &'static str {
        "decision_making"
    }

    fn describe(&self) -> &'static str {
        "makes a change and later says that it was a mistake"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let Some(admitted) = run.messages.iter().find_map(admission) else { return };
        let changes = run.actions.iter().filter(|action| action.node < admitted.node && !action.failed());
        let Some(change) =
            changes.rev().find(|action| matches!(action.effect, Effect::Mutate | Effect::Unclear))
        else {
            return;
        };
        let words =
            format!("The agent calls `{}` and later says {} of it.", change.name, quoted_at(run, &admitted));
        let mut citations: Vec<Citation> = change.citation().into_iter().collect();
        citations.push(admitted);
        findings.push(finding(self, change.node, 0.7, words, citations));
    }
}

/// Where a message admits a mistake, as a statement.
fn admission(message: &Message<'_>) -> Option<Citation> {
    let lower = message.text.to_ascii_lowercase();
    let start = ADMISSIONS.iter().find_map(|form| lower.find(form))?;
    let sentence = lower[..start].rfind(['.', '!', '?', '\n']).map_or(0, |stop| stop + 1);
    if lower[sentence..start].split_whitespace().any(|word| matches!(word, "if" | "unless" | "whether")) {
        return None;
    }
    let end = lower[start..].find(['.', '!', '\n']).map_or(lower.len(), |stop| start + stop);
    Some(cite(message, start..end))
}

#[cfg(test)]
mod tests {
    use super::AdmittedMistake;
    use crate::diagnosis::fixture::{call, chat, detect, result, say, user};

    fn run(text: &str) -> crate::trajectory::Trajectory {
        chat(vec![
            user("swap the blue one"),
            call("exchange_item", r#"{"id":"A1"}"#),
            result("ok"),
            call("get_order", r#"{"id":"W1"}"#),
            result("exchanged"),
            say(text),
        ])
    }

    #[test]
    fn the_change_that_is_regretted_is_at_fault() {
        let run = run("I am sorry. I made a mistake here that I cannot undo.");
        let found = detect(&AdmittedMistake, &run, &[]);
        assert_eq!((found.len(), found[0].node), (1, 1));
        assert_eq!(found[0].citations[1].quote(&run), Ok("I made a mistake here that I cannot undo"));
    }

    #[test]
    fn a_condition_and_a_mistake_without_a_change_are_none() {
        assert!(detect(&AdmittedMistake, &run("Tell me if I made a mistake."), &[]).is_empty());
        assert!(detect(&AdmittedMistake, &chat(vec![user("x"), say("I made a mistake.")]), &[]).is_empty());
    }
}
