//! Quality: how far judges can be believed, measured on what people say of the same runs.
//!
//! A person sees a run without its outcome and says that nothing went wrong, that it failed, or at which
//! step. So a proposal of a judge is right where the person names the same node, wrong where the person
//! names another or none. The *true positive rate* is the share of right proposals that the panel
//! admitted, the *true negative rate* the share of wrong ones that it did not.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::statistics::{Bounds, Interval, Kappa, Resampling, Z_95, cohen_kappa, draw_index, wilson};

/// What a panel and a person made of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The run.
    pub run: String,
    /// Which of several judgements of it, from 0.
    pub sample: u32,
    /// Whether the panel admitted the proposal.
    pub admitted: bool,
    /// The node proposed as decisive.
    pub node: Option<usize>,
    /// The members with the nodes that they hold for decisive, the proposer first.
    pub members: Vec<(String, Option<usize>)>,
    /// For each other member: whether it admits, `None` where it abstains.
    pub words: Vec<Option<bool>>,
    /// Whether the proposal is right by what a person says; `None` where nobody looked, or did not say
    /// enough to tell.
    pub right: Option<bool>,
}

/// The figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quality {
    /// Runs judged.
    pub judged: u64,
    /// Of them, those a person has looked at and said enough about.
    pub labelled: u64,
    /// Share of judged runs with an admitted answer.
    pub admitted: Share,
    /// Share of right proposals that were admitted.
    pub true_positive: Option<Share>,
    /// Share of wrong proposals that were not admitted.
    pub true_negative: Option<Share>,
    /// Share of labelled runs whose proposed step is the person's.
    pub exact_step: Option<Share>,
    /// Share of right proposals among all judged runs, corrected for the judges' errors (Rogan and Gladen
    /// 1978); `None` where TPR + TNR ≤ 1.
    pub corrected: Option<Corrected>,
    /// Agreement of each pair of members on the decisive node.
    pub agreement: Vec<Agreement>,
    /// Share of runs, judged more than once, whose word or step changed.
    pub flips: Option<Share>,
    /// Share of members' words that abstain.
    pub abstentions: Option<Share>,
    /// Share of admitting members that hold another step for decisive: their word contradicts their reasons.
    pub contradictions: Option<Share>,
}

/// A share with Wilson's 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Share {
    /// Counted.
    pub k: u64,
    /// Out of.
    pub n: u64,
    /// Their quotient.
    pub rate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// A rate corrected for the judges' errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Corrected {
    /// `(p̂ + TNR − 1) / (TPR + TNR − 1)`, between 0 and 1.
    pub rate: f64,
    /// Percentile interval of a bootstrap over labelled and judged runs.
    pub interval: Bounds,
}

/// How far two members agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Agreement {
    /// One.
    pub first: String,
    /// The other.
    pub second: String,
    /// Cohen's kappa of the nodes that they hold for decisive.
    pub kappa: Kappa,
}

impl Share {
    /// `k` of `n`; `None` without any.
    pub fn of(k: u64, n: u64) -> Option<Self> {
        let Interval { rate, low, high } = wilson(k, n, Z_95);
        (n > 0).then_some(Self { k, n, rate, low, high })
    }
}

