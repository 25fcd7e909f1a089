//! The attempts of an agent that retries: one object with `attempts`, each with messages, steps and
//! `info` like a file of its own. Beside them the file repeats the one that was chosen, once one was.
//!
//! Each attempt is a run, and its number is its trial. What an evaluation says is of the submission, so
//! it is the chosen attempt's outcome and no other's.

use serde_json::value::RawValue;

use super::FORMAT;
use crate::importers::object::Object;
use crate::importers::slice::Stop;
use crate::importers::{RawRecord, RecordError, Sink, Source};
use crate::warning::Loss;

/// What `info` says of all attempts together.
const OF_ALL: [&str; 3] = ["rloop_model_stats", "chooser", "model_stats"];

/// Which attempt of its file a run is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    /// 0-based number; `None` for a run that is the whole file.
    pub number: Option<u64>,
    /// Whether the file's submission is this run's.
    pub is_submitted: bool,
}

impl Attempt {
    /// A run that is the whole file.
    pub(super) const ONLY: Self = Self { number: None, is_submitted: true };
}

/// Reads each attempt as a run; one that cannot be read is quarantined and the others come in. `file` is
/// what stands beside them.
pub(super) fn read(
    source: &Source,
    record: &RawRecord,
    file: Object<'_>,
    attempts: &[&RawValue],
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let chosen = file.get("history").map(RawValue::get);
    let info = file.get("info").and_then(Object::of).unwrap_or_default();
    let named: Option<usize> = info.clone().read("best_attempt_idx");
    let submitted = named.filter(|index| *index < attempts.len()).or_else(|| {
        let of = |raw: &&RawValue| Some(Object::of(raw)?.get("history")?.get() == chosen?);
        attempts.iter().position(|raw| of(raw) == Some(true))
    });
    for key in info.keys().filter(|key| submitted.is_some() && OF_ALL.contains(key)) {
        let reason = "said of all attempts together; no run has a place for it";
        sink.loss(Loss::new(FORMAT, format!("info.{key}"), reason))?;
    }
    for (index, raw) in attempts.iter().enumerate() {
        let attempt = Attempt { number: Some(index as u64), is_submitted: submitted == Some(index) };
        record.attempt(sink, |record, sink| {
            let read = Object::parse(raw, "attempt").map_err(Stop::from);
            let read = read.and_then(|object| super::run(source, record, object, attempt, sink));
            read.map_err(|stop| match stop {
                Stop::Record(error) => {
                    RecordError::new(error.code, format!("attempts[{index}]: {error}")).into()
                }
                stop @ Stop::Sink(_) => stop,
            })
        })?;
    }
    // A submission that is none of them is a run like they are.
    match (submitted, chosen) {
        (None, Some(_)) => {
            let attempt = Attempt { number: Some(attempts.len() as u64), is_submitted: true };
            super::run(source, record, file, attempt, sink)
        }
        _ => Ok(()),
    }
}
