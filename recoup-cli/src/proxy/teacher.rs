//! The teacher: asked what it would do in the state that a request shows, beside the student or in its place.
//!
//! A turn that is the teacher's gets the teacher's answer, or its error: there is no silent swap. What is done
//! with one that is only asked for a label stands in [`super::label`].

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use recoup::importers::recoup_proxy::Api;
use recoup::models::{AskedModel, ModelError, Secret};
use recoup::trajectory::Call;
use recoup::verdict::{LabelRefusal, RefusalCode};
use tokio::sync::Semaphore;

use super::answer::{self, Answer};
use super::disguise::Disguise;
use super::request::TurnRequest;
use super::spending::{self, Spending};
use super::upstream::{Clients, set_key};
use super::{api, foreign};

/// Longest answer of a teacher.
const ANSWER_MAX: usize = 16 << 20;
/// Members that ask for more answers than one, or for an answer that the provider keeps.
const NOT_FOR_LABELS: [&str; 2] = ["n", "store"];

/// A teacher.
pub(crate) struct Teacher {
    /// What it speaks.
    pub api: Api,
    /// Its name in records, `provider:model`.
    pub name: String,
    /// Scheme, host, port and path, without a slash at the end.
    pub base_url: String,
    pub model: String,
    pub key: Option<Secret<String>>,
    /// The same model, for requests that are not in its own API.
    pub asked: Arc<AskedModel>,
}

/// The teachers, and how they are asked.
pub(crate) struct Teachers {
    /// At least one.
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
    /// What they may take.
    pub spending: Spending,
}

/// A question for a teacher, ready to be sent.
pub(super) struct Question {
    pub body: Bytes,
    /// What must be taken off the answer, where something was put on.
    pub disguise: Option<Disguise>,
}

/// Why a teacher gave no answer.
pub(super) enum NoReply {
    /// A cap on spending is reached.
    Capped(String),
    /// The request has no form in its API.
    Untold(String),
    /// It answered with an error.
    Status(StatusCode, Bytes),
    /// Nothing came, or nothing whole.
    Broken(String),
    /// What came is no answer for this client.
    Refused(LabelRefusal),
}

impl Teachers {
    /// The teacher for a client's API: the one that speaks it, or else the first.
    pub(super) fn of(&self, api: Api) -> Option<&Teacher> {
        self.all.iter().find(|teacher| teacher.api == api).or(self.all.first())
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

impl Teachers {
    /// Asks for an answer in one piece; `body` is in the client's API, and so is what comes back. The answer as it is read,
    /// beside its bytes.
    pub(super) async fn reply(
        &self,
        teacher: &Teacher,
        clients: &Clients,
        api: Api,
        headers: HeaderMap,
        question: Question,
        stage: &'static str,
    ) -> Result<(Result<Answer, answer::NoAnswer>, Bytes), NoReply> {
        let Question { body, disguise } = question;
        if teacher.api != api {
            let body = self.retold(teacher, api, body, stage).await?;
            let body = restored(disguise.as_ref(), body).map_err(NoReply::Refused)?;
            let answer = answer::whole(api, &body).map(|mut answer| {
                spending::price(teacher.asked.price(), &mut answer.call);
                answer
            });
            return Ok((answer, body));
        }
        let price = teacher.asked.price();
        let hold = self.spending.hold(price, &body).await.map_err(NoReply::Capped)?;
        let (status, body) = match whole(clients, teacher, headers, body).await {
            Ok(answered) => answered,
            Err(Unanswered { is_sent, why }) => {
                if !is_sent {
                    hold.refused();
                }
                return Err(NoReply::Broken(why));
            }
        };
        if !status.is_success() {
            hold.refused();
            return Err(NoReply::Status(status, body));
        }
        let mut answer = answer::whole(api, &body);
        match &mut answer {
            Ok(answer) => hold.answered(&mut answer.call, body.len()),
            Err(_) => hold.answered(&mut Call::default(), body.len()),
        }
        if disguise.is_some() {
            let body = restored(disguise.as_ref(), body).map_err(NoReply::Refused)?;
            let call = answer.map(|answer| answer.call);
            let answer = answer::whole(api, &body).and_then(|answer| Ok(Answer { call: call?, ..answer }));
            return Ok((answer, body));
        }
        Ok((answer, body))
    }

    /// Asks in the teacher's API what is in another.
    async fn retold(
        &self,
        teacher: &Teacher,
        api: Api,
        body: Bytes,
        stage: &'static str,
    ) -> Result<Bytes, NoReply> {
        let model = Arc::clone(&teacher.asked);
        let ask = move || foreign::ask(&model, api, &body, stage);
        let asked = tokio::task::spawn_blocking(ask).await;
        let asked = asked.map_err(|error| NoReply::Broken(error.to_string()))?;
        asked.map(Bytes::from).map_err(|why| match why {
            foreign::NoAnswer::Untold(why) => {
                NoReply::Untold(format!("the request cannot be put to a teacher of another API: {why}"))
            }
            foreign::NoAnswer::Model(error @ ModelError::Exhausted { .. }) => {
                NoReply::Capped(self.spending.reached(&error))
            }
            foreign::NoAnswer::Model(ModelError::Status { status, message, .. }) => {
                let message = format!("the teacher answered {status}: {message}");
                let body = api::error_body(Some(api), status, "teacher", &message).to_string();
                NoReply::Status(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), body.into())
            }
            foreign::NoAnswer::Model(error) => NoReply::Broken(error.to_string()),
            foreign::NoAnswer::Unwritten(why) => NoReply::Refused(LabelRefusal::unreadable(why)),
        })
    }
}

/// An answer with the disguise taken off.
fn restored(disguise: Option<&Disguise>, body: Bytes) -> Result<Bytes, LabelRefusal> {
    let Some(disguise) = disguise else { return Ok(body) };
    disguise.take_off(&body).map(Bytes::from).map_err(|unrestored| LabelRefusal {
        code: RefusalCode::Unrestored,
        reason: format!("nobody knows what `{}` stands for", unrestored.0),
    })
}

/// No whole answer came.
struct Unanswered {
    /// Whether the question may have arrived.
    is_sent: bool,
    why: String,
}

/// Asks a teacher in its own API for an answer in one piece.
async fn whole(
    clients: &Clients,
    teacher: &Teacher,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Bytes), Unanswered> {
    let url = format!("{}{}", teacher.base_url, api::path(teacher.api));
    let response = clients.send(Method::POST, &url, headers, body).await.map_err(|error| Unanswered {
        is_sent: !error.is_connect(),
        why: format!("the teacher cannot be reached: {}", crate::failure::chain(&error.without_url())),
    })?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
    let body = body.map_err(|error| Unanswered {
        is_sent: true,
        why: format!("the answer of the teacher broke off: {error}"),
    })?;
    Ok((status, body.to_bytes()))
}
