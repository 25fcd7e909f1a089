//! A token bucket: so much a second, a little of it saved up.

use std::time::Duration;

/// A bucket that fills evenly. What is taken may exceed what is there; the debt is waited for.
pub(super) struct Bucket {
    per_second: f64,
    most: f64,
    level: f64,
    filled_at: Duration,
}

impl Bucket {
    /// A full bucket that holds what comes in `seconds`, and at least one.
    pub(super) fn new(per_second: f64, seconds: f64, now: Duration) -> Self {
        let most = (per_second * seconds).max(1.0);
        Self { per_second, most, level: most, filled_at: now }
    }

    /// How long until something may be taken.
    pub(super) fn wait(&mut self, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.filled_at).as_secs_f64();
        self.filled_at = now;
        self.level = (self.level + passed * self.per_second).min(self.most);
        let missing = 1.0 - self.level;
        // Less than a nanosecond away is there.
        if missing <= 1e-9 * self.per_second {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(missing / self.per_second) + Duration::from_nanos(1)
        }
    }

    /// Takes.
    pub(super) fn take(&mut self, amount: f64) {
        self.level -= amount;
    }
}
