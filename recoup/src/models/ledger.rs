//! The ledger: what answers cost and how long they took, a line a stage and model.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::{Cost, Usage};

/// How long answers took, in milliseconds, those from the cache apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Latency {
    /// On average.
    pub mean: u64,
    /// Half of them took at most this.
    pub p50: u64,
    /// 95 of 100 took at most this.
    pub p95: u64,
    /// The slowest.
    pub max: u64,
}

/// What one model took for one stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LedgerLine {
    /// The stage.
    pub stage: String,
    /// The model.
    pub model: String,
    /// Questions answered by the model.
    pub calls: u64,
    /// Questions answered from what was paid for before.
    pub cached: u64,
    /// Questions that got no answer.
    pub failed: u64,
    /// Questions that are answered later.
    pub pending: u64,
    /// Attempts that failed and were made again, or were the last.
    pub failed_attempts: u64,
    /// Questions that were sent a second time because the first answer was slow.
    pub hedged: u64,
    /// Tokens of questions, as the provider counts them.
    pub prompt_tokens: u64,
    /// Tokens of answers.
    pub completion_tokens: u64,
    /// Answers whose count of tokens was missing or cannot be true.
    pub doubtful_usage: u64,
    /// Names under which other models than the one asked for answered.
    pub answered_by: Vec<String>,
    /// Money, in dollars; `None` where the model has no price.
    pub cost_usd: Option<f64>,
    /// Records that came of it and were accepted, as the stage counts them.
    pub accepted: u64,
    /// Money for one of them.
    pub cost_per_accepted_usd: Option<f64>,
    /// Time.
    pub latency_ms: Latency,
}

#[derive(Default)]
struct Tally {
    line: LedgerLine,
    cost: Option<Cost>,
    milliseconds: Vec<u32>,
}

/// What was asked and what it took.
#[derive(Default)]
pub struct Ledger(Mutex<BTreeMap<(String, String), Tally>>);

/// What is noted about an answer of a model.
pub(super) struct Answered<'a> {
    pub(super) usage: Usage,
    pub(super) doubtful: bool,
    pub(super) cost: Option<Cost>,
    pub(super) took: Duration,
    pub(super) name: &'a str,
}

impl Ledger {
    pub(super) fn answered(&self, stage: &str, model: &str, answered: &Answered<'_>) {
        self.note(stage, model, |tally| {
            let line = &mut tally.line;
            line.calls += 1;
            line.prompt_tokens = line.prompt_tokens.saturating_add(answered.usage.prompt);
            line.completion_tokens = line.completion_tokens.saturating_add(answered.usage.completion);
            line.doubtful_usage += u64::from(answered.doubtful);
            note_name(line, model, answered.name);
            tally.milliseconds.push(u32::try_from(answered.took.as_millis()).unwrap_or(u32::MAX));
            add(&mut tally.cost, answered.cost);
        });
    }

    pub(super) fn cached(&self, stage: &str, model: &str, name: &str) {
        self.note(stage, model, |tally| {
            tally.line.cached += 1;
            note_name(&mut tally.line, model, name);
        });
    }

    pub(super) fn failed(&self, stage: &str, model: &str) {
        self.note(stage, model, |tally| tally.line.failed += 1);
    }

    pub(super) fn pending(&self, stage: &str, model: &str) {
        self.note(stage, model, |tally| tally.line.pending += 1);
    }

    pub(super) fn failed_attempt(&self, stage: &str, model: &str, charged: Option<Cost>) {
        self.note(stage, model, |tally| {
            tally.line.failed_attempts += 1;
            add(&mut tally.cost, charged);
        });
    }

    pub(super) fn hedged(&self, stage: &str, model: &str, charged: Option<Cost>) {
        self.note(stage, model, |tally| {
            tally.line.hedged += 1;
            add(&mut tally.cost, charged);
        });
    }

