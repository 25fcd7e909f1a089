//! The strict rule of two judges.
//!
//! A goal is accepted where the relabeler says that it is valid with c₁ ≥ θ **and** a second judge, of another
//! family of models, says so with c₂ ≥ θ. A judge that fails to answer has rejected. There is no fallback to
//! one of the two or to a lower score.

use serde::{Deserialize, Serialize};

/// Least confidence of each judge.
pub const THRESHOLD: f64 = 0.5;

/// What a judge says of a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opinion {
    /// Whether the run is a correct demonstration of the goal.
    pub valid: bool,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// Why.
    pub reason: String,
}

/// Whether a judge's word counts as a yes.
///
/// # Errors
/// Why it does not.
pub fn admits(opinion: Result<&Opinion, &str>) -> Result<f64, String> {
    match opinion {
        Err(error) => Err(format!("no answer: {error}")),
        Ok(opinion) if !opinion.valid => Err(format!("invalid: {}", opinion.reason)),
        Ok(opinion) if !(THRESHOLD..=1.0).contains(&opinion.confidence) => {
            Err(format!("valid with a confidence of {}: {}", opinion.confidence, opinion.reason))
        }
        Ok(opinion) => Ok(opinion.confidence),
    }
}

/// Both confidences where both judges say yes.
///
/// # Errors
/// Which of them does not, and why: `relabeler` or `judge`.
pub fn decide(
    relabeler: Result<&Opinion, &str>,
    judge: Result<&Opinion, &str>,
) -> Result<(f64, f64), (&'static str, String)> {
    let first = admits(relabeler).map_err(|why| ("relabeler", why))?;
    let second = admits(judge).map_err(|why| ("judge", why))?;
    Ok((first, second))
}

#[cfg(test)]
mod tests {
    use super::{Opinion, decide};

    fn word(valid: bool, confidence: f64) -> Opinion {
        Opinion { valid, confidence, reason: "r".to_owned() }
    }

    #[test]
    fn both_must_say_yes_and_nothing_stands_in_for_it() {
        let yes = word(true, 0.9);
        // The second judge is sure that it is invalid.
        assert_eq!(decide(Ok(&yes), Ok(&word(false, 0.99))).unwrap_err().0, "judge");
        // It says valid and is not sure at all.
        assert_eq!(decide(Ok(&yes), Ok(&word(true, 0.0))).unwrap_err().0, "judge");
        // It did not answer.
        assert_eq!(decide(Ok(&yes), Err("timeout")).unwrap_err().0, "judge");
        // The relabeler itself is below the threshold, whatever the second says.
        assert_eq!(decide(Ok(&word(true, 0.49)), Ok(&word(true, 1.0))).unwrap_err().0, "relabeler");
        // Both are above it.
        assert_eq!(decide(Ok(&word(true, 0.5)), Ok(&word(true, 0.8))), Ok((0.5, 0.8)));
        // What is no probability is no yes.
        for confidence in [f64::NAN, 1.5, f64::INFINITY, -1.0] {
            assert!(decide(Ok(&yes), Ok(&word(true, confidence))).is_err(), "{confidence}");
        }
    }
}
