//! Which runs may be learned from, and why the others may not.

use std::collections::BTreeMap;

use super::input::RunRow;
use super::model::{KeptOut, Learning};
use super::wording::party_meaning;
use crate::trajectory::Status;
use crate::verdict::{Party, Side};

/// Puts every run under the first reason that applies, so that the numbers add up to all runs.
pub(super) fn learning(runs: &[&RunRow]) -> Learning {
    let mut learning = Learning { successes: 0, failures: 0, kept_out: Vec::new() };
    let mut kept_out: BTreeMap<Obstacle, u64> = BTreeMap::new();
    for run in runs {
        match (obstacle(run), run.outcome) {
            (Some(obstacle), _) => *kept_out.entry(obstacle).or_default() += 1,
            (None, Status::Success) => learning.successes += 1,
            (None, _) => learning.failures += 1,
        }
    }
    learning.kept_out = kept_out
        .into_iter()
        .map(|(obstacle, runs)| KeptOut { code: obstacle.code(), reason: obstacle.reason(), runs })
        .collect();
    learning
}

/// Why a run is kept out, in the order of asking.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    UnknownOutcome,
    Blame(Party),
    NoDecisiveStep,
    NotAdmitted,
    Side(Side),
}

fn obstacle(run: &RunRow) -> Option<Obstacle> {
    match run.outcome {
        Status::Unknown => return Some(Obstacle::UnknownOutcome),
        Status::Failure => match run.blame.unwrap_or(Party::Unknown) {
            Party::Agent if run.decisive_node.is_none() => return Some(Obstacle::NoDecisiveStep),
            Party::Agent if !run.admitted => return Some(Obstacle::NotAdmitted),
            Party::Agent => {}
            other => return Some(Obstacle::Blame(other)),
        },
        Status::Success => {}
    }
    run.split.filter(|&side| side != Side::Train).map(Obstacle::Side)
}

impl Obstacle {
    fn code(self) -> String {
        match self {
            Self::UnknownOutcome => "unknown_outcome".to_owned(),
            Self::Blame(party) => format!("blame_{}", party.as_str()),
            Self::NoDecisiveStep => "no_decisive_step".to_owned(),
            Self::NotAdmitted => "not_admitted".to_owned(),
            Self::Side(side) => format!("split_{}", side.as_str()),
        }
    }

    fn reason(self) -> String {
        match self {
            Self::UnknownOutcome => "No outcome: nothing says whether it passed".to_owned(),
            Self::Blame(Party::Unknown) => "Failed, but nobody can say by whose fault".to_owned(),
            Self::Blame(party) => format!("Failed, not by the agent: {}", party_meaning(party)),
            Self::NoDecisiveStep => "The agent failed, but no step was found to be decisive".to_owned(),
            Self::NotAdmitted => "The diagnosis did not pass every grounding gate".to_owned(),
            Self::Side(Side::Excluded) => "Would join two sides of the split".to_owned(),
            Self::Side(side) => format!("Held out: on the {} side of the split", side.as_str()),
        }
    }
}