    /// Counts records of a stage that a model's answers led to and that were accepted.
    pub fn accepted(&self, stage: &str, model: &str, records: u64) {
        self.note(stage, model, |tally| tally.line.accepted += records);
    }

    /// The lines, by stage and model.
    pub fn lines(&self) -> Vec<LedgerLine> {
        self.lock().iter().map(|((stage, model), tally)| finish(stage, model, tally)).collect()
    }

    /// Questions that models answered, and questions that were answered from before.
    pub fn calls(&self) -> (u64, u64) {
        let tallies = self.lock();
        let lines = tallies.values().map(|tally| &tally.line);
        lines.fold((0, 0), |(calls, cached), line| (calls + line.calls, cached + line.cached))
    }

    fn note(&self, stage: &str, model: &str, note: impl FnOnce(&mut Tally)) {
        note(self.lock().entry((stage.to_owned(), model.to_owned())).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, String), Tally>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(sum: &mut Option<Cost>, cost: Option<Cost>) {
    if let Some(cost) = cost {
        *sum = Some(sum.unwrap_or_default() + cost);
    }
}

fn note_name(line: &mut LedgerLine, asked: &str, name: &str) {
    if is_other(asked, name) && line.answered_by.iter().all(|known| known != name) {
        line.answered_by.push(name.to_owned());
    }
}

/// Whether a name is another model's: a version after the name that was asked for, or a path before it, is
/// the same model.
pub(crate) fn is_other(asked: &str, answered: &str) -> bool {
    !answered.is_empty() && !answered.to_lowercase().contains(&asked.to_lowercase())
}

fn finish(stage: &str, model: &str, tally: &Tally) -> LedgerLine {
    let mut sorted = tally.milliseconds.clone();
    sorted.sort_unstable();
    let count = sorted.len();
    let rank = |percent: usize| {
        let index = (count * percent).div_ceil(100).saturating_sub(1);
        sorted.get(index).map_or(0, |milliseconds| u64::from(*milliseconds))
    };
    let sum: u64 = sorted.iter().map(|milliseconds| u64::from(*milliseconds)).sum();
    let mut line = tally.line.clone();
    line.answered_by.sort();
    let accepted = line.accepted;
    LedgerLine {
        stage: stage.to_owned(),
        model: model.to_owned(),
        cost_usd: tally.cost.map(Cost::to_usd),
        cost_per_accepted_usd: tally
            .cost
            .filter(|_| accepted > 0)
            .map(|cost| cost.to_usd() / accepted as f64),
        latency_ms: Latency {
            mean: sum.checked_div(count as u64).unwrap_or(0),
            p50: rank(50),
            p95: rank(95),
            max: rank(100),
        },
        ..line
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Answered, Latency, Ledger};
    use crate::models::{Cost, Usage};

    #[test]
    fn a_line_sums_what_a_stage_took() {
        let ledger = Ledger::default();
        for took in 1..=100 {
            let answered = Answered {
                usage: Usage { prompt: 10, cached_prompt: 0, completion: 2 },
                doubtful: took == 1,
                cost: Some(Cost::from_usd(0.01)),
                took: Duration::from_millis(took),
                name: if took == 7 { "gpt-4o-2024-08-06" } else { "other" },
            };
            ledger.answered("diagnose", "gpt-4o", &answered);
        }
        ledger.cached("diagnose", "gpt-4o", "other");
        ledger.accepted("diagnose", "gpt-4o", 4);
        let lines = ledger.lines();
        let line = &lines[0];
        assert_eq!((line.calls, line.cached, line.prompt_tokens, line.doubtful_usage), (100, 1, 1000, 1));
        assert_eq!(line.latency_ms, Latency { mean: 50, p50: 50, p95: 95, max: 100 });
        assert_eq!((line.cost_usd, line.cost_per_accepted_usd), (Some(1.0), Some(0.25)));
        assert_eq!(line.answered_by, ["other"]);
        assert_eq!(ledger.calls(), (100, 1));
    }
}
