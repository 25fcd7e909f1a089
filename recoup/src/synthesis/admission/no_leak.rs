//! What is hidden is not told.

use serde_json::Value;

use super::{Battery, Finding, Gate};
use crate::environments::EnvironmentError;

/// Shorter texts occur by chance.
const LEAST_LENGTH: usize = 6;

pub(super) struct NoLeak;

impl Gate for NoLeak {
    fn name(&self) -> &'static str {
        "no-leak"
    }

    fn rule(&self) -> &'static str {
        "no text under the task's `hidden` occurs in the goal, the tools, the policy or the first observation"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let policy = battery.environment.identity().policy.as_deref().unwrap_or_default();
        let leaks = battery.on_solved(|solved, instance| {
            let tools: Vec<&str> = instance
                .tools()
                .iter()
                .flat_map(|tool| [tool.description.as_str(), tool.schema.as_str()])
                .collect();
            let told = [solved.task.goal.as_str(), &solved.first_observation, policy, &tools.join("\n")].join("\n");
            let task: Value = serde_json::from_str(&solved.task.json).unwrap_or_default();
            let mut hidden = Vec::new();
            texts(task.get("hidden").unwrap_or(&Value::Null), &mut hidden);
            Ok(hidden.into_iter().find(|text| told.contains(text.as_str())))
        })?;
        let count = leaks.iter().flatten().count();
        let mut figure = format!("{count} of {} seeds leak", leaks.len());
        if let Some(first) = leaks.iter().flatten().next() {
            figure.push_str(&format!(", such as {first:?}"));
        }
        Ok(Finding { passed: count == 0, figure })
    }
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.chars().count() >= LEAST_LENGTH => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        _ => {}
    }
}
