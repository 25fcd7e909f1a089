//! The published scorer of Who&When, bit for bit, faults included.
//!
//! It reads a prediction by two patterns, `Agent Name:\s*([\w_]+)` and `Step Number:\s*(\d+)`, counts a
//! prediction that lacks either as none, and takes the label for right wherever it is a *piece* of what
//! the pattern found: label `1` is right for prediction `12`, and an agent's name is cut at its first
//! character that is no letter, digit or underscore. The denominator is every labelled file.

use super::{Case, Score};

/// The label form that it is defined for.
const SOURCE: &str = "who-and-when";

/// The step.
pub(super) fn step(cases: &[Case]) -> Option<Score> {
    count(cases, |case| {
        let (_, said) = parsed(case)?;
        Some(said.contains(case.truth.written_step.as_deref()?))
    })
}

/// The agent.
pub(super) fn agent(cases: &[Case]) -> Option<Score> {
    count(cases, |case| {
        let (said, _) = parsed(case)?;
        Some(said.contains(case.truth.agent.as_deref()?))
    })
}

fn count(cases: &[Case], is_right: impl Fn(&Case) -> Option<bool>) -> Option<Score> {
    let mut files = cases.iter().filter(|case| case.truth.source == SOURCE).peekable();
    files.peek()?;
    // A label without step or agent is read by neither comparison.
    let is_whole = |case: &Case| case.truth.written_step.is_some() && case.truth.agent.is_some();
    Some(Score::count(files, |case| is_whole(case) && is_right(case) == Some(true)))
}

/// The agent and the step as the scorer's patterns find them.
fn parsed(case: &Case) -> Option<(&str, String)> {
    let prediction = case.prediction.as_ref()?;
    let name = prediction.agent.as_deref()?.trim_start();
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    let agent = name.get(..end).filter(|agent| !agent.is_empty())?;
    let step = match &prediction.written_step {
        Some(written) => written.clone(),
        None => (prediction.index? + usize::from(case.truth.index_base)).to_string(),
    };
    Some((agent, step))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::case::tests::case;
    use super::super::{Case, Origin, parse_predictions};
    use super::{agent, step};

    #[derive(serde::Deserialize)]
    struct Golden {
        labels: BTreeMap<String, Label>,
        log: String,
        agent: f64,
        step: f64,
    }

    #[derive(serde::Deserialize)]
    struct Label {
        mistake_agent: Option<String>,
        mistake_step: Option<String>,
    }

    #[test]
    fn agrees_with_the_published_scorer() {
        let golden: Vec<Golden> =
            serde_json::from_str(include_str!("../../../tests/golden/official.json")).unwrap();
        assert!(golden.len() >= 30);
        for (number, golden) in golden.into_iter().enumerate() {
            let given = parse_predictions(&golden.log).unwrap();
            let cases: Vec<Case> = golden
                .labels
                .into_iter()
                .map(|(name, label)| {
                    let mut case = case(1, "", None);
                    case.name = format!("runs/{name}");
                    (case.truth.agent, case.truth.written_step) = (label.mistake_agent, label.mistake_step);
                    case.prediction = given.of(&case, "");
                    case
                })
                .collect();
            let percent =
                |score: Option<super::Score>| score.map(|score| score.k as f64 / score.n as f64 * 100.0);
            assert_eq!(percent(step(&cases)), Some(golden.step), "step of case {number}");
            assert_eq!(percent(agent(&cases)), Some(golden.agent), "agent of case {number}");
        }
    }

    #[test]
    fn a_piece_of_the_prediction_is_enough() {
        let mut one = case(1, "Expert", Some((12, "Validation_Expert (thought)", Origin::Given)));
        assert_eq!((step(&[one.clone()]).unwrap().k, agent(&[one.clone()]).unwrap().k), (1, 1));
        one.truth.agent = Some("Validation_Expert (thought)".to_owned());
        assert_eq!(agent(&[one.clone()]).unwrap().k, 0, "the pattern cuts the name");
        let prediction = one.prediction.as_mut().unwrap();
        (prediction.index, prediction.written_step) = (Some(3), Some("013".to_owned()));
        assert_eq!(step(&[one.clone()]).unwrap().k, 1, "characters are compared, not numbers");
        let prediction = one.prediction.as_mut().unwrap();
        (prediction.index, prediction.written_step) = (None, None);
        assert_eq!(agent(&[one.clone()]).unwrap().k, 0, "half a prediction is none");
        one.truth.source = "agentrx".to_owned();
        assert_eq!(step(&[one]), None);
    }
}
