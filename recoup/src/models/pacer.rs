//! The pacer of one provider: how fast it is asked, when it is asked again, and when no more.
//!
//! * Requests and tokens a minute are token buckets.
//! * What fails for a reason that passes is tried again after `Retry-After`, else after a pause drawn
//!   evenly between nothing and a bound that doubles (full jitter: M. Brooker, "Exponential backoff and
//!   jitter", AWS Architecture Blog, 2015). The draw is a hash of the question, so the same run waits the same.
//! * A provider that fails several times in a row is left alone for a while and then probed by one
//!   request. One that never answered, or stays away, is not asked any more.

mod breaker;
mod bucket;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::breaker::Breaker;
use self::bucket::Bucket;
use super::{Clock, ModelError};
use crate::id::Hash;

/// Most times that one question is sent.
const ATTEMPTS_MAX: u32 = 6;
/// Bound of the first pause; it doubles with every attempt.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause, and longest `Retry-After` that is waited for.
const PAUSE_MAX: Duration = Duration::from_mins(2);

/// How one provider is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PaceOptions {
    /// Most requests a minute.
    pub requests_per_minute: Option<u32>,
    /// Most tokens a minute, of questions and answers.
    pub tokens_per_minute: Option<u32>,
}

struct State {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    /// Nobody asks before.
    paused_until: Duration,
    breaker: Breaker,
}

/// Keeps to the pace of one provider, for all who ask it.
pub struct Pacer {
    host: String,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// What may be done next.
enum Next {
    Go,
    Wait(Duration),
}

impl Pacer {
    /// A pacer of a provider, named by its host.
    pub fn new(host: impl Into<String>, options: PaceOptions, clock: Arc<dyn Clock>) -> Self {
        let now = clock.now();
        let bucket = |per_minute: Option<u32>, seconds| {
            per_minute.map(|limit| Bucket::new(f64::from(limit.max(1)) / 60.0, seconds, now))
        };
        let state = State {
            requests: bucket(options.requests_per_minute, 1.0),
            tokens: bucket(options.tokens_per_minute, 10.0),
            paused_until: Duration::ZERO,
            breaker: Breaker::default(),
        };
        Self { host: host.into(), clock, state: Mutex::new(state) }
    }

