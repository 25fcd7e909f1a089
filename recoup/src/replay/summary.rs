//! What pairs show together: pass rates, differences with intervals by task, and their cross-checks.
//!
//! Primary is continuation 0 of the one candidate; the mean over continuations stands beside it. Pairs
//! are pooled only where their configuration is the same, natural and injected faults never. A pair
//! whose continuation an error ended drops out of what needs it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::statistics::{
    Bounds, Clusters, Pair, PairedDifference, Resampling, holm, mcnemar, paired_difference,
};
use crate::verdict::{Arm, ReplayPair};

/// The pre-registered family: treatment and control.
pub const FAMILY: [(Arm, Arm); 4] = [
    (Arm::Repair, Arm::Retry),
    (Arm::Repair, Arm::Resample),
    (Arm::Guided, Arm::Retry),
    (Arm::Guided, Arm::Reconsider),
];

/// What pairs show. Arms and differences are those of the largest group.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplaySummary {
    /// Pairs of the largest group.
    pub pairs: u64,
    /// Their tasks.
    pub tasks: u64,
    /// Runs that could not be replayed, of all groups.
    pub unsupported: u64,
    /// Of them, by the code of the reason.
    pub reasons: BTreeMap<String, u64>,
    /// Pass rates by arm.
    pub arms: BTreeMap<&'static str, ArmRate>,
    /// Differences, as `repair-retry`.
    pub differences: BTreeMap<String, Comparison>,
    /// Var_cluster / Var_iid of repair − retry.
    pub design_effect: Option<f64>,
    /// Every group, the largest first.
    pub groups: Vec<Group>,
}

/// Pairs of one configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Group {
    /// Hash of policy, harness, budget, verifier and the source of candidates.
    pub config_hash: String,
    /// Environment and version.
    pub environment: String,
    /// The policy that continued.
    pub policy: String,
    /// Where the repairs came from: `rules`, `sibling`, `expert`, `file`; empty where nothing was proposed.
    pub candidates: BTreeSet<String>,
    /// Pairs.
    pub pairs: u64,
    /// Tasks.
    pub tasks: u64,
    /// Pass rates by arm.
    pub arms: BTreeMap<&'static str, ArmRate>,
    /// Differences, as `repair-retry`.
    pub differences: BTreeMap<String, Comparison>,
    /// Var_cluster / Var_iid of repair − retry.
    pub design_effect: Option<f64>,
}

/// Pass rate of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ArmRate {
    /// First continuations that passed.
    pub passed: u64,
    /// First continuations that were scored.
    pub n: u64,
    /// Their quotient.
    pub rate: f64,
    /// Lower bound at 95 % by the cluster bootstrap (BCa); none under ten tasks.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Mean over all continuations of all pairs.
    pub mean: f64,
    /// True where the policy takes advice by a rule that was written for it.
    pub synthetic: bool,
}

/// A paired difference of two arms, in percentage points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Difference of first continuations.
    pub points: f64,
    /// Lower bound at 95 % by the cluster bootstrap (BCa); none under ten tasks.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// The percentile interval.
    pub percentile: Option<Bounds>,
    /// Two-sided p-value by flipping the signs of tasks.
    pub p: f64,
    /// The same after Holm over the family.
    pub p_holm: f64,
    /// Exact McNemar test of the first continuations.
    pub mcnemar: f64,
    /// Difference of the means over continuations.
    pub mean_points: f64,
    /// Pairs that have both arms.
    pub pairs: u64,
    /// Their tasks.
    pub tasks: u64,
}

/// Counts what pairs, each with its task's key, show. Resampling draws from `seed`.
pub fn summarize<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a ReplayPair)>, seed: u64) -> ReplaySummary {
    let mut summary = ReplaySummary::default();
    let mut groups: BTreeMap<(bool, String), Vec<(&str, &ReplayPair)>> = BTreeMap::new();
    for (task, pair) in pairs {
        match &pair.unsupported {
            Some(reason) => {
                summary.unsupported += 1;
                *summary.reasons.entry(reason.code.clone()).or_default() += 1;
            }
            None => {
                groups.entry((pair.injected, pair.config_hash.to_string())).or_default().push((task, pair));
            }
        }
    }
    let mut groups: Vec<Group> = groups
        .into_iter()
        .filter_map(|((_, config_hash), mut pairs)| {
            // The store's order must not show in what is drawn.
            pairs.sort_by_key(|(task, pair)| (*task, pair.plan_hash));
            group(config_hash, &pairs, &Resampling::new(seed))
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.pairs));
    if let Some(largest) = groups.first() {
        (summary.pairs, summary.tasks) = (largest.pairs, largest.tasks);
        summary.arms.clone_from(&largest.arms);
        summary.differences.clone_from(&largest.differences);
        summary.design_effect = largest.design_effect;
    }
    summary.groups = groups;
    summary
}

