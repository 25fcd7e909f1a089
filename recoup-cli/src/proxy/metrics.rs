//! What the proxy counts, in Prometheus's text form.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use recoup::interleaving::RequestOutcome;
use recoup::models::Amount;

/// Upper bounds of the histograms, in microseconds.
const BOUNDS: [u64; 14] = [
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    5_000_000,
    30_000_000,
    120_000_000,
];

/// A histogram of times.
#[derive(Default)]
pub(super) struct Times {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Times {
    /// Counts one.
    pub(super) fn count(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < micros);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn write(&self, out: &mut String, name: &str, help: &str) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut count = 0;
        for (bucket, bound) in self.buckets.iter().zip(BOUNDS.iter().map(Some).chain([None])) {
            count += bucket.load(Ordering::Relaxed);
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| (*bound as f64 / 1e6).to_string());
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let seconds = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(out, "{name}_sum {seconds}\n{name}_count {count}");
    }
}

/// Everything that is counted.
#[derive(Default)]
pub(super) struct Metrics {
    /// Requests for a turn.
    pub requests: AtomicU64,
    /// Of them, by how they ended; the order is that of [`RequestOutcome::ALL`].
    ended: [AtomicU64; RequestOutcome::ALL.len()],
    /// Turns that the teacher executed.
    pub teacher_turns: AtomicU64,
    /// Labels that came, and that did not.
    pub labels: AtomicU64,
    pub labels_missing: AtomicU64,
    /// Requests for anything else.
    pub forwarded: AtomicU64,
    /// Requests that were refused before they were understood.
    pub refused: AtomicU64,
    /// Conversations that were put into the project.
    pub stored: AtomicU64,
    /// Entries that were found in the journal and cannot be read.
    pub damaged: AtomicU64,
    /// From the request to its being forwarded.
    pub before: Times,
    /// From the request to the end of its answer.
    pub whole: Times,
}

/// What others count.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Conversations that can go on.
    pub conversations: usize,
    /// Turns under way.
    pub in_flight: usize,
    /// Entries that the disk did not take.
    pub unwritten: u64,
    pub resident_bytes: Option<u64>,
    /// What teachers took.
    pub spent: Amount,
    /// Whether a cap has kept a question from them.
    pub is_capped: bool,
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

impl Metrics {
    /// Counts how a request ended.
    pub(super) fn ended(&self, ended: RequestOutcome) {
        let place = RequestOutcome::ALL.iter().position(|known| *known == ended);
        if let Some(count) = place.and_then(|place| self.ended.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often requests ended so.
    pub(super) fn by_ending(&self) -> impl Iterator<Item = (RequestOutcome, u64)> {
        RequestOutcome::ALL.iter().copied().zip(self.ended.iter().map(read))
    }

    /// The text, with what others count.
    pub(super) fn text(&self, beside: &Beside) -> String {
        let mut out = String::new();
        let mut counter = |name: &str, help: &str, count: u64| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}");
        };
        counter("recoup_proxy_requests_total", "Requests for a turn.", read(&self.requests));
        counter(
            "recoup_proxy_teacher_turns_total",
            "Turns that the teacher executed.",
            read(&self.teacher_turns),
        );
        counter("recoup_proxy_labels_total", "Labels of the teacher.", read(&self.labels));
        counter("recoup_proxy_labels_missing_total", "Labels that did not come.", read(&self.labels_missing));
        counter("recoup_proxy_forwarded_total", "Requests for anything but a turn.", read(&self.forwarded));
        counter("recoup_proxy_refused_total", "Requests refused by the server's rules.", read(&self.refused));
        counter("recoup_proxy_stored_total", "Conversations put into the project.", read(&self.stored));
        counter("recoup_proxy_unwritten_total", "Entries that the disk did not take.", beside.unwritten);
        let damaged = read(&self.damaged);
        counter("recoup_proxy_damaged_total", "Entries of conversations that cannot be read.", damaged);
        let Amount { cost, tokens, requests } = beside.spent;
        counter("recoup_proxy_teacher_requests_total", "Requests that teachers were sent.", requests);
        counter("recoup_proxy_teacher_tokens_total", "Tokens of teachers' questions and answers.", tokens);
        let name = "recoup_proxy_teacher_cost_usd_total";
        let _ = writeln!(
            out,
            "# HELP {name} What teachers cost, in dollars.\n# TYPE {name} counter\n{name} {}",
            cost.to_usd()
        );
        let name = "recoup_proxy_ended_total";
        let _ = writeln!(out, "# HELP {name} Requests for a turn, by how they ended.\n# TYPE {name} counter");
        for (ended, count) in self.by_ending() {
            let _ = writeln!(out, "{name}{{ended=\"{}\"}} {count}", ended.as_str());
        }
        let mut gauge = |name: &str, help: &str, value: u64| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        };
        gauge("recoup_proxy_conversations", "Conversations that can go on.", beside.conversations as u64);
        gauge("recoup_proxy_in_flight", "Requests for a turn under way.", beside.in_flight as u64);
        let help = "1 where a cap on spending has kept a question from the teacher.";
        gauge("recoup_proxy_teacher_capped", help, u64::from(beside.is_capped));
        if let Some(bytes) = beside.resident_bytes {
            gauge("process_resident_memory_bytes", "Memory of the process.", bytes);
        }
        self.before.write(&mut out, "recoup_proxy_before_seconds", "From a request to its being forwarded.");
        self.whole.write(
            &mut out,
            "recoup_proxy_request_seconds",
            "From a request to the end of its answer.",
        );
        out
    }
}

/// Memory of this process, where the system says it.
pub(super) fn resident_bytes() -> Option<u64> {
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm.split(' ').nth(1)?.parse::<u64>().ok().map(|pages| pages * PAGE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Beside, Metrics, RequestOutcome};

    #[test]
    fn buckets_add_up() {
        let metrics = Metrics::default();
        metrics.before.count(Duration::from_micros(100));
        metrics.before.count(Duration::from_mins(10));
        metrics.ended(RequestOutcome::Aborted);
        let text = metrics.text(&Beside { conversations: 2, ..Beside::default() });
        for line in [
            "recoup_proxy_before_seconds_bucket{le=\"0.0001\"} 1",
            "recoup_proxy_before_seconds_bucket{le=\"120\"} 1",
            "recoup_proxy_before_seconds_bucket{le=\"+Inf\"} 2",
            "recoup_proxy_before_seconds_count 2",
            "recoup_proxy_ended_total{ended=\"aborted\"} 1",
            "recoup_proxy_conversations 2",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
        }
    }
}