/// Measures a panel. `None` where it has judged nothing.
pub fn measure(judgements: &[Judgement], plan: Resampling) -> Option<Quality> {
    let first: Vec<&Judgement> = judgements.iter().filter(|judgement| judgement.sample == 0).collect();
    let admitted = share(first.iter().map(|judgement| judgement.admitted))?;
    let labelled: Vec<(bool, bool)> =
        first.iter().filter_map(|judgement| Some((judgement.admitted, judgement.right?))).collect();
    let of = |truth: bool| {
        share(labelled.iter().filter(|(_, right)| *right == truth).map(|(word, _)| *word == truth))
    };
    let words = || first.iter().flat_map(|judgement| &judgement.words);
    let contradictions = first.iter().flat_map(|judgement| {
        let others = judgement.members.iter().skip(1).zip(&judgement.words);
        others
            .filter(|(member, word)| **word == Some(true) && member.1.is_some() && judgement.node.is_some())
            .map(|(member, _)| member.1 != judgement.node)
    });
    Some(Quality {
        judged: first.len() as u64,
        labelled: labelled.len() as u64,
        admitted,
        true_positive: of(true),
        true_negative: of(false),
        exact_step: share(labelled.iter().map(|(_, right)| *right)),
        corrected: corrected(&labelled, &first.iter().map(|one| one.admitted).collect::<Vec<_>>(), plan),
        agreement: agreements(&first),
        flips: flips(judgements),
        abstentions: share(words().map(Option::is_none)),
        contradictions: share(contradictions),
    })
}

fn share(hits: impl Iterator<Item = bool>) -> Option<Share> {
    let (mut k, mut n) = (0, 0);
    for hit in hits {
        k += u64::from(hit);
        n += 1;
    }
    Share::of(k, n)
}

fn flips(judgements: &[Judgement]) -> Option<Share> {
    let mut by_run: BTreeMap<&str, Vec<(bool, Option<usize>)>> = BTreeMap::new();
    for one in judgements {
        by_run.entry(&one.run).or_default().push((one.admitted, one.node));
    }
    let repeated = by_run.values().filter(|words| words.len() > 1);
    share(repeated.map(|words| words.iter().any(|word| *word != words[0])))
}

fn agreements(judgements: &[&Judgement]) -> Vec<Agreement> {
    let mut pairs: BTreeMap<(&str, &str), Vec<(usize, usize)>> = BTreeMap::new();
    for one in judgements {
        for (at, (first, node)) in one.members.iter().enumerate() {
            for (second, other) in one.members.iter().skip(at + 1) {
                let (Some(node), Some(other)) = (node, other) else { continue };
                pairs.entry((first, second)).or_default().push((*node, *other));
            }
        }
    }
    let agreement = |((first, second), labels): ((&str, &str), Vec<(usize, usize)>)| {
        let kappa = cohen_kappa(&labels, Z_95)?;
        Some(Agreement { first: first.to_owned(), second: second.to_owned(), kappa })
    };
    pairs.into_iter().filter_map(agreement).collect()
}

/// `(p̂ + TNR − 1) / (TPR + TNR − 1)`, clipped; `None` where the judges are no better than chance.
pub fn rogan_gladen(observed: f64, true_positive: f64, true_negative: f64) -> Option<f64> {
    let better_than_chance = true_positive + true_negative - 1.0;
    (better_than_chance > 0.0)
        .then(|| ((observed + true_negative - 1.0) / better_than_chance).clamp(0.0, 1.0))
}

/// The corrected rate, with a bootstrap that draws the labelled and the judged runs apart.
fn corrected(labelled: &[(bool, bool)], judged: &[bool], plan: Resampling) -> Option<Corrected> {
    let rates = |labelled: &mut dyn Iterator<Item = (bool, bool)>, judged: &mut dyn Iterator<Item = bool>| {
        let (mut right, mut wrong, mut all) = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0));
        for (admitted, is_right) in labelled {
            let (hits, of) = if is_right { &mut right } else { &mut wrong };
            *hits += f64::from(admitted == is_right);
            *of += 1.0;
        }
        for admitted in judged {
            all.0 += f64::from(admitted);
            all.1 += 1.0;
        }
        (right.1 > 0.0 && wrong.1 > 0.0 && all.1 > 0.0)
            .then(|| rogan_gladen(all.0 / all.1, right.0 / right.1, wrong.0 / wrong.1))
            .flatten()
    };
    let rate = rates(&mut labelled.iter().copied(), &mut judged.iter().copied())?;
    let words = (labelled.len() + judged.len()) as u64;
    let mut drawn: Vec<f64> = (0..u64::from(plan.resamples.get()))
        .filter_map(|resample| {
            let at =
                |place: usize, length: usize| draw_index(plan.seed, resample * words + place as u64, length);
            let mut some = (0..labelled.len()).map(|place| labelled[at(place, labelled.len())]);
            let mut all = (0..judged.len()).map(|place| judged[at(labelled.len() + place, judged.len())]);
            rates(&mut some, &mut all)
        })
        .collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let tail = plan.confidence.error_rate() / 2.0;
    let quantile =
        |level: f64| drawn.get(((drawn.len().checked_sub(1)?) as f64 * level).round() as usize).copied();
    let interval = Bounds { low: quantile(tail)?, high: quantile(1.0 - tail)? };
    Some(Corrected { rate, interval })
}

