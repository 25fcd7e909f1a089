//! Models: those that the user named, opened, with the caps, the pace and the cache that they are asked with.
//!
//! Keys come from the environment, each for its own host, and go nowhere else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use recoup::models::cached::ReplyCache;
use recoup::models::deferred::{BatchLog, Defer};
use recoup::models::pacer::{PaceOptions, Pacer};
use recoup::models::{
    AnthropicModel, Asking, Budget, ChatModel, Client, Clock, Cost, Estimate, Landed, LedgerLine, Limits,
    ModelError, ModelIdentity, ModelSpec, OpenAiModel, Price, PriceTable, PriceTableError, ProviderBatch,
    ResponsesModel, Rules, ScriptFile, Secret, SpecError, Wire,
};
use recoup::pipeline::Meter;
use recoup::store::Store;

use crate::args::{Rate, SpendArgs};
use crate::clock::SteadyClock;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
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

/// A host elsewhere that no key is set for.
struct Keyless {
    host: String,
    variables: Vec<String>,
}

impl Keyless {
    /// Whether the host is known to answer nobody without a key.
    fn is_refused(&self) -> bool {
        PROVIDERS.iter().any(|(host, _)| *host == self.host)
    }

    fn variables(&self) -> String {
        self.variables.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
    }
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
        let mut opener = Opener {
            budget: Arc::clone(&budget),
            timeout: spend.timeout.unwrap_or(TIMEOUT),
            prices,
            client: None,
            keyless: Vec::new(),
            keyed: None,
        };
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

fn say_landed(landed: Landed, identity: &ModelIdentity, printer: Printer) {
    let Landed { answers, failed, open, reason } = landed;
    if answers + failed > 0 {
        printer.note(format_args!(
            "`{}` has answered {answers} requests of a batch, {failed} failed",
            identity.model
        ));
    }
    if let Some(reason) = reason {
        printer.warn(reason);
    }
    if open > 0 {
        let batches = if open == 1 { "batch" } else { "batches" };
        printer.note(format_args!("`{}` is still at work on {open} {batches}", identity.model));
    }
}

/// A model that was opened.
enum Opened {
    Scripted(Arc<ScriptFile>),
    OpenAi(Arc<OpenAiModel>),
    Other(Arc<dyn ChatModel>),
}

impl Opened {
    fn model(&self) -> &dyn ChatModel {
        match self {
            Self::Scripted(model) => &**model,
            Self::OpenAi(model) => &**model,
            Self::Other(model) => &**model,
        }
    }

    fn into_model(self) -> Arc<dyn ChatModel> {
        match self {
            Self::Scripted(model) => model,
            Self::OpenAi(model) => model,
            Self::Other(model) => model,
        }
    }
}

struct Opener {
    budget: Arc<Budget>,
    timeout: Duration,
    prices: PriceTable,
    client: Option<Arc<Client>>,
    keyless: Vec<Keyless>,
    /// The host that the key without a host in its name goes to.
    keyed: Option<String>,
}

impl Opener {
    fn open(&mut self, name: &str) -> Result<Opened, Failure> {
        let spec = ModelSpec::parse(name)
            .map_err(|error| Failure::user(error.to_string()).code("model").hint(SpecError::hint()))?;
        let (wire, model) = match &spec {
            ModelSpec::Scripted(path) => {
                let script = ScriptFile::open(path).map_err(|error| {
                    Failure::user(format!("cannot use the script {error}")).code("model").hint(
                        "a line is `{\"answer\": …}`, with `request` (a hash) or `contains` (a text) where it answers one question only",
                    )
                })?;
                return Ok(Opened::Scripted(Arc::new(script)));
            }
            ModelSpec::Remote { wire, model, .. } => (*wire, model),
        };
        let Some(identity) = spec.identity(self.prices.family(model)) else {
            return Err(Failure::user(format!("`{name}` names no model")).code("model"));
        };
        let variables = key_variables(&identity);
        let found = variables.iter().find_map(|name| Some((name, variable(name)?)));
        if let Some(host) =
            identity.host_name().filter(|_| found.as_ref().is_some_and(|(name, _)| *name == ANY_KEY))
        {
            self.only_host_of_key(host, &variables)?;
        }
        let key = found.map(|(_, key)| key);
        if let Some(host) = identity.host_name().filter(|_| key.is_none() && !identity.is_local())
            && self.keyless.iter().all(|known| known.host != host)
        {
            self.keyless.push(Keyless { host: host.to_owned(), variables });
        }
        let client = self.client()?;
        Ok(match wire {
            Wire::OpenAi => Opened::OpenAi(Arc::new(OpenAiModel::new(identity, key, client))),
            Wire::OpenAiResponses => Opened::Other(Arc::new(ResponsesModel::new(identity, key, client))),
            Wire::Anthropic => Opened::Other(Arc::new(AnthropicModel::new(identity, key, client))),
        })
    }

