//! Asking: models behind a cache, a pace, a budget and a ledger, for all stages of one command.
//!
//! A question is looked up among the answers that were paid for; where it is new, it waits for its turn,
//! sets aside what it may cost, is sent, tried again where that helps, kept, and noted. An attempt that
//! may be charged although no answer came counts as spent in full, and so does the slower of two sendings.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use super::cached::{Flights, Kept, ReplyCache, key};
use super::deferred::Defer;
use super::hedge::{Raced, race};
use super::ledger::{Answered, Ledger};
use super::pacer::Pacer;
use super::{
    Amount, Budget, ChatModel, ChatReply, ChatRequest, Clock, Cost, ModelError, ModelIdentity, Price,
    Reservation, Usage, batch, tokens,
};
use crate::id::{Hash, TrajectoryId};

/// What all models of a command share.
pub struct Rules {
    /// The caps.
    pub budget: Arc<Budget>,
    /// The clock that latencies are measured by.
    pub clock: Arc<dyn Clock>,
    /// Where answers are kept; without it every question is asked anew.
    pub cache: Option<Arc<dyn ReplyCache>>,
    /// Forbids asking a model that lives elsewhere: only kept answers are given.
    pub offline: bool,
    /// Most questions in flight.
    pub concurrency: usize,
    /// After how long without an answer a question is sent a second time; without it none is. A model in memory
    /// is asked once.
    pub hedge: Option<Duration>,
    /// Hears why a question is sent again, when it is.
    pub on_retry: Option<RetryListener>,
}

/// Hears why questions are sent again.
pub type RetryListener = Box<dyn Fn(&ModelError) + Send + Sync>;

struct Shared {
    rules: Rules,
    ledger: Ledger,
    flights: Flights,
    /// Held by every sending that may be a second one, or may have one beside it.
    sendings: Arc<()>,
}

/// Models that a command may ask, and what asking them may take.
#[derive(Clone)]
pub struct Asking {
    shared: Arc<Shared>,
    models: Vec<Arc<AskedModel>>,
}

impl Asking {
    /// Nobody to ask yet.
    pub fn new(rules: Rules) -> Self {
        let shared = Shared {
            rules,
            ledger: Ledger::default(),
            flights: Flights::default(),
            sendings: Arc::default(),
        };
        Self { shared: Arc::new(shared), models: Vec::new() }
    }

    /// Adds a model with its price and the pace of its provider; with `deferred` its questions are sent later.
    pub fn add(
        &mut self,
        model: Arc<dyn ChatModel>,
        price: Option<Price>,
        pacer: Arc<Pacer>,
        deferred: Option<Arc<dyn Defer>>,
    ) {
        self.models.push(Arc::new(AskedModel {
            model,
            price,
            pacer,
            deferred,
            shared: Arc::clone(&self.shared),
        }));
    }

    /// The models, in the order they were added.
    pub fn models(&self) -> &[Arc<AskedModel>] {
        &self.models
    }

    /// What is spent and what is left.
    pub fn budget(&self) -> &Budget {
        &self.shared.rules.budget
    }

    /// The budget itself, for questions that are asked in another way.
    pub fn shared_budget(&self) -> Arc<Budget> {
        Arc::clone(&self.shared.rules.budget)
    }

    /// What was asked and what it took.
    pub fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }

    /// Most questions in flight.
    pub fn concurrency(&self) -> usize {
        self.shared.rules.concurrency.max(1)
    }

    /// Calls `f` on every item, with as many at once as may be in flight, and hands each result with its position
    /// to `done`, in order, on the calling thread.
    pub fn each<T: Sync, R: Send>(
        &self,
        items: &[T],
        f: impl Fn(&T) -> R + Sync,
        done: impl FnMut(usize, R),
    ) {
        batch::each(items, self.concurrency(), f, done);
    }
}

/// A model, with everything that stands before it.
pub struct AskedModel {
    model: Arc<dyn ChatModel>,
    price: Option<Price>,
    pacer: Arc<Pacer>,
    deferred: Option<Arc<dyn Defer>>,
    shared: Arc<Shared>,
}

