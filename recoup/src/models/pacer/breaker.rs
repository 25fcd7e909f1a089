//! A circuit breaker: a provider in trouble is left alone, then probed, then given up.

use std::time::Duration;

use crate::models::ModelError;

/// Failures in a row after which the provider is left alone.
const FAILURES_MAX: u32 = 5;
/// How long it is left alone first; every failed probe doubles it.
const REST: Duration = Duration::from_secs(1);
/// Failed probes after which it is given up: 63 s, or 7 s where it has never answered.
const PROBES_MAX: u32 = 6;
const PROBES_MAX_NEVER_HEARD: u32 = 3;
/// How often those who wait look whether a probe came back.
const LOOK: Duration = Duration::from_millis(50);

enum State {
    Closed,
    /// Nobody asks until then.
    Open(Duration),
    /// One asks, the others wait.
    Probing,
    GivenUp,
}

pub(super) struct Breaker {
    state: State,
    failures: u32,
    probes: u32,
    heard: bool,
    last: String,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { state: State::Closed, failures: 0, probes: 0, heard: false, last: String::new() }
    }
}

impl Breaker {
    /// Lets one through, or says how long to wait.
    pub(super) fn admit(&mut self, now: Duration, host: &str) -> Result<Option<Duration>, ModelError> {
        match self.state {
            State::Closed => Ok(None),
            State::Open(until) => {
                let wait = until.checked_sub(now).filter(|wait| !wait.is_zero());
                if wait.is_none() {
                    self.state = State::Probing;
                }
                Ok(wait)
            }
            State::Probing => Ok(Some(LOOK)),
            State::GivenUp => Err(ModelError::Down {
                host: host.to_owned(),
                failures: self.failures,
                last: self.last.clone(),
            }),
        }
    }

    /// The provider was not asked after all.
    pub(super) fn unasked(&mut self, now: Duration) {
        if matches!(self.state, State::Probing) {
            self.state = State::Open(now);
        }
    }

    /// The provider said something, if only that it will not answer.
    pub(super) fn heard(&mut self) {
        (self.state, self.failures, self.probes, self.heard) = (State::Closed, 0, 0, true);
    }

    /// The provider failed.
    pub(super) fn failed(&mut self, now: Duration, error: &ModelError) {
        self.failures = self.failures.saturating_add(1);
        self.last = error.to_string();
        match self.state {
            State::Closed if self.failures >= FAILURES_MAX => self.state = State::Open(now + REST),
            State::Probing => {
                self.probes += 1;
                let probes_max = if self.heard { PROBES_MAX } else { PROBES_MAX_NEVER_HEARD };
                self.state = if self.probes >= probes_max {
                    State::GivenUp
                } else {
                    State::Open(now + REST * (1 << self.probes))
                };
            }
            // What was sent before the others failed comes back late and says nothing new.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Breaker;
    use crate::models::ModelError;

    fn down() -> ModelError {
        ModelError::Unreachable { host: "h".to_owned(), message: "refused".to_owned() }
    }

    /// Seconds of failing after which it is given up, asking whenever that is allowed.
    fn seconds_until_given_up(breaker: &mut Breaker) -> u64 {
        let mut now = Duration::ZERO;
        loop {
            match breaker.admit(now, "h") {
                Ok(None) => breaker.failed(now, &down()),
                Ok(Some(wait)) => now += wait,
                Err(error) => {
                    assert!(error.to_string().contains("refused"), "{error}");
                    return now.as_secs();
                }
            }
        }
    }

    #[test]
    fn a_provider_that_never_answers_is_given_up_soon() {
        assert_eq!(seconds_until_given_up(&mut Breaker::default()), 7);
        let mut known = Breaker::default();
        known.heard();
        assert_eq!(seconds_until_given_up(&mut known), 63);
    }

    #[test]
    fn one_probe_at_a_time_and_an_answer_closes_it() {
        let mut breaker = Breaker::default();
        for _ in 0..5 {
            breaker.failed(Duration::ZERO, &down());
        }
        let later = Duration::from_secs(1);
        assert_eq!(breaker.admit(Duration::ZERO, "h"), Ok(Some(later)));
        assert_eq!(breaker.admit(later, "h"), Ok(None), "the probe");
        assert!(breaker.admit(later, "h").unwrap().is_some(), "the others wait");
        breaker.heard();
        assert_eq!(breaker.admit(later, "h"), Ok(None));
    }
}
