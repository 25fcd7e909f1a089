//! The clock: the one place that looks at it. Everything else gets the time as a value.

use std::time::{Duration, Instant, SystemTime};

use recoup::models::Clock;

/// Now, in RFC 3339, to the second.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// The machine's steady clock, from the moment it is made.
pub(crate) struct SteadyClock(Instant);

impl SteadyClock {
    /// Starts it.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
