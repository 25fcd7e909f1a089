//! The teacher solves every seed, within the budget of the task.

use std::fmt::Write as _;

use super::{Battery, Finding, Gate};
use crate::environments::EnvironmentError;

pub(super) struct Solvable;

impl Gate for Solvable {
    fn name(&self) -> &'static str {
        "solvable"
    }

    fn rule(&self) -> &'static str {
        "the teacher scores 1.0 on every seed within its steps"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let solved = battery.solved()?;
        let unsolved = solved.iter().find(|solved| solved.score.score < 1.0);
        let count = solved.iter().filter(|solved| solved.score.score >= 1.0).count();
        let steps: usize = solved.iter().map(|solved| solved.actions.len()).sum();
        let mut figure = format!("{count} of {} seeds", solved.len());
        let _ = match unsolved {
            Some(first) => write!(
                figure,
                "; not seed {} at difficulty {}, which scores {}",
                first.task.seed, first.task.difficulty, first.score.score
            ),
            None => write!(figure, ", {:.1} steps each", steps as f64 / solved.len().max(1) as f64),
        };
        Ok(Finding { passed: unsolved.is_none() && !solved.is_empty(), figure })
    }
}
