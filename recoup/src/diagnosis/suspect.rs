//! The suspect: the turn that is most likely at fault in a run where nothing decisive was found.
//!
//! A suspect is no diagnosis. It cites nothing, passes no gate, is stored nowhere and teaches nothing; it
//! only says where a person, or a measurement that needs a name for every failure, should look first.

use super::actions::Action;
use super::decisive::decisive;
use super::detectors::closing_turn;
use super::idle::last_idle_stretch;
use super::run::Step;
use super::{DiagnosisConfig, Run, find, gates, record};
use crate::trajectory::Trajectory;
use crate::verdict::Decision;

/// Whom the rules blame for a failed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blamed {
    /// Position of the node in the trajectory.
    pub node: usize,
    /// Its author.
    pub agent: String,
    /// The detector behind an admitted diagnosis; none for a suspect.
    pub detector: Option<String>,
}

/// The diagnosed turn of a run, else the suspected one. `None` for a run in which no agent acts.
///
/// Whose failure it was is not asked: the caller knows that the run failed by an agent.
pub fn blamed(run: &Trajectory, siblings: &[&Trajectory], config: &DiagnosisConfig) -> Option<Blamed> {
    let run = Run::new(run, siblings, config);
    let findings = find(&run);
    let blamed = |node: usize, detector: Option<String>| Blamed {
        node,
        agent: run.trajectory.nodes[node].agent.clone(),
        detector,
    };
    if let Some(at) = decisive(&run, &findings, config) {
        let reviews = gates::review(&run, &record(&run, &findings, at));
        if reviews.iter().all(|review| review.decision != Decision::Reject) {
            return Some(blamed(findings[at].node, Some(findings[at].detector.clone())));
        }
    }
    suspect(&run).map(|node| blamed(node, None))
}

/// The node of the suspected turn. Who acts by calls is watched by the detectors all along, so what is
/// left is how the run ends; who acts in text is suspected where it first fails or makes something up.
fn suspect(run: &Run<'_>) -> Option<usize> {
    let step = if run.actions.iter().any(|action| action.is_call) {
        if run.was_cut_off() {
            last_idle_stretch(run).and_then(|idle| run.steps.get(idle.start))
        } else {
            closing_turn(run)
        }
        .or(run.last_step())
    } else {
        run.steps.iter().find(|step| is_first_sign(run, step)).or(run.steps.first())
    };
    step.map(|step| step.node)
}

/// Words by which an agent says that it works on something it does not have, in lower case.
const ASSUMPTIONS: &[&str] = &[
    "assume",
    "assumed",
    "assuming",
    "hypothetical",
    "simulate",
    "simulated",
    "simulating",
    "placeholder",
    "mock",
    "manually",
    "sample data",
    "example data",
    "let's say",
    "for demonstration",
    "for illustration",
    "for the sake of",
];

/// Whether what a turn runs fails, or its text says that it assumes, simulates or fills in.
fn is_first_sign(run: &Run<'_>, step: &Step) -> bool {
    let fails =
        run.actions.get(step.actions.clone()).is_some_and(|actions| actions.iter().any(Action::failed));
    fails || run.trajectory.nodes[step.node].texts().any(|(_, text)| assumes(text))
}

fn assumes(text: &str) -> bool {
    let lower = text.to_lowercase();
    ASSUMPTIONS.iter().any(|form| {
        lower.match_indices(form).any(|(at, _)| {
            let joins = |c: char| c.is_alphanumeric() || c == '_';
            !lower[..at].ends_with(joins) && !lower[at + form.len()..].starts_with(joins)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{Blamed, blamed};
    use crate::diagnosis::DiagnosisConfig;
    use crate::diagnosis::fixture::{call, chat, result, say, user};
    use crate::trajectory::{Node, Trajectory};

    fn of(run: &Trajectory) -> Option<Blamed> {
        blamed(run, &[], &DiagnosisConfig::default())
    }

    #[test]
    fn a_diagnosis_names_its_detector_and_a_suspect_none() {
        let cancelled = chat(vec![
            user("cancel order 77120"),
            call("cancel_order", r#"{"id":"ZZ9931"}"#),
            result("Error: no such order"),
        ]);
        assert_eq!(of(&cancelled).unwrap().detector.as_deref(), Some("ungrounded-argument"));
        let done = chat(vec![user("go"), call("open_door", r#"{"n":1}"#), result("ok"), say("That is all.")]);
        let suspect = of(&done).unwrap();
        assert_eq!((suspect.node, suspect.detector), (3, None));
        assert_eq!(of(&chat(vec![user("nobody answers")])), None);
    }

    #[test]
    fn in_text_the_first_thing_made_up_is_suspected_else_the_first_turn() {
        let team = |texts: [&str; 3]| -> Vec<Node> {
            let mut nodes = vec![user("How many bridges are there?")];
            nodes.extend(texts.map(say));
            nodes
        };
        let made_up = chat(team(["I will count.", "Let's assume sample data.", "So it is."]));
        assert_eq!(of(&made_up).unwrap().node, 2);
        let nothing = chat(team(["I will count.", "The assumed_value is fine.", "So it is."]));
        assert_eq!(of(&nothing).unwrap().node, 1);
    }
}
