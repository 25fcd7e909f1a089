//! A budget: caps on cost, tokens, requests and time that hold however many ask at once.
//!
//! Whoever asks reserves the most that the question can take before it is sent, and settles when the
//! answer is there. What is spent and what is reserved together never pass a cap, so neither does what is
//! spent, unless a provider charges more than a question can take. Where only reservations of others
//! stand in the way, the asker waits until they are settled.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::{Clock, Cost, ModelError};

/// How much may be spent; `None` is no cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Money.
    pub cost: Option<Cost>,
    /// Tokens of questions and answers.
    pub tokens: Option<u64>,
    /// Requests sent, those tried again included.
    pub requests: Option<u64>,
    /// Time from the making of the budget.
    pub wall: Option<Duration>,
}

/// What something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Amount {
    /// Money, in dollars.
    #[serde(rename = "cost_usd")]
    #[cfg_attr(test, schemars(with = "f64"))]
    pub cost: Cost,
    /// Tokens.
    pub tokens: u64,
    /// Requests.
    pub requests: u64,
}

impl Amount {
    fn plus(self, other: Self) -> Self {
        Self {
            cost: self.cost + other.cost,
            tokens: self.tokens.saturating_add(other.tokens),
            requests: self.requests.saturating_add(other.requests),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            cost: Cost(self.cost.0.saturating_sub(other.cost.0)),
            tokens: self.tokens.saturating_sub(other.tokens),
            requests: self.requests.saturating_sub(other.requests),
        }
    }
}

#[derive(Default)]
struct State {
    spent: Amount,
    reserved: Amount,
}

/// Caps, and what is left of them.
pub struct Budget {
    limits: Limits,
    clock: Arc<dyn Clock>,
    start: Duration,
    state: Mutex<State>,
    settled: Condvar,
}

impl Budget {
    /// A budget whose time starts now.
    pub fn new(limits: Limits, clock: Arc<dyn Clock>) -> Self {
        let start = clock.now();
        Self { limits, clock, start, state: Mutex::default(), settled: Condvar::new() }
    }

    /// The caps.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// What is spent.
    pub fn spent(&self) -> Amount {
        self.lock().spent
    }

    /// The time left; `None` without a cap on it.
    pub fn time_left(&self) -> Option<Duration> {
        let wall = self.limits.wall?;
        Some(wall.saturating_sub(self.clock.now().saturating_sub(self.start)))
    }

    /// Refuses a wait that would end after the time is over.
    ///
    /// # Errors
    /// [`ModelError::Exhausted`].
    pub fn check_time(&self, wait: Duration) -> Result<(), ModelError> {
        match (self.limits.wall, self.time_left()) {
            (Some(wall), Some(left)) if left.is_zero() || wait > left => {
                Err(exhausted(format!("{} s", wall.as_secs_f64())))
            }
            _ => Ok(()),
        }
    }

    /// Sets aside what a question may take; waits where only what others have set aside stands in the way.
    ///
    /// # Errors
    /// [`ModelError::Exhausted`] where a cap would be passed.
    pub fn reserve(&self, claim: Amount) -> Result<Reservation<'_>, ModelError> {
        let mut state = self.lock();
        loop {
            if self.set_aside(&mut state, claim)? {
                return Ok(Held { budget: self, claim, open: true });
            }
            state = self.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// As [`Budget::reserve`], without waiting for others; `None` where nothing can be set aside now.
    pub fn try_reserve(&self, claim: Amount) -> Option<Reservation<'_>> {
        let is_set_aside = self.set_aside(&mut self.lock(), claim).unwrap_or(false);
        is_set_aside.then(|| Held { budget: self, claim, open: true })
    }

    /// As [`Budget::try_reserve`], for whoever must not borrow.
    ///
    /// # Errors
    /// [`ModelError::Exhausted`] where a cap would be passed whatever others give back.
    pub fn hold(self: &Arc<Self>, claim: Amount) -> Result<Option<Held<Arc<Self>>>, ModelError> {
        let is_set_aside = self.set_aside(&mut self.lock(), claim)?;
        Ok(is_set_aside.then(|| Held { budget: Arc::clone(self), claim, open: true }))
    }

    /// Whether a claim could be set aside now.
    fn set_aside(&self, state: &mut State, claim: Amount) -> Result<bool, ModelError> {
        self.check_time(Duration::ZERO)?;
        if let Some(limit) = self.passed(state.spent.plus(claim)) {
            return Err(exhausted(limit));
        }
        if self.passed(state.spent.plus(state.reserved).plus(claim)).is_some() {
            return Ok(false);
        }
        state.reserved = state.reserved.plus(claim);
        Ok(true)
    }