impl AskedModel {
    /// Which model it is.
    pub fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }

    /// What it charges, where that is known.
    pub fn price(&self) -> Option<Price> {
        self.price
    }

    /// # Errors
    /// [`ModelError::Unsupported`] for a model without a price: no cap on cost can hold for it.
    pub fn require_price(&self) -> Result<(), ModelError> {
        if self.price.is_some() {
            return Ok(());
        }
        let name = &self.identity().model;
        Err(ModelError::Unsupported(format!("`{name}` has no price, so a cap on cost cannot hold for it")))
    }

    /// Host that is asked; `None` for a model in memory.
    pub fn host(&self) -> Option<&str> {
        self.identity().host()
    }

    /// Whether questions stay on this machine.
    pub fn is_local(&self) -> bool {
        self.identity().is_local()
    }

    /// The model as one stage asks it about one run, or about none.
    pub fn about(self: &Arc<Self>, stage: &str, run: Option<TrajectoryId>) -> About {
        About { model: Arc::clone(self), stage: stage.to_owned(), run }
    }

    /// Whether the answer to a question is kept, so that asking it costs nothing.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    pub fn is_kept(&self, request: &ChatRequest) -> Result<bool, ModelError> {
        match &self.shared.rules.cache {
            Some(cache) => Ok(cache.get(&key(self.identity(), request)?, None)?.is_some()),
            None => Ok(false),
        }
    }

    /// What a question takes at most.
    pub fn at_most(&self, request: &ChatRequest) -> Amount {
        let (prompt, completion) = (tokens::most_prompt(request), request.said_most());
        Amount {
            cost: self.price.map_or(Cost(0), |price| price.at_most(prompt, completion)),
            tokens: prompt + completion,
            requests: 1,
        }
    }

    /// What a question is set aside for. A server on this machine that has no price costs nothing.
    fn claim(&self, request: &ChatRequest) -> Result<Amount, ModelError> {
        if self.shared.rules.budget.limits().cost.is_some() && !self.is_local() {
            self.require_price()?;
        }
        Ok(self.at_most(request))
    }

    fn ask(
        &self,
        request: &ChatRequest,
        stage: &str,
        run: Option<TrajectoryId>,
    ) -> Result<ChatReply, ModelError> {
        let key = key(self.identity(), request)?;
        let ledger = &self.shared.ledger;
        let name = &self.identity().model;
        let answered = match &self.shared.rules.cache {
            None => self.send(request, stage, key).map(|paid| paid.reply),
            Some(cache) => {
                let _flight = self.shared.flights.enter(key);
                if let Some(reply) = cache.get(&key, run)? {
                    ledger.cached(stage, name, &reply.model);
                    return Ok(reply);
                }
                if let Some(deferred) = self.deferred.as_deref().filter(|_| !self.shared.rules.offline) {
                    return self
                        .defer(deferred, key, request, stage, run)
                        .inspect_err(|error| self.note(stage, error));
                }
                self.send(request, stage, key).and_then(|paid| {
                    cache.put(&Kept {
                        key: &key,
                        run,
                        stage,
                        model: name,
                        reply: &paid.reply,
                        usage: paid.usage,
                        cost: paid.cost,
                    })?;
                    Ok(paid.reply)
                })
            }
        };
        answered.inspect_err(|error| self.note(stage, error))
    }

    fn note(&self, stage: &str, error: &ModelError) {
        let name = &self.identity().model;
        match error {
            ModelError::Pending { .. } => self.shared.ledger.pending(stage, name),
            _ => self.shared.ledger.failed(stage, name),
        }
    }

    /// Takes a question to be sent later.
    fn defer(
        &self,
        deferred: &dyn Defer,
        key: Hash,
        request: &ChatRequest,
        stage: &str,
        run: Option<TrajectoryId>,
    ) -> Result<ChatReply, ModelError> {
        if !deferred.is_under_way(&key)? {
            // What it will take is not known in this process, so all that it can take counts as spent.
            drop(self.shared.rules.budget.reserve(self.claim(request)?)?);
            deferred.defer(key, request, stage, run)?;
        }
        Err(ModelError::Pending { host: self.host().unwrap_or_default().to_owned() })
    }

    fn send(&self, request: &ChatRequest, stage: &str, key: Hash) -> Result<Paid, ModelError> {
        let Rules { budget, offline, on_retry, .. } = &self.shared.rules;
        if let Some(host) = self.host().filter(|_| *offline) {
            return Err(ModelError::Offline { host: host.to_owned() });
        }
        let claim = self.claim(request)?;
        let pace = tokens::likely_prompt(request) + u64::from(request.max_tokens);
        let mut failed: Option<ModelError> = None;
        self.pacer.run(pace, key, &|wait| budget.check_time(wait), || {
            if let (Some(error), Some(hear)) = (failed.take(), on_retry) {
                hear(&error);
            }
            self.attempt(request, stage, claim, pace).inspect_err(|error| failed = Some(error.clone()))
        })
    }

    fn attempt(
        &self,
        request: &ChatRequest,
        stage: &str,
        claim: Amount,
        pace: u64,
    ) -> Result<Paid, ModelError> {
        let Rules { budget, clock, .. } = &self.shared.rules;
        let (ledger, name) = (&self.shared.ledger, &self.identity().model);
        let reservation = budget.reserve(claim)?;
        let start = clock.now();
        let failed = |reservation: Reservation<'_>, error: &ModelError| {
            let charged = error.may_be_charged();
            reservation.settle(if charged { claim } else { Amount { requests: 1, ..Amount::default() } });
            ledger.failed_attempt(
                stage,
                name,
                self.price.map(|_| if charged { claim.cost } else { Cost(0) }),
            );
        };
        let mut spare = None;
        let Raced { answer, other } = match self.shared.rules.hedge.filter(|_| self.host().is_some()) {
            None => Raced { answer: self.model.complete(request), other: None },
            Some(delay) => race(&self.model, request, delay, &self.shared.sendings, || {
                spare = self.spare(claim, pace);
                spare.is_some()
            }),
        };
        if let Some(spare) = spare {
            let charged = if let Some(error) = other {
                failed(spare, &error);
                None
            } else {
                // It is still under way, and nobody will hear what it took.
                drop(spare);
                self.price.map(|_| claim.cost)
            };
            ledger.hedged(stage, name, charged);
        }
        let mut reply = match answer {
            Ok(reply) => reply,
            Err(error) => {
                failed(reservation, &error);
                return Err(error);
            }
        };
        let took = clock.now().saturating_sub(start);
        let answer_bytes = reply.text.len() + reply.reasoning.as_deref().map_or(0, str::len);
        let plausible =
            reply.usage.is_some_and(|usage| tokens::is_plausible(usage, request, answer_bytes as u64));
        // A count that is missing or too small to be true does not stretch a cap.
        let least = Usage {
            prompt: tokens::cautious(tokens::request_bytes(request)),
            cached_prompt: 0,
            completion: tokens::cautious(answer_bytes as u64),
        };
        let usage = match reply.usage {
            Some(usage) if plausible => usage,
            Some(usage) => Usage {
                prompt: usage.prompt.max(least.prompt),
                cached_prompt: 0,
                completion: usage.completion.max(least.completion),
            },
            None => least,
        };
        let cost = self.price.map(|price| price.of(usage));
        reservation.settle(Amount {
            cost: cost.unwrap_or_default(),
            tokens: usage.prompt.saturating_add(usage.completion),
            requests: 1,
        });
        // A script counts nothing.
        let doubtful = !plausible && self.host().is_some();
        let answered = Answered { usage, doubtful, cost, took, name: &reply.model };
        ledger.answered(stage, name, &answered);
        reply.took_ms = took.as_millis() as u64;
        Ok(Paid { reply, usage, cost })
    }

    /// What a second sending may take, where one may be made now: as many as questions in flight at most, those
    /// that nobody waits for included.
    fn spare(&self, claim: Amount, pace: u64) -> Option<Reservation<'_>> {
        let Rules { budget, concurrency, .. } = &self.shared.rules;
        if Arc::strong_count(&self.shared.sendings) > 2 * (*concurrency).max(1) {
            return None;
        }
        let reservation = budget.try_reserve(claim)?;
        if self.pacer.admits_now(pace) {
            return Some(reservation);
        }
        reservation.settle(Amount::default());
        None
    }
}

/// An answer and what it took.
struct Paid {
    reply: ChatReply,
    usage: Usage,
    cost: Option<Cost>,
}

/// A model as one stage asks it about one run.
#[derive(Clone)]
pub struct About {
    model: Arc<AskedModel>,
    stage: String,
    run: Option<TrajectoryId>,
}

impl ChatModel for About {
    fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }

    fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        self.model.ask(request, &self.stage, self.run)
    }
}
