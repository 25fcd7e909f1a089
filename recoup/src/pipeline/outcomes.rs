//! Outcomes from elsewhere: a file that says how runs ended, and the assumption that unknown ones failed.
//!
//! Neither touches a trajectory: both become label verdicts, so the source's own word stays visible.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;

use crate::id::{TaskKey, TrajectoryId};
use crate::store::{Filter, Page, Row, Store, StoreError};
use crate::trajectory::{Status, TerminationKind};
use crate::verdict::{Content, Label, Producer, Verdict};

/// One line of an outcome file.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeLine {
    /// 1-based line.
    pub line: u64,
    /// Trajectory id, native run or session id, or task key; of a run that is read in the same call the task's last
    /// segment is enough.
    pub id: String,
    /// The outcome.
    pub status: Status,
    /// The score beside it.
    pub score: Option<f64>,
}

/// What attaching an outcome file did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attached {
    /// Lines that were attached to no run.
    pub unmatched: Vec<Unmatched>,
}

/// A line that was attached to no run.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmatched {
    /// The line.
    pub line: OutcomeLine,
    /// The tasks that it may mean, where there are several; empty where it names none.
    pub tasks: BTreeSet<TaskKey>,
}

/// How a run bears a name, the closest first: the runs that were just read come before the rest of the project,
/// of which nothing is named by half a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bearing {
    Own,
    Task,
    LastSegment,
    OwnElsewhere,
    TaskElsewhere,
}

/// Names of the columns that may hold the id, the best first.
const ID_COLUMNS: &[&str] = &[
    "trajectory_id",
    "trajectory",
    "run_id",
    "session_id",
    "session",
    "id",
    "task_id",
    "instance_id",
    "task",
];
/// Names of the columns that may hold the outcome.
const OUTCOME_COLUMNS: &[&str] = &["outcome", "status", "success", "resolved", "passed", "is_correct"];
/// Names of the columns that may hold a score.
const SCORE_COLUMNS: &[&str] = &["score", "reward"];

/// Reads an outcome file: JSONL where the first character is `{`, else CSV with a header.
///
/// A score without an outcome is compared with `success_at` (1 where absent).
///
/// # Errors
/// The first line that cannot be understood, with its number.
pub fn parse(bytes: &[u8], success_at: Option<f64>) -> Result<Vec<OutcomeLine>, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let json = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let rows = if json { json_rows(bytes)? } else { csv_rows(bytes)? };
    if rows.is_empty() {
        return Err("it holds no lines".to_owned());
    }
    rows.into_iter().map(|(line, row)| outcome_line(line, &row, success_at)).collect()
}

type Fields = BTreeMap<String, String>;

fn json_rows(bytes: &[u8]) -> Result<Vec<(u64, Fields)>, String> {
    let mut rows = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let number = index as u64 + 1;
        let row: BTreeMap<String, Value> =
            serde_json::from_slice(line).map_err(|error| format!("line {number}: {error}"))?;
        let text = |value: Value| match value {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        rows.push((number, row.into_iter().map(|(key, value)| (key, text(value))).collect()));
    }
    Ok(rows)
}

fn csv_rows(bytes: &[u8]) -> Result<Vec<(u64, Fields)>, String> {
    let header = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // Spreadsheets of half the world separate by semicolons.
    let delimiter = if header.contains(&b';') && !header.contains(&b',') { b';' } else { b',' };
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).trim(csv::Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        rows.push((
            line,
            header.iter().zip(&record).map(|(key, value)| (key.into(), value.into())).collect(),
        ));
    }
    Ok(rows)
}

fn outcome_line(line: u64, row: &Fields, success_at: Option<f64>) -> Result<OutcomeLine, String> {
    let find = |columns: &[&str]| {
        columns.iter().find_map(|column| row.get(*column).filter(|value| !value.is_empty())).cloned()
    };
    let id = find(ID_COLUMNS).ok_or_else(|| {
        format!("line {line}: no id; expected one of the columns {}", ID_COLUMNS.join(", "))
    })?;
    let score = find(SCORE_COLUMNS)
        .map(|text| text.parse::<f64>().map_err(|_| format!("line {line}: `{text}` is not a score")))
        .transpose()?;
    let status = match (find(OUTCOME_COLUMNS), score) {
        (Some(word), _) => match word.to_ascii_lowercase().as_str() {
            "success" | "true" | "1" | "1.0" | "yes" | "pass" | "passed" | "resolved" => Status::Success,
            "failure" | "fail" | "failed" | "false" | "0" | "0.0" | "no" | "unresolved" => Status::Failure,
            "unknown" => Status::Unknown,
            _ => return Err(format!("line {line}: `{word}` is no outcome; use success, failure or unknown")),
        },
        (None, Some(score)) if score >= success_at.unwrap_or(1.0) => Status::Success,
        (None, Some(_)) => Status::Failure,
        (None, None) => {
            let columns = OUTCOME_COLUMNS.join(", ");
            return Err(format!("line {line}: no outcome; expected one of the columns {columns} or score"));
        }
    };
    Ok(OutcomeLine { line, id, status, score })
}

