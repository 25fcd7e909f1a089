//! Load for the proxy: clients and a scripted upstream in one process, with and without the proxy between.
//!
//! `proxy_load RECOUP [--seconds N] [--connections N] [--soak]` starts the program on a temporary project
//! and prints one JSON object: what is measured through the proxy, directly at the upstream, and the
//! difference. `--soak` keeps on for `--seconds` and samples the proxy's memory.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Pieces of a streamed answer, and the time between them.
const PIECES: usize = 32;
const PAUSE: Duration = Duration::from_millis(5);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| {
        let place = arguments.iter().position(|argument| argument == name);
        place.map_or(default, |place| arguments[place + 1].parse().unwrap())
    };
    let binary = arguments.first().expect("name the program");
    let (seconds, connections) = (number("--seconds", 10), number("--connections", 100) as usize);
    let upstream = start_upstream();
    let folder = std::env::temp_dir().join(format!("recoup-proxy-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let proxy = Proxy::start(binary, &folder, &upstream);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let within = Duration::from_secs(seconds);
    let report = if arguments.iter().any(|argument| argument == "--soak") {
        runtime.block_on(soak(&proxy, connections, within))
    } else {
        runtime.block_on(measure(&proxy, &upstream, connections, within))
    };
    println!("{}", serde_json::to_string_pretty(&report).unwrap());
    drop(proxy);
    std::fs::remove_dir_all(&folder).unwrap();
}

struct Proxy {
    child: Child,
    address: String,
}

impl Proxy {
    fn start(binary: &str, folder: &std::path::Path, upstream: &str) -> Self {
        let mut child = Command::new(binary)
            .args(["proxy", "--json", "--port", "0", "--rest", "2s", "--forget", "10s", "--upstream"])
            .arg(format!("http://{upstream}/v1"))
            .arg("--project")
            .arg(folder.join("project"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    /// Resident bytes, and the greatest so far.
    fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
        };
        (kib("VmRSS:"), kib("VmHWM:"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// A server on a thread of its own that answers every request at once, or in pieces where it is asked to.
fn start_upstream() -> String {
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

fn completion(length: usize) -> String {
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
fn nanos() -> u64 {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    u64::try_from(BEGUN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap()
}

fn request(host: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAuthorization: Bearer k\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A question of about so many bytes that nobody has asked before.
fn question(number: u64, bytes: usize, stream: bool) -> String {
    let text = format!("{number} {}", "x".repeat(bytes.saturating_sub(110)));
    let stream = if stream { ",\"stream\":true" } else { "" };
    format!("{{\"model\":\"toy\"{stream},\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}")
}

/// Reads one answer of a known length; returns whether it was an answer.
async fn read_whole(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> bool {
    buffer.clear();
    loop {
        if stream.read_buf(buffer).await.unwrap_or(0) == 0 {
            return false;
        }
        let Some(head) = memchr::memmem::find(buffer, b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        let length = text
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.split("\r\n").next()?.parse::<usize>().ok());
        let Some(length) = length else { return false };
        while buffer.len() < head + 4 + length {
            if stream.read_buf(buffer).await.unwrap_or(0) == 0 {
                return false;
            }
        }
        return text.starts_with("http/1.1 200");
    }
}

/// Requests a second of many connections, and how long each takes.
async fn throughput(address: &str, connections: usize, bytes: usize, within: Duration) -> Value {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let deadline = Instant::now() + within;
    let workers: Vec<_> = (0..connections)
        .map(|_| {
            let address = address.to_owned();
            tokio::spawn(async move {
                let (mut times, mut failed) = (Vec::new(), 0_u64);
                let mut stream = TcpStream::connect(&address).await.unwrap();
                let _ = stream.set_nodelay(true);
                let mut buffer = Vec::with_capacity(8 << 10);
                while Instant::now() < deadline {
                    let body = question(NUMBER.fetch_add(1, Ordering::Relaxed), bytes, false);
                    let started = Instant::now();
                    stream.write_all(&request(&address, &body)).await.unwrap();
                    if read_whole(&mut stream, &mut buffer).await {
                        times.push(started.elapsed());
                    } else {
                        failed += 1;
                        stream = TcpStream::connect(&address).await.unwrap();
                    }
                }
                (times, failed)
            })
        })
        .collect();
    let (mut times, mut failed) = (Vec::new(), 0);
    for worker in workers {
        let (more, lost) = worker.await.unwrap();
        times.extend(more);
        failed += lost;
    }
    let count = times.len();
    json!({ "requests_per_second": count as f64 / within.as_secs_f64(), "failed": failed, "latency_ms": quantiles(times) })
}

/// How long pieces of streams are under way from the upstream to the client.
async fn streams(address: &str, connections: usize, within: Duration) -> Value {
    let deadline = Instant::now() + within;
    let workers: Vec<_> = (0..connections)
        .map(|worker| {
            let address = address.to_owned();
            tokio::spawn(async move {
                let (mut pieces, mut first, mut number) = (Vec::new(), Vec::new(), 0);
                while Instant::now() < deadline {
                    let mut stream = TcpStream::connect(&address).await.unwrap();
                    let _ = stream.set_nodelay(true);
                    let body = question((worker as u64) << 32 | number, 2000, true);
                    number += 1;
                    let started = Instant::now();
                    stream.write_all(&request(&address, &body)).await.unwrap();
                    let mut seen: Vec<u8> = Vec::new();
                    let mut buffer = vec![0; 16 << 10];
                    let mut from = 0;
                    while memchr::memmem::find(&seen, b"0\r\n\r\n").is_none() {
                        let count = stream.read(&mut buffer).await.unwrap_or(0);
                        if count == 0 {
                            break;
                        }
                        let now = nanos();
                        if seen.is_empty() {
                            first.push(started.elapsed());
                        }
                        seen.extend_from_slice(&buffer[..count]);
                        while let Some(at) = memchr::memmem::find(&seen[from..], b"\"at\":") {
                            let digits =
                                seen[from + at + 5..].iter().take_while(|byte| byte.is_ascii_digit());
                            let text: String = digits.map(|byte| char::from(*byte)).collect();
                            if let Ok(sent) = text.parse::<u64>() {
                                pieces.push(Duration::from_nanos(now.saturating_sub(sent)));
                            }
                            from += at + 5;
                        }
                    }
                }
                (pieces, first)
            })
        })
        .collect();
    let (mut pieces, mut first) = (Vec::new(), Vec::new());
    for worker in workers {
        let (more, begun) = worker.await.unwrap();
        pieces.extend(more);
        first.extend(begun);
    }
    json!({ "streams": first.len(), "first_byte_ms": quantiles(first), "piece_ms": quantiles(pieces) })
}

fn quantiles(mut times: Vec<Duration>) -> BTreeMap<&'static str, f64> {
    times.sort_unstable();
    let at = |share: f64| {
        let place = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(place).map_or(f64::NAN, |time| (time.as_secs_f64() * 1e6).round() / 1e3)
    };
    [("p50", at(0.5)), ("p90", at(0.9)), ("p99", at(0.99)), ("max", at(1.0))].into()
}

fn added(through: &Value, direct: &Value, what: &str) -> Value {
    let share = |name: &str| {
        let of = |value: &Value| value[what][name].as_f64().unwrap_or(f64::NAN);
        ((of(through) - of(direct)) * 1e3).round() / 1e3
    };
    json!({ "p50": share("p50"), "p99": share("p99") })
}

async fn measure(proxy: &Proxy, upstream: &str, connections: usize, within: Duration) -> Value {
    nanos();
    let mut report = serde_json::Map::new();
    for bytes in [2_000, 64_000] {
        let direct = throughput(upstream, connections, bytes, within).await;
        let through = throughput(&proxy.address, connections, bytes, within).await;
        report.insert(format!("requests_{}kB", bytes / 1000), json!({ "direct": direct, "proxy": through }));
    }
    let direct = streams(upstream, connections, within).await;
    let through = streams(&proxy.address, connections, within).await;
    let first = added(&through, &direct, "first_byte_ms");
    let piece = added(&through, &direct, "piece_ms");
    report.insert(
        "streams".to_owned(),
        json!({ "direct": direct, "proxy": through, "added_ms": { "first_byte": first, "piece": piece } }),
    );
    let before = proxy.memory();
    report.insert("conversations".to_owned(), converse(proxy, 1000, 50).await);
    let after = proxy.memory();
    report
        .insert("memory_bytes".to_owned(), json!({ "before": before.0, "after": after.0, "peak": after.1 }));
    Value::Object(report)
}

/// Conversations of many turns, 100 at a time.
async fn converse(proxy: &Proxy, count: usize, turns: usize) -> Value {
    let started = Instant::now();
    let gate = Arc::new(tokio::sync::Semaphore::new(100));
    let workers: Vec<_> = (0..count)
        .map(|number| {
            let (address, gate) = (proxy.address.clone(), Arc::clone(&gate));
            tokio::spawn(async move {
                let _place = gate.acquire_owned().await.unwrap();
                let mut stream = TcpStream::connect(&address).await.unwrap();
                let mut buffer = Vec::new();
                let mut failed = 0_u64;
                let answer = json!({ "role": "assistant", "content": json_answer() }).to_string();
                let mut history = String::new();
                for turn in 0..turns {
                    let said =
                        format!("{{\"role\":\"user\",\"content\":\"{number} {turn} {}\"}}", "y".repeat(300));
                    history = if history.is_empty() { said } else { format!("{history},{answer},{said}") };
                    let body = format!("{{\"model\":\"toy\",\"messages\":[{history}]}}");
                    stream.write_all(&request(&address, &body)).await.unwrap();
                    if !read_whole(&mut stream, &mut buffer).await {
                        failed += 1;
                        stream = TcpStream::connect(&address).await.unwrap();
                    }
                }
                failed
            })
        })
        .collect();
    let mut failed = 0;
    for worker in workers {
        failed += worker.await.unwrap();
    }
    json!({ "conversations": count, "turns": turns, "failed": failed, "seconds": started.elapsed().as_secs_f64() })
}

fn json_answer() -> String {
    let answer: Value = serde_json::from_str(&completion(2000)).unwrap();
    answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

/// Load for a long time; memory must not grow once it is warm.
async fn soak(proxy: &Proxy, connections: usize, within: Duration) -> Value {
    const SAMPLES: u32 = 30;
    let deadline = Instant::now() + within;
    let mut samples = Vec::new();
    let mut failed = 0;
    while Instant::now() < deadline {
        let through = throughput(&proxy.address, connections, 2000, within / SAMPLES / 2).await;
        failed += through["failed"].as_u64().unwrap_or(0);
        let conversed = converse(proxy, 100, 20).await;
        failed += conversed["failed"].as_u64().unwrap_or(0);
        samples.push(proxy.memory().0);
    }
    let half = samples.len() / 2;
    let most = |samples: &[u64]| samples.iter().copied().max().unwrap_or(0);
    json!({
        "seconds": within.as_secs(), "failed": failed, "memory_bytes": samples,
        "growth": most(&samples[half..]) as f64 / most(&samples[..half]).max(1) as f64,
    })
}
