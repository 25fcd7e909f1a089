//! The clock: the time, as a value. Limits a minute, pauses and the cap on wall time look at it; a test
//! moves it by hand.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Tells the time and waits.
pub trait Clock: Send + Sync {
    /// Time since an instant that stays the same.
    fn now(&self) -> Duration;

    /// Waits.
    fn sleep(&self, duration: Duration);
}

/// A clock that stands still until someone waits.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Duration>);

impl ManualClock {
    /// Moves it forward.
    pub fn advance(&self, duration: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += duration;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}