    /// # Errors
    /// Where the key that names no host would go to two: nobody said that it is both's.
    fn only_host_of_key(&mut self, host: &str, variables: &[String]) -> Result<(), Failure> {
        let other = self.keyed.get_or_insert_with(|| host.to_owned());
        if other == host {
            return Ok(());
        }
        let own = variables.iter().find(|name| *name != ANY_KEY).map_or(ANY_KEY, String::as_str);
        Err(Failure::user(format!(
            "`{ANY_KEY}` is the key of one host, and both {other} and {host} would get it"
        ))
        .code("key")
        .hint(format!("set `{own}` to the key of {host}, or one like it to that of {other}")))
    }

    fn client(&mut self) -> Result<Arc<Client>, Failure> {
        if let Some(client) = &self.client {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(Client::new(Arc::clone(&self.budget), self.timeout, http_proxy())?);
        self.client = Some(Arc::clone(&client));
        Ok(client)
    }
}

/// The proxy for hosts that are not this machine, where the environment names one.
pub(crate) fn http_proxy() -> Option<Secret<String>> {
    ["HTTPS_PROXY", "https_proxy"].iter().find_map(|name| variable(name))
}

/// The key for an address, where the environment holds one.
pub(crate) fn key_of(wire: Wire, base_url: &str) -> Option<Secret<String>> {
    let spec = ModelSpec::Remote { wire, base_url: base_url.to_owned(), model: String::new() };
    key_variables(&spec.identity(None)?).iter().find_map(|name| variable(name))
}

/// Providers that answer nobody without a key, with the variable that it is read from.
const PROVIDERS: [(&str, &str); 2] =
    [("api.openai.com", "OPENAI_API_KEY"), ("api.anthropic.com", "ANTHROPIC_API_KEY")];

/// The variable with the key of the one host that has no variable of its own.
const ANY_KEY: &str = "RECOUP_API_KEY";

/// The variables that hold the key for a host, the first that is set counting: the provider's own, else
/// `RECOUP_API_KEY_<HOST>` and `RECOUP_API_KEY`.
fn key_variables(identity: &ModelIdentity) -> Vec<String> {
    let Some(name) = identity.host_name() else { return Vec::new() };
    if let Some((_, own)) = PROVIDERS.iter().find(|(host, _)| *host == name) {
        return vec![(*own).to_owned()];
    }
    let word: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    vec![format!("{ANY_KEY}_{word}"), ANY_KEY.to_owned()]
}

fn variable(name: &str) -> Option<Secret<String>> {
    std::env::var(name)
        .ok()
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
        .map(Secret::new)
}

fn read_prices(path: Option<&Path>) -> Result<PriceTable, Failure> {
    let Some(path) = path else { return Ok(PriceTable::default()) };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::user(format!("cannot read prices `{}`: {error}", path.display())).code("prices")
    })?;
    PriceTable::parse(&text).map_err(|error| {
        Failure::user(format!("`{}`: {error}", path.display())).code("prices").hint(PriceTableError::hint())
    })
}

