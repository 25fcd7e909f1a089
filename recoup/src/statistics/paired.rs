//! The paired difference: two treatments of the same pairs, compared within each pair.

use crate::statistics::{Clusters, ClustersError, Intervals, Resampling, TooFewClusters};

/// Two outcomes of one starting point, as 0 and 1 or as scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair<'a> {
    /// Name of what pairs share: the task.
    pub cluster: &'a str,
    /// Outcome of the treatment.
    pub treatment: f64,
    /// Outcome of the control.
    pub control: f64,
}

/// What the pairs show of treatment − control.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedDifference {
    /// Mean difference over pairs.
    pub estimate: f64,
    /// Intervals by the cluster bootstrap, or why there are none.
    pub intervals: Result<Intervals, TooFewClusters>,
    /// Two-sided p-value of no difference, by [`Resampling::sign_flip`].
    pub p: f64,
    /// Number of pairs.
    pub pairs: u64,
    /// Number of clusters.
    pub clusters: usize,
    /// [`Clusters::design_effect`] of the differences.
    pub design_effect: Option<f64>,
}

/// Compares the two sides of pairs, each pair with one vote.
pub fn paired_difference<'a>(
    pairs: impl IntoIterator<Item = Pair<'a>>,
    resampling: &Resampling,
) -> Result<PairedDifference, ClustersError> {
    let differences = pairs.into_iter().map(|pair| (pair.cluster, pair.treatment - pair.control));
    let clusters = Clusters::new(differences)?;
    Ok(PairedDifference {
        estimate: clusters.mean(),
        intervals: resampling.intervals(&clusters),
        p: resampling.sign_flip(&clusters),
        pairs: clusters.observations(),
        clusters: clusters.len(),
        design_effect: clusters.design_effect(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Pair, paired_difference};
    use crate::statistics::{Resampling, TooFewClusters, mcnemar};

    /// Three pairs a task; the treatment repairs two of them in two tasks of three, and breaks one in
    /// every sixth.
    fn pairs(names: &[String]) -> impl Iterator<Item = Pair<'_>> {
        names.iter().enumerate().flat_map(|(task, cluster)| {
            (0..3).map(move |continuation| {
                let repaired = task % 3 < 2 && continuation < 2;
                let broken = task % 6 == 5 && continuation == 2;
                Pair { cluster, treatment: f64::from(repaired), control: f64::from(broken) }
            })
        })
    }

    #[test]
    fn a_repair_that_works_shows_with_its_interval() {
        let names: Vec<String> = (0..30).map(|task| format!("task-{task:02}")).collect();
        let ours = paired_difference(pairs(&names), &Resampling::new(11)).unwrap();
        assert_eq!((ours.pairs, ours.clusters), (90, 30));
        // 20 tasks with 2 of 3 repaired, 5 with 1 of 3 broken.
        assert!((ours.estimate - 35.0 / 90.0).abs() < 1e-12);
        let bca = ours.intervals.unwrap().bca;
        assert!(bca.low > 0.2 && bca.contains(ours.estimate) && bca.high < 0.6, "{bca:?}");
        assert!(ours.p < 0.001 && mcnemar(40, 5) < 0.001);
        assert!(ours.design_effect.unwrap() > 1.0);
    }

    #[test]
    fn few_tasks_keep_the_estimate_and_the_p_value() {
        let names: Vec<String> = (0..6).map(|task| format!("task-{task:02}")).collect();
        let ours = paired_difference(pairs(&names), &Resampling::new(11)).unwrap();
        assert_eq!(ours.intervals, Err(TooFewClusters { clusters: 6 }));
        // 2, 2, 0, 2, 2 and −1: of 64 patterns, those as far from 0 as 7 flip nothing of the rest.
        assert!((ours.p - 8.0 / 64.0).abs() < 1e-15, "{}", ours.p);
    }

    #[test]
    fn equal_sides_show_nothing() {
        let names: Vec<String> = (0..12).map(|task| format!("task-{task:02}")).collect();
        let equal = names.iter().map(|cluster| Pair { cluster, treatment: 1.0, control: 1.0 });
        let ours = paired_difference(equal, &Resampling::new(11)).unwrap();
        assert_eq!((ours.estimate, ours.p, ours.design_effect), (0.0, 1.0, None));
        let bca = ours.intervals.unwrap().bca;
        assert_eq!((bca.low, bca.high), (0.0, 0.0));
    }
}
