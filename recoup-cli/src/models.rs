//! Models: those that the user named, opened, with the caps, the pace and the cache that they are asked with.
//!
//! Keys come from the environment, each for its own host, and go nowhere else.

mod opener;
mod spending;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use recoup::models::cached::ReplyCache;
use recoup::models::deferred::{BatchLog, Defer};
use recoup::models::pacer::{PaceOptions, Pacer};
use recoup::models::{
    Asking, Budget, Clock, Cost, Estimate, Limits, ModelError, Price, ProviderBatch, Rules,
};
use recoup::pipeline::Meter;
use recoup::store::Store;

use self::opener::{Keyless, Opened, Opener, read_prices};
pub(crate) use self::opener::{http_proxy, key_of};
pub(crate) use self::spending::{Decision, describe};
use self::spending::{announce, say_landed, say_spent, would_spend};
use crate::args::{Rate, SpendArgs};
use crate::clock::SteadyClock;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// What a command may spend where neither `--max-cost` nor `--yes` says how much.
const UNASKED: Cost = Cost(1_000_000_000_000);
/// Time for a whole answer, where nothing else is said.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Requests in flight, where nothing else is said.
const CONCURRENCY: u16 = 16;

/// The models that a command may ask.
pub(crate) struct Models {
    /// Them, with all that stands before them.
    pub asking: Asking,
    batches: Vec<Arc<ProviderBatch>>,
    keyless: Vec<Keyless>,
}

impl Models {
    /// What the ledger says so far.
    pub(crate) fn meter(&self) -> Meter {
        Meter::of(self.asking.ledger())
    }

    /// Opens models by name. With a project, answers are kept in it and never paid for twice, and answers that
    /// providers have finished since the last time are collected.
    pub(crate) fn open(
        names: &[String],
        spend: &SpendArgs,
        settings: &Settings,
        store: Option<&Store>,
        printer: Printer,
    ) -> Result<Self, Failure> {
        forgo_huge_pages();
        let clock: Arc<dyn Clock> = Arc::new(SteadyClock::start());
        let limits = Limits {
            cost: spend.max_cost.or((!spend.yes).then_some(UNASKED)),
            tokens: spend.max_tokens,
            requests: spend.max_requests,
            wall: spend.max_time,
        };
        let budget = Arc::new(Budget::new(limits, Arc::clone(&clock)));
        let replies = store.map(Store::replies).transpose()?.map(Arc::new);
        let prices = read_prices(spend.prices.as_deref())?;
        let mut opener = Opener::new(Arc::clone(&budget), spend.timeout.unwrap_or(TIMEOUT), prices);
        let mut asking = Asking::new(Rules {
            budget: Arc::clone(&budget),
            clock: Arc::clone(&clock),
            cache: replies.clone().map(|replies| replies as Arc<dyn ReplyCache>),
            offline: settings.offline,
            concurrency: usize::from(spend.concurrency.unwrap_or(CONCURRENCY)),
            hedge: spend.hedge,
            on_retry: Some(Box::new(move |error| {
                // What passes soon is nobody's concern; this took minutes.
                if matches!(error, ModelError::Timeout { .. }) {
                    printer.note(format_args!("{error}: it is asked once more"));
                }
            })),
        });
        let mut pacers: BTreeMap<String, Arc<Pacer>> = BTreeMap::new();
        let mut batches = Vec::new();
        for name in names {
            let opened = opener.open(name)?;
            let identity = opened.model().identity().clone();
            let remote = identity.host().is_some();
            // A script costs nothing and is never in a hurry.
            let price = opener.prices.price(&identity).or((!remote).then_some(Price::FREE));
            let price = if spend.batch { price.map(Price::batched) } else { price };
            let rate = |rates: &[Rate]| Rate::of(rates, identity.host()?, identity.host_name()?);
            let options =
                PaceOptions { requests_per_minute: rate(&spend.rpm), tokens_per_minute: rate(&spend.tpm) };
            let host = identity.host().unwrap_or(&identity.model).to_owned();
            let pacer = pacers
                .entry(host.clone())
                .or_insert_with(|| Arc::new(Pacer::new(host, options, Arc::clone(&clock))));
            let batch = match (&opened, &replies) {
                (Opened::Scripted(_), _) => None,
                (Opened::OpenAi(model), Some(replies)) if spend.batch => {
                    let log = Arc::clone(replies) as Arc<dyn BatchLog>;
                    Some(Arc::new(ProviderBatch::new(
                        Arc::clone(model),
                        price,
                        log,
                        Arc::clone(pacer),
                        Arc::clone(&budget),
                    )))
                }
                _ if spend.batch => {
                    return Err(Failure::user(format!("`{name}` takes no batches")).code("model").hint(
                        "`--batch` is for OpenAI's chat completions, and needs a project to keep the answers in",
                    ));
                }
                _ => None,
            };
            if let (Some(batch), Some(replies), false) = (&batch, &replies, settings.offline) {
                say_landed(batch.collect(&**replies)?, &identity, printer);
            }
            let deferred = batch.clone().map(|batch| batch as Arc<dyn Defer>);
            batches.extend(batch);
            asking.add(opened.into_model(), price, Arc::clone(pacer), deferred);
        }
        if spend.max_cost.is_some() {
            for model in asking.models() {
                model.require_price().map_err(|error| {
                    Failure::user(error.to_string()).code("unpriced").hint(format!(
                        "give its price in a file: `--prices FILE` with `[models.\"{}\"]`, `input` and `output`, in \
                         dollars a million tokens (0 where it is your own)",
                        model.identity().model
                    ))
                })?;
            }
        }
        Ok(Self { asking, batches, keyless: opener.keyless })
    }

