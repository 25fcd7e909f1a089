//! Doing nothing scores nothing.

use super::{Battery, Finding, Gate};
use crate::environments::EnvironmentError;

pub(super) struct NoOp;

impl Gate for NoOp {
    fn name(&self) -> &'static str {
        "no-op"
    }

    fn rule(&self) -> &'static str {
        "doing nothing scores 0 on every seed"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let scores = battery.on_solved(|_, instance| {
            let (state, _) = instance.start()?;
            Ok(instance.verify(&state, &[])?.score)
        })?;
        let paid = scores.iter().filter(|score| **score > 0.0).count();
        Ok(Finding { passed: paid == 0, figure: format!("{paid} of {} seeds score above 0", scores.len()) })
    }
}
