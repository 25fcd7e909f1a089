//! The service: what is done with a request.
//!
//! A request for a turn is placed in its conversation, forwarded to who acts, and its answer relayed. A
//! few paths are the proxy's own. Everything else goes to the upstream and back as it is.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use recoup::importers::recoup_proxy::{Api, BUDGET, Begin, Entry};
use recoup::interleaving::RequestOutcome;
use recoup::verdict::Actor;
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};

use super::conversations::{Asking, Durable};
use super::fingerprint::Fingerprint;
use super::guard::{self, Refusal};
use super::journal::Line;
use super::relay::{Outgoing, Relay, whole};
use super::request::TurnRequest;
use super::sharing::Sharing;
use super::teacher::NoReply;
use super::turn::{Ending, Failure, Turn};
use super::upstream::{Clients, back, onward};
use super::{Proxy, Spending, api, control, disguise, label, metrics, teacher};

/// How long a client may take to send a body.
const BODY_WITHIN: Duration = Duration::from_mins(2);
/// How long a turn waits for the one before it to be on the disk.
const DURABLE_WITHIN: Duration = Duration::from_secs(30);
/// Longest value of one of the proxy's own headers, in bytes.
const NAME_MAX: usize = 256;
/// The header that says how often a client of OpenAI or Anthropic has tried already.
const RETRIES: &str = "x-stainless-retry-count";

/// A refusal on its way to the client.
struct Refused {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { status: refusal.status, code: refusal.code, message: refusal.message.to_owned() }
    }
}

fn refused(status: StatusCode, code: &'static str, message: impl Into<String>) -> Refused {
    Refused { status, code, message: message.into() }
}

/// Answers a request.
pub(super) async fn respond(
    proxy: Arc<Proxy>,
    clients: Clients,
    request: Request<Incoming>,
) -> Response<Outgoing> {
    let started = Instant::now();
    let path = request.uri().path().to_owned();
    let spoken = api::at(&path).filter(|_| request.method() == Method::POST);
    let answered = match proxy.guard.check(&request) {
        Err(refusal) => {
            proxy.metrics.refused.fetch_add(1, Ordering::Relaxed);
            Err(refusal.into())
        }
        Ok(shown) => match (request.method(), &*path, spoken) {
            (_, _, Some(api)) => {
                proxy.metrics.requests.fetch_add(1, Ordering::Relaxed);
                turn(&proxy, &clients, request, api, shown.token_as_key, started).await
            }
            (&Method::GET, "/healthz", _) => Ok(whole(StatusCode::OK, "text/plain", "ok\n")),
            (&Method::GET, "/metrics", _) => Ok(show_metrics(&proxy)),
            (_, "/v1/recoup/outcome", _) => outcome(&proxy, request).await,
            _ => forward(&proxy, &clients, request, shown.token_as_key).await,
        },
    };
    answered.unwrap_or_else(|refused| refuse(spoken, &refused))
}

