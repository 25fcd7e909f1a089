//! Other ways to the goal are as good as the teacher's.
//!
//! Four kinds are tried: neighboring calls that show the same in either order are swapped; a call is made later or
//! earlier by several steps, where the same state is reached, which is another path as short; calls that only read
//! are put in before the teacher goes on from where it stands then; and what is said stands between other white
//! space. (A call's arguments are compared in their canonical form; no way to write them makes a
//! difference.)

use super::solved::Solved;
use super::{Battery, Finding, Gate, percent, play, total};
use crate::environments::{Action, EnvironmentError, Exchange, Instance, State, Step, rand};
use crate::json::Json;

/// Lowest share of alternatives that score 1.0, in percent.
const ACCEPTED_MIN: f64 = 95.0;
/// Other paths that are tried of a solution.
const PATHS: u64 = 8;

pub(super) struct Alternatives;

impl Gate for Alternatives {
    fn name(&self) -> &'static str {
        "alternatives"
    }

    fn rule(&self) -> &'static str {
        "solutions with independent calls reordered, on other paths as short to the same state, with needless looks, and with \
         answers in other white space, score 1.0 on at least 95 %"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let counted = battery.on_solved(|solved, instance| {
            let (accepted, total) = total(&[reordered(solved, instance)?, other_paths(solved, instance)?]);
            let once = [detour(solved, instance)?, reformatted(solved, instance)?];
            let passed = once.iter().filter(|passed| **passed == Some(true)).count();
            Ok((accepted + passed, total + once.iter().flatten().count()))
        })?;
        let (accepted, total) = total(&counted);
        let rate = percent(accepted, total);
        Ok(Finding {
            passed: total > 0 && rate >= ACCEPTED_MIN,
            figure: format!("{accepted} of {total} alternatives accepted ({rate:.1} %)"),
        })
    }
}

/// Accepted and all solutions with two neighbors swapped that show the same either way.
fn reordered(solved: &Solved, instance: &mut dyn Instance) -> Result<(usize, usize), EnvironmentError> {
    let (mut accepted, mut total) = (0, 0);
    for at in 0..solved.actions.len().saturating_sub(1) {
        let (this, next) = (&solved.actions[at], &solved.actions[at + 1]);
        // Words have their place in a conversation, whatever they are answered with.
        if this == next || [this, next].iter().any(|action| matches!(action, Action::Say(_))) {
            continue;
        }
        let mut actions = solved.actions.clone();
        actions.swap(at, at + 1);
        let played = play(instance, &actions)?;
        let mut shown: Vec<_> = solved.steps.iter().collect();
        shown.swap(at, at + 1);
        if played.steps.iter().eq(shown) {
            total += 1;
            accepted += usize::from(played.score.score >= 1.0);
        }
    }
    Ok((accepted, total))
}

/// Accepted and all paths as short as the solution: a call is made at another time, and the same state is reached
/// without an error that the solution does not meet.
fn other_paths(solved: &Solved, instance: &mut dyn Instance) -> Result<(usize, usize), EnvironmentError> {
    let (mut accepted, mut all) = (0, 0);
    // Words have their place, as above.
    if solved.actions.iter().any(|action| matches!(action, Action::Say(_))) {
        return Ok((0, 0));
    }
    // What was done in another order may stand in another order.
    let sorted = |state: &State| Json::from_foreign(state.as_str());
    let Some(end) = solved.end().map(sorted) else { return Ok((0, 0)) };
    let errors = |steps: &[Step]| steps.iter().filter(|step| step.is_error).count();
    let count = solved.actions.len() as u64;
    for attempt in 0..PATHS.min(count.saturating_sub(2)) {
        let draw = |what: u64| rand(solved.task.seed, "other path", PATHS * what + attempt, count) as usize;
        let (from, to) = (draw(0), draw(1));
        // Neighbors are swapped above.
        if from.abs_diff(to) < 2 {
            continue;
        }
        let mut actions = solved.actions.clone();
        let moved = actions.remove(from);
        actions.insert(to, moved);
        if actions == solved.actions {
            continue;
        }
        let played = play(instance, &actions)?;
        let is_path = played.steps.len() == solved.steps.len()
            && errors(&played.steps) <= errors(&solved.steps)
            && sorted(&played.state) == end;
        all += usize::from(is_path);
        accepted += usize::from(is_path && played.score.score >= 1.0);
    }
    Ok((accepted, all))
}

/// Whether the teacher still succeeds after some looks around; `None` where there is nothing to look with, or
/// the looks leave it too few steps.
fn detour(solved: &Solved, instance: &mut dyn Instance) -> Result<Option<bool>, EnvironmentError> {
    let looks: Vec<Action> = instance
        .tools()
        .iter()
        .filter(|tool| tool.only_looks())
        .map(|tool| {
            let arguments = tool.parameters.iter().map(|parameter| {
                let options = parameter.options.clone().unwrap_or_default();
                let at = rand(solved.task.seed, &parameter.name, 0, options.len().max(1) as u64) as usize;
                let value = options.get(at).cloned();
                (parameter.name.clone(), value.unwrap_or_else(|| parameter.kind.example("it")))
            });
            let arguments = serde_json::Value::Object(arguments.collect());
            Action::call(tool.name.as_str(), Json::from_foreign(&arguments.to_string()))
        })
        .collect();
    if looks.is_empty() {
        return Ok(None);
    }
    let (mut state, _) = instance.start()?;
    let mut transcript: Vec<Exchange> = Vec::new();
    let room = solved.task.max_steps.saturating_sub(solved.actions.len() as u64) as usize;
    let mut looks = looks.into_iter().take(room.min(3));
    while (transcript.len() as u64) < solved.task.max_steps {
        let action = match looks.next() {
            Some(look) => Some(look),
            None => instance.expert(&state)?,
        };
        let Some(action) = action else { break };
        let (next, step) = instance.step(&state, &action)?;
        state = next;
        let done = step.done;
        transcript.push(Exchange { action, step });
        if done {
            break;
        }
    }
    Ok(Some(instance.verify(&state, &transcript)?.score >= 1.0))
}

/// Whether the solution still succeeds with other white space around its words; `None` where it says nothing.
fn reformatted(solved: &Solved, instance: &mut dyn Instance) -> Result<Option<bool>, EnvironmentError> {
    if !solved.actions.iter().any(|action| matches!(action, Action::Say(_))) {
        return Ok(None);
    }
    let actions: Vec<Action> = solved
        .actions
        .iter()
        .map(|action| match action {
            Action::Say(text) => Action::say(format!("\n  {text} \n")),
            Action::Call { .. } => action.clone(),
        })
        .collect();
    Ok(Some(play(instance, &actions)?.score.score >= 1.0))
}
