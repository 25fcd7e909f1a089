//! A turn: its request goes to who acts, and the answer is relayed once all before it is on the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Method, Request, Response, StatusCode};
use recoup::importers::recoup_proxy::{Api, BUDGET};
use recoup::interleaving::RequestOutcome;
use recoup::verdict::Actor;
use tokio::sync::watch;

use super::begin::begin;
use super::{Refused, read, refused};
use crate::proxy::conversations::Durable;
use crate::proxy::relay::{Outgoing, Relay, whole};
use crate::proxy::request::TurnRequest;
use crate::proxy::teacher::NoReply;
use crate::proxy::turn::{Failure, Turn};
use crate::proxy::upstream::{Clients, back, onward};
use crate::proxy::{Proxy, api, disguise, guard, label, teacher};

/// How long a turn waits for the one before it to be on the disk.
const DURABLE_WITHIN: Duration = Duration::from_secs(30);

/// A turn that ends before it was begun.
fn unbegun(proxy: &Proxy, refused: Refused) -> Refused {
    let limit = matches!(refused.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::SERVICE_UNAVAILABLE);
    proxy.metrics.ended(if limit { RequestOutcome::Capped } else { RequestOutcome::Aborted });
    refused
}

/// Takes a request for a turn.
pub(super) async fn turn(
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
