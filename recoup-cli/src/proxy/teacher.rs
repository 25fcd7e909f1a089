//! The teacher: asked what it would do in the state that a request shows, beside the student or in its place.
//!
//! A label is asked for while the student answers, and nobody waits for it. What goes wrong with it is on
//! the record as a state without a label. A turn that is the teacher's gets the teacher's answer, or its
//! error: there is no silent swap.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use recoup::importers::recoup_proxy::{Api, Entry, Label};
use recoup::models::Secret;
use recoup::verdict::{LabelRefusal, RefusalCode};
use tokio::sync::Semaphore;

use super::Proxy;
use super::answer::{self, Answer};
use super::conversations::ConversationId;
use super::disguise::Disguise;
use super::journal::Line;
use super::request::TurnRequest;
use super::turn::Ending;
use super::upstream::{Clients, set_key};

/// Longest answer of a teacher.
const ANSWER_MAX: usize = 16 << 20;
/// Bytes of labels that may wait for a place.
const WAITING_MAX: usize = 256 << 20;
/// Members that ask for more answers than one, or for an answer that the provider keeps.
const NOT_FOR_LABELS: [&str; 2] = ["n", "store"];

/// A teacher that speaks one API.
#[derive(Debug)]
pub(crate) struct Teacher {
    pub api: Api,
    /// Its name in records, `provider:model`.
    pub name: String,
    /// Scheme, host, port and path, without a slash at the end.
    pub base_url: String,
    pub model: String,
    pub key: Option<Secret<String>>,
}

/// The teachers, and how they are asked.
#[derive(Debug)]
pub(crate) struct Teachers {
    pub all: Vec<Teacher>,
    /// Whether they see requests as they are.
    pub raw: bool,
    /// Members of requests that they are not sent.
    pub without: Vec<String>,
    /// How long a label may take.
    pub within: Duration,
    /// Places for labels.
    pub places: Arc<Semaphore>,
    /// Bytes of requests that wait for a place.
    pub waiting: AtomicUsize,
}

/// A question for a teacher, ready to be sent.
pub(super) struct Question {
    pub body: Bytes,
    /// What must be taken off the answer, where something was put on.
    pub disguise: Option<Disguise>,
}

impl Teachers {
    /// The teacher that speaks an API.
    pub(super) fn of(&self, api: Api) -> Option<&Teacher> {
        self.all.iter().find(|teacher| teacher.api == api)
    }

    /// A request as a teacher gets it, before anything is put on.
    pub(super) fn body(
        &self,
        teacher: &Teacher,
        request: &TurnRequest<'_>,
        stream: bool,
        label: bool,
    ) -> Option<Vec<u8>> {
        let mut dropped: Vec<&str> = self.without.iter().map(String::as_str).collect();
        if label {
            dropped.extend(NOT_FOR_LABELS);
        }
        request.for_model(&teacher.model, stream, &dropped)
    }
}

/// Puts the disguise on a body, off the threads that relay answers.
pub(super) async fn question(raw: bool, body: Vec<u8>) -> Result<Question, String> {
    if raw {
        return Ok(Question { body: body.into(), disguise: None });
    }
    let put_on = move || {
        let mut disguise = Disguise::default();
        let sent = disguise.put_on(&body).map_err(|error| error.to_string())?;
        Ok(match sent {
            Some(sent) => Question { body: sent.into(), disguise: Some(disguise) },
            None => Question { body: body.into(), disguise: None },
        })
    };
    tokio::task::spawn_blocking(put_on).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// The headers of a question: none of the client's.
pub(super) fn headers(teacher: &Teacher, client: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if teacher.api == Api::Messages {
        for name in ["anthropic-version", "anthropic-beta"] {
            if let Some(value) = client.get(name) {
                headers.insert(name, value.clone());
            }
        }
    }
    if let Some(key) = &teacher.key {
        set_key(&mut headers, teacher.api, key);
    }
    headers
}

/// A label on its way; one that is dropped is missing.
pub(super) struct Asking {
    pub proxy: Arc<Proxy>,
    pub conversation: ConversationId,
    pub name: Arc<str>,
    pub request: u32,
    pub teacher: String,
    pub ending: Arc<Ending>,
    /// Whether it is settled.
    pub settled: bool,
}

impl Asking {
    fn settle(&mut self, result: Result<Answer, LabelRefusal>) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        let (answer, refused) = match result {
            Ok(answer) => (answer, None),
            Err(refused) => (Answer::default(), Some(refused)),
        };
        let metrics = &self.proxy.metrics;
        let count = if refused.is_some() { &metrics.labels_missing } else { &metrics.labels };
        count.fetch_add(1, Ordering::Relaxed);
        let missing = refused.is_some();
        let label = Label {
            conversation: Cow::Borrowed(&self.name),
            request: self.request,
            at: self.proxy.timestamp().into(),
            teacher: Cow::Borrowed(&self.teacher),
            answer: answer.alternatives.first().into_iter().flatten().map(|raw| &**raw).collect(),
            call: (!missing).then(|| Box::new(answer.call.clone())),
            refused,
        };
        let bytes = Entry::Label(label).to_line().unwrap_or_default();
        self.proxy.append(Line {
            conversation: self.conversation,
            request: Some(self.request),
            bytes,
            written: None,
            durable: None,
        });
        self.proxy.labels_open.fetch_sub(1, Ordering::Relaxed);
        self.ending.labelled(&self.proxy, !missing);
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.settle(Err(missing("the proxy ended before the teacher answered")));
    }
}