/// Attaches an outcome file's lines to the runs they name, among those read in this call (`read`) or else in the
/// project. A line that names a task holds for every run of it.
///
/// # Errors
/// When the store fails.
pub(super) fn attach(
    store: &mut Store,
    lines: &[OutcomeLine],
    read: &[TrajectoryId],
    now: &str,
) -> Result<Attached, StoreError> {
    let read: HashSet<TrajectoryId> = read.iter().copied().collect();
    let rows = store.list(&Filter::default(), Page::ALL)?;
    let mut by_name: BTreeMap<&str, (Bearing, Vec<&Row>)> = BTreeMap::new();
    let ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
    for (row, id) in rows.iter().zip(&ids) {
        let is_read = read.contains(&row.id);
        let (own, task) = if is_read {
            (Bearing::Own, Bearing::Task)
        } else {
            (Bearing::OwnElsewhere, Bearing::TaskElsewhere)
        };
        let last =
            row.task.0.rsplit_once('/').filter(|_| is_read).map(|(_, last)| (last, Bearing::LastSegment));
        let native = row.native_id.as_deref().map(|native| (native, own));
        let names = [Some((id.as_str(), own)), native, Some((row.task.0.as_str(), task)), last];
        for (name, bearing) in names.into_iter().flatten() {
            let (closest, bearers) = by_name.entry(name).or_insert_with(|| (bearing, Vec::new()));
            if bearing < *closest {
                (*closest, *bearers) = (bearing, Vec::new());
            }
            if bearing == *closest {
                bearers.push(row);
            }
        }
    }
    let mut attached = Attached::default();
    let mut verdicts = Vec::new();
    for line in lines {
        let found = by_name.get(line.id.as_str());
        let bearers = found.iter().flat_map(|(_, bearers)| bearers);
        let tasks: BTreeSet<TaskKey> = bearers.clone().map(|row| row.task.clone()).collect();
        let is_half = found.is_some_and(|(bearing, _)| *bearing == Bearing::LastSegment);
        if tasks.is_empty() || is_half && tasks.len() > 1 {
            attached.unmatched.push(Unmatched { line: line.clone(), tasks });
            continue;
        }
        let label = Label { outcome: Some(line.status), score: line.score, ..Label::default() };
        verdicts.extend(bearers.map(|row| verdict(row, Producer::outcomes_file(), label.clone(), now)));
    }
    store.put_verdicts(&verdicts)?;
    Ok(attached)
}

/// Labels every run without an outcome among those read in this call as failed, at the lowest rank: any other
/// word wins. A run that its infrastructure ended has not failed.
///
/// # Errors
/// When the store fails.
pub(super) fn assume_failure(store: &mut Store, read: &[TrajectoryId], now: &str) -> Result<(), StoreError> {
    let read: HashSet<TrajectoryId> = read.iter().copied().collect();
    let filter = Filter { outcome: Some(Status::Unknown.as_str().to_owned()), ..Filter::default() };
    let label = Label { outcome: Some(Status::Failure), ..Label::default() };
    let mut verdicts = Vec::new();
    for row in store.list(&filter, Page::ALL)? {
        let is_meant = read.contains(&row.id)
            && store.termination_kind(row.id)? != Some(TerminationKind::InfrastructureError);
        if is_meant {
            verdicts.push(verdict(&row, Producer::assumption(), label.clone(), now));
        }
    }
    store.put_verdicts(&verdicts)?;
    Ok(())
}

fn verdict(row: &Row, producer: Producer, label: Label, now: &str) -> Verdict {
    Verdict::new(row.id, producer, Vec::new(), Content::Label(label), now)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::trajectory::Status;

    #[test]
    fn csv_and_jsonl_say_the_same() {
        let csv = parse(b"id,success\nrun-1,true\nrun-2,0\n", None).unwrap();
        let jsonl = parse(b"{\"id\":\"run-1\",\"success\":true}\n\n{\"id\":\"run-2\",\"success\":0}\n", None)
            .unwrap();
        let plain = |lines: &[super::OutcomeLine]| {
            lines.iter().map(|line| (line.id.clone(), line.status)).collect::<Vec<_>>()
        };
        assert_eq!(plain(&csv), plain(&jsonl));
        assert_eq!(csv[0].status, Status::Success);
        assert_eq!((csv[1].status, csv[1].line), (Status::Failure, 3));
    }

    #[test]
    fn a_score_is_compared() {
        let text = b"task_id,score\na,0.5\nb,0.9\n";
        assert_eq!(parse(text, Some(0.8)).unwrap()[1].status, Status::Success);
        assert_eq!(parse(text, None).unwrap()[1].status, Status::Failure);
    }

    #[test]
    fn a_line_that_says_nothing_is_an_error_with_its_number() {
        assert!(parse(b"id,outcome\nx,perhaps\n", None).unwrap_err().starts_with("line 2: `perhaps`"));
        assert!(parse(b"name,outcome\nx,success\n", None).unwrap_err().starts_with("line 2: no id"));
    }
}
