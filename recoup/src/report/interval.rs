//! Wilson's score interval for a proportion, at 95 %.

/// Two-sided 95 % quantile of the standard normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Lower and upper bound of the share of successes, both within 0 … 1; `None` without trials
/// (Wilson 1927, equation for the inverted score test).
pub(super) fn wilson(successes: u64, trials: u64) -> Option<(f64, f64)> {
    if trials == 0 {
        return None;
    }
    let n = trials as f64;
    let share = successes as f64 / n;
    let denominator = 1.0 + Z * Z / n;
    let center = (share + Z * Z / (2.0 * n)) / denominator;
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / denominator;
    // At 0 and at n the bound is exact; rounding must not move it.
    let low = if successes == 0 { 0.0 } else { (center - half).max(0.0) };
    let high = if successes >= trials { 1.0 } else { (center + half).min(1.0) };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::wilson;

    #[test]
    fn bounds_solve_the_score_equation() {
        // Roots of (7/20 − p)² = z² p (1 − p) / 20, found by bisection.
        let (low, high) = wilson(7, 20).unwrap();
        assert!((low - 0.181_192).abs() < 1e-6 && (high - 0.567_146).abs() < 1e-6, "{low} {high}");
    }

    #[test]
    fn ends_are_exact() {
        assert_eq!(wilson(0, 0), None);
        assert_eq!(wilson(0, 5).unwrap().0.to_bits(), 0.0_f64.to_bits());
        assert_eq!(wilson(5, 5).unwrap().1.to_bits(), 1.0_f64.to_bits());
    }
}