fn missing(reason: impl Into<String>) -> LabelRefusal {
    LabelRefusal { code: RefusalCode::Missing, reason: reason.into() }
}

/// Asks for a label. Nobody waits for this.
pub(super) async fn label(
    mut asking: Asking,
    clients: Clients,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    api: Api,
) {
    let proxy = Arc::clone(&asking.proxy);
    let Some(teachers) = &proxy.teachers else { return };
    let (Some(teacher), Some(body)) = (teachers.of(api), body) else {
        asking.settle(Err(missing("no teacher speaks this API")));
        return;
    };
    let size = body.len();
    if teachers.waiting.fetch_add(size, Ordering::Relaxed) > WAITING_MAX {
        teachers.waiting.fetch_sub(size, Ordering::Relaxed);
        asking.settle(Err(missing("too many labels wait for the teacher")));
        return;
    }
    let place = Arc::clone(&teachers.places).acquire_owned().await;
    teachers.waiting.fetch_sub(size, Ordering::Relaxed);
    let asked =
        tokio::time::timeout(teachers.within, ask(&clients, teacher, teachers.raw, headers, body)).await;
    asking.settle(asked.unwrap_or_else(|_| Err(missing("the teacher took too long"))));
    drop(place);
}

async fn ask(
    clients: &Clients,
    teacher: &Teacher,
    raw: bool,
    headers: HeaderMap,
    body: Vec<u8>,
) -> Result<Answer, LabelRefusal> {
    let Question { body, disguise } = question(raw, body).await.map_err(missing)?;
    let (status, body) = whole(clients, teacher, headers, body).await.map_err(missing)?;
    if !status.is_success() {
        let said: String = String::from_utf8_lossy(&body).chars().take(300).collect();
        return Err(missing(format!("the teacher answered {}: {said}", status.as_u16())));
    }
    let body = restored(disguise.as_ref(), body)?;
    answer::whole(teacher.api, &body).map_err(LabelRefusal::unreadable)
}

/// An answer with the disguise taken off.
pub(super) fn restored(disguise: Option<&Disguise>, body: Bytes) -> Result<Bytes, LabelRefusal> {
    let Some(disguise) = disguise else { return Ok(body) };
    disguise.take_off(&body).map(Bytes::from).map_err(|unrestored| LabelRefusal {
        code: RefusalCode::Unrestored,
        reason: format!("nobody knows what `{}` stands for", unrestored.0),
    })
}

/// Asks a teacher for an answer in one piece.
pub(super) async fn whole(
    clients: &Clients,
    teacher: &Teacher,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Bytes), String> {
    let url = format!("{}{}", teacher.base_url, super::api::path(teacher.api));
    let response = clients.send(Method::POST, &url, headers, body).await;
    let response = response.map_err(|error| crate::failure::chain(&error.without_url()))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
    let body = body.map_err(|error| format!("the answer of the teacher broke off: {error}"))?;
    Ok((status, body.to_bytes()))
}
