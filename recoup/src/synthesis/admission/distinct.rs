//! Seeds give different tasks.

use std::collections::BTreeSet;

use super::{Battery, Finding, Gate, percent};
use crate::environments::{Action, EnvironmentError};

/// Lowest share of different tasks, in percent.
const DISTINCT_MIN: f64 = 95.0;

pub(super) struct Distinct;

impl Gate for Distinct {
    fn name(&self) -> &'static str {
        "distinct"
    }

    fn rule(&self) -> &'static str {
        "at least 95 % of seeds differ in goal, first observation or solution"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let solved = battery.solved()?;
        let tasks: BTreeSet<_> = solved
            .iter()
            .map(|solved| {
                let actions: Vec<String> = solved.actions.iter().map(Action::to_json).collect();
                (&solved.task.goal, &solved.first_observation, actions)
            })
            .collect();
        let rate = percent(tasks.len(), solved.len());
        Ok(Finding {
            passed: rate >= DISTINCT_MIN,
            figure: format!("{} different tasks of {} seeds ({rate:.1} %)", tasks.len(), solved.len()),
        })
    }
}
