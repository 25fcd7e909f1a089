//! The score file of a result file: totals, then one line for each failure. A task that it does not name
//! passed, as long as its totals agree with its lines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use crate::importers::object::Object;
use crate::importers::slice::{Layout, Records};
use crate::importers::value::{elements, json_object};
use crate::importers::{RawRecord, Source};
use crate::json::Json;
use crate::trajectory::{Outcome, Status};

/// Folders above a file that are searched for the score's or the result's.
const LEVELS_MAX: usize = 6;
/// Entries above which a score file is not read.
const ENTRIES_MAX: usize = 100_000;

/// What a score file says.
pub(super) struct Scores {
    failures: BTreeMap<String, Failure>,
    /// Whether there are as many failures, and as many results, as the totals say.
    is_whole: bool,
}

/// A task that failed.
pub(super) struct Failure {
    reason: String,
    prompt: Option<Json>,
    /// The right answers.
    pub gold: Option<Json>,
    /// What the checker found.
    pub output: Option<Json>,
}

impl Scores {
    pub(super) fn failure(&self, id: &str) -> Option<&Failure> {
        self.failures.get(id)
    }

    pub(super) fn outcome(&self, id: &str) -> Outcome {
        let (status, evidence) = match self.failures.get(id) {
            Some(failure) => (Status::Failure, format!("score file: {}", failure.reason)),
            None if self.is_whole => (Status::Success, "not among the failures of the score file".to_owned()),
            None => (Status::Unknown, String::new()),
        };
        Outcome { status, evidence, ..Outcome::unknown() }
    }
}

impl Failure {
    /// The messages of the first turn, where the score file repeats them.
    pub(super) fn asked(&self) -> Option<Json> {
        let raw: &RawValue = serde_json::from_str(self.prompt.as_ref()?.as_str()).ok()?;
        let turns = Object::of(raw).and_then(|mut entry| entry.list("question")).or_else(|| elements(raw))?;
        let first = turns.first()?;
        // A turn is a list of messages; files of one turn may leave that out.
        Some(if elements(first).is_some() { Json::from(*first) } else { Json::from(raw) })
    }
}

/// The scores of a result file: beside it, or at the same place beneath `score` as it is beneath
/// `result`.
pub(super) fn of(source: &Source, layout: Layout<'_>) -> Option<Scores> {
    let file = counterpart(source, ("result", "_result."), ("score", "_score."))?;
    let mut lines = Records::new(&file, Layout::Lines).ok()?;
    let first = lines.next()?.ok()?.ok()?;
    let mut totals: Object<'_> = first.parse().ok()?;
    let total = totals.read::<u64>("total_count")?;
    let failed = total.checked_sub(totals.read("correct_count")?)?;
    let mut failures = BTreeMap::new();
    let mut is_whole = true;
    for line in lines.take(ENTRIES_MAX) {
        let entry = line.ok()?.ok().and_then(|record| failure(&record));
        is_whole &= entry.is_some();
        failures.extend(entry);
    }
    is_whole &= failures.len() as u64 == failed;
    // Only where every task was scored has one passed that is not named.
    is_whole = is_whole && distinct(source, layout)? == total;
    Some(Scores { failures, is_whole })
}

/// How many tasks a result file answers.
fn distinct(source: &Source, layout: Layout<'_>) -> Option<u64> {
    let mut ids = BTreeSet::new();
    for record in Records::new(source, layout).ok()? {
        let mut result: Object<'_> = record.as_ref().ok()?.as_ref().ok()?.parse().ok()?;
        ids.insert(result.id("id")?);
        if ids.len() > ENTRIES_MAX {
            return None;
        }
    }
    Some(ids.len() as u64)
}

/// The result file of a score file.
pub(super) fn result_of(source: &Source) -> Option<Source> {
    counterpart(source, ("score", "_score."), ("result", "_result."))
}

/// The model whose folder a result file stands in.
pub(super) fn model(source: &Source) -> Option<String> {
    let folders = source.folder_names();
    let root = folders.iter().position(|name| name == "result")?;
    folders.get(root.checked_sub(1)?).cloned()
}

fn counterpart(source: &Source, from: (&str, &str), to: (&str, &str)) -> Option<Source> {
    let name = source.name().replacen(from.1, to.1, 1);
    if name == source.name() {
        return None;
    }
    if let Ok(beside) = source.sibling(&name) {
        return Some(beside);
    }
    let folders = source.folder_names();
    let level = folders.iter().take(LEVELS_MAX).position(|folder| folder == from.0)?;
    let mut path = vec![to.0];
    path.extend(folders.iter().take(level).rev().map(String::as_str));
    path.push(&name);
    source.sibling_above(level + 1, &path.join("/")).ok()
}

fn failure(record: &RawRecord) -> Option<(String, Failure)> {
    let mut entry: Object<'_> = record.parse().ok()?;
    let id = entry.id("id")?;
    if entry.read::<bool>("valid")? {
        return None;
    }
    let mut error = entry.object("error");
    let reason = entry.clone().text("error_type").or_else(|| error.text("error_type"));
    let prompt = entry.take("prompt").map(Json::from);
    let gold = entry.take("possible_answer").map(Json::from);
    entry.absorb(error);
    for held in ["inference_log", "model_result", "model_result_raw"] {
        entry.take(held);
    }
    let reason = reason.unwrap_or_else(|| "failed".to_owned());
    Some((id, Failure { reason, prompt, gold, output: json_object(entry.rest()) }))
}
