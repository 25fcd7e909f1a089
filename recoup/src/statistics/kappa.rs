//! Cohen's kappa: agreement of two judges beyond what their habits alone would give.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Agreement of two judges over the same items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Kappa {
    /// 1 is full agreement, 0 what independent judges with the same habits would reach.
    pub kappa: f64,
    /// Lower bound, at least -1.
    pub low: f64,
    /// Upper bound, at most 1.
    pub high: f64,
    /// Share of items that got the same label.
    pub agreement: f64,
    /// Number of items.
    pub items: u64,
}

/// Cohen's kappa of two judges, one pair of labels an item, with an interval at `z` standard deviations
/// (1.96 for 95 %). The labels have no order: any two that differ differ alike.
///
/// The standard error is that of Fleiss, Cohen and Everitt (1969) for many items. It is 0, and the
/// interval without width, under full agreement and where one judge gives one label to all: then
/// [`wilson`](crate::statistics::wilson) of the agreement says what the number of items shows. None where kappa is not defined: no items, or both judges
/// giving one and the same label to all.
pub fn cohen_kappa<L: Ord>(labels: &[(L, L)], z: f64) -> Option<Kappa> {
    let (mut cells, mut firsts, mut seconds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (first, second) in labels {
        *cells.entry((first, second)).or_insert(0_u64) += 1;
        *firsts.entry(first).or_insert(0_u64) += 1;
        *seconds.entry(second).or_insert(0_u64) += 1;
    }
    let items = labels.len() as f64;
    let share = |count: &u64| *count as f64 / items;
    let share_of = |counts: &BTreeMap<&L, u64>, label: &L| counts.get(label).map_or(0.0, share);

    let agreed: u64 =
        cells.iter().filter(|((first, second), _)| first == second).map(|(_, count)| count).sum();
    let agreement = share(&agreed);
    let chance: f64 = firsts.iter().map(|(label, count)| share(count) * share_of(&seconds, label)).sum();
    // With one label in all there is no disagreement to expect; the sum is then exactly 1.
    if labels.is_empty() || chance >= 1.0 {
        return None;
    }
    let kappa = (agreement - chance) / (1.0 - chance);

    let (mut same, mut different) = (0.0, 0.0);
    for ((first, second), count) in &cells {
        let habits = share_of(&seconds, first) + share_of(&firsts, second);
        if first == second {
            same += share(count) * (1.0 - habits * (1.0 - kappa)).powi(2);
        } else {
            different += share(count) * (habits * (1.0 - kappa)).powi(2);
        }
    }
    let variance = same + different - (kappa - chance * (1.0 - kappa)).powi(2);
    let half = z * variance.max(0.0).sqrt() / ((1.0 - chance) * items.sqrt());
    Some(Kappa {
        kappa,
        low: (kappa - half).max(-1.0),
        high: (kappa + half).min(1.0),
        agreement,
        items: labels.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::cohen_kappa;
    use crate::statistics::{Z_95, golden};

    #[derive(serde::Deserialize)]
    struct Golden {
        name: String,
        table: Vec<Vec<usize>>,
        kappa: f64,
        low: f64,
        high: f64,
    }

    #[test]
    fn agrees_with_statsmodels() {
        for case in golden::section::<Golden>("kappa") {
            let mut labels = Vec::new();
            for (first, row) in case.table.iter().enumerate() {
                for (second, &count) in row.iter().enumerate() {
                    labels.extend(std::iter::repeat_n((first, second), count));
                }
            }
            let ours = cohen_kappa(&labels, Z_95).unwrap();
            golden::close(&case.name, ours.kappa, case.kappa, 1e-12);
            golden::close(&case.name, ours.low, case.low, 1e-12);
            golden::close(&case.name, ours.high, case.high, 1e-12);
        }
    }

    #[test]
    fn one_label_in_all_is_not_defined() {
        assert_eq!(cohen_kappa::<u8>(&[], Z_95), None);
        assert_eq!(cohen_kappa(&[("yes", "yes"); 7], Z_95), None);
        // One judge with one label is: the other cannot agree beyond chance.
        let one_sided = cohen_kappa(&[("yes", "yes"), ("yes", "no")], Z_95).unwrap();
        assert_eq!((one_sided.kappa, one_sided.agreement, one_sided.items), (0.0, 0.5, 2));
    }

    #[test]
    fn full_agreement_is_one() {
        let full = cohen_kappa(&[("yes", "yes"), ("no", "no"), ("no", "no")], Z_95).unwrap();
        assert_eq!((full.kappa, full.low, full.high), (1.0, 1.0, 1.0));
    }
}