fn group(config_hash: String, pairs: &[(&str, &ReplayPair)], resampling: &Resampling) -> Option<Group> {
    let (_, first) = pairs.first()?;
    let tasks: BTreeSet<&str> = pairs.iter().map(|(task, _)| *task).collect();
    let (differences, design_effect) = differences(pairs, resampling);
    Some(Group {
        config_hash,
        environment: first.environment.clone(),
        policy: first.policy.clone(),
        candidates: pairs.iter().filter_map(|(_, pair)| pair.proposed_by.clone()).collect(),
        pairs: pairs.len() as u64,
        tasks: tasks.len() as u64,
        arms: Arm::ALL
            .into_iter()
            .filter_map(|arm| Some((arm.as_str(), rate(arm, pairs, resampling)?)))
            .collect(),
        differences,
        design_effect,
    })
}

fn rate(arm: Arm, pairs: &[(&str, &ReplayPair)], resampling: &Resampling) -> Option<ArmRate> {
    let firsts: Vec<(&str, f64)> =
        pairs.iter().filter_map(|(task, pair)| Some((*task, primary(pair, arm)?))).collect();
    let means: Vec<f64> = pairs.iter().filter_map(|(_, pair)| pair.arm(arm)?.rate()).collect();
    let clusters = Clusters::new(firsts.iter().copied()).ok()?;
    let bounds = resampling.intervals(&clusters).ok().map(|intervals| intervals.bca);
    let passed = firsts.iter().filter(|(_, passed)| *passed > 0.5).count() as u64;
    Some(ArmRate {
        passed,
        n: firsts.len() as u64,
        rate: passed as f64 / firsts.len() as f64,
        low: bounds.map(|bounds| bounds.low),
        high: bounds.map(|bounds| bounds.high),
        mean: means.iter().sum::<f64>() / means.len().max(1) as f64,
        synthetic: pairs.iter().any(|(_, pair)| pair.arm(arm).is_some_and(|outcome| outcome.synthetic)),
    })
}

fn differences(
    pairs: &[(&str, &ReplayPair)],
    resampling: &Resampling,
) -> (BTreeMap<String, Comparison>, Option<f64>) {
    let mut found: Vec<(String, Comparison)> = Vec::new();
    let mut design_effect = None;
    for (treatment, control) in FAMILY {
        let both = pairs.iter().filter_map(|(task, pair)| {
            let (treated, held) = (primary(pair, treatment)?, primary(pair, control)?);
            Some(Pair { cluster: task, treatment: treated, control: held })
        });
        let both: Vec<Pair<'_>> = both.collect();
        let Ok(difference) = paired_difference(both.iter().copied(), resampling) else { continue };
        if (treatment, control) == FAMILY[0] {
            design_effect = difference.design_effect;
        }
        let means: Vec<f64> = pairs
            .iter()
            .filter_map(|(_, pair)| Some(pair.arm(treatment)?.rate()? - pair.arm(control)?.rate()?))
            .collect();
        let won = both.iter().filter(|pair| pair.treatment > pair.control).count() as u64;
        let lost = both.iter().filter(|pair| pair.treatment < pair.control).count() as u64;
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        let name = format!("{}-{}", treatment.as_str(), control.as_str());
        found.push((name, comparison(&difference, mcnemar(won, lost), mean)));
    }
    let adjusted = holm(&found.iter().map(|(_, comparison)| comparison.p).collect::<Vec<f64>>());
    for ((_, comparison), p) in found.iter_mut().zip(adjusted) {
        comparison.p_holm = p;
    }
    (found.into_iter().collect(), design_effect)
}

fn comparison(difference: &PairedDifference, mcnemar: f64, mean: f64) -> Comparison {
    let intervals = difference.intervals.ok();
    let points = |bounds: Bounds| Bounds { low: 100.0 * bounds.low, high: 100.0 * bounds.high };
    let bca = intervals.map(|intervals| points(intervals.bca));
    Comparison {
        points: 100.0 * difference.estimate,
        low: bca.map(|bounds| bounds.low),
        high: bca.map(|bounds| bounds.high),
        percentile: intervals.map(|intervals| points(intervals.percentile)),
        p: difference.p,
        p_holm: difference.p,
        mcnemar,
        mean_points: 100.0 * mean,
        pairs: difference.pairs,
        tasks: difference.clusters as u64,
    }
}

/// Continuation 0 of an arm as 1 or 0, where it was scored.
fn primary(pair: &ReplayPair, arm: Arm) -> Option<f64> {
    pair.arm(arm)?.continuations.first()?.passed.map(f64::from)
}