fn refuse(api: Option<Api>, refused: &Refused) -> Response<Outgoing> {
    let body = api::error_body(api, refused.status.as_u16(), refused.code, &refused.message);
    let mut response = whole(refused.status, "application/json", body.to_string());
    if refused.status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn show_metrics(proxy: &Proxy) -> Response<Outgoing> {
    let spending = proxy.teachers.as_ref().map(|teachers| &teachers.spending);
    let text = proxy.metrics.text(&metrics::Beside {
        conversations: proxy.conversations().len(),
        in_flight: proxy.in_flight(),
        unwritten: proxy.journal.unwritten(),
        resident_bytes: metrics::resident_bytes(),
        spent: spending.map(Spending::spent).unwrap_or_default(),
        is_capped: spending.is_some_and(Spending::is_reached),
    });
    whole(StatusCode::OK, "text/plain; version=0.0.4", text)
}

/// A turn that ends before it was begun.
fn unbegun(proxy: &Proxy, refused: Refused) -> Refused {
    let limit = matches!(refused.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::SERVICE_UNAVAILABLE);
    proxy.metrics.ended(if limit { RequestOutcome::Capped } else { RequestOutcome::Aborted });
    refused
}

async fn turn(
    proxy: &Arc<Proxy>,
    clients: &Clients,
    request: Request<Incoming>,
    api: Api,
    token_as_key: bool,
    started: Instant,
) -> Result<Response<Outgoing>, Refused> {
    let fail = |refused| unbegun(proxy, refused);
    guard::check_json(&request).map_err(|refusal| fail(refusal.into()))?;
    let Ok(permit) = Arc::clone(&proxy.turns).try_acquire_owned() else {
        return Err(fail(refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "busy",
            "too many requests are under way",
        )));
    };
    if !proxy.journal.has_room() {
        return Err(fail(refused(StatusCode::SERVICE_UNAVAILABLE, "busy", "the disk is too slow")));
    }
    let (head, body) = request.into_parts();
    let body = read(body, proxy.limits.body_bytes).await.map_err(fail)?;
    let read = TurnRequest::parse(api, &body)
        .map_err(|why| fail(refused(StatusCode::BAD_REQUEST, "bad-request", why.to_string())))?;
    let upstream = proxy.upstreams.of(api);
    let scope = proxy.scope(&head.headers);
    let begun = begin(proxy, &head.headers, scope, &read, permit, started);
    let (turn, waits) = begun.map_err(|why| fail(refused(StatusCode::BAD_REQUEST, "bad-request", why)))?;
    let teacher_acts = turn.actor == Actor::Teacher;
    ask_for_label(&turn, clients, &head.headers, &read);
    let turn = durable(turn, waits).await?;
    if teacher_acts {
        return taught(proxy, clients, turn, &head.headers, &read).await;
    }
    let sent = match &upstream.model {
        Some(model) if *model != read.model => {
            read.for_model(model, true, &[]).map_or_else(|| body.clone(), Bytes::from)
        }
        _ => body.clone(),
    };
    let headers = onward(&head.headers, token_as_key, upstream.key.as_ref());
    let url = api::upstream_url(&upstream.base_url, head.uri.path(), head.uri.query());
    proxy.metrics.before.count(started.elapsed());
    let response = clients.send(Method::POST, &url, headers, sent).await;
    relayed(turn, response).await
}

/// Waits until the turns before are on the disk.
async fn durable(turn: Turn, waits: Vec<watch::Receiver<Durable>>) -> Result<Turn, Refused> {
    for mut wait in waits {
        let state =
            tokio::time::timeout(DURABLE_WITHIN, wait.wait_for(|state| *state != Durable::NotYet)).await;
        let state = state.ok().and_then(Result::ok).map_or(Durable::Failed, |state| *state);
        if state != Durable::Yes {
            let message = "the turn before this one cannot be written to the disk";
            turn.finish(Err(Failure::new("disk", message)));
            return Err(refused(StatusCode::SERVICE_UNAVAILABLE, "disk", message));
        }
    }
    Ok(turn)
}

/// The answer of an upstream on its way to the client.
async fn relayed(
    turn: Turn,
    response: Result<Response<reqwest::Body>, reqwest::Error>,
) -> Result<Response<Outgoing>, Refused> {
    let turn = known(turn).await?;
    let response = match response {
        Ok(response) => response,
        Err(error) => return Err(unreachable(turn, &crate::failure::chain(&error.without_url()))),
    };
    let (parts, _) = back(&response).into_parts();
    let relay = Relay::of_turn(response, turn);
    Ok(Response::from_parts(parts, Outgoing::Relayed(Box::new(relay))))
}

/// No client sees a byte of an answer whose request is not written down.
async fn known(mut turn: Turn) -> Result<Turn, Refused> {
    if (&mut turn.written).await.unwrap_or(false) {
        return Ok(turn);
    }
    turn.lost = true;
    let message = "the request cannot be written to the disk";
    turn.finish(Err(Failure::new("disk", message)));
    Err(refused(StatusCode::SERVICE_UNAVAILABLE, "disk", message))
}

