//! Scores and annotations: what they say of the run's outcome, and labels of single messages.

use std::collections::HashMap;

use super::span::{Score, Value};
use crate::importers::Scoring;
use crate::importers::row::FLAGS;
use crate::importers::value::json_object;
use crate::json::Json;
use crate::trajectory::{Outcome, Trajectory};
use crate::verdict::ReferenceLabel;

/// The outcome that the scores of a whole run give. A number passes or not only where the user named
/// its scorer, for no tracing format says what passes; a truth value under a name that means passing
/// decides by itself.
pub(super) fn outcome(scores: &[Score], scoring: &Scoring) -> Outcome {
    let chosen = scoring.score.as_deref().and_then(|name| scores.iter().rfind(|score| score.name == name));
    if let Some(score) = chosen {
        return match score.value {
            Value::Flag(passed) => Outcome::from_flag(passed, &score.name),
            Value::Number(number) => scoring.outcome(&[(score.name.clone(), number)], 1.0),
            Value::Other => Outcome::unknown(),
        };
    }
    let mut flags = scores.iter().filter_map(|score| match score.value {
        Value::Flag(passed) if FLAGS.contains(&score.name.to_lowercase().as_str()) => Some((score, passed)),
        _ => None,
    });
    if let Some((score, passed)) = flags.next() {
        if let Some((other, _)) = flags.find(|(_, other)| *other != passed) {
            let evidence = format!("`{}` and `{}` disagree", score.name, other.name);
            return Outcome { evidence, ..Outcome::unknown() };
        }
        return Outcome::from_flag(passed, &score.name);
    }
    let names: Vec<&str> = scores.iter().map(|score| score.name.as_str()).collect();
    if names.is_empty() {
        return Outcome::unknown();
    }
    let evidence = format!("scores of which none says what passes: {}", names.join(", "));
    Outcome { evidence, ..Outcome::unknown() }
}

/// Hides the scores of a whole run from judges and views.
pub(super) fn hide(run: &mut Trajectory, scores: &[Score]) {
    let mut by_name: std::collections::BTreeMap<&str, Vec<&Json>> = std::collections::BTreeMap::new();
    for score in scores {
        by_name.entry(&score.name).or_default().push(&score.native);
    }
    let named = by_name.into_iter().filter_map(|(name, natives)| match natives.as_slice() {
        [only] => Some((name, (*only).clone())),
        several => Some((name, Json::from_serialize(several).ok()?)),
    });
    run.hidden.verifier_output = json_object(named);
}

/// Labels of the messages that single spans gave.
pub(super) fn labels(format: &str, scores: &[Score], node_of: &HashMap<&str, usize>) -> Vec<ReferenceLabel> {
    let label = |score: &Score| {
        Some(ReferenceLabel {
            source: format.to_owned(),
            index_base: 0,
            native: score.native.clone(),
            node: Some(*node_of.get(score.span.as_deref()?)?),
            agent: None,
            reason: score.reason.clone(),
        })
    };
    scores.iter().filter_map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::{Score, Scoring, Value, outcome};
    use crate::json::Json;
    use crate::trajectory::Status;

    fn judged(scores: &[(&str, Value)], scoring: &Scoring) -> (Status, String) {
        let score = |(name, value): &(&str, Value)| Score {
            name: (*name).to_owned(),
            span: None,
            value: value.clone(),
            reason: None,
            native: Json::string(""),
        };
        let outcome = outcome(&scores.iter().map(score).collect::<Vec<_>>(), scoring);
        (outcome.status, outcome.evidence)
    }

    #[test]
    fn only_a_pass_flag_or_a_chosen_score_decides() {
        let any = Scoring::default();
        let chosen = Scoring { score: Some("helpful".to_owned()), success_at: Some(0.5) };
        let scores = [("helpful", Value::Number(0.7)), ("Success", Value::Flag(false))];
        assert_eq!(judged(&scores, &any), (Status::Failure, "Success = false".to_owned()));
        assert_eq!(judged(&scores, &chosen).0, Status::Success);
        assert_eq!(judged(&scores[..1], &any).0, Status::Unknown);
        assert!(judged(&scores[..1], &any).1.ends_with("helpful"));
        let both = [("success", Value::Flag(true)), ("passed", Value::Flag(false))];
        assert_eq!(judged(&both, &any).0, Status::Unknown);
        assert_eq!(judged(&[("polite", Value::Flag(true))], &any).0, Status::Unknown);
    }
}