    /// The cap that a sum passes, in words.
    fn passed(&self, sum: Amount) -> Option<String> {
        let Limits { cost, tokens, requests, .. } = self.limits;
        if let Some(most) = cost.filter(|most| sum.cost > *most) {
            return Some(most.to_string());
        }
        if let Some(most) = tokens.filter(|most| sum.tokens > *most) {
            return Some(format!("{most} tokens"));
        }
        requests.filter(|most| sum.requests > *most).map(|most| format!("{most} requests"))
    }

    fn close(&self, claim: Amount, spent: Amount) {
        let mut state = self.lock();
        state.reserved = state.reserved.minus(claim);
        state.spent = state.spent.plus(spent);
        drop(state);
        self.settled.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn exhausted(limit: String) -> ModelError {
    ModelError::Exhausted { limit }
}

/// What is set aside for one question. Dropped, all of it counts as spent: nobody knows better.
pub struct Held<B: Deref<Target = Budget>> {
    budget: B,
    claim: Amount,
    open: bool,
}

/// What is set aside by whoever waits for the answer.
pub type Reservation<'a> = Held<&'a Budget>;

impl<B: Deref<Target = Budget>> Held<B> {
    /// Counts what the question took.
    pub fn settle(mut self, spent: Amount) {
        self.open = false;
        self.budget.close(self.claim, spent);
    }
}

impl<B: Deref<Target = Budget>> Drop for Held<B> {
    fn drop(&mut self) {
        if self.open {
            self.budget.close(self.claim, self.claim);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::{Amount, Budget, Limits};
    use crate::models::{Cost, ManualClock, ModelError};

    fn amount(cost: u64, tokens: u64) -> Amount {
        Amount { cost: Cost(cost), tokens, requests: 1 }
    }

    #[test]
    fn a_cap_holds_under_concurrency() {
        let limits = Limits { cost: Some(Cost(1000)), ..Limits::default() };
        let budget = Budget::new(limits, Arc::new(ManualClock::default()));
        let (asked, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        match budget.reserve(amount(100, 1)) {
                            Ok(reservation) => {
                                asked.fetch_add(1, Ordering::Relaxed);
                                std::thread::yield_now();
                                reservation.settle(amount(7, 1));
                            }
                            Err(_) => {
                                refused.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
        });
        let spent = budget.spent();
        // The last question that fits is the one that could still have cost 100.
        assert_eq!(spent.cost, Cost(7 * asked.load(Ordering::Relaxed)));
        assert!(spent.cost <= Cost(1000) && spent.cost > Cost(900 - 7), "{spent:?}");
        assert_eq!(asked.into_inner() + refused.into_inner(), 800);
    }

    #[test]
    fn every_cap_is_named_when_it_is_reached() {
        let clock = Arc::new(ManualClock::default());
        let budget = |limits| Budget::new(limits, clock.clone());
        let refuse = |budget: &Budget| budget.reserve(amount(20, 20)).err().unwrap().to_string();
        let by_tokens = budget(Limits { tokens: Some(10), ..Limits::default() });
        assert_eq!(refuse(&by_tokens), "the limit of 10 tokens is reached");
        let by_requests = budget(Limits { requests: Some(0), ..Limits::default() });
        assert_eq!(refuse(&by_requests), "the limit of 0 requests is reached");
        let by_cost = budget(Limits { cost: Some(Cost(1)), ..Limits::default() });
        assert_eq!(refuse(&by_cost), "the limit of $0.000000 is reached");
        let by_time = budget(Limits { wall: Some(Duration::from_secs(2)), ..Limits::default() });
        assert!(by_time.reserve(amount(1, 1)).is_ok());
        assert!(by_time.check_time(Duration::from_secs(3)).is_err());
        clock.advance(Duration::from_secs(2));
        assert_eq!(refuse(&by_time), "the limit of 2 s is reached");
    }

    #[test]
    fn what_is_held_by_others_is_told_from_a_cap_that_is_reached() {
        let limits = Limits { requests: Some(2), ..Limits::default() };
        let budget = Arc::new(Budget::new(limits, Arc::new(ManualClock::default())));
        let held = [budget.hold(amount(0, 0)).unwrap().unwrap(), budget.hold(amount(0, 0)).unwrap().unwrap()];
        assert!(budget.hold(amount(0, 0)).unwrap().is_none());
        for held in held {
            held.settle(amount(0, 0));
        }
        assert!(matches!(budget.hold(amount(0, 0)), Err(ModelError::Exhausted { .. })));
    }

    #[test]
    fn what_nobody_settles_is_spent() {
        let budget = Budget::new(Limits::default(), Arc::new(ManualClock::default()));
        drop(budget.reserve(amount(5, 5)).unwrap());
        assert_eq!(budget.spent(), amount(5, 5));
        assert!(!matches!(budget.reserve(amount(1, 1)), Err(ModelError::Exhausted { .. })));
    }
}
