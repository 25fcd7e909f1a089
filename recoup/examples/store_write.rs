//! Figures of the store on generated runs: how fast it takes them, lists them and searches them.
//!
//! `cargo run --release -p recoup --example store_write -- [RUNS] [NODES] [BYTES]` (default 50,000 runs
//! of 30 messages of about 250 bytes) writes to a temporary folder. Time spent in the store is measured
//! apart from generating and hashing runs, which parsing threads do in a real import.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use recoup::importers::{Event, Sink as _};
use recoup::store::{Filter, Page, Store};
use recoup::task::Task;
use recoup::trajectory::{NativeId, Node, Outcome, Part, Role, Sealed, Trajectory};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NOW: &str = "2026-01-01T00:00:00Z";

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let runs = arguments.next().unwrap_or(50_000);
    let nodes = arguments.next().unwrap_or(30);
    let bytes = arguments.next().unwrap_or(250) as usize;
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create_or_open(&dir.path().join("project")).unwrap();

    let raw = write(&mut store, runs, nodes, bytes, "write");
    write(&mut store, runs, nodes, bytes, "write again");
    let stats = store.stats().unwrap();
    println!(
        "stored: {} nodes in {} packs, {:.1} MB raw, {:.1} MB packed, file {:.1} MB",
        stats.stored_nodes,
        stats.packs,
        mb(stats.raw_bytes),
        mb(stats.packed_bytes),
        mb(stats.file_bytes)
    );
    query(&store, runs);
    for threads in [1, 2] {
        for (what, needle) in [("absent", "no such words here"), ("in one run", "run 17 of")] {
            let (found, time) = timed(|| store.search_text(needle, threads).unwrap().len());
            println!(
                "search, {what}, {threads} threads: {found} runs, {:.0} MB/s",
                mb(raw) / time.as_secs_f64()
            );
        }
    }
    let (report, time) = timed(|| store.verify(&mut |_, _| {}).unwrap());
    println!("verify: {:.2} s, clean: {}", time.as_secs_f64(), report.is_clean());
}

fn write(store: &mut Store, runs: u64, nodes: u64, bytes: usize, what: &str) -> u64 {
    let (mut inside, mut busy, mut longest, mut raw) = (Duration::ZERO, Duration::ZERO, Duration::ZERO, 0);
    let mut import = store.import(NOW).unwrap();
    for run in 0..runs {
        let sealed = generate(run, nodes, bytes);
        raw += sealed.bodies.iter().map(|body| body.bytes.len() as u64).sum::<u64>();
        let before = processor_time();
        let ((), time) = timed(|| import.event(Event::Trajectory(Box::new(sealed))).unwrap());
        busy += processor_time().saturating_sub(before);
        inside += time;
        longest = longest.max(time);
    }
    let before = processor_time();
    let (summary, finish) = timed(|| import.finish().unwrap());
    busy += processor_time().saturating_sub(before);
    println!(
        "{what}: {runs} runs, {:.1} MB in {:.2} s + {:.2} s to finish = {:.0} MB/s; processor {:.2} s, \
         {:.1} ns/byte; longest batch {:.0} ms; {} new",
        mb(raw),
        inside.as_secs_f64(),
        finish.as_secs_f64(),
        mb(raw) / (inside + finish).as_secs_f64(),
        busy.as_secs_f64(),
        busy.as_nanos() as f64 / raw as f64,
        longest.as_secs_f64() * 1e3,
        summary.counts.new
    );
    raw
}

fn query(store: &Store, runs: u64) {
    let page = Page { offset: runs.saturating_sub(100), limit: 50 };
    let filter = Filter {
        outcome: Some("failure".to_owned()),
        model: Some("model-3".to_owned()),
        ..Filter::default()
    };
    let (rows, time) = timed(|| store.list(&Filter::default(), page).unwrap().len());
    println!("last page: {rows} rows, {:.1} ms", time.as_secs_f64() * 1e3);
    let (rows, time) = timed(|| store.list(&filter, Page { offset: 0, limit: 50 }).unwrap().len());
    println!("filtered page: {rows} rows, {:.1} ms", time.as_secs_f64() * 1e3);
    let (count, time) = timed(|| store.count(&filter).unwrap());
    println!("filtered count: {count}, {:.1} ms", time.as_secs_f64() * 1e3);
    let (rows, time) = timed(|| store.list(&Filter::default(), Page::ALL).unwrap().len());
    println!("whole list: {rows} rows, {:.1} ms", time.as_secs_f64() * 1e3);
    let (groups, time) = timed(|| store.pending("diagnose", 1).unwrap().len());
    println!("pending: {groups} tasks, {:.1} ms", time.as_secs_f64() * 1e3);
}

/// Run number `run`: four trials of a task share its first two messages.
fn generate(run: u64, nodes: u64, bytes: usize) -> Sealed {
    let task = run / 4;
    let mut draft = Trajectory::new("generated", Task::named(format!("task/{task}"), format!("goal {task}")));
    draft.source.uri = format!("folder/{}.jsonl", run / 1000);
    for index in 0..nodes {
        let seed = if index < 2 { task } else { run + 1_000_000 } * 1000 + index;
        let text =
            if index == 2 { format!("run {run} of {}", words(seed, bytes)) } else { words(seed, bytes) };
        draft.push(match index % 3 {
            0 => Node::new(Role::User, "user", vec![Part::text(text)]),
            1 => Node::new(Role::Assistant, "assistant", vec![Part::text(text)]).sampled(),
            _ => Node::new(Role::Tool, "shell", vec![Part::text_result(None, text)]),
        });
    }
    if let Some(agent) = draft.agents.first_mut() {
        agent.model = Some(format!("model-{}", run % 7));
    }
    draft.trial = Some((run % 4) as i64);
    draft.finish(Outcome::from_score((run % 3) as f64 / 2.0, 1.0, "reward"));
    draft.seal(&NativeId::Named(format!("run-{run}")), Vec::new()).unwrap()
}

/// About `bytes` bytes of words that repeat as words of a language do.
fn words(seed: u64, bytes: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ka", "re", "lo", "min", "ta", "ser", "vi", "dor", "un", "pel", "ach", "ist", "on", "gra", "mu",
        "eth",
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Small numbers are frequent, as frequent words are.
        let word = (state >> 40) % (1 + (state & 0xfff));
        for shift in [0, 4, 8] {
            text.push_str(SYLLABLES[(word >> shift) as usize & 15]);
        }
        text.push(' ');
    }
    text
}

fn timed<T>(f: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = f();
    (value, start.elapsed())
}

/// Time that this thread has spent on a processor, where the system tells: other programs do not
/// count, nor does waiting for the disk.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or_default();
    Duration::from_nanos(nanoseconds)
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
