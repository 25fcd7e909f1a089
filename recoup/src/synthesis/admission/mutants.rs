//! A solution that is not one any more is refused.
//!
//! One action is left out, changed, or swapped with the next. Such a mutant counts when its end state
//! differs from the solution's in something that the verifier reads: what it does not read may differ.

use std::collections::BTreeSet;

use serde_json::Value;

use super::solved::Solved;
use super::{Battery, Finding, Gate, percent, play, total};
use crate::environments::{Action, EnvironmentError, Instance, State, rand};
use crate::json::Json;

/// Lowest share of refused mutants, in percent.
const REFUSED_MIN: f64 = 95.0;
/// Fields of a state that are looked at.
const LEAVES_MAX: usize = 400;

pub(super) struct Mutants;

impl Gate for Mutants {
    fn name(&self) -> &'static str {
        "mutants"
    }

    fn rule(&self) -> &'static str {
        "of solutions with one action left out, swapped or altered that change what a check reads, at least 95 % fail"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let counted = battery.on_solved(count)?;
        let (refused, total) = total(&counted);
        let rate = percent(refused, total);
        Ok(Finding {
            passed: total > 0 && rate >= REFUSED_MIN,
            figure: format!("{refused} of {total} mutants refused ({rate:.1} %)"),
        })
    }
}

/// Refused and all mutants of a solution.
fn count(solved: &Solved, instance: &mut dyn Instance) -> Result<(usize, usize), EnvironmentError> {
    let Some(end) = solved.end() else { return Ok((0, 0)) };
    let read = read_leaves(solved, instance, end);
    let of = |state: &State| read_values(state, &read);
    let right = of(end);
    let (mut refused, mut total) = (0, 0);
    for at in 0..solved.actions.len() {
        for actions in mutate(&solved.actions, at, solved.task.seed) {
            let played = play(instance, &actions)?;
            if of(&played.state) != right {
                total += 1;
                refused += usize::from(!played.score.success);
            }
        }
    }
    Ok((refused, total))
}

fn mutate(actions: &[Action], at: usize, seed: u64) -> Vec<Vec<Action>> {
    let mut mutants = Vec::new();
    let mut deleted = actions.to_vec();
    deleted.remove(at);
    mutants.push(deleted);
    if at + 1 < actions.len() && actions[at] != actions[at + 1] {
        let mut swapped = actions.to_vec();
        swapped.swap(at, at + 1);
        mutants.push(swapped);
    }
    if let Some(altered) = alter(&actions[at], actions, seed + at as u64) {
        let mut mutant = actions.to_vec();
        mutant[at] = altered;
        mutants.push(mutant);
    }
    mutants
}

/// The action with one argument replaced: by one that the solution uses elsewhere under the same name, else
/// by one close to it.
fn alter(action: &Action, actions: &[Action], seed: u64) -> Option<Action> {
    let Action::Call { tool, arguments } = action else { return None };
    let mut object = arguments.to_value().as_object()?.clone();
    let names: Vec<String> = object.keys().cloned().collect();
    let name = names.get(rand(seed, "argument", 0, names.len().max(1) as u64) as usize)?;
    let ours = object.get(name)?.clone();
    let others: Vec<Value> = actions
        .iter()
        .filter_map(|other| match other {
            Action::Call { arguments, .. } => arguments.to_value().get(name).cloned(),
            Action::Say(_) => None,
        })
        .filter(|other| *other != ours)
        .collect();
    let other = others.get(rand(seed, "value", 0, others.len().max(1) as u64) as usize).cloned();
    let value = other.unwrap_or_else(|| nudge(&ours));
    object.insert(name.clone(), value);
    Some(Action::call(tool.clone(), Json::from_foreign(&Value::Object(object).to_string())))
}

/// A value close to another, and different.
fn nudge(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => Value::Bool(!flag),
        Value::String(text) => Value::String(format!("{text}x")),
        Value::Number(number) => {
            number.as_i64().map_or(Value::from(1), |number| Value::from(number.saturating_add(1)))
        }
        Value::Array(items) => Value::Array(items.iter().skip(1).cloned().collect()),
        Value::Null | Value::Object(_) => Value::from("x"),
    }
}

/// Pointers to the scalars of an end state that the verifier's word depends on.
fn read_leaves(solved: &Solved, instance: &mut dyn Instance, end: &State) -> BTreeSet<String> {
    let transcript: Vec<_> = solved.exchanges().collect();
    let Ok(value) = serde_json::from_str::<Value>(end.as_str()) else { return BTreeSet::new() };
    let mut leaves = Vec::new();
    collect_leaves(&value, String::new(), &mut leaves);
    let mut read = BTreeSet::new();
    for leaf in leaves.into_iter().take(LEAVES_MAX) {
        let mut changed = value.clone();
        if let Some(place) = changed.pointer_mut(&leaf) {
            *place = nudge(place);
        }
        // A value that the verifier cannot even read is one it looks at.
        let score = instance.verify(&State::new(changed.to_string()), &transcript);
        if score.map_or(true, |score| score != solved.score) {
            read.insert(leaf);
        }
    }
    read
}

fn collect_leaves(value: &Value, pointer: String, leaves: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                collect_leaves(member, format!("{pointer}/{}", escaped(key)), leaves);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_leaves(item, format!("{pointer}/{index}"), leaves);
            }
        }
        _ => leaves.push(pointer),
    }
}

fn read_values(state: &State, read: &BTreeSet<String>) -> Vec<Option<Value>> {
    let value: Value = serde_json::from_str(state.as_str()).unwrap_or_default();
    read.iter().map(|pointer| value.pointer(pointer).cloned()).collect()
}
