//! What relabeling came to.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::hindsight::{Quotes, Relabeled};
use crate::id::TrajectoryId;
use crate::pipeline::Meter;
use crate::statistics::{Z_95, wilson};
use crate::verdict::{Evidence, Relabel};

/// A share with its 95 % interval (Wilson).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verified {
    /// Goals that the environment's verifier passed.
    pub passed: u64,
    /// Goals that it could check.
    pub n: u64,
    /// Their quotient.
    pub rate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Verified {
    fn of(passed: u64, n: u64) -> Self {
        let interval = wilson(passed, n, Z_95);
        Self { passed, n, rate: interval.rate, low: interval.low, high: interval.high }
    }
}

/// What relabeling came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Relabeling {
    /// Runs that failed by the agent's own fault and not too badly: those that were looked at.
    pub candidates: u64,
    /// Of them, those looked at by this call.
    pub new: u64,
    /// Runs with an accepted goal, by what it rests on.
    pub accepted: BTreeMap<&'static str, u64>,
    /// The accepted goal of each such run.
    #[serde(skip)]
    pub goals: BTreeMap<TrajectoryId, String>,
    /// Runs without one, by what refused the last goal; `no-proposal` where there was none.
    pub rejected: BTreeMap<String, u64>,
    /// Accepted goals that the environment's verifier passes: the precision, of those it can check.
    pub verified: Verified,
    /// The same, by what the goals rest on; unless `blind`, those that rest on `environment` have passed by definition.
    pub verified_by_class: BTreeMap<&'static str, Verified>,
    /// Refused goals that it would have passed, of those it can check: a goal whose other wording was
    /// accepted is not among them.
    pub missed: Verified,
    /// Different goals among those accepted; runs of one task may share theirs.
    pub distinct: u64,
    /// Mean number of claims of an accepted goal.
    pub claims_mean: f64,
    /// Whether the bundled background stood in for runs of other tasks.
    pub background: bool,
    /// Whether the environment was withheld and only scored.
    pub blind: bool,
    /// Runs whose environment could not be asked, by why.
    pub unsupported: BTreeMap<String, u64>,
    /// Facts that a model quoted and that stand where it says.
    pub facts_quoted: u64,
    /// Facts that it quoted and that stand nowhere there: no goal rests on them.
    pub facts_dropped: u64,
    /// Runs left undecided because a model did not answer, by what it said; the same command asks again.
    pub undecided: BTreeMap<String, u64>,
    /// Questions that models answered.
    pub calls: u64,
    /// Questions answered from the cache.
    pub cached: u64,
    /// Cost in US dollars; `None` where a model has no price.
    pub cost_usd: Option<f64>,
    /// Cost of a run with an accepted goal; `None` where there is none or a model has no price.
    pub cost_per_accepted_usd: Option<f64>,
}

/// Runs counted as they are decided.
#[derive(Default)]
pub(super) struct Counts {
    accepted: BTreeMap<&'static str, u64>,
    rejected: BTreeMap<String, u64>,
    /// Of the accepted goals that could be checked, by what they rest on: passed, and all.
    verified: BTreeMap<&'static str, (u64, u64)>,
    missed: (u64, u64),
    goals: BTreeMap<TrajectoryId, String>,
    claims: u64,
    background: bool,
    unsupported: BTreeMap<String, u64>,
    quotes: Quotes,
    undecided: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts a run; false where nothing is decided about it.
    pub(super) fn take(&mut self, run: TrajectoryId, relabeled: &Relabeled) -> bool {
        self.quotes.kept += relabeled.quotes.kept;
        self.quotes.dropped += relabeled.quotes.dropped;
        if let Some(error) = &relabeled.undecided {
            self.undecided(&error.to_string());
            return false;
        }
        if let Some(why) = &relabeled.unsupported {
            *self.unsupported.entry(why.clone()).or_default() += 1;
        }
        self.add(run, &relabeled.goals);
        true
    }

    pub(super) fn undecided(&mut self, why: &str) {
        *self.undecided.entry(why.to_owned()).or_default() += 1;
    }

    pub(super) fn add(&mut self, run: TrajectoryId, goals: &[Relabel]) {
        self.background |= goals.iter().any(|goal| goal.background);
        let accepted = goals.iter().find(|goal| goal.accepted.is_some());
        match (accepted, goals.last()) {
            (Some(goal), _) => {
                let evidence = goal.accepted.as_ref().map_or(Evidence::Rules, |it| it.evidence);
                *self.accepted.entry(evidence.as_str()).or_default() += 1;
                self.goals.insert(run, goal.goal.clone());
                self.claims += goal.claims.len() as u64;
                if let Some(has_passed) = goal.verified {
                    let (passed, n) = self.verified.entry(evidence.as_str()).or_default();
                    *passed += u64::from(has_passed);
                    *n += 1;
                }
            }
            (None, Some(last)) => {
                let gate = last.rejected.as_ref().map_or("", |it| it.gate.as_str());
                *self.rejected.entry(gate.to_owned()).or_default() += 1;
            }
            (None, None) => *self.rejected.entry("no-proposal".to_owned()).or_default() += 1,
        }
        if accepted.is_none() {
            let mut seen = BTreeSet::new();
            for goal in goals.iter().filter(|goal| goal.verified.is_some()) {
                let specification = goal.specification.as_ref().map_or(goal.goal.as_str(), |it| it.as_str());
                if seen.insert(specification.to_owned()) {
                    self.missed.0 += u64::from(goal.verified == Some(true));
                    self.missed.1 += 1;
                }
            }
        }
    }

    pub(super) fn finish(self, candidates: u64, new: u64, blind: bool, spent: Meter) -> Relabeling {
        let count: u64 = self.accepted.values().sum();
        let (passed, n) =
            self.verified.values().fold((0, 0), |(passed, n), class| (passed + class.0, n + class.1));
        let by_class = self.verified.into_iter().map(|(class, (passed, n))| (class, Verified::of(passed, n)));
        Relabeling {
            candidates,
            new,
            verified: Verified::of(passed, n),
            verified_by_class: by_class.collect(),
            missed: Verified::of(self.missed.0, self.missed.1),
            distinct: self.goals.values().collect::<BTreeSet<_>>().len() as u64,
            claims_mean: if count == 0 { 0.0 } else { self.claims as f64 / count as f64 },
            accepted: self.accepted,
            goals: self.goals,
            rejected: self.rejected,
            background: self.background,
            blind,
            unsupported: self.unsupported,
            facts_quoted: self.quotes.kept,
            facts_dropped: self.quotes.dropped,
            undecided: self.undecided,
            calls: spent.calls,
            cached: spent.cached,
            cost_usd: spent.cost_usd,
            cost_per_accepted_usd: spent.cost_usd.filter(|_| count > 0).map(|cost| cost / count as f64),
        }
    }
}