#[cfg(test)]
mod tests {
    use super::{Judgement, measure, rogan_gladen};
    use crate::statistics::Resampling;

    fn judgement(run: usize, sample: u32, admitted: bool, right: Option<bool>) -> Judgement {
        Judgement {
            run: run.to_string(),
            sample,
            admitted,
            node: Some(run % 3),
            members: vec![
                ("a".to_owned(), Some(run % 3)),
                ("b".to_owned(), Some(if run.is_multiple_of(4) { 0 } else { run % 3 })),
            ],
            words: vec![if run == 1 { None } else { Some(admitted) }],
            right,
        }
    }

    #[test]
    fn the_correction_is_that_of_rogan_and_gladen() {
        assert!((rogan_gladen(0.5, 0.9, 0.8).unwrap() - 0.3 / 0.7).abs() < 1e-12);
        assert_eq!(rogan_gladen(0.05, 0.9, 0.8), Some(0.0));
        assert_eq!(rogan_gladen(0.5, 0.5, 0.5), None);
    }

    #[test]
    fn rates_are_counted_on_labelled_runs_only() {
        let mut all = Vec::new();
        // 10 right, 9 of them admitted; 10 wrong, 8 of them refused; 20 that nobody looked at.
        all.extend((0..10).map(|run| judgement(run, 0, run != 0, Some(true))));
        all.extend((10..20).map(|run| judgement(run, 0, run < 12, Some(false))));
        all.extend((20..40).map(|run| judgement(run, 0, run % 2 == 0, None)));
        all.push(judgement(3, 1, false, None));
        all.push(judgement(4, 1, true, None));
        let quality = measure(&all, Resampling::new(7)).unwrap();
        assert_eq!((quality.judged, quality.labelled), (40, 20));
        assert_eq!(quality.true_positive.map(|share| (share.k, share.n)), Some((9, 10)));
        assert_eq!(quality.true_negative.map(|share| (share.k, share.n)), Some((8, 10)));
        assert_eq!(quality.exact_step.map(|share| (share.k, share.n)), Some((10, 20)));
        assert_eq!(quality.flips.map(|share| (share.k, share.n)), Some((1, 2)));
        assert_eq!(quality.abstentions.map(|share| share.k), Some(1));
        assert!(quality.contradictions.is_some_and(|share| share.k > 0));
        assert!(quality.agreement[0].kappa.kappa > 0.5);
        let corrected = quality.corrected.unwrap();
        assert!((corrected.rate - (21.0 / 40.0 - 0.2) / 0.7).abs() < 1e-12, "{corrected:?}");
        assert!(
            corrected.interval.contains(corrected.rate) && corrected.interval.low < corrected.interval.high
        );
        assert_eq!(measure(&all, Resampling::new(7)), measure(&all, Resampling::new(7)));
    }

    #[test]
    fn without_labels_nothing_is_claimed() {
        let quality = measure(&[judgement(0, 0, true, None)], Resampling::new(0)).unwrap();
        assert_eq!((quality.labelled, quality.true_positive, quality.corrected), (0, None, None));
        assert_eq!(measure(&[], Resampling::new(0)), None);
    }
}
