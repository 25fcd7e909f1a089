//! What a release holds, in numbers: `release.json`, the card and `--json` say the same.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::artifact::Body;
use crate::redaction::Kind;
use crate::trajectory::Status;
use crate::verdict::{Content, Decision};

use super::{Case, CaseRows, Table};

/// What a release holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Release {
    /// Runs, continuations left out.
    pub runs: u64,
    /// What replays have continued from them.
    pub continuations: u64,
    /// Rows by table.
    pub rows: BTreeMap<&'static str, u64>,
    /// Rows by table and status, of the tables that have one.
    pub statuses: BTreeMap<&'static str, BTreeMap<String, u64>>,
    /// Runs by outcome.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Failed runs by whose failure it was.
    pub blame: BTreeMap<String, u64>,
    /// Runs by environment; `none` where none is recorded.
    pub environments: BTreeMap<String, u64>,
    /// Runs by harness.
    pub harnesses: BTreeMap<String, u64>,
    /// Runs by policy: the model, or the agent's name.
    pub policies: BTreeMap<String, u64>,
    /// Runs by the format they were read from.
    pub formats: BTreeMap<String, u64>,
    /// Runs by side of the split.
    pub split: BTreeMap<&'static str, u64>,
    /// Runs by licence of their source.
    pub licences: BTreeMap<String, u64>,
    /// What each gate said.
    pub gates: BTreeMap<String, GateYield>,
    /// Replacements, by kind.
    pub redactions: BTreeMap<&'static str, u64>,
    /// Runs that stayed out with all that hangs on them, by reason.
    pub refused: BTreeMap<String, u64>,
    /// SHA-256 of each table's file, hexadecimal.
    pub files: BTreeMap<String, String>,
}

impl Body for Release {
    const FORMAT: &'static str = "recoup.release";
}

/// What a gate said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateYield {
    /// Verdicts it let through.
    pub admit: u64,
    /// Verdicts it did not.
    pub reject: u64,
    /// Verdicts it could not judge.
    pub abstain: u64,
}

impl Release {
    /// Word by which runs of unknown licence are counted.
    pub const UNKNOWN_LICENCE: &'static str = "unknown-licence";

    /// Counts a run that goes out.
    pub(super) fn add(&mut self, case: &Case, given: &CaseRows) {
        self.runs += 1;
        self.continuations += case.continuations.len() as u64;
        for (table, rows) in &given.rows {
            *self.rows.entry(table.name()).or_default() += rows.len() as u64;
            for status in rows.iter().filter_map(|row| row.get("status")?.as_str()) {
                let statuses = self.statuses.entry(table.name()).or_default();
                *statuses.entry(status.to_owned()).or_default() += 1;
            }
        }
        let run = given.rows.get(&Table::Traces).and_then(|rows| rows.first());
        let count = |counts: &mut BTreeMap<String, u64>, name: &str| {
            let word = run.and_then(|run| run.get(name)?.as_str()).unwrap_or("none");
            *counts.entry(word.to_owned()).or_default() += 1;
        };
        count(&mut self.environments, "environment");
        count(&mut self.harnesses, "harness");
        count(&mut self.policies, "policy");
        count(&mut self.formats, "format");
        count(&mut self.licences, "licence");
        if case.run.outcome().status != Status::Success {
            count(&mut self.blame, "blame");
        }
        *self.outcomes.entry(case.run.outcome().status.as_str()).or_default() += 1;
        *self.split.entry(case.side.map_or("none", |side| side.as_str())).or_default() += 1;
        for verdict in &case.verdicts {
            let (gate, decision) = match &verdict.content {
                Content::Review(review) => (review.gate.as_str(), review.verdict),
                Content::RejectedAnswer(answer) => (answer.gate.as_str(), Decision::Reject),
                Content::PersonReview(review) => ("person", review.verdict),
                _ => continue,
            };
            let gate = self.gates.entry(gate.to_owned()).or_default();
            match decision {
                Decision::Admit => gate.admit += 1,
                Decision::Reject => gate.reject += 1,
                Decision::Abstain => gate.abstain += 1,
            }
        }
        for (kind, count) in &given.redactions {
            *self.redactions.entry(Kind::word(*kind)).or_default() += *count as u64;
        }
    }

    /// Counts a run that stays out.
    pub(super) fn refuse(&mut self, reason: &str) {
        *self.refused.entry(reason.to_owned()).or_default() += 1;
    }
}
