//! A run that never hands in its result where the harness expects it to.

use super::{Detector, Run, finding};
use crate::diagnosis::actions::Action;
use crate::diagnosis::effects::{Effect, effect};
use crate::trajectory::{Part, Role};
use crate::verdict::Finding;

/// What prompts call the action that hands in, as harnesses spell it.
const PROMPTED: &[&str] = &["COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "Finish[", "Finish ["];

/// See the module.
pub(super) struct MissingSubmission;

impl Detector for MissingSubmission {
    fn name(&self) -> &'static str {
        "missing-submission"
    }

    fn capability(&self) -> &'static str {
        "task_completion"
    }

    fn describe(&self) -> &'static str {
        "never calls the action by which the result is handed in"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let Some(last) = run.last_step() else { return };
        if !expects_submission(run) || run.actions.iter().any(submits) || says_it_submits(run) {
            return;
        }
        let message = "The run ends without the action that hands in its result.";
        let strength = if run.was_cut_off() { 0.35 } else { 0.6 };
        findings.push(finding(self, last.node, strength, message, run.cite_step(last)));
    }
}

/// A tool, a prompt or every success hands in.
fn expects_submission(run: &Run<'_>) -> bool {
    let offered = run.trajectory.tools.iter().any(|tool| effect(&tool.name) == Effect::Submit);
    let by_success =
        !run.successes.is_empty() && run.successes.iter().all(|success| success.iter().any(submits));
    offered || by_success || PROMPTED.iter().any(|form| is_prompted(run, form))
}

/// Stands in what the agent was given before its first turn.
fn is_prompted(run: &Run<'_>, form: &str) -> bool {
    run.branch
        .nodes()
        .take_while(|(_, node)| !node.occurrence.sampled)
        .filter(|(_, node)| matches!(node.role, Role::System | Role::User))
        .flat_map(|(_, node)| &node.parts)
        .filter_map(Part::as_text)
        .any(|text| text.contains(form))
}

fn submits(action: &Action<'_>) -> bool {
    let raw = action.raw.trim();
    action.effect == Effect::Submit
        || raw == "submit"
        || raw.contains(PROMPTED[0])
        || raw.starts_with(PROMPTED[1])
}

/// Harnesses that take a bare line as the command leave no block to read it from.
fn says_it_submits(run: &Run<'_>) -> bool {
    run.last_step().is_some_and(|last| {
        run.trajectory.nodes[last.node]
            .parts
            .iter()
            .filter_map(Part::as_text)
            .any(|text| text.lines().any(|line| line.trim() == "submit" || line.contains(PROMPTED[1])))
    })
}

#[cfg(test)]
mod tests {
    use super::MissingSubmission;
    use crate::diagnosis::fixture::{call, chat, detect, result, say, succeeded, system, user, with_tool};

    #[test]
    fn fires_where_a_tool_or_a_prompt_asks_for_it() {
        let run = chat(vec![user("go"), call("get_x", "{\"a\":1}"), result("1"), say("It is 1.")]);
        assert!(detect(&MissingSubmission, &run, &[]).is_empty());
        let offered = with_tool(run.clone(), "submit", r#"{"type":"object"}"#);
        assert_eq!(detect(&MissingSubmission, &offered, &[])[0].node, 3);
        let prompted = chat(vec![system("End with Finish[answer]."), user("go"), say("Action 1: Search[x]")]);
        assert_eq!(detect(&MissingSubmission, &prompted, &[]).len(), 1);
        let success = succeeded(chat(vec![user("go"), call("submit", "{\"a\":1}")]));
        assert_eq!(detect(&MissingSubmission, &run, &[&success]).len(), 1);
    }

    #[test]
    fn silent_where_it_was_handed_in() {
        let run = chat(vec![system("End with Finish[answer]."), user("go"), say("Action 2: Finish[7]")]);
        assert!(detect(&MissingSubmission, &run, &[]).is_empty());
        let run = with_tool(chat(vec![user("go"), call("submit", "{\"a\":1}")]), "submit", "{}");
        assert!(detect(&MissingSubmission, &run, &[]).is_empty());
    }
}
