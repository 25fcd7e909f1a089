//! Labels: what a teacher would do in the states that a student acts in, asked for while the student answers. Nobody waits
//! for one, and one that goes wrong is on the record as a state without a label.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::header::HeaderMap;
use recoup::importers::recoup_proxy::{Api, Entry, Label};
use recoup::verdict::{LabelRefusal, RefusalCode};
use tokio::sync::watch;

use super::answer::Answer;
use super::conversations::{ConversationId, Durable};
use super::journal::Line;
use super::teacher::{NoReply, Teachers, question};
use super::turn::Ending;
use super::upstream::Clients;
use super::{Proxy, history};

/// Bytes of labels that may wait for a place.
const WAITING_MAX: usize = 256 << 20;

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
        let missing = result.is_err();
        let metrics = &self.proxy.metrics;
        let count = if missing { &metrics.labels_missing } else { &metrics.labels };
        count.fetch_add(1, Ordering::Relaxed);
        let (Answer { alternatives, call, .. }, refused) = match result {
            Ok(answer) => (answer, None),
            Err(refused) => (Answer::default(), Some(refused)),
        };
        let label = Label {
            conversation: Cow::Borrowed(&self.name),
            request: self.request,
            at: self.proxy.timestamp().into(),
            teacher: Cow::Borrowed(&self.teacher),
            answer: alternatives.first().into_iter().flatten().map(|raw| &**raw).collect(),
            call: (!missing).then(|| Box::new(call)),
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

/// What a label is asked about.
pub(super) struct State {
    /// The request in its client's API, for the teacher's model.
    pub body: Vec<u8>,
    /// What the client speaks.
    pub api: Api,
    pub headers: HeaderMap,
    /// Where the upstream keeps the history: the conversation's last message, and what must be written before it can
    /// be read.
    pub kept: Option<(Option<u32>, Vec<watch::Receiver<Durable>>)>,
}

/// Asks for a label. Nobody waits for this.
pub(super) async fn ask_for(mut asking: Asking, clients: Clients, state: Option<State>) {
    let proxy = Arc::clone(&asking.proxy);
    let Some(teachers) = &proxy.teachers else { return };
    let Some(state) = state else {
        asking.settle(Err(missing("the request cannot be put to the teacher")));
        return;
    };
    let size = state.body.len();
    if teachers.waiting.fetch_add(size, Ordering::Relaxed) > WAITING_MAX {
        teachers.waiting.fetch_sub(size, Ordering::Relaxed);
        asking.settle(Err(missing("too many labels wait for the teacher")));
        return;
    }
    let place = Arc::clone(&teachers.places).acquire_owned().await;
    teachers.waiting.fetch_sub(size, Ordering::Relaxed);
    let asked = tokio::time::timeout(teachers.within, asked(&asking, teachers, &clients, state)).await;
    asking.settle(asked.unwrap_or_else(|_| Err(missing("the teacher took too long"))));
    drop(place);
}

async fn asked(
    asking: &Asking,
    teachers: &Teachers,
    clients: &Clients,
    state: State,
) -> Result<Answer, LabelRefusal> {
    let State { mut body, api, headers, kept } = state;
    if let Some((last, waits)) = kept {
        body = with_history(asking, body, last, waits).await?;
    }
    let Some(teacher) = teachers.of(api) else { return Err(missing("there is no teacher")) };
    let question = question(teachers.raw, body).await.map_err(missing)?;
    let reply = teachers.reply(teacher, clients, api, headers, question, "label").await;
    let (answer, _) = reply.map_err(|why| match why {
        NoReply::Capped(why) | NoReply::Untold(why) | NoReply::Broken(why) => missing(why),
        NoReply::Status(status, body) => {
            let said: String = String::from_utf8_lossy(&body).chars().take(300).collect();
            missing(format!("the teacher answered {}: {said}", status.as_u16()))
        }
        NoReply::Refused(refusal) => refusal,
    })?;
    answer.map_err(LabelRefusal::unreadable)
}

/// A body that says the whole history, as the journal has it.
async fn with_history(
    asking: &Asking,
    body: Vec<u8>,
    last: Option<u32>,
    waits: Vec<watch::Receiver<Durable>>,
) -> Result<Vec<u8>, LabelRefusal> {
    let Some(last) = last else {
        return Err(missing("it goes on from an answer that did not come through this proxy"));
    };
    for mut wait in waits {
        // Where it cannot be written, it is not found either.
        let _ = wait.wait_for(|state| *state != Durable::NotYet).await;
    }
    let (proxy, conversation) = (Arc::clone(&asking.proxy), asking.conversation);
    let read = move || {
        let lines = proxy.journal.read(conversation).map_err(|error| error.to_string())?;
        let history = history::up_to(&lines, last).ok_or("the journal does not hold the history")?;
        history::told(&body, history).ok_or_else(|| "the request cannot be put to the teacher".to_owned())
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(error.to_string())).map_err(missing)
}