fn unreachable(turn: Turn, why: &str) -> Refused {
    let who = if turn.actor == Actor::Teacher { "teacher" } else { "upstream" };
    let message = format!("the {who} cannot be reached: {why}");
    turn.finish(Err(Failure::new("upstream-unreachable", message.clone())));
    refused(StatusCode::BAD_GATEWAY, "upstream-unreachable", message)
}

/// Asks the teacher for a label of the state that the student acts in.
fn ask_for_label(turn: &Turn, clients: &Clients, headers: &HeaderMap, read: &TurnRequest<'_>) {
    let wanted = turn.shared && turn.actor == Actor::Student;
    let Some(teachers) = turn.proxy.teachers.as_ref().filter(|_| wanted) else { return };
    let Some(teacher) = teachers.of(turn.api) else { return };
    // The teacher does not know what the student's upstream keeps.
    let kept = read
        .previous
        .is_some()
        .then(|| (turn.place.parent.filter(|_| turn.place.resumes), turn.place.waits.clone()));
    let state = teachers.body(teacher, read, false, true).map(|body| label::State {
        body,
        api: turn.api,
        headers: teacher::headers(teacher, headers),
        kept,
    });
    turn.proxy.labels_open.fetch_add(1, Ordering::Relaxed);
    let asking = label::Asking {
        proxy: Arc::clone(&turn.proxy),
        conversation: turn.place.id,
        name: Arc::clone(&turn.place.name),
        request: turn.place.request,
        teacher: teacher.name.clone(),
        ending: Arc::clone(&turn.ending),
        settled: false,
    };
    tokio::spawn(label::ask_for(asking, clients.clone(), state));
}

/// A turn that is the teacher's.
async fn taught(
    proxy: &Proxy,
    clients: &Clients,
    mut turn: Turn,
    headers: &HeaderMap,
    read: &TurnRequest<'_>,
) -> Result<Response<Outgoing>, Refused> {
    let api = turn.api;
    let no = |turn: Turn, status: StatusCode, code: &'static str, message: String| {
        turn.finish(Err(Failure::new(code, message.clone())));
        Err(refused(status, code, message))
    };
    let teacher = proxy.teachers.as_ref().and_then(|teachers| Some((teachers, teachers.of(api)?)));
    let Some((teachers, teacher)) = teacher else {
        let message = "the turn is the teacher's, and there is none".to_owned();
        return no(turn, StatusCode::BAD_REQUEST, "no-teacher", message);
    };
    if read.previous.is_some() {
        let message = "the turn is the teacher's, whose answers the upstream does not keep: send the history";
        return no(turn, StatusCode::BAD_REQUEST, "no-teacher", message.to_owned());
    }
    let body = |stream| {
        let body = teachers.body(teacher, read, stream, false);
        body.ok_or_else(|| "the request cannot be put to the teacher".to_owned())
    };
    let plain = match body(false) {
        Ok(plain) => plain,
        Err(why) => return no(turn, StatusCode::BAD_REQUEST, "no-teacher", why),
    };
    let headers = teacher::headers(teacher, headers);
    let asked = match teacher::question(teachers.raw, plain).await {
        Ok(asked) => asked,
        Err(why) => return no(turn, StatusCode::BAD_REQUEST, "no-teacher", why),
    };
    if teacher.api == api && asked.disguise.is_none() {
        let streaming = match body(true) {
            Ok(streaming) => streaming,
            Err(why) => return no(turn, StatusCode::BAD_REQUEST, "no-teacher", why),
        };
        turn.hold = match teachers.spending.hold(teacher.asked.price(), &asked.body).await {
            Ok(hold) => Some(hold),
            Err(why) => return no(turn, StatusCode::PAYMENT_REQUIRED, BUDGET, why),
        };
        let url = format!("{}{}", teacher.base_url, api::path(api));
        let response = clients.send(Method::POST, &url, headers, streaming).await;
        return relayed(turn, response).await;
    }
    let (answer, body) = match teachers.reply(teacher, clients, api, headers, asked, "turn").await {
        Ok(reply) => reply,
        Err(NoReply::Capped(why)) => return no(turn, StatusCode::PAYMENT_REQUIRED, BUDGET, why),
        Err(NoReply::Untold(why)) => return no(turn, StatusCode::BAD_REQUEST, "no-teacher", why),
        Err(NoReply::Broken(why)) => return no(turn, StatusCode::BAD_GATEWAY, "upstream-unreachable", why),
        Err(NoReply::Refused(refusal)) => {
            let message = format!("the teacher's answer cannot be used: {}", refusal.reason);
            return no(turn, StatusCode::BAD_GATEWAY, refusal.code.as_str(), message);
        }
        Err(NoReply::Status(status, body)) => {
            let turn = known(turn).await?;
            let said = String::from_utf8_lossy(&body).into_owned();
            turn.finish(Err(Failure::of_status(status.as_u16(), &said)));
            return Ok(whole(status, "application/json", body));
        }
    };
    let turn = known(turn).await?;
    let understood = answer.is_ok();
    turn.finish(answer.map_err(Failure::from));
    if read.stream && understood {
        return Ok(whole(StatusCode::OK, "text/event-stream", disguise::streamed(api, &body)));
    }
    Ok(whole(StatusCode::OK, "application/json", body))
}

