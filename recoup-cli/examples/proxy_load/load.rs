//! Clients: requests, streams and conversations, and how long they take.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::upstream::{PAUSE, PIECES, completion, nanos};

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
pub(crate) async fn throughput(address: &str, connections: usize, bytes: usize, within: Duration) -> Value {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let deadline = Instant::now() + within;
    let workers: Vec<_> = (0..connections)
        .map(|_| {
            let address = address.to_owned();
            tokio::spawn(async move {
                let (mut times, mut failed) = (Vec::new(), 0_u64);
                let mut stream = connect(&address).await;
                let mut buffer = Vec::with_capacity(8 << 10);
                while Instant::now() < deadline {
                    let body = question(NUMBER.fetch_add(1, Ordering::Relaxed), bytes, false);
                    let started = Instant::now();
                    stream.write_all(&request(&address, &body)).await.unwrap();
                    if read_whole(&mut stream, &mut buffer).await {
                        times.push(started.elapsed());
                    } else {
                        failed += 1;
                        stream = connect(&address).await;
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

/// How the streams of many connections begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Each at a time of its own, evenly spread.
    Spread,
    /// All at the same instant, each time.
    Together,
}

/// How long streams take to their first byte, and how long their pieces are under way from the upstream.
pub(crate) async fn streams(address: &str, connections: usize, within: Duration, begin: Begin) -> Value {
    let deadline = Instant::now() + within;
    let whole = PAUSE * (PIECES as u32 + 1);
    let workers: Vec<_> = (0..connections)
        .map(|worker| {
            let address = address.to_owned();
            let wait = if begin == Begin::Spread {
                whole * worker as u32 / connections as u32
            } else {
                Duration::ZERO
            };
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                let mut times = Times::default();
                let mut stream = connect(&address).await;
                let mut number = 0;
                while Instant::now() < deadline {
                    let body = question((worker as u64) << 32 | number, 2000, true);
                    number += 1;
                    stream.write_all(&request(&address, &body)).await.unwrap();
                    if !read_pieces(&mut stream, &mut times).await {
                        times.failed += 1;
                        stream = connect(&address).await;
                    }
                }
                times
            })
        })
        .collect();
    let mut all = Times::default();
    for worker in workers {
        let times = worker.await.unwrap();
        all.first.extend(times.first);
        all.pieces.extend(times.pieces);
        all.failed += times.failed;
    }
    json!({ "streams": all.first.len(), "failed": all.failed, "first_byte_ms": quantiles(all.first), "piece_ms": quantiles(all.pieces) })
}

#[derive(Default)]
struct Times {
    first: Vec<Duration>,
    pieces: Vec<Duration>,
    failed: u64,
}

/// Reads one answer in chunks to its end; returns whether it has one.
async fn read_pieces(stream: &mut TcpStream, times: &mut Times) -> bool {
    let started = Instant::now();
    let mut seen: Vec<u8> = Vec::new();
    let mut from = 0;
    while !seen.ends_with(b"0\r\n\r\n") {
        let is_first = seen.is_empty();
        if stream.read_buf(&mut seen).await.unwrap_or(0) == 0 {
            return false;
        }
        let now = nanos();
        if is_first {
            times.first.push(started.elapsed());
        }
        while let Some(at) = memchr::memmem::find(&seen[from..], b"\"at\":") {
            let text = &seen[from + at + 5..];
            // The rest of the number may be under way.
            let Some(end) = text.iter().position(|byte| !byte.is_ascii_digit()) else { break };
            if let Ok(sent) = String::from_utf8_lossy(&text[..end]).parse::<u64>() {
                times.pieces.push(Duration::from_nanos(now.saturating_sub(sent)));
            }
            from += at + 5;
        }
    }
    seen.starts_with(b"HTTP/1.1 200")
}

async fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.set_nodelay(true);
    stream
}

fn quantiles(mut times: Vec<Duration>) -> BTreeMap<&'static str, f64> {
    times.sort_unstable();
    let at = |share: f64| {
        let place = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(place).map_or(f64::NAN, |time| (time.as_secs_f64() * 1e6).round() / 1e3)
    };
    [("p50", at(0.5)), ("p90", at(0.9)), ("p99", at(0.99)), ("max", at(1.0))].into()
}

/// Conversations of many turns, 100 at a time; a number is what makes one its own.
pub(crate) async fn converse(address: &str, numbers: Range<usize>, turns: usize) -> Value {
    let started = Instant::now();
    let gate = Arc::new(tokio::sync::Semaphore::new(100));
    let count = numbers.len();
    let workers: Vec<_> = numbers
        .map(|number| {
            let (address, gate) = (address.to_owned(), Arc::clone(&gate));
            tokio::spawn(async move {
                let _place = gate.acquire_owned().await.unwrap();
                let mut stream = connect(&address).await;
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
                        stream = connect(&address).await;
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
