//! The scripted upstream: it answers every request at once, or in pieces where it is asked to.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

/// Pieces of a streamed answer, and the time between them: fifty tokens a second.
pub(crate) const PIECES: usize = 32;
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// A server on a thread of its own that answers every request at once, or in pieces where it is asked to.
pub(crate) fn start() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let _ = stream.set_nodelay(true);
                tokio::spawn(async move {
                    let service = service_fn(|request| async { Ok::<_, Infallible>(reply(request).await) });
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
    });
    address
}

async fn reply(request: Request<Incoming>) -> Response<Reply> {
    let body =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let streams = memchr::memmem::find(&body, b"\"stream\":true").is_some();
    let (kind, reply) = if streams {
        ("text/event-stream", Reply::Pieces(0, Box::pin(tokio::time::sleep(PAUSE))))
    } else {
        ("application/json", Reply::Whole(Full::new(Bytes::from(completion(2000)))))
    };
    Response::builder().header("content-type", kind).body(reply).unwrap()
}

pub(crate) fn completion(length: usize) -> String {
    let text = "lorem ipsum dolor sit amet ".repeat(length / 27 + 1);
    json!({ "id": "x", "object": "chat.completion", "model": "toy", "usage": { "prompt_tokens": 500, "completion_tokens": 500 },
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": text[..length] } }] })
    .to_string()
}

enum Reply {
    Whole(Full<Bytes>),
    /// Pieces that were sent, and the wait for the next one.
    Pieces(usize, std::pin::Pin<Box<tokio::time::Sleep>>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(body) => std::pin::Pin::new(body).poll_frame(context),
            Self::Pieces(sent, _) if *sent > PIECES => std::task::Poll::Ready(None),
            Self::Pieces(sent, pause) => {
                std::task::ready!(std::future::Future::poll(pause.as_mut(), context));
                pause.as_mut().reset(tokio::time::Instant::now() + PAUSE);
                *sent += 1;
                let piece = if *sent > PIECES {
                    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n".to_owned()
                } else {
                    // When it was sent: the client subtracts.
                    let sent_at = nanos();
                    format!(
                        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word \"}},\"at\":{sent_at}}}]}}\n\n"
                    )
                };
                std::task::Poll::Ready(Some(Ok(Frame::data(Bytes::from(piece)))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Pieces(..) => SizeHint::default(),
        }
    }
}

/// A clock that all of this process shares.
pub(crate) fn nanos() -> u64 {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    u64::try_from(BEGUN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap()
}
