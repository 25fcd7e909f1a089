//! What an import did, in numbers.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::id::TrajectoryId;
use crate::importers::Scoring;
use crate::trajectory::{Sealed, Status};
use crate::warning::{CountedLoss, Loss, Quarantine};

/// Quarantined records that are listed one by one; beyond them they are only counted.
const LISTED_MAX: usize = 1000;

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportSummary {
    /// Files (or archive members) that held runs.
    pub files: u64,
    /// Over all formats.
    #[serde(flatten)]
    pub counts: FormatCounts,
    /// Messages that were not stored before: distinct (prefix, message) pairs.
    pub new_nodes: u64,
    /// Media that were not stored before.
    pub new_media: u64,
    /// Labels about runs that the labels' files only name.
    pub labels: u64,
    /// The first thousand records that could not be read.
    pub quarantined: Vec<Quarantine>,
    /// How many could not be read.
    pub quarantined_count: u64,
    /// The same counts by format.
    pub formats: BTreeMap<String, FormatCounts>,
    /// What the records cannot carry, with how often it occurred.
    #[serde(serialize_with = "losses")]
    pub losses: BTreeMap<Loss, u64>,
    /// Runs that are unknown for want of a choice among scorers, by what their outcome says.
    pub undecided: BTreeMap<String, u64>,
    /// The runs read, as they are stored.
    #[serde(skip)]
    pub runs: Vec<TrajectoryId>,
    /// New runs on no side of the split because they would join two.
    pub excluded_by_split: u64,
}

/// Counts of one format. Duplicates are counted like other runs in all but `new`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FormatCounts {
    /// Runs read.
    pub trajectories: u64,
    /// Runs that were not stored before, revisions included.
    pub new: u64,
    /// Runs that were stored before, with the same content.
    pub duplicates: u64,
    /// New runs that are another revision of a stored one.
    pub revisions: u64,
    /// Messages of the runs read.
    pub nodes: u64,
    /// Tool calls in them.
    pub tool_calls: u64,
    /// Tool results in them.
    pub tool_results: u64,
    /// Outcomes of the runs read, as the source says.
    pub outcomes: OutcomeCounts,
}

/// Runs by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OutcomeCounts {
    /// Solved.
    pub success: u64,
    /// Scored and not solved.
    pub failure: u64,
    /// Not scored.
    pub unknown: u64,
}

impl OutcomeCounts {
    /// Counts some more runs.
    pub(crate) fn add_many(&mut self, status: Status, runs: u64) {
        match status {
            Status::Success => self.success += runs,
            Status::Failure => self.failure += runs,
            Status::Unknown => self.unknown += runs,
        }
    }
}

/// How a run that was read stands to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    Duplicate,
    New,
    Revision,
}

impl ImportSummary {
    pub(super) fn run(&mut self, id: TrajectoryId, sealed: &Sealed, novelty: Novelty) {
        self.runs.push(id);
        let outcome = sealed.head.outcome();
        if Scoring::is_undecided(outcome) {
            *self.undecided.entry(outcome.evidence.clone()).or_default() += 1;
        }
        let format = &sealed.head.source.format;
        if !self.formats.contains_key(format) {
            self.formats.insert(format.clone(), FormatCounts::default());
        }
        for counts in self.formats.get_mut(format).into_iter().chain([&mut self.counts]) {
            counts.trajectories += 1;
            counts.nodes += sealed.bodies.len() as u64;
            counts.tool_calls += sealed.tool_call_count as u64;
            counts.tool_results += sealed.tool_result_count as u64;
            counts.outcomes.add_many(sealed.head.outcome().status, 1);
            match novelty {
                Novelty::Duplicate => counts.duplicates += 1,
                Novelty::New => counts.new += 1,
                Novelty::Revision => {
                    counts.new += 1;
                    counts.revisions += 1;
                }
            }
        }
    }

    pub(super) fn quarantine(&mut self, quarantine: Quarantine) {
        self.quarantined_count += 1;
        if self.quarantined.len() < LISTED_MAX {
            self.quarantined.push(quarantine);
        }
    }

    pub(super) fn loss(&mut self, loss: Loss) {
        *self.losses.entry(loss).or_default() += 1;
    }
}

/// A map with records as keys is no JSON: written as a list of them, each with its count.
fn losses<S: Serializer>(losses: &BTreeMap<Loss, u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer
        .collect_seq(losses.iter().map(|(loss, count)| CountedLoss { loss: loss.clone(), count: *count }))
}
