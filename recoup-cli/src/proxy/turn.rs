//! A turn under way: from its request to the end of its answer. It ends exactly once; one that is
//! dropped was left by its client.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use recoup::importers::recoup_proxy::{self, Api, End, Entry, Problem};
use recoup::interleaving::Delivered;
use recoup::models::ModelError;
use recoup::verdict::Actor;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use super::Proxy;
use super::answer::{Answer, NoAnswer};
use super::conversations::{Durable, Given, Place, Shown};
use super::fingerprint::{Fingerprint, show};
use super::journal::Line;
use super::spending::Hold;

/// A turn that was begun.
pub(super) struct Turn {
    pub proxy: Arc<Proxy>,
    pub api: Api,
    pub place: Place,
    pub scope: Fingerprint,
    /// Number of the request's last message.
    pub last: Option<u32>,
    pub actor: Actor,
    /// Whether a teacher takes part in its conversation.
    pub shared: bool,
    pub ending: Arc<Ending>,
    pub started: Instant,
    pub permit: Option<OwnedSemaphorePermit>,
    /// What is set aside for it, where its teacher answers in pieces.
    pub hold: Option<Hold>,
    /// Told once its request is written, or cannot be.
    pub written: oneshot::Receiver<bool>,
    /// Whether its request could not be written.
    pub lost: bool,
    /// Whether it has ended.
    pub ended: bool,
}

impl Turn {
    /// Ends it with what came of it. After this the client may ask again at once.
    pub(super) fn finish(mut self, result: Result<Answer, Failure>) {
        self.end(result);
    }

    fn end(&mut self, result: Result<Answer, Failure>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let proxy = Arc::clone(&self.proxy);
        let (mut answer, failure) = match result {
            Ok(answer) => (answer, None),
            Err(failure) => (Answer::default(), Some(failure)),
        };
        if let Some(hold) = self.hold.take() {
            settle(hold, &mut answer, failure.as_ref());
        }
        let shown: Vec<Vec<Shown>> = answer
            .alternatives
            .iter()
            .map(|alternative| alternative.iter().map(|raw| show(self.api, raw)).collect())
            .collect();
        let (durable, state) = watch::channel(Durable::NotYet);
        let given = Given {
            last: self.last,
            first: None,
            alternatives: &shown,
            id: answer.id.as_deref(),
            scope: self.scope,
            now: proxy.now_millis(),
        };
        // Held until the line is on its way: the log has the order of its numbers.
        let mut conversations = proxy.conversations();
        let lost = self.lost || self.written.try_recv() == Ok(false);
        if lost {
            conversations.withdraw(&self.place, self.last);
        }
        let first = conversations.answer(self.place.id, &given);
        if !lost {
            conversations.wait(self.place.id, first, state);
        }
        let problem = failure.as_ref().map(|failure| Problem {
            code: failure.code.into(),
            message: Cow::Borrowed(failure.message.as_str()),
        });
        let end = End {
            conversation: Cow::Borrowed(&self.place.name),
            request: self.place.request,
            at: proxy.timestamp().into(),
            // No other API goes on from an answer by its name.
            id: answer.id.as_deref().filter(|_| self.api == Api::Responses).map(Cow::Borrowed),
            first,
            answers: answer.alternatives.iter().map(|raws| raws.iter().map(|raw| &**raw).collect()).collect(),
            call: failure.is_none().then(|| Box::new(answer.call.clone())),
            error: problem,
            seconds: (self.started.elapsed().as_micros() as f64) / 1e6,
        };
        proxy.append(Line {
            conversation: self.place.id,
            request: Some(self.place.request),
            bytes: Entry::End(end).to_line().unwrap_or_default(),
            written: None,
            durable: Some(durable),
        });
        drop(conversations);
        proxy.metrics.whole.count(self.started.elapsed());
        let is_capped = failure.as_ref().is_some_and(|failure| failure.code == recoup_proxy::BUDGET);
        self.ending.answered(&proxy, failure.is_none().then_some(self.actor), is_capped);
        if self.actor == Actor::Teacher && failure.is_none() {
            proxy.metrics.teacher_turns.fetch_add(1, Ordering::Relaxed);
        }
        self.permit = None;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Err(Failure::new("client-gone", "the client left before the end of the answer")));
        }
    }
}

/// How a request ends: known once its answer has ended and its label, where one was wanted, is settled.
pub(super) struct Ending(Mutex<(Delivered, u8)>);

impl Ending {
    /// `label` says whether one is wanted.
    pub(super) fn new(label: bool) -> Self {
        Self(Mutex::new((Delivered::default(), 1 + u8::from(label))))
    }

    /// The answer has ended; nobody acted where it failed, or where a cap kept it from being asked for.
    fn answered(&self, proxy: &Proxy, actor: Option<Actor>, is_capped: bool) {
        self.part(proxy, |delivered| {
            if let Some(actor) = actor {
                delivered.took(actor);
            }
            delivered.is_capped |= is_capped;
            delivered.is_aborted |= actor.is_none() && !is_capped;
        });
    }

    /// The label is settled.
    pub(super) fn labelled(&self, proxy: &Proxy, is_there: bool) {
        self.part(proxy, |delivered| delivered.missing += u64::from(!is_there));
    }

    fn part(&self, proxy: &Proxy, change: impl FnOnce(&mut Delivered)) {
        let (delivered, open) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(delivered);
        *open = open.saturating_sub(1);
        if *open == 0 {
            proxy.metrics.ended(delivered.outcome());
        }
    }
}

/// Counts what an answer in pieces took.
fn settle(hold: Hold, answer: &mut Answer, failure: Option<&Failure>) {
    let is_refusal = |failure: &Failure| {
        matches!(failure.code, "upstream-status" | "upstream-unreachable" | recoup_proxy::CONTEXT_FULL)
    };
    match failure {
        None => {
            let bytes = answer.alternatives.iter().flatten().map(|raw| raw.get().len()).sum();
            hold.answered(&mut answer.call, bytes);
        }
        Some(failure) if is_refusal(failure) => hold.refused(),
        // It was broken off, and nobody says what it took: all that was set aside.
        Some(_) => drop(hold),
    }
}

/// Why a turn has no answer.
#[derive(Debug)]
pub(super) struct Failure {
    pub code: &'static str,
    pub message: String,
}

impl Failure {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Of an upstream that answered with an error.
    pub(super) fn of_status(status: u16, said: &str) -> Self {
        let error = ModelError::Status {
            host: String::new(),
            status,
            message: said.to_owned(),
            retry_after_ms: None,
        };
        let code = if error.is_context_full() { recoup_proxy::CONTEXT_FULL } else { "upstream-status" };
        Self::new(code, format!("{status}: {said}"))
    }
}

impl From<NoAnswer> for Failure {
    fn from(why: NoAnswer) -> Self {
        let code = match &why {
            NoAnswer::Cut => "upstream-cut",
            NoAnswer::Upstream(_) => "upstream-error",
            NoAnswer::Form(_) => "upstream-form",
        };
        Self::new(code, why.to_string())
    }
}
