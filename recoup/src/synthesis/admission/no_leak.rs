//! What is hidden is not told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use super::solved::Solved;
use super::{Battery, Finding, Gate};
use crate::environments::{Action, EnvironmentError, TaskSpec, ToolSpec};

/// Shorter texts occur by chance.
const LEAST_LENGTH: usize = 6;

pub(super) struct NoLeak;

impl Gate for NoLeak {
    fn name(&self) -> &'static str {
        "no-leak"
    }

    fn rule(&self) -> &'static str {
        "no text under the task's `hidden`, in capitals or not, but what most seeds hide alike, occurs in the goal, the tools, \
         the policy or the first observation, nor do eight words in a row of a held-out task; no argument of the solution \
         that is found out only by its steps occurs in the tools of its seed alone"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let policy = battery.environment.identity().policy.as_deref().unwrap_or_default();
        let tools = battery.on_solved(|_, instance| Ok(tool_text(instance.tools())))?;
        let solved = battery.solved()?;
        let hidden: Vec<_> = solved.iter().map(|solved| hidden_texts(&solved.task)).collect();
        let mut seeds_of: BTreeMap<&str, usize> = BTreeMap::new();
        hidden.iter().flatten().for_each(|text| *seeds_of.entry(text).or_default() += 1);
        // What most seeds hide is a word of the environment, not the secret of one.
        let is_secret =
            |text: &str| hidden.len() < 3 || 2 * seeds_of.get(text).copied().unwrap_or(0) <= hidden.len();
        // What the tools of other seeds say too is how the environment is used, whoever uses it.
        let only_here = |text: &str, here: &str| {
            here.contains(text) && tools.iter().filter(|tools| tools.contains(text)).count() == 1
        };
        let held_out = &battery.config.held_out;
        let leaks: Vec<Option<String>> = solved
            .iter()
            .zip(&hidden)
            .zip(&tools)
            .map(|((solved, hidden), here)| {
                let told = [solved.task.goal.as_str(), &solved.first_observation, policy, here];
                let repeated = told.iter().find(|text| held_out.has(text)).map(|text| beginning(text));
                let told = told.join("\n").to_lowercase();
                let hidden =
                    hidden.iter().find(|text| is_secret(text) && told.contains(&text.to_lowercase()));
                let found_out = || found_out(solved).into_iter().find(|text| only_here(text, here));
                repeated.or_else(|| hidden.cloned()).or_else(found_out)
            })
            .collect();
        let count = leaks.iter().flatten().count();
        let mut figure = format!("{count} of {} seeds leak", leaks.len());
        if let Some(first) = leaks.iter().flatten().next() {
            let _ = write!(figure, ", such as {first:?}");
        }
        if held_out.is_empty() {
            figure.push_str("; no held-out tasks were named");
        }
        Ok(Finding { passed: count == 0, figure })
    }
}

/// What is shown of a text that repeats a held-out task.
fn beginning(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Texts among the solution's arguments that neither the goal nor the first observation gives: only its steps
/// find them out.
fn found_out(solved: &Solved) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for action in &solved.actions {
        if let Action::Call { arguments, .. } = action {
            texts(&serde_json::from_str(arguments.as_str()).unwrap_or_default(), &mut found);
        }
    }
    let given = [solved.task.goal.as_str(), &solved.first_observation];
    found.retain(|text| !given.iter().any(|given| given.contains(text.as_str())));
    found
}

fn tool_text(tools: &[ToolSpec]) -> String {
    let texts: Vec<&str> =
        tools.iter().flat_map(|tool| [tool.description.as_str(), tool.schema.as_str()]).collect();
    texts.join("\n")
}

fn hidden_texts(task: &TaskSpec) -> BTreeSet<String> {
    let task: Value = serde_json::from_str(&task.json).unwrap_or_default();
    let mut hidden = BTreeSet::new();
    texts(task.get("hidden").unwrap_or(&Value::Null), &mut hidden);
    hidden
}

fn texts(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.chars().count() >= LEAST_LENGTH => _ = found.insert(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        _ => {}
    }
}
