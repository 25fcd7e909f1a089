//! The relay: an upstream's body on its way to the client, byte for byte as it comes, read along.
//!
//! What is read along ends the turn before the client can see the end of the answer: its next request
//! finds the answer known.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::answer::{self, Stream};
use super::turn::{Failure, Turn};

/// Bytes of an answer in one piece that are read along; of a longer one there is no record.
const WHOLE_MAX: usize = 64 << 20;
/// Characters of an upstream's error that are recorded.
const ERROR_CHARACTERS_MAX: usize = 2000;

/// A body for a client.
pub(super) enum Outgoing {
    /// One that is at hand.
    Whole(Option<Bytes>),
    /// One that comes from an upstream.
    Relayed(Box<Relay>),
}

/// An upstream's body.
pub(super) struct Relay {
    body: reqwest::Body,
    reading: Reading,
    /// Bytes to come, where the upstream says.
    left: Option<u64>,
    /// A place among the requests under way that are no turns.
    _permit: Option<OwnedSemaphorePermit>,
}

enum Reading {
    Nothing,
    Events(Turn, Stream),
    Whole(Turn, Vec<u8>),
    /// An upstream's error, with its status.
    Error(Turn, u16, Vec<u8>),
}

impl Relay {
    /// A body that nobody reads along.
    pub(super) fn plain(body: reqwest::Body, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { left: None, body, reading: Reading::Nothing, _permit: permit }
    }

    /// A body that ends a turn.
    pub(super) fn of_turn(response: hyper::Response<reqwest::Body>, turn: Turn) -> Self {
        let (head, body) = response.into_parts();
        let kind = head.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let reading = if !head.status.is_success() {
            Reading::Error(turn, head.status.as_u16(), Vec::new())
        } else if kind.starts_with("text/event-stream") {
            let stream = Stream::new(turn.api);
            Reading::Events(turn, stream)
        } else {
            Reading::Whole(turn, Vec::new())
        };
        let mut relay = Self { left: body.size_hint().exact(), body, reading, _permit: None };
        // Nobody asks for a body of which there is nothing.
        if relay.left == Some(0) || relay.body.is_end_stream() {
            relay.end(false);
        }
        relay
    }

    fn read(&mut self, data: &Bytes) {
        self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
        let ends = self.left == Some(0);
        match &mut self.reading {
            Reading::Nothing => {}
            Reading::Events(_, stream) => {
                if stream.feed(data) || ends {
                    self.end(false);
                }
            }
            Reading::Whole(_, bytes) => {
                if bytes.len() + data.len() <= WHOLE_MAX {
                    bytes.extend_from_slice(data);
                } else {
                    self.fail(Failure::new("too-large", "the answer is too large to be recorded"));
                    return;
                }
                if ends {
                    self.end(false);
                }
            }
            Reading::Error(_, _, bytes) => {
                bytes.extend(
                    data.iter().take(8 * ERROR_CHARACTERS_MAX - bytes.len().min(8 * ERROR_CHARACTERS_MAX)),
                );
                if ends {
                    self.end(false);
                }
            }
        }
    }

    /// Ends the turn with what was read; `cut` says that the body stopped too early.
    fn end(&mut self, cut: bool) {
        match std::mem::replace(&mut self.reading, Reading::Nothing) {
            Reading::Nothing => {}
            Reading::Events(turn, stream) => turn.finish(stream.finish(cut).map_err(Failure::from)),
            Reading::Whole(turn, _) if cut => turn.finish(Err(answer::NoAnswer::Cut.into())),
            Reading::Whole(turn, bytes) => {
                let read = answer::whole(turn.api, &bytes);
                turn.finish(read.map_err(Failure::from));
            }
            Reading::Error(turn, status, bytes) => {
                let said: String =
                    String::from_utf8_lossy(&bytes).chars().take(ERROR_CHARACTERS_MAX).collect();
                turn.finish(Err(Failure::of_status(status, &said)));
            }
        }
    }

    fn fail(&mut self, failure: Failure) {
        if let Reading::Events(turn, _) | Reading::Whole(turn, _) | Reading::Error(turn, _, _) =
            std::mem::replace(&mut self.reading, Reading::Nothing)
        {
            turn.finish(Err(failure));
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.read(data);
                }
            }
            Poll::Ready(Some(Err(_))) => self.end(true),
            Poll::Ready(None) => self.end(false),
            Poll::Pending => {}
        }
        polled
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Relayed(relay) => relay.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Relayed(relay) => matches!(relay.reading, Reading::Nothing) && relay.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Relayed(relay) => relay.body.size_hint(),
        }
    }
}

/// A response that is at hand.
pub(super) fn whole(
    status: hyper::StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> hyper::Response<Outgoing> {
    let mut response = hyper::Response::new(Outgoing::Whole(Some(body.into())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert("content-type", hyper::header::HeaderValue::from_static(kind));
    headers.insert("x-content-type-options", hyper::header::HeaderValue::from_static("nosniff"));
    response
}

/// What a service that answers everything cannot fail with.
pub(super) type Never = Infallible;