    /// Says what will be spent before it is, and stops where that is more than the user said.
    ///
    /// # Errors
    /// Where it may cost more than $1, or nobody knows how much, and neither `--max-cost` nor `--yes` is given;
    /// where a key is missing that is sure to be asked for.
    pub(crate) fn announce(
        &self,
        estimate: &Estimate,
        spend: &SpendArgs,
        settings: &Settings,
        printer: Printer,
    ) -> Result<Decision, Failure> {
        if !spend.dry_run && estimate.requests > 0 && !settings.offline {
            self.require_keys(printer)?;
        }
        announce(estimate, spend, self.asking.budget().limits().cost, settings, printer)
    }

    /// Says what may be spent while a command runs on of which nobody knows how much it will ask.
    ///
    /// # Errors
    /// As [`Models::announce`].
    pub(crate) fn require_consent(&self, spend: &SpendArgs, printer: Printer) -> Result<(), Failure> {
        self.require_keys(printer)?;
        let elsewhere = || self.asking.models().iter().filter(|model| !model.is_local());
        if spend.max_cost.is_some() || spend.yes {
            return Ok(());
        }
        if let Some(unpriced) = elsewhere().find(|model| model.price().is_none()) {
            return Err(would_spend(&format!("nobody knows what `{}` costs", unpriced.identity().model)));
        }
        if let Some(cap) = self.asking.budget().limits().cost.filter(|_| elsewhere().next().is_some()) {
            printer.note(format_args!(
                "no more than {cap} is spent: `--max-cost USD` sets another cap, `--yes` sets none"
            ));
        }
        Ok(())
    }

    fn require_keys(&self, printer: Printer) -> Result<(), Failure> {
        for keyless in &self.keyless {
            let (host, variables) = (&keyless.host, keyless.variables());
            if keyless.is_refused() {
                return Err(Failure::user(format!("nothing was sent: no key is set for {host}"))
                    .code("no-key")
                    .hint(format!("set {variables} to the key in the environment")));
            }
            printer.note(format_args!("no key is set for {host}; where it wants one, set {variables}"));
        }
        Ok(())
    }

    /// Sends what was put off, and says what was spent and what providers did that a user should know.
    pub(crate) fn finish(&self, printer: Printer) -> Result<(), Failure> {
        for batch in &self.batches {
            let sent = batch.submit()?;
            if sent > 0 {
                printer.note(format_args!(
                    "{sent} requests were sent as a batch; the same command, run again, collects the answers"
                ));
            }
        }
        say_spent(&self.asking, printer);
        Ok(())
    }
}

/// Every thread that waits for an answer has a small heap of its own; in huge pages each would take a megabyte.
fn forgo_huge_pages() {
    // Where the system refuses, memory is all that it costs.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_thp_disable(true);
}