/// Places a request and writes it down; gives what must be on the disk before it is forwarded, too.
fn begin(
    proxy: &Arc<Proxy>,
    headers: &HeaderMap,
    scope: Fingerprint,
    read: &TurnRequest<'_>,
    permit: tokio::sync::OwnedSemaphorePermit,
    started: Instant,
) -> Result<(Turn, Vec<watch::Receiver<Durable>>), String> {
    let own = |name: &str| own_header(headers, name);
    let session = own("x-recoup-session")?;
    let task = own("x-recoup-task")?;
    let episode = own("x-recoup-episode")?
        .map(|text| text.parse::<u64>().map_err(|_| "`x-recoup-episode` is no number".to_owned()))
        .transpose()?;
    let again = headers.get(RETRIES).is_some_and(|count| count != "0");
    let shown = proxy.seen.show(read.api, read.messages.iter().map(|raw| &**raw));
    let held_out =
        proxy.sharing.as_ref().and_then(|_| Sharing::holds_out(&proxy.project, task, &read.messages));
    let asking = Asking {
        api: read.api,
        scope,
        held_out,
        session,
        again,
        previous: read.previous.as_deref(),
        now: proxy.now_millis(),
    };
    let tools = read.tools.map(|tools| Fingerprint::of(&[tools.get().as_bytes()]));
    let parameters = read.parameters();
    // Held until the line is on its way: the log has the order of its numbers.
    let mut conversations = proxy.conversations();
    let place = conversations.place(&asking, &shown, tools);
    let messages: Vec<&RawValue> = read.messages.iter().skip(place.known).map(|raw| &**raw).collect();
    let last = match messages.len() {
        0 => place.parent,
        count => Some(place.first + count as u32 - 1),
    };
    let sharing = proxy
        .sharing
        .as_ref()
        // Of a session that goes over to a task that is held out, nothing more is taught.
        .filter(|_| {
            !conversations.holds_out(place.id, || held_out.unwrap_or(false)) && held_out != Some(true)
        });
    let actor = sharing.map_or(Actor::Student, |sharing| sharing.actor(&place, task, session, episode));
    let teacher = proxy.teachers.as_ref().and_then(|teachers| teachers.of(read.api));
    let harness = headers.get("user-agent").and_then(|value| value.to_str().ok());
    let entry = Begin {
        conversation: Cow::Borrowed(&place.name),
        request: place.request,
        at: proxy.timestamp().into(),
        api: read.api,
        client: format!("{:032x}", scope.0).into(),
        session: session.map(Cow::Borrowed),
        task: task.map(Cow::Borrowed),
        episode,
        harness: harness.filter(|name| name.len() <= NAME_MAX).map(Cow::Borrowed),
        actor,
        ordinal: place.ordinal,
        sharing: sharing.zip(teacher).map(|(sharing, teacher)| sharing.recorded(&teacher.name)),
        turn: place.turn,
        parent: place.parent,
        first: place.first,
        messages,
        tools: read.tools.filter(|_| place.tools_changed),
        parameters: parameters.as_deref(),
    };
    let line = Entry::Begin(entry).to_line().map_err(|error| error.to_string())?;
    let (told, written) = oneshot::channel();
    proxy.append(Line {
        conversation: place.id,
        request: Some(place.request),
        bytes: line,
        written: Some(told),
        durable: None,
    });
    drop(conversations);
    let waits = place.waits.clone();
    let turn = Turn {
        proxy: Arc::clone(proxy),
        api: read.api,
        place,
        scope,
        last,
        actor,
        shared: sharing.is_some(),
        ending: Arc::new(Ending::new(sharing.is_some() && actor == Actor::Student)),
        started,
        permit: Some(permit),
        hold: None,
        written,
        lost: false,
        ended: false,
    };
    Ok((turn, waits))
}

