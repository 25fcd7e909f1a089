//! A turn whose action the harness could not read.

use super::{Detector, Run, finding};
use crate::trajectory::{Citation, Node, Role};
use crate::triage::failure_text;
use crate::verdict::Finding;

/// Harnesses' own complaints about a turn's format. One must stand near the start of the answer.
const COMPLAINTS: &[&str] = &[
    "Your output was not formatted correctly",
    "Your last output was not formatted",
    "Please always provide EXACTLY ONE action",
    "Please always provide exactly one",
    "Please provide EXACTLY ONE",
    "did not use the correct format",
    "Format error",
    "FormatError",
    "Invalid Format",
    "Invalid format",
    "Could not parse",
    "could not be parsed",
    "No action found",
    "No valid action",
    "No tool calls found",
    "Missing 'Action",
    "Your response did not contain",
    "Invalid action",
];

/// Bytes at the start of an answer in which a complaint counts.
const REACH: usize = 300;

/// See the module.
pub(super) struct BrokenFence;

impl Detector for BrokenFence {
    fn name(&self) -> &'static str {
        "broken-fence"
    }

    fn capability(&self) -> &'static str {
        "action_formatting"
    }

    fn describe(&self) -> &'static str {
        "the harness could not read the action of a turn"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let complaints: Vec<Option<Citation>> =
            (0..run.steps.len()).map(|step| complaint(run, step)).collect();
        for (at, citation) in complaints.iter().enumerate() {
            let Some(citation) = citation else { continue };
            let step = &run.steps[at];
            let message = "The harness could not read an action in this turn and says so.";
            let citations = run.cite_step(step).into_iter().chain([citation.clone()]);
            let mut found = finding(self, step.node, 0.75, message, citations);
            found.resolved_at = (at + 1..run.steps.len())
                .find(|later| complaints[*later].is_none() && !run.steps[*later].actions.is_empty())
                .map(|later| run.steps[later].node);
            findings.push(found);
        }
    }
}

/// The complaint that answers a turn, before the next turn.
fn complaint(run: &Run<'_>, step: usize) -> Option<Citation> {
    let start = run.steps[step].index + 1;
    let end = run.steps.get(step + 1).map_or(run.branch.len(), |next| next.index);
    run.branch
        .nodes()
        .take(end)
        .skip(start)
        .filter(|(_, node)| node.role != Role::Assistant)
        .find_map(|(position, node)| in_node(position, node))
}

fn in_node(position: usize, node: &Node) -> Option<Citation> {
    node.texts().find_map(|(part_path, text)| {
        let head = &text[..text.floor_char_boundary(REACH)];
        let at = COMPLAINTS.iter().filter_map(|form| head.find(form)).min()?;
        // At the start of the answer or of a sentence: a person may well quote one.
        let before = head[..at].trim_end();
        if !(before.is_empty() || before.ends_with(['.', ':', '>', '!', '\n', ']'])) {
            return None;
        }
        let line = failure_text::first_line(&text[at..])?;
        Some(Citation { node: position, part_path, start: at + line.start, end: at + line.end })
    })
}

#[cfg(test)]
mod tests {
    use super::BrokenFence;
    use crate::diagnosis::fixture::{chat, detect, say, user};

    #[test]
    fn the_harness_complaint_is_the_evidence() {
        let run =
            chat(vec![user("fix"), say("```bash\nls"), user("Please always provide EXACTLY ONE action.")]);
        let found = detect(&BrokenFence, &run, &[]);
        assert_eq!((found.len(), found[0].node, found[0].resolved_at), (1, 1, None));
        assert_eq!(found[0].citations[1].quote(&run), Ok("Please always provide EXACTLY ONE action."));
    }

    #[test]
    fn a_readable_turn_resolves_it() {
        let run = chat(vec![
            user("fix"),
            say("ls"),
            user("FormatError: no block"),
            say("```bash\nls\n```"),
            user("a.py"),
        ]);
        assert_eq!(detect(&BrokenFence, &run, &[])[0].resolved_at, Some(3));
    }

    #[test]
    fn other_answers_are_silent() {
        let run =
            chat(vec![user("fix"), say("```bash\nls\n```"), user("the docs say Invalid format is shown")]);
        assert!(detect(&BrokenFence, &run, &[]).is_empty());
    }
}
