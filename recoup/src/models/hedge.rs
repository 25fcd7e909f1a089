//! A hedge: a question that got no answer for a while is sent a second time, and the first answer counts.
//!
//! Whoever asked does not wait for the slower one. It goes on by itself until its answer comes or its time is
//! over, and nobody reads it.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::batch::STACK_BYTES;
use super::{ChatModel, ChatReply, ChatRequest, ModelError};

/// How a question ended that may have been sent twice.
pub(super) struct Raced {
    /// The first answer, or the last error.
    pub(super) answer: Result<ChatReply, ModelError>,
    /// The error of the other sending, where it has failed before.
    pub(super) other: Option<ModelError>,
}

/// Asks, and asks once more where no answer came within `delay` and `second` agrees. Each sending holds a clone
/// of `alive` for as long as it lasts.
pub(super) fn race(
    model: &Arc<dyn ChatModel>,
    request: &ChatRequest,
    delay: Duration,
    alive: &Arc<()>,
    second: impl FnOnce() -> bool,
) -> Raced {
    let request = Arc::new(request.clone());
    let (sender, receiver) = mpsc::channel();
    let send = |sender: mpsc::Sender<_>| {
        let (model, request, alive) = (Arc::clone(model), Arc::clone(&request), Arc::clone(alive));
        let work = move || {
            let answer = model.complete(&request);
            drop(alive);
            // Whoever asked may have its answer.
            let _ = sender.send(answer);
        };
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)
    };
    if send(sender.clone()).is_err() {
        return Raced { answer: model.complete(&request), other: None };
    }
    let receive = || receiver.recv().unwrap_or_else(|_| Err(gone()));
    match receiver.recv_timeout(delay) {
        Ok(answer) => return Raced { answer, other: None },
        Err(RecvTimeoutError::Disconnected) => return Raced { answer: Err(gone()), other: None },
        Err(RecvTimeoutError::Timeout) => {}
    }
    if !second() {
        drop(sender);
        return Raced { answer: receive(), other: None };
    }
    if send(sender).is_err() {
        return Raced { answer: receive(), other: Some(gone()) };
    }
    match receive() {
        Ok(reply) => Raced { answer: Ok(reply), other: None },
        Err(error) => Raced { answer: receive(), other: Some(error) },
    }
}

fn gone() -> ModelError {
    ModelError::Unsupported("a thread that asks models could not run".to_owned())
}
