//! `recoup proxy`: an endpoint between a harness and its models that records every conversation.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use recoup::answers::{Proxied, Proxying};
use recoup::importers::recoup_proxy::Api;
use recoup::interleaving::Mixing;
use recoup::models::{Amount, AskedModel, ModelSpec, Secret, SpecError, Wire};
use tokio::sync::Semaphore;

use super::project;
use crate::Ended;
use crate::args::{ProxyArgs, ProxyMode, SpendArgs};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::models::{self, Models};
use crate::printer::Printer;
use crate::proxy::{self, Config, Limits, Sharing, Spending, Teacher, Teachers, Timing, Upstream, Upstreams};
use crate::settings::Settings;

/// Serves until it is told to stop.
pub(crate) fn proxy(flags: &ProxyArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    if !flags.host.is_loopback() && flags.token.as_deref().is_none_or(str::is_empty) {
        return Err(Failure::user(format!("{} can be reached by others, and there is no token", flags.host))
            .code("no-token")
            .hint("set one with `--token` or RECOUP_PROXY_TOKEN, or leave `--host` out"));
    }
    let upstreams = upstreams(flags)?;
    if settings.offline {
        return Err(Failure::user("a proxy needs the network").code("offline").hint("leave `--offline` out"));
    }
    // Before any thread begins: each takes over which signals it leaves to others.
    let interrupt = Interrupt::listen();
    let sharing = sharing(flags, settings, printer)?;
    project::create_or_open(settings)?;
    let config = Config {
        address: SocketAddr::new(flags.host, flags.port),
        token: flags.token.clone().filter(|token| !token.is_empty()).map(Secret::new),
        upstreams,
        sharing,
        http_proxy: models::http_proxy(),
        threads: settings.threads,
        limits: Limits { body_bytes: flags.max_body as usize, in_flight: usize::from(flags.max_in_flight) },
        timing: Timing { fold_after: flags.rest, forget_after: flags.forget },
        project: settings.project.clone(),
    };
    let running = proxy::start(config, printer)?;
    let url = format!("http://{}", running.address);
    if printer.is_json() {
        printer.json(&settings.answer(Proxying { url: &url }));
    } else {
        printer.line(format_args!(
            "recoup proxy at {url}: set the base URL of OpenAI's clients to {url}/v1, of Anthropic's to {url}"
        ));
    }
    interrupt.wait();
    // The next one ends the program at once; the journal is safe.
    printer.note("stopping: turns under way are finished first");
    let done = running.finish()?;
    let requests: u64 = done.ended.iter().map(|(_, count)| count).sum();
    if printer.is_json() {
        let ended = done.ended.into_iter().collect();
        printer.json(&settings.answer(Proxied { requests, ended, spent: done.spent }));
    } else {
        let ended: Vec<String> = done
            .ended
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(word, count)| format!("{count} {word}"))
            .collect();
        printer.line(format_args!(
            "{requests} requests: {}",
            if ended.is_empty() { "none".to_owned() } else { ended.join(", ") }
        ));
        let Amount { cost, tokens, requests } = done.spent;
        if requests > 0 {
            printer.line(format_args!("teachers took {requests} requests, {tokens} tokens, {cost}"));
        }
    }
    Ok(Ended::Done)
}

/// Where requests go, as the flags say.
fn upstreams(flags: &ProxyArgs) -> Result<Upstreams, Failure> {
    let (mut openai, mut anthropic) = (None, None);
    for text in &flags.upstream {
        match text.split_once('=').filter(|(api, _)| matches!(*api, "openai" | "anthropic")) {
            Some(("anthropic", url)) => anthropic = Some(upstream(Wire::Anthropic, url)?),
            Some((_, url)) => openai = Some(upstream(Wire::OpenAi, url)?),
            None => {
                openai.get_or_insert(upstream(Wire::OpenAi, text)?);
                anthropic.get_or_insert(upstream(Wire::Anthropic, text)?);
            }
        }
    }
    match (openai, anthropic) {
        (Some(openai), Some(anthropic)) => Ok(Upstreams { openai, anthropic }),
        (Some(only), None) | (None, Some(only)) => Ok(Upstreams { openai: only.clone(), anthropic: only }),
        (None, None) => Err(Failure::user("there is no upstream").hint("name one with `--upstream URL`")),
    }
}

