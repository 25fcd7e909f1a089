//! The suspect: the turn that is most likely at fault in a run where nothing decisive was found.
//!
//! A suspect is no diagnosis. It cites nothing, passes no gate, is stored nowhere and teaches nothing; it
//! only says where a person, or a measurement that needs a name for every failure, should look first.

use super::decisive::decisive;
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

/// The node of the suspected turn.
fn suspect(run: &Run<'_>) -> Option<usize> {
    run.steps.first().map(|step| step.node)
}
