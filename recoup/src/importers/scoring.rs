//! Which of several scores decides whether a run succeeded.

use crate::trajectory::{Outcome, Status};

/// How the evidence of an outcome without a choice begins.
const SEVERAL: &str = "several scorers, ";

/// The user's choice among a file's scorers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scoring {
    /// Scorer to trust, by name.
    pub score: Option<String>,
    /// Least score that passes; the scorer's own threshold or maximum where absent.
    pub success_at: Option<f64>,
}

impl Scoring {
    /// The outcome that named scores give: of the only scorer, or of the chosen one among several.
    /// With several and none of them chosen it is unknown, and `evidence` lists them.
    ///
    /// `default_success_at` is the value that passes where the user names none: the scorer's declared
    /// threshold, else its maximum.
    pub fn outcome(&self, scores: &[(String, f64)], default_success_at: f64) -> Outcome {
        let chosen = match (&self.score, scores) {
            (_, [only]) => Some(only),
            (Some(name), _) => scores.iter().find(|(scorer, _)| scorer == name),
            (None, _) => None,
        };
        match chosen {
            Some((name, score)) => {
                Outcome::from_score(*score, self.success_at.unwrap_or(default_success_at), name)
            }
            None if scores.is_empty() => Outcome::unknown(),
            None => {
                let names: Vec<&str> = scores.iter().map(|(name, _)| name.as_str()).collect();
                let choice = match &self.score {
                    Some(name) => format!("`{name}` is none of them"),
                    None => "none chosen".to_owned(),
                };
                let evidence = format!("{SEVERAL}{choice}: {}", names.join(", "));
                Outcome { evidence, ..Outcome::unknown() }
            }
        }
    }

    /// Whether an outcome is unknown for want of a choice among scorers.
    pub fn is_undecided(outcome: &Outcome) -> bool {
        outcome.status == Status::Unknown && outcome.evidence.starts_with(SEVERAL)
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
        assert!(Scoring::is_undecided(&undecided));
        let chosen = Scoring { score: Some("judge".to_owned()), success_at: None };
        assert_eq!(chosen.outcome(&scores, 1.0).status, Status::Success);
        assert_eq!(Scoring::default().outcome(&scores[..1], 1.0).status, Status::Failure);
    }

    #[test]
    fn a_name_that_no_scorer_has_decides_nothing_and_harms_no_single_scorer() {
        let scores = [("exact".to_owned(), 0.0), ("judge".to_owned(), 1.0)];
        let misspelt = Scoring { score: Some("jugde".to_owned()), success_at: None };
        let undecided = misspelt.outcome(&scores, 1.0);
        assert_eq!(undecided.evidence, "several scorers, `jugde` is none of them: exact, judge");
        assert_eq!(misspelt.outcome(&scores[1..], 1.0).status, Status::Success);
    }
}