/// What the user decided about an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Ask.
    Ask,
    /// It was only to be shown (`--dry-run`): it stands on standard output.
    Shown,
}

/// Says what will be spent, and stops where that is more than the user said.
fn announce(
    estimate: &Estimate,
    spend: &SpendArgs,
    cap: Option<Cost>,
    settings: &Settings,
    printer: Printer,
) -> Result<Decision, Failure> {
    let mut text = describe(estimate);
    if let Some(cap) = cap.filter(|cap| estimate.cost_most > *cap) {
        let _ = write!(text, ", never more than {cap}");
    }
    if spend.dry_run {
        if printer.is_json() {
            printer.json(&settings.answer(estimate.clone()));
        } else {
            printer.line(text);
        }
        return Ok(Decision::Shown);
    }
    if estimate.requests == 0 || estimate.hosts.is_empty() {
        return Ok(Decision::Ask);
    }
    printer.note(&text);
    let unknown = estimate.unpriced.iter().next();
    let too_much = estimate.cost > UNASKED || unknown.is_some();
    if spend.max_cost.is_none() && !spend.yes && too_much && !settings.offline {
        let reason = match unknown {
            Some(model) => format!("nobody knows what `{model}` costs"),
            None => format!("this costs about {}", estimate.cost),
        };
        return Err(would_spend(&reason));
    }
    Ok(Decision::Ask)
}

fn would_spend(reason: &str) -> Failure {
    Failure::user(format!("nothing was sent: {reason}"))
        .code("would-spend")
        .hint("`--yes` asks all the same, `--max-cost USD` sets a cap, `--prices FILE` tells prices")
}

/// An estimate in words.
pub(crate) fn describe(estimate: &Estimate) -> String {
    let hosts: Vec<&str> = estimate.hosts.iter().map(String::as_str).collect();
    let requests = match estimate.requests {
        1 => "1 request".to_owned(),
        count => format!("{count} requests"),
    };
    let mut text = if hosts.is_empty() { requests } else { format!("{requests} to {}", hosts.join(", ")) };
    if estimate.runs > 0 {
        text.push_str(" about ");
        text.push_str(&runs(usize::try_from(estimate.runs).unwrap_or(usize::MAX)));
    }
    let _ = write!(
        text,
        ": about {} tokens and at most {} in answers",
        estimate.prompt_tokens, estimate.completion_tokens
    );
    let leaving = match estimate.bytes_leaving {
        0 => ", nothing leaves this machine".to_owned(),
        bytes => format!(", {bytes} bytes leave this machine"),
    };
    text.push_str(&leaving);
    match (estimate.unpriced.is_empty(), estimate.cost) {
        (true, cost) => {
            let _ = write!(text, ", about {cost}");
        }
        (false, Cost(0)) => text.push_str(", price unknown"),
        (false, cost) => {
            let _ = write!(text, ", about {cost} and what models without a price cost");
        }
    }
    if estimate.cost_most > estimate.cost {
        let _ = write!(text, ", at most {} in all", estimate.cost_most);
    }
    if estimate.cached > 0 {
        let _ = write!(text, "; {} answered from before", estimate.cached);
    }
    text
}

fn say_spent(asking: &Asking, printer: Printer) {
    let spent = asking.budget().spent();
    let (calls, cached) = asking.ledger().calls();
    if calls + cached > 0 {
        printer.note(format_args!(
            "{calls} answered, {cached} from before, {} tokens, {}",
            spent.tokens, spent.cost
        ));
    }
    for LedgerLine { model, answered_by, doubtful_usage, .. } in asking.ledger().lines() {
        if !answered_by.is_empty() {
            printer.warn(format_args!("`{model}` was asked, and `{}` answered", answered_by.join("`, `")));
        }
        if doubtful_usage > 0 {
            printer.warn(format_args!(
                "the tokens that `{model}` counts are missing or cannot be true in {doubtful_usage} answers; \
                 they are counted by length"
            ));
        }
    }
}