    /// Sends a question of so many `tokens` until it is answered or trying again is no use. `may_wait`
    /// can refuse a pause; `seed` decides how long pauses are.
    ///
    /// # Errors
    /// The last attempt's error, [`ModelError::Down`], or what `may_wait` says.
    pub fn run<T>(
        &self,
        tokens: u64,
        seed: Hash,
        may_wait: &dyn Fn(Duration) -> Result<(), ModelError>,
        mut send: impl FnMut() -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        let mut attempt = 0;
        loop {
            self.admit(tokens, may_wait)?;
            let error = match send() {
                Ok(answer) => {
                    self.lock().breaker.heard();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            let now = self.clock.now();
            match &error {
                outage if outage.is_outage() => self.lock().breaker.failed(now, outage),
                ModelError::Exhausted { .. } | ModelError::Unsupported(_) => self.lock().breaker.unasked(now),
                _ => self.lock().breaker.heard(),
            }
            attempt += 1;
            // A page where an answer should be is asked for once more, not six times, and so is one that took too long.
            let attempts_max = match error {
                ModelError::Malformed { .. } | ModelError::Timeout { .. } => ATTEMPTS_MAX.min(2),
                _ => ATTEMPTS_MAX,
            };
            if !error.is_retryable() || attempt >= attempts_max {
                return Err(error);
            }
            let Some(pause) = self.pause(&error, attempt, seed, now) else { return Err(error) };
            may_wait(pause).map_err(|refused| if error.is_outage() { error } else { refused })?;
            self.clock.sleep(pause);
        }
    }

    /// Whether a question of so many `tokens` may be sent now; then it counts as sent.
    pub fn admits_now(&self, tokens: u64) -> bool {
        matches!(self.next(tokens), Ok(Next::Go))
    }

    /// Waits until a question may be sent.
    fn admit(
        &self,
        tokens: u64,
        may_wait: &dyn Fn(Duration) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        loop {
            match self.next(tokens)? {
                Next::Go => return Ok(()),
                Next::Wait(wait) => {
                    may_wait(wait)?;
                    self.clock.sleep(wait);
                }
            }
        }
    }

    fn next(&self, tokens: u64) -> Result<Next, ModelError> {
        let now = self.clock.now();
        let mut state = self.lock();
        if let Some(wait) = state.paused_until.checked_sub(now).filter(|wait| !wait.is_zero()) {
            return Ok(Next::Wait(wait));
        }
        let State { requests, tokens: bucket, breaker, .. } = &mut *state;
        let waits = [
            requests.as_mut().map(|bucket| bucket.wait(now)),
            bucket.as_mut().map(|bucket| bucket.wait(now)),
        ];
        if let Some(wait) = waits.into_iter().flatten().max().filter(|wait| !wait.is_zero()) {
            return Ok(Next::Wait(wait));
        }
        if let Some(wait) = breaker.admit(now, &self.host)? {
            return Ok(Next::Wait(wait));
        }
        if let Some(bucket) = requests {
            bucket.take(1.0);
        }
        if let Some(bucket) = bucket {
            bucket.take(tokens as f64);
        }
        Ok(Next::Go)
    }

    /// The pause before the next attempt; `None` where the provider asks for one that is too long.
    fn pause(&self, error: &ModelError, attempt: u32, seed: Hash, now: Duration) -> Option<Duration> {
        match error {
            // Nothing is wrong with the provider; the question has changed.
            ModelError::Adapted { .. } => return Some(Duration::ZERO),
            ModelError::Status { retry_after_ms: Some(milliseconds), .. } => {
                let pause = Duration::from_millis(*milliseconds);
                if pause > PAUSE_MAX {
                    return None;
                }
                let mut state = self.lock();
                state.paused_until = state.paused_until.max(now + pause);
                return Some(pause);
            }
            _ => {}
        }
        let bound = PAUSE.saturating_mul(1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX)).min(PAUSE_MAX);
        let draw = Hash::of_all(&[b"pause", &seed.0, &attempt.to_le_bytes()]).to_seed();
        Some(bound.mul_f64(draw as f64 / u64::MAX as f64))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{PaceOptions, Pacer};
    use crate::id::Hash;
    use crate::models::{Clock as _, ManualClock, ModelError};

    fn status(status: u16, retry_after_ms: Option<u64>) -> ModelError {
        ModelError::Status { host: "h".to_owned(), status, message: "no".to_owned(), retry_after_ms }
    }

    fn run(pacer: &Pacer, mut errors: Vec<ModelError>) -> (Result<(), ModelError>, usize) {
        errors.reverse();
        let mut sent = 0;
        let result = pacer.run(1, Hash::of(b"q"), &|_| Ok(()), || {
            sent += 1;
            errors.pop().map_or(Ok(()), Err)
        });
        (result, sent)
    }

    #[test]
    fn what_passes_is_tried_again_and_what_stays_is_not() {
        let clock = Arc::new(ManualClock::default());
        let pacer = Pacer::new("h", PaceOptions::default(), clock.clone());
        assert_eq!(run(&pacer, vec![status(500, None), status(429, None)]), (Ok(()), 3));
        assert!(clock.now() <= Duration::from_millis(1500), "{:?}", clock.now());
        assert_eq!(run(&pacer, vec![status(400, None)]).1, 1);
        assert_eq!(run(&pacer, vec![status(429, None); 9]).1, 6);
    }

    #[test]
    fn the_provider_says_how_long_to_wait() {
        let clock = Arc::new(ManualClock::default());
        let pacer = Pacer::new("h", PaceOptions::default(), clock.clone());
        assert_eq!(run(&pacer, vec![status(429, Some(7000))]), (Ok(()), 2));
        assert_eq!(clock.now(), Duration::from_secs(7));
        let a_day = status(429, Some(86_400_000));
        assert_eq!(run(&pacer, vec![a_day.clone()]), (Err(a_day), 1));
    }

    #[test]
    fn requests_and_tokens_a_minute_are_kept() {
        for options in [
            PaceOptions { requests_per_minute: Some(60), ..PaceOptions::default() },
            PaceOptions { tokens_per_minute: Some(600), ..PaceOptions::default() },
        ] {
            let clock = Arc::new(ManualClock::default());
            let pacer = Pacer::new("h", options, clock.clone());
            for _ in 0..31 {
                pacer.run(10, Hash::of(b"q"), &|_| Ok(()), || Ok(())).unwrap();
            }
            let seconds = clock.now().as_secs_f64();
            assert!((20.0..=31.0).contains(&seconds), "{seconds} s for 31 questions");
        }
    }

    #[test]
    fn a_pause_may_be_refused() {
        let pacer = Pacer::new("h", PaceOptions::default(), Arc::new(ManualClock::default()));
        let refused = ModelError::Exhausted { limit: "1 s".to_owned() };
        let result: Result<(), _> =
            pacer.run(1, Hash::of(b"q"), &|_| Err(refused.clone()), || Err(status(429, None)));
        assert_eq!(result, Err(refused));
    }
}
