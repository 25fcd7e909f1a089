//! Load for the proxy: clients and a scripted upstream in one process, with and without a server between.
//!
//! `proxy_load RECOUP [--seconds N] [--connections N] [--litellm PROGRAM] [--soak]` starts the program on a
//! temporary project and prints one JSON object: what is measured through the proxy, directly at the
//! upstream, and the difference; with `--litellm` the same through LiteLLM's proxy, and the ratios. `--soak`
//! keeps on for `--seconds` at the load of a busy team and samples the proxy's memory.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod load;
mod server;
mod upstream;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use load::{Begin, converse, streams, throughput};
use server::Server;

/// Bytes of a request in most parts.
const BYTES: usize = 2_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name);
        place.map(|place| &*arguments[place + 1])
    };
    let number = |name: &str, default: u64| value(name).map_or(default, |text| text.parse().unwrap());
    let binary = arguments.first().expect("name the program");
    let load = Load {
        upstream: upstream::start(),
        connections: number("--connections", 100) as usize,
        within: Duration::from_secs(number("--seconds", 10)),
    };
    let folder = std::env::temp_dir().join(format!("recoup-proxy-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = if arguments.iter().any(|argument| argument == "--soak") {
        runtime.block_on(load.soak(binary, &folder))
    } else {
        runtime.block_on(load.measure(binary, value("--litellm"), &folder))
    };
    println!("{}", serde_json::to_string_pretty(&report).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
}

struct Load {
    upstream: String,
    connections: usize,
    within: Duration,
}

impl Load {
    async fn measure(&self, binary: &str, litellm: Option<&str>, folder: &Path) -> Value {
        upstream::nanos();
        let direct = self.through(&self.upstream).await;
        let proxy = Server::recoup(binary, &folder.join("project"), &self.upstream);
        let ours = self.through(&proxy.address).await;
        let (_, peak) = proxy.memory();
        let began = Instant::now();
        drop(proxy);
        let stopped = began.elapsed().as_secs_f64();
        let mut report = json!({
            "connections": self.connections,
            "direct": direct, "recoup": ours, "added_ms": added(&ours, &direct), "peak_memory_bytes": peak,
            "seconds_to_stop": stopped,
            "conversations": self.conversations(binary, folder).await,
        });
        if let Some(program) = litellm {
            let peer = Server::litellm(program, folder, &self.upstream);
            // The first requests load its modules.
            throughput(&peer.address, 1, BYTES, Duration::from_secs(3)).await;
            let theirs = self.through(&peer.address).await;
            report["litellm"] = json!({ "measured": theirs, "added_ms": added(&theirs, &direct) });
            report["ratios"] = ratios(&report);
        }
        report
    }

    /// Everything that is measured through a server.
    async fn through(&self, address: &str) -> Value {
        json!({
            "requests_2kB": throughput(address, self.connections, BYTES, self.within).await,
            "requests_64kB": throughput(address, self.connections, 64_000, self.within).await,
            "one_at_a_time": throughput(address, 1, BYTES, self.within).await,
            "streams": streams(address, self.connections, self.within, Begin::Spread).await,
            "streams_together": streams(address, self.connections, self.within, Begin::Together).await,
        })
    }

    /// A thousand conversations through a proxy that has just begun.
    async fn conversations(&self, binary: &str, folder: &Path) -> Value {
        let proxy = Server::recoup(binary, &folder.join("conversations"), &self.upstream);
        let (before, _) = proxy.memory();
        let mut report = converse(&proxy.address, 0..1000, 50).await;
        let (after, peak) = proxy.memory();
        report["memory_bytes"] = json!({ "before": before, "after": after, "peak": peak });
        report
    }

    /// Load for a long time; memory must not grow once it is warm.
    /// A hundred harnesses at a time, each with a conversation of twenty turns, every ten seconds: what a busy team does, and
    /// enough for conversations to come to rest and go into the project all the while.
    async fn soak(&self, binary: &str, folder: &Path) -> Value {
        const EVERY: Duration = Duration::from_secs(10);
        const HARNESSES: usize = 100;
        const TURNS: usize = 20;
        let proxy = Server::recoup(binary, &folder.join("project"), &self.upstream);
        let deadline = Instant::now() + self.within;
        let (mut samples, mut failed) = (Vec::<u64>::new(), 0);
        while Instant::now() < deadline {
            let next = Instant::now() + EVERY;
            let begun = samples.len() * HARNESSES;
            let conversed = converse(&proxy.address, begun..begun + HARNESSES, TURNS).await;
            failed += conversed["failed"].as_u64().unwrap_or(0);
            samples.push(proxy.memory().0);
            tokio::time::sleep_until(next.into()).await;
        }
        let half = samples.len() / 2;
        let most = |samples: &[u64]| samples.iter().copied().max().unwrap_or(0);
        let began = Instant::now();
        let requests = samples.len() * HARNESSES * TURNS;
        let growth = most(&samples[half..]) as f64 / most(&samples[..half]).max(1) as f64;
        let peak = proxy.memory().1;
        drop(proxy);
        json!({
            "seconds": self.within.as_secs(), "requests": requests, "failed": failed, "memory_bytes": samples,
            "peak_bytes": peak, "growth": growth, "stopped_s": began.elapsed().as_secs_f64(),
        })
    }
}

/// What a server adds to what the upstream alone takes.
fn added(through: &Value, direct: &Value) -> Value {
    let of = |part: &str, what: &str| {
        let quantile = |name: &str| {
            let of = |value: &Value| value[part][what][name].as_f64().unwrap_or(f64::NAN);
            ((of(through) - of(direct)) * 1e3).round() / 1e3
        };
        json!({ "p50": quantile("p50"), "p99": quantile("p99") })
    };
    json!({
        "one_at_a_time": of("one_at_a_time", "latency_ms"),
        "first_byte": of("streams", "first_byte_ms"),
        "piece": of("streams", "piece_ms"),
        "first_byte_together": of("streams_together", "first_byte_ms"),
        "piece_together": of("streams_together", "piece_ms"),
    })
}

/// How many times as many requests as LiteLLM, and which part of what it adds.
fn ratios(report: &Value) -> Value {
    let ratio = |ours: &str, theirs: &str| {
        let of = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
        of(ours) / of(theirs)
    };
    let throughput = |part: &str| {
        let of = |who: &str| format!("/{who}/{part}/requests_per_second");
        ratio(&of("recoup"), &of("litellm/measured"))
    };
    let latency = |part: &str| {
        let of = |who: &str| format!("{who}/added_ms/{part}/p50");
        ratio(&of(""), &of("/litellm"))
    };
    json!({
        "requests_2kB": throughput("requests_2kB"), "requests_64kB": throughput("requests_64kB"),
        "added_one_at_a_time": latency("one_at_a_time"), "added_first_byte": latency("first_byte"),
    })
}
