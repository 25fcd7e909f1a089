//! The same thing again: a call repeated with the same result, and a cycle that turns in place.

use std::collections::BTreeMap;

use super::{Detector, Run, finding};
use crate::diagnosis::actions::{Action, Observation};
use crate::diagnosis::effects::{self, Effect, effect};
use crate::diagnosis::run::Step;
use crate::id::Hash;
use crate::trajectory::Part;
use crate::verdict::Finding;

/// A call that was made before and answers as before.
pub(super) struct RepeatedCall;

/// A cycle of turns, three times or more, that changes nothing.
pub(super) struct Loop;

/// Longest cycle looked for, in turns.
const CYCLE_MAX: usize = 6;

/// Times a cycle must be seen.
const TURNS_MIN: usize = 3;

impl Detector for RepeatedCall {
    fn name(&self) -> &'static str {
        "repeated-call"
    }

    fn capability(&self) -> &'static str {
        "progress_tracking"
    }

    fn describe(&self) -> &'static str {
        "makes a call again that was answered, and gets the same answer"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let firsts = repetitions(run);
        // For each action the next one that is new and works: by it a repetition is left.
        let mut next_new = vec![None; run.actions.len()];
        let mut coming = None;
        for (at, action) in run.actions.iter().enumerate().rev() {
            next_new[at] = coming;
            if firsts[at].is_none() && action.succeeded() && !is_waiting(action) {
                coming = Some(action.node);
            }
        }
        for (at, first) in firsts.iter().enumerate() {
            let Some(first) = *first else { continue };
            let action = &run.actions[at];
            let message = format!("The agent repeats a call of `{}` and gets the same answer.", action.name);
            // A failing call repeated unchanged is a worse sign than a look taken twice.
            let strength = if action.failed() { 0.5 } else { 0.25 };
            let citations = run.actions[first].citation().into_iter().chain(action.citation());
            let mut found = finding(self, action.node, strength, message, citations);
            if found.citations.is_empty() {
                found.citations.extend(action.observation.as_ref().and_then(Observation::citation));
            }
            // Looking elsewhere leaves a look; what was refused again has to go through.
            found.resolved_at =
                if action.failed() { run.later_success(at).map(|later| later.node) } else { next_new[at] };
            findings.push(found);
        }
    }
}

/// For each action the earlier one that it repeats: the same call with the same answer, with no change
/// between.
fn repetitions(run: &Run<'_>) -> Vec<Option<usize>> {
    let mut seen: BTreeMap<(Hash, Hash), usize> = BTreeMap::new();
    let mut repeated = vec![None; run.actions.len()];
    for (at, action) in run.actions.iter().enumerate() {
        let Some(observation) = &action.observation else { continue };
        if effect(action.name) == Effect::Mutate && !action.failed() {
            // By name alone: whatever declares that it may change something (a shell) is still repeated when the
            // same call brings the same answer. Here the world has changed: asking again is no repetition.
            seen.clear();
            continue;
        }
        if is_waiting(action) || observation.text.trim().is_empty() || !action.is_call {
            continue;
        }
        repeated[at] = seen.insert((action.key, observation.hash), at);
    }
    repeated
}

/// Whether a tool is called again and again by its nature.
fn is_waiting(action: &Action<'_>) -> bool {
    effects::words(action.name).iter().any(|word| {
        matches!(word.as_str(), "wait" | "sleep" | "poll" | "status" | "refresh" | "scroll" | "think")
    })
}

impl Detector for Loop {
    fn name(&self) -> &'static str {
        "loop"
    }

    fn capability(&self) -> &'static str {
        "progress_tracking"
    }

    fn describe(&self) -> &'static str {
        "goes through the same cycle of turns three times or more without any change"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let keys: Vec<Hash> = (0..run.steps.len()).map(|step| turn(run, step)).collect();
        let mut start = 0;
        while start < keys.len() {
            let Some((length, times)) = cycle(&keys[start..]) else {
                start += 1;
                continue;
            };
            let end = start + length * times;
            // The first round may have been right; the second is the fault.
            let fault = &run.steps[start + length];
            let message = "The agent goes through the same turns again and again, with the same results.";
            let citations = [start, start + length, start + 2 * length]
                .into_iter()
                .filter_map(|step| run.cite_step(&run.steps[step]));
            let mut found = finding(self, fault.node, 0.8, message, citations);
            let round = &keys[start..start + length];
            found.resolved_at = (end..keys.len())
                .filter(|step| !round.contains(&keys[*step]))
                .map(|step| &run.steps[step])
                .find(|step| arrives(run, step))
                .map(|step| step.node);
            findings.push(found);
            start = end;
        }
    }
}

