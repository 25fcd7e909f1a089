//! The service: what is done with a request.
//!
//! A request for a turn is placed in its conversation, forwarded to who acts, and its answer relayed. A
//! few paths are the proxy's own. Everything else goes to the upstream and back as it is.

mod begin;
mod turns;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use recoup::importers::recoup_proxy::Api;

use self::begin::own_header;
use self::turns::turn;
use super::guard::{self, Refusal};
use super::relay::{Outgoing, Relay, whole};
use super::upstream::{Clients, back, onward};
use super::{Proxy, Spending, api, control, metrics};

/// How long a client may take to send a body.
const BODY_WITHIN: Duration = Duration::from_mins(2);

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
