//! Idle turns: those that bring nothing, because what they do fails or was done before with the same
//! answer. Where a limit ends a run, they are what the limit was spent on.

use std::collections::BTreeSet;
use std::ops::Range;

use super::Run;
use crate::id::Hash;
use crate::trajectory::Part;

/// The last unbroken stretch of idle turns before the last turn, where the run only ends; as a range of
/// [`Run::steps`].
pub(crate) fn last_idle_stretch(run: &Run<'_>) -> Option<Range<usize>> {
    let mut idle = idle_turns(run);
    idle.pop();
    let last = idle.iter().rposition(|is_idle| *is_idle)?;
    let start = idle[..last].iter().rposition(|is_idle| !is_idle).map_or(0, |busy| busy + 1);
    Some(start..last + 1)
}

/// For each turn whether it is idle.
fn idle_turns(run: &Run<'_>) -> Vec<bool> {
    let mut seen: BTreeSet<(Hash, Hash)> = BTreeSet::new();
    let mut idle = Vec::with_capacity(run.steps.len());
    for (at, step) in run.steps.iter().enumerate() {
        let actions = &run.actions[step.actions.clone()];
        if actions.is_empty() {
            let next = run.steps.get(at + 1).map_or(run.branch.len(), |next| next.index);
            idle.push(!seen.insert((said(run, step.index..step.index + 1), said(run, step.index + 1..next))));
            continue;
        }
        let mut is_idle = true;
        for action in actions {
            let answer = action.observation.as_ref().map_or(Hash::of(b""), |seen| seen.hash);
            let is_new = seen.insert((action.key, answer));
            is_idle &= action.failed() || !is_new;
        }
        idle.push(is_idle);
    }
    idle
}

/// What stands in the messages of a stretch of the branch.
fn said(run: &Run<'_>, indices: Range<usize>) -> Hash {
    let nodes = run.branch.positions()[indices].iter().map(|at| &run.trajectory.nodes[*at]);
    let words =
        nodes.flat_map(|node| node.parts.iter().filter_map(Part::as_text)).flat_map(str::split_whitespace);
    Hash::of(words.collect::<Vec<_>>().join(" ").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::last_idle_stretch;
    use crate::diagnosis::fixture::{call, chat, result, say, user};
    use crate::diagnosis::{DiagnosisConfig, Run};

    #[test]
    fn failures_and_repetitions_are_idle_and_new_answers_are_not() {
        let look = |arguments: &str, answer: &str| [call("get_page", arguments), result(answer)];
        let mut nodes = vec![user("go")];
        nodes.extend(look(r#"{"a":1}"#, "x"));
        nodes.extend(look(r#"{"a":1}"#, "x"));
        nodes.extend(look(r#"{"a":2}"#, "y"));
        nodes.extend(look(r#"{"a":3}"#, "Error: no such page"));
        nodes.extend(look(r#"{"a":1}"#, "x"));
        nodes.push(say("I have it."));
        let run = chat(nodes);
        let run = Run::new(&run, &[], &DiagnosisConfig::default());
        assert_eq!(last_idle_stretch(&run), Some(3..5));
        let busy = chat(vec![user("go"), say("one"), user("a"), say("two")]);
        assert_eq!(last_idle_stretch(&Run::new(&busy, &[], &DiagnosisConfig::default())), None);
    }
}
