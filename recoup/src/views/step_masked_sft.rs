//! `step_masked_sft`: failed runs, the steps before anything went wrong for good.
//!
//! Learned are the sampled turns strictly before the first finding that was never made up for (the decisive step is
//! one, whatever the findings say), and never the last turn: the answer of a failed run is a failure. What comes
//! after is not in the example at all.
//!
//! With [`ViewSettings::after_recovery`](super::ViewSettings::after_recovery), a decisive step that was made up for
//! ends nothing for good: turns from the one that made up for it are learned too, where no other finding is open.

use super::input::learn;
use super::{Example, Exclusion, Message, Objective, View, ViewInput};
use crate::trajectory::Branch;
use crate::verdict::{Diagnosis, Finding};

/// See the module.
pub struct StepMaskedSft;

impl View for StepMaskedSft {
    fn name(&self) -> &'static str {
        "step_masked_sft"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let diagnosis = input.admitted_diagnosis()?;
        let branch = input.run.main_branch();
        let error =
            first_lasting(diagnosis, &branch).ok_or(Exclusion::because("decisive-step-on-another-branch"))?;
        let last_step = branch.steps().last().copied();
        let kept = |node: usize| {
            let recovered = || input.settings.after_recovery && is_recovered(diagnosis, node);
            Some(node) != last_step && (node < error || recovered())
        };
        let mut context = Message::of_branch(input.run, &branch);
        let learned = |message: &Message| input.is_learnable(message) && message.node.is_some_and(kept);
        let segments = learn(&mut context, learned)
            .filter(|segments| !segments.is_empty())
            .ok_or(Exclusion::because("no-step-before-the-error"))?;
        Ok(vec![Example { lineage: input.diagnosed_lineage(self), ..input.example(self, context, segments) }])
    }
}

/// Position of the first node on the branch at fault for something never made up for; `None` where the
/// decisive node is not on the branch.
pub(super) fn first_lasting(diagnosis: &Diagnosis, branch: &Branch<'_>) -> Option<usize> {
    let decisive = branch.node_index(diagnosis.decisive_node)?;
    let unresolved = diagnosis.findings.iter().filter(|finding| finding.resolved_at.is_none());
    let first = unresolved.filter_map(|finding| branch.node_index(finding.node)).chain([decisive]).min()?;
    branch.positions().get(first).copied()
}

/// Whether everything that was found up to a turn is made up for by it.
fn is_recovered(diagnosis: &Diagnosis, node: usize) -> bool {
    let made_up = |finding: &Finding| finding.resolved_at.is_some_and(|resolved| resolved <= node);
    let is_decisive = |finding: &&Finding| finding.node == diagnosis.decisive_node;
    diagnosis.findings.iter().any(|finding| is_decisive(&finding))
        && diagnosis.findings.iter().all(|finding| finding.node > node || made_up(finding))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{WRONG, call, fixture};
    use super::StepMaskedSft;
    use crate::views::View;

    #[test]
    fn after_a_recovery_turns_are_learned_again_where_asked() {
        let mut fixture = fixture();
        fixture.run.nodes.insert(5, call("cancel", "A1"));
        fixture.run.nodes[5].parent = Some(4);
        fixture.run.nodes[6].parent = Some(5);
        fixture.run.leaves[0].node = Some(6);
        fixture.diagnosis.findings[0].resolved_at = Some(5);
        let learned = |fixture: &super::super::fixture::Fixture| -> Vec<usize> {
            let example = StepMaskedSft.build(&fixture.input()).unwrap().remove(0);
            example.segments.iter().map(|segment| segment.message).collect()
        };
        assert_eq!(learned(&fixture), [1]);
        fixture.settings.after_recovery = true;
        // Neither the error, nor the answer of a failed run.
        assert_eq!(learned(&fixture), [1, 5]);
        fixture.diagnosis.findings[0].resolved_at = None;
        assert_eq!(learned(&fixture), [1]);
        assert_eq!(fixture.diagnosis.decisive_node, WRONG);
    }
}
