//! Holm's adjustment: p-values of a family, made to bear that there are several.

/// The adjusted p-values, in the order given: an adjusted p below α rejects at a family-wise error of
/// at most α, whatever the dependence between the tests.
///
/// The i-th smallest of m, from 0, is multiplied by m − i; none is below a smaller one's, or above 1
/// (Holm 1979). The family is what was declared before looking. A p that is not a number counts as 1.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut adjusted: Vec<f64> =
        p_values.iter().map(|&p| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }).collect();
    let mut ascending: Vec<usize> = (0..adjusted.len()).collect();
    ascending.sort_by(|&left, &right| adjusted[left].total_cmp(&adjusted[right]));
    let mut highest = 0.0_f64;
    for (rank, &test) in ascending.iter().enumerate() {
        highest = highest.max(adjusted[test] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[test] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::holm;
    use crate::statistics::golden;

    #[derive(serde::Deserialize)]
    struct Golden {
        p: Vec<f64>,
        adjusted: Vec<f64>,
    }

    #[test]
    fn agrees_with_statsmodels() {
        for case in golden::section::<Golden>("holm") {
            let ours = holm(&case.p);
            assert_eq!(ours.len(), case.adjusted.len());
            for (ours, golden) in ours.iter().zip(&case.adjusted) {
                golden::close(&format!("{:?}", case.p), *ours, *golden, 1e-15);
            }
        }
    }

    #[test]
    fn nothing_and_not_a_number() {
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[f64::NAN, 0.01]), [1.0, 0.02]);
    }

    proptest! {
        #[test]
        fn is_monotone_capped_and_never_below_the_plain_p(
            p_values in proptest::collection::vec(0.0_f64..=1.0, 1..20),
        ) {
            let ours = holm(&p_values);
            for (left, adjusted) in p_values.iter().zip(&ours) {
                prop_assert!(left <= adjusted && *adjusted <= 1.0);
                for (right, other) in p_values.iter().zip(&ours) {
                    prop_assert!(left > right || adjusted <= other);
                }
            }
            let reversed: Vec<f64> = p_values.iter().rev().copied().collect();
            prop_assert_eq!(holm(&reversed).into_iter().rev().collect::<Vec<_>>(), ours);
        }
    }
}