/// Words of a message from which on it is an answer and no courtesy.
const ANSWER_WORDS: usize = 8;

/// Whether a turn reaches something: it makes a change, submits, does something new that may be a
/// change, or says more than a courtesy.
fn arrives(run: &Run<'_>, step: &Step) -> bool {
    let actions = &run.actions[step.actions.clone()];
    let is_new = |action: &Action<'_>| {
        run.actions.iter().take_while(|earlier| earlier.index < step.index).all(|it| it.key != action.key)
    };
    let acts = actions.iter().any(|action| match effect(action.name) {
        Effect::Submit => !action.failed(),
        Effect::Mutate => action.succeeded(),
        Effect::Unclear => action.is_call && action.succeeded() && is_new(action),
        Effect::Read | Effect::Handoff => false,
    });
    acts || run.messages.iter().filter(|message| message.node == step.node).any(|message| {
        message.text.split_whitespace().count() >= ANSWER_WORDS
            || message.text.contains(|c: char| c.is_ascii_digit())
    })
}

/// The shortest cycle at the start of a sequence that is seen [`TURNS_MIN`] times or more.
fn cycle(keys: &[Hash]) -> Option<(usize, usize)> {
    (1..=CYCLE_MAX.min(keys.len() / TURNS_MIN)).find_map(|length| {
        let same = keys.iter().zip(&keys[length..]).take_while(|(key, later)| key == later).count();
        let times = 1 + same / length;
        (times >= TURNS_MIN).then_some((length, times))
    })
}

/// What a turn did and what came of it; a turn without an action is its text.
fn turn(run: &Run<'_>, step: usize) -> Hash {
    let step = &run.steps[step];
    let actions = &run.actions[step.actions.clone()];
    if actions.is_empty() {
        let words: Vec<&str> = run.trajectory.nodes[step.node]
            .parts
            .iter()
            .filter_map(Part::as_text)
            .flat_map(str::split_whitespace)
            .collect();
        // Short courtesies repeat in any conversation: each is a turn of its own.
        if words.len() < ANSWER_WORDS {
            return Hash::of_all(&[b"short", &step.index.to_le_bytes()]);
        }
        return Hash::of_all(&[b"says", words.join(" ").as_bytes()]);
    }
    let fields: Vec<&[u8]> = actions
        .iter()
        .flat_map(|action| {
            let answer = action.observation.as_ref().map_or(&[][..], |seen| &seen.hash.0[..]);
            [&action.key.0[..], answer]
        })
        .collect();
    Hash::of_all(&fields)
}

#[cfg(test)]
mod tests {
    use super::{Loop, RepeatedCall};
    use crate::diagnosis::fixture::{call, chat, detect, result, say, user};
    use crate::trajectory::{Node, Trajectory};

    fn looks(answers: &[(&str, &str)]) -> Trajectory {
        let mut nodes: Vec<Node> = vec![user("go")];
        for (arguments, answer) in answers {
            nodes.extend([call("get_page", arguments), result(answer)]);
        }
        chat(nodes)
    }

