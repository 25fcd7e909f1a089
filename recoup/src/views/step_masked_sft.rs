//! `step_masked_sft`: failed runs, the steps before anything went wrong.
//!
//! One example a kept step. Kept are the sampled turns strictly before the first finding that was
//! never made up for (the decisive step is one, whatever the findings say), and never the last turn:
//! the answer of a failed run is a failure. What comes after is not in the example at all.

use super::{Example, Exclusion, Message, Objective, View, ViewInput};
use crate::trajectory::Branch;
use crate::verdict::Diagnosis;

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
        let error = first_unresolved(diagnosis, &branch)
            .ok_or(Exclusion::because("decisive-step-on-another-branch"))?;
        let last_step = branch.steps().last().copied();
        let mut context = Message::of_branch(input.run, &branch);
        context.truncate(context.iter().position(|message| message.node == Some(error)).unwrap_or(0));
        let segments = context
            .iter()
            .enumerate()
            .filter(|(_, message)| input.is_learnable(message) && message.node != last_step)
            .flat_map(|(index, message)| message.segments(index))
            .collect();
        let all =
            Example { lineage: input.diagnosed_lineage(self), ..input.example(self, context, segments) };
        let steps = all.steps();
        if steps.is_empty() {
            return Err(Exclusion::because("no-step-before-the-error"));
        }
        Ok(steps)
    }
}

/// Position of the first node on the branch at fault for something never made up for; `None` where the
/// decisive node is not on the branch.
fn first_unresolved(diagnosis: &Diagnosis, branch: &Branch<'_>) -> Option<usize> {
    let decisive = branch.node_index(diagnosis.decisive_node)?;
    let unresolved = diagnosis.findings.iter().filter(|finding| finding.resolved_at.is_none());
    let first = unresolved.filter_map(|finding| branch.node_index(finding.node)).chain([decisive]).min()?;
    branch.nodes().nth(first).map(|(position, _)| position)
}
