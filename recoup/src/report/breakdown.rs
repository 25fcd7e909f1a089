//! Success by task, agent, model, harness and format.

use std::collections::BTreeMap;

use super::input::RunRow;
use super::model::{Breakdown, Group, Outcomes};
use super::summary::{is_agent_failure, share};
use super::wording::clip;
use crate::trajectory::Status;

/// Groups shown by attribute; the others are pooled.
const GROUPS: usize = 12;

type Attribute = fn(&RunRow) -> Option<&str>;

const ATTRIBUTES: [(&str, Attribute); 5] = [
    ("task", |run| Some(&run.task)),
    ("agent", |run| Some(&run.agent)),
    ("model", |run| run.model.as_deref()),
    ("harness", |run| run.harness.as_deref()),
    ("format", |run| Some(&run.format)),
];

/// One breakdown by attribute; none where no run names it.
pub(super) fn breakdowns(runs: &[&RunRow]) -> Vec<Breakdown> {
    ATTRIBUTES.iter().filter_map(|&(by, attribute)| breakdown(runs, by, attribute)).collect()
}

fn breakdown(runs: &[&RunRow], by: &'static str, attribute: Attribute) -> Option<Breakdown> {
    let mut tallies: BTreeMap<Option<&str>, Tally> = BTreeMap::new();
    for run in runs {
        let name = attribute(run).filter(|name| !name.is_empty());
        tallies.entry(name).or_default().add(run);
    }
    if tallies.keys().all(Option::is_none) {
        return None;
    }
    let values = tallies.keys().flatten().count() as u64;
    let mut tallies: Vec<(Option<&str>, Tally)> = tallies.into_iter().collect();
    // Stable, so equal counts stay in order of name.
    tallies.sort_by_key(|(_, tally)| std::cmp::Reverse((tally.outcomes.failure, tally.outcomes.total())));
    let others = tallies.split_off(tallies.len().min(GROUPS));
    let pooled = others.len() as u64;
    let rest = others.into_iter().map(|(_, tally)| tally).reduce(Tally::and);
    Some(Breakdown {
        by,
        values,
        groups: tallies.into_iter().map(|(name, tally)| tally.group(name)).collect(),
        rest: rest.map(|tally| tally.group(None)),
        pooled,
    })
}

/// Counts a run.
pub(super) fn add(outcomes: &mut Outcomes, status: Status) {
    match status {
        Status::Success => outcomes.success += 1,
        Status::Failure => outcomes.failure += 1,
        Status::Unknown => outcomes.unknown += 1,
    }
}

#[derive(Clone, Copy, Default)]
struct Tally {
    outcomes: Outcomes,
    agent_failures: u64,
}

impl Tally {
    fn add(&mut self, run: &RunRow) {
        add(&mut self.outcomes, run.outcome);
        self.agent_failures += u64::from(is_agent_failure(run));
    }

    fn and(self, other: Self) -> Self {
        let (a, b) = (self.outcomes, other.outcomes);
        Self {
            outcomes: Outcomes {
                success: a.success + b.success,
                failure: a.failure + b.failure,
                unknown: a.unknown + b.unknown,
            },
            agent_failures: self.agent_failures + other.agent_failures,
        }
    }

    fn group(self, name: Option<&str>) -> Group {
        Group {
            name: name.map(|name| clip(name, 80)),
            outcomes: self.outcomes,
            agent_failures: self.agent_failures,
            success_rate: share(self.outcomes.success, self.outcomes.scored()),
        }
    }
}