    #[test]
    fn the_same_call_with_the_same_answer_is_repeated() {
        let found = detect(&RepeatedCall, &looks(&[(r#"{"a":1}"#, "x"), (r#"{ "a": 1 }"#, "x")]), &[]);
        assert_eq!((found.len(), found[0].node, found[0].resolved_at), (1, 3, None));
        let moved_on = looks(&[(r#"{"a":1}"#, "x"), (r#"{"a":1}"#, "x"), (r#"{"a":2}"#, "y")]);
        assert_eq!(detect(&RepeatedCall, &moved_on, &[])[0].resolved_at, Some(5));
    }

    #[test]
    fn a_new_answer_or_a_change_between_is_no_repetition() {
        assert!(detect(&RepeatedCall, &looks(&[("{\"a\":1}", "x"), ("{\"a\":1}", "y")]), &[]).is_empty());
        let run = chat(vec![
            user("go"),
            call("get_page", "{\"a\":1}"),
            result("x"),
            call("set_page", "{\"a\":2}"),
            result("ok"),
            call("get_page", "{\"a\":1}"),
            result("x"),
        ]);
        assert!(detect(&RepeatedCall, &run, &[]).is_empty());
    }

    #[test]
    fn three_rounds_are_a_loop() {
        let round = [("{\"a\":1}", "x"), ("{\"a\":2}", "y")];
        let thrice: Vec<_> = round.iter().cycle().take(6).copied().collect();
        let found = detect(&Loop, &looks(&thrice), &[]);
        assert_eq!((found.len(), found[0].node, found[0].resolved_at), (1, 5, None));
        let text = "I would now like to ask the other expert to verify this.";
        assert_eq!(detect(&Loop, &chat(vec![user("go"), say(text), say(text), say(text)]), &[]).len(), 1);
    }

    #[test]
    fn a_repetition_resolves_no_repetition() {
        let round = [("{\"a\":1}", "x"), ("{\"a\":2}", "y")];
        let rounds: Vec<_> = round.iter().cycle().take(7).copied().collect();
        let run = looks(&rounds);
        let found = detect(&RepeatedCall, &run, &[]);
        assert_eq!((found.len(), found[0].node), (5, 5));
        assert!(found.iter().all(|one| one.resolved_at.is_none()), "{found:?}");
        assert_eq!(detect(&Loop, &run, &[])[0].resolved_at, None);
    }

    #[test]
    fn a_failure_repeated_is_resolved_by_a_call_that_works() {
        let mut nodes = vec![user("go")];
        for _ in 0..2 {
            nodes.extend([call("cancel_order", "{\"id\":1}"), result("Error: no")]);
        }
        nodes.extend([call("get_order", "{\"id\":1}"), result("open")]);
        let looked = chat(nodes.clone());
        assert_eq!(detect(&RepeatedCall, &looked, &[])[0].resolved_at, None);
        nodes.extend([call("cancel_order", "{\"id\":2}"), result("ok")]);
        assert_eq!(detect(&RepeatedCall, &chat(nodes), &[])[0].resolved_at, Some(7));
    }

    #[test]
    fn a_loop_is_left_by_reaching_something_and_not_by_another_look() {
        let mut rounds = vec![("{\"a\":1}", "x"); 4];
        rounds.push(("{\"a\":2}", "y"));
        let mut run = looks(&rounds);
        assert_eq!(detect(&Loop, &run, &[])[0].resolved_at, None);
        run.push(say("Goodbye!"));
        run.finish(run.outcome().clone());
        assert_eq!(detect(&Loop, &run, &[])[0].resolved_at, None);
        run.push(call("set_page", "{\"a\":2}"));
        run.push(result("ok"));
        run.finish(run.outcome().clone());
        assert_eq!(detect(&Loop, &run, &[])[0].resolved_at, Some(12));
        let mut answered = looks(&rounds[..4]);
        answered.push(say("The page says 42."));
        answered.finish(answered.outcome().clone());
        assert_eq!(detect(&Loop, &answered, &[])[0].resolved_at, Some(9));
    }

    #[test]
    fn two_rounds_or_new_results_are_none() {
        assert!(detect(&Loop, &looks(&[("{}", "x"), ("{}", "x")]), &[]).is_empty());
        assert!(detect(&Loop, &looks(&[("{}", "1"), ("{}", "2"), ("{}", "3")]), &[]).is_empty());
        assert!(
            detect(&Loop, &chat(vec![user("go"), say("Thanks!"), say("Thanks!"), say("Thanks!")]), &[])
                .is_empty()
        );
    }
}
