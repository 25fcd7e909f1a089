//! Patience: how long models are asked that do not answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::models::ModelError;

/// Failures in a row, with no answer at all, after which nothing more is asked.
const FAILURES_MAX: u64 = 16;

/// Shared by the threads that ask.
#[derive(Debug, Default)]
pub(super) struct Patience {
    failures: AtomicU64,
    lost: AtomicBool,
}

impl Patience {
    /// Whether nothing more is to be asked: a limit is reached, or nothing answers.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Takes in that everything about a run was answered.
    pub(super) fn answered(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// Takes in why something was not.
    pub(super) fn failed(&self, error: &ModelError) {
        match error {
            ModelError::Exhausted { .. } => self.lost.store(true, Ordering::Relaxed),
            // Put off until a provider's batch lands: nothing failed.
            ModelError::Pending { .. } => {}
            _ => {
                if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES_MAX {
                    self.lost.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}
