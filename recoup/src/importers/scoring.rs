//! Which of several scores decides whether a run succeeded.

use crate::trajectory::Outcome;

/// The user's choice among a file's scorers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scoring {
    /// Scorer to trust, by name.
    pub score: Option<String>,
    /// Least score that passes; the scorer's own threshold or maximum where absent.
    pub success_at: Option<f64>,
}

impl Scoring {
    /// The outcome that named scores give: of the chosen scorer, or of the only one. With several
    /// scorers and none chosen it is unknown, and `evidence` lists them.
    ///
    /// `default_success_at` is the value that passes where the user names none: the scorer's declared
    /// threshold, else its maximum.
    pub fn outcome(&self, scores: &[(String, f64)], default_success_at: f64) -> Outcome {
        let chosen = match (&self.score, scores) {
            (Some(name), _) => scores.iter().find(|(scorer, _)| scorer == name),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        match chosen {
            Some((name, score)) => {
                Outcome::from_score(*score, self.success_at.unwrap_or(default_success_at), name)
            }
            None if scores.is_empty() => Outcome::unknown(),
            None => {
                let names: Vec<&str> = scores.iter().map(|(name, _)| name.as_str()).collect();
                let evidence = format!("several scorers, none chosen: {}", names.join(", "));
                Outcome { evidence, ..Outcome::unknown() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Scoring;
    use crate::trajectory::Status;

    #[test]
    fn several_scorers_need_a_choice() {
        let scores = [("exact".to_owned(), 0.0), ("judge".to_owned(), 1.0)];
        let undecided = Scoring::default().outcome(&scores, 1.0);
        assert_eq!(undecided.status, Status::Unknown);
        assert_eq!(undecided.evidence, "several scorers, none chosen: exact, judge");
        let chosen = Scoring { score: Some("judge".to_owned()), success_at: None };
        assert_eq!(chosen.outcome(&scores, 1.0).status, Status::Success);
        assert_eq!(Scoring::default().outcome(&scores[..1], 1.0).status, Status::Failure);
    }
}