/// The value of one of the proxy's own headers.
fn own_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, String> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(text) if !text.is_empty() && text.len() <= NAME_MAX => Ok(Some(text)),
        _ => Err(format!("`{name}` is a text of 1 to {NAME_MAX} bytes")),
    }
}

async fn read(body: Incoming, most: usize) -> Result<Bytes, Refused> {
    let collected = tokio::time::timeout(BODY_WITHIN, Limited::new(body, most).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("the body is longer than {most} bytes");
            Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message))
        }
        Ok(Err(error)) => Err(refused(StatusCode::BAD_REQUEST, "bad-request", error.to_string())),
        Err(_) => Err(refused(StatusCode::REQUEST_TIMEOUT, "slow", "the body came too slowly")),
    }
}

/// Sends a request on as it is, and its answer back as it is.
async fn forward(
    proxy: &Arc<Proxy>,
    clients: &Clients,
    request: Request<Incoming>,
    token_as_key: bool,
) -> Result<Response<Outgoing>, Refused> {
    proxy.metrics.forwarded.fetch_add(1, Ordering::Relaxed);
    let Ok(permit) = Arc::clone(&proxy.others).try_acquire_owned() else {
        return Err(refused(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many requests are under way"));
    };
    let (head, body) = request.into_parts();
    // Whoever shows Anthropic's headers means it.
    let anthropic = head.headers.contains_key("anthropic-version") || head.headers.contains_key("x-api-key");
    let upstream = proxy.upstreams.of(if anthropic { Api::Messages } else { Api::Chat });
    let headers = onward(&head.headers, token_as_key, upstream.key.as_ref());
    let url = api::upstream_url(&upstream.base_url, head.uri.path(), head.uri.query());
    let body = read(body, proxy.limits.body_bytes).await?;
    match clients.send(head.method, &url, headers, body).await {
        Ok(response) => {
            let (parts, _) = back(&response).into_parts();
            let relay = Relay::plain(response.into_body(), Some(permit));
            Ok(Response::from_parts(parts, Outgoing::Relayed(Box::new(relay))))
        }
        Err(error) => {
            let message =
                format!("the upstream cannot be reached: {}", crate::failure::chain(&error.without_url()));
            Err(refused(StatusCode::BAD_GATEWAY, "upstream-unreachable", message))
        }
    }
}

async fn outcome(proxy: &Arc<Proxy>, request: Request<Incoming>) -> Result<Response<Outgoing>, Refused> {
    guard::check_json(&request)?;
    let (head, body) = request.into_parts();
    let body = read(body, proxy.limits.body_bytes).await?;
    let scope = proxy.scope(&head.headers);
    let session = own_header(&head.headers, "x-recoup-session");
    let session = session.map_err(|why| refused(StatusCode::BAD_REQUEST, "bad-request", why))?;
    match control::outcome(proxy, scope, session, &body).await {
        Ok(answer) => Ok(whole(StatusCode::OK, "application/json", answer.to_string())),
        Err((status, code, message)) => Err(refused(status, code, message)),
    }
}

/// What a client's key is known by: the value of the header that carries it.
pub(super) fn key_of(headers: &HeaderMap) -> &[u8] {
    let key = headers.get(AUTHORIZATION).or_else(|| headers.get("x-api-key"));
    key.map_or(&[], HeaderValue::as_bytes)
}