fn upstream(wire: Wire, text: &str) -> Result<Upstream, Failure> {
    let (url, model) = text.split_once('#').map_or((text, None), |(url, model)| (url, Some(model)));
    let bad = |why: &str| {
        Failure::user(format!("`--upstream` names no address: {why}")).code("upstream").hint(
            "write `https://HOST/v1`, with `#MODEL` behind it to ask for another model than clients name",
        )
    };
    let rest = ["http://", "https://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let rest = rest.ok_or_else(|| bad("it starts neither with `http://` nor with `https://`"))?;
    let authority = rest.split('/').next().unwrap_or(rest);
    if authority.is_empty() || authority.contains('@') || url.contains(['?', ' ']) {
        return Err(bad("it is scheme, host and path, without a password or a query"));
    }
    let base_url = url.trim_end_matches('/').to_owned();
    let key = models::key_of(wire, &base_url);
    Ok(Upstream { base_url, model: model.filter(|model| !model.is_empty()).map(str::to_owned), key })
}

/// Who teaches whom, as the flags say.
fn sharing(
    flags: &ProxyArgs,
    settings: &Settings,
    printer: Printer,
) -> Result<Option<(Sharing, Teachers)>, Failure> {
    let default = if flags.teacher.is_empty() { ProxyMode::Record } else { ProxyMode::Shadow };
    let mode = flags.mode.unwrap_or(default);
    let mixing = match mode {
        ProxyMode::Record => {
            if flags.teacher.is_empty() {
                return Ok(None);
            }
            return Err(Failure::user("`--mode record` asks no teacher")
                .hint("leave `--teacher` out, or use `--mode shadow`"));
        }
        ProxyMode::Shadow => Mixing::Turns { beta: 0.0 },
        ProxyMode::Mix => Mixing::Turns { beta: flags.beta.clone().unwrap_or_default().beta(flags.round) },
        ProxyMode::Prefix => {
            Mixing::Prefix { most: flags.kappa.clone().unwrap_or_default().most(flags.round) }
        }
    };
    if flags.beta.is_some() && mode != ProxyMode::Mix || flags.kappa.is_some() && mode != ProxyMode::Prefix {
        return Err(Failure::user("`--beta` goes with `--mode mix`, `--kappa` with `--mode prefix`"));
    }
    if flags.teacher.is_empty() {
        return Err(Failure::user("there is no teacher")
            .hint("name one with `--teacher MODEL`, or use `--mode record`"));
    }
    let spend = settings.models.spending(&SpendArgs {
        max_cost: flags.max_cost,
        max_tokens: flags.max_tokens,
        max_requests: flags.max_requests,
        yes: flags.yes,
        prices: flags.prices.clone(),
        timeout: Some(flags.label_within),
        concurrency: Some(flags.label_concurrency),
        ..SpendArgs::default()
    });
    // A proxy sends nothing at an hour of its choosing, nor twice, nor for a time.
    let spend = SpendArgs { max_time: None, hedge: None, ..spend };
    let models = Models::open(&flags.teacher, &spend, settings, None, printer)?;
    models.require_consent(&spend, printer)?;
    let opened = flags.teacher.iter().zip(models.asking.models());
    let all = opened.map(|(name, asked)| teacher(name, asked)).collect::<Result<_, _>>()?;
    let teachers = Teachers {
        all,
        raw: flags.teacher_raw,
        without: flags.teacher_without.clone(),
        within: flags.label_within,
        places: Arc::new(Semaphore::new(usize::from(flags.label_concurrency))),
        waiting: AtomicUsize::new(0),
        spending: Spending::new(models.asking.shared_budget(), printer),
    };
    let sharing = Sharing { mixing, round: flags.round, seed: flags.seed, context: flags.context };
    Ok(Some((sharing, teachers)))
}

fn teacher(name: &str, asked: &Arc<AskedModel>) -> Result<Teacher, Failure> {
    let spec = ModelSpec::parse(name)
        .map_err(|error| Failure::user(error.to_string()).code("model").hint(SpecError::hint()))?;
    let ModelSpec::Remote { wire, base_url, model } = spec else {
        return Err(Failure::user(format!("`{name}` is no model behind an address")).code("model"));
    };
    let api = match wire {
        Wire::OpenAi => Api::Chat,
        Wire::OpenAiResponses => Api::Responses,
        Wire::Anthropic => Api::Messages,
    };
    let key = models::key_of(wire, &base_url);
    let name = format!("{}:{model}", wire.as_str());
    Ok(Teacher { api, name, base_url, model, key, asked: Arc::clone(asked) })
}
