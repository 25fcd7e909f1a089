//! McNemar's exact test: pairs that differ, as tosses of a fair coin.

/// Two-sided p-value of `first_only` pairs where only the first side succeeded against `second_only`
/// where only the second did. Pairs that agree say nothing of the difference.
///
/// `min(1, 2·P(X ≤ smaller))` with X binomial of all of them at ½ (McNemar 1947, exact form). No pairs
/// that differ: 1. It takes pairs for independent, so it checks a cluster-wise test and does not replace
/// it. A p below 1e-300 may come out as 0. Time grows with the square root of the counts.
pub fn mcnemar(first_only: u64, second_only: u64) -> f64 {
    let tosses = first_only.saturating_add(second_only);
    let smaller = first_only.min(second_only);
    // Weights relative to the middle one, downwards from it: w(i − 1) = w(i) · i / (n − i + 1). Nothing
    // overflows, and what underflows is too small to be seen.
    let middle = tosses / 2;
    let (mut weight, mut lower_half, mut tail) = (1.0, 0.0, 0.0);
    for successes in (0..=middle).rev() {
        lower_half += weight;
        if successes <= smaller {
            tail += weight;
        }
        if weight <= tail * 1e-18 || weight == 0.0 {
            break;
        }
        weight *= successes as f64 / (tosses - successes + 1) as f64;
    }
    // An even number of tosses has its middle weight in both halves.
    let all = 2.0 * lower_half - if tosses.is_multiple_of(2) { 1.0 } else { 0.0 };
    (2.0 * tail / all).min(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::mcnemar;
    use crate::statistics::golden;

    #[derive(serde::Deserialize)]
    struct Golden {
        first_only: u64,
        second_only: u64,
        p: f64,
    }

    #[test]
    fn agrees_with_statsmodels() {
        for Golden { first_only, second_only, p } in golden::section("mcnemar") {
            golden::close(
                &format!("{first_only}:{second_only}"),
                mcnemar(first_only, second_only),
                p,
                1e-9 * p,
            );
        }
    }

    #[test]
    fn no_difference_is_no_evidence() {
        assert_eq!((mcnemar(0, 0), mcnemar(5, 5), mcnemar(5, 4)), (1.0, 1.0, 1.0));
    }

    proptest! {
        #[test]
        fn sides_are_alike_and_one_more_on_the_larger_side_is_more_evidence(
            first in 0_u64..500, second in 0_u64..500,
        ) {
            let (smaller, larger) = (first.min(second), first.max(second));
            prop_assert_eq!(mcnemar(first, second).to_bits(), mcnemar(second, first).to_bits());
            prop_assert!(mcnemar(smaller, larger + 1) <= mcnemar(smaller, larger) * (1.0 + 1e-12));
        }
    }
}
