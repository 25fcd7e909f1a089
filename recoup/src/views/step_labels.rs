//! Step labels: which turns of a failed run were right, which were wrong, and how often the run could still be
//! won after them.
//!
//! | turn | label | says |
//! | --- | --- | --- |
//! | before the first lasting error, nothing found at it | right | diagnosis |
//! | the decisive one, and every one at which something was found | wrong | diagnosis |
//! | correcting it helps, over the tested turns | wrong | sweep |
//! | the expert could save the run before it and not after it | wrong | sweep |
//!
//! Any other turn has no label: after a lasting error nothing says what a right turn would be. The last turn of a
//! failed run is never right. A turn's value is the share of continuations that passed with the original action
//! executed again, where some were run.

use std::collections::BTreeMap;

use super::input::is_learnable_node;
use super::step_masked_sft::first_lasting;
use super::{Exclusion, ViewInput};
use crate::verdict::{Arm, Sweep};

/// Chance of calling a turn wrong that was not, over all tested turns of a run together.
const ALPHA: f64 = 0.05;

/// What is said of one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Label {
    /// Whether it was right.
    pub correct: bool,
    /// Share of continuations from after it that passed.
    pub value: Option<f64>,
    /// Whether re-execution has a say in it.
    pub is_replayed: bool,
}

/// The labelled turns of an agent's failure, by position of their nodes.
///
/// # Errors
/// Why there is none.
pub(super) fn step_labels(input: &ViewInput<'_>) -> Result<BTreeMap<usize, Label>, Exclusion> {
    input.agents_failure()?;
    let branch = input.run.main_branch();
    let steps = branch.steps();
    let mut labels: BTreeMap<usize, Label> = BTreeMap::new();
    if let Ok(diagnosis) = input.admitted_diagnosis() {
        let found = |node: usize| diagnosis.findings.iter().any(|finding| finding.node == node);
        if let Some(error) = first_lasting(diagnosis, &branch) {
            let before = steps.iter().copied().filter(|step| *step < error && Some(step) != steps.last());
            labels.extend(before.map(|step| (step, Label { correct: !found(step), ..Label::default() })));
            let wrong = steps.iter().copied().filter(|step| *step == diagnosis.decisive_node || found(*step));
            labels.extend(wrong.map(|step| (step, Label::default())));
        }
    }
    if let Some(sweep) = input.sweep.filter(|sweep| fits(sweep, &steps)) {
        let replayed = Label { is_replayed: true, ..Label::default() };
        for flip in sweep.flips.iter().filter(|flip| flip.effect > 0.0 && flip.p_holm < ALPHA) {
            labels.extend(steps.get(flip.step).map(|step| (*step, replayed)));
        }
        // The curve ends behind the last turn: one that could be saved to its end was lost in no turn.
        if let Some(last) = sweep.last_recoverable.filter(|_| sweep.is_monotone) {
            labels.extend(steps.get(last).map(|step| (*step, replayed)));
        }
        for flip in sweep.flips.iter().filter(|flip| flip.n > 0) {
            if let Some(label) = steps.get(flip.step).and_then(|step| labels.get_mut(step)) {
                label.value = Some(flip.retried as f64 / flip.n as f64);
            }
        }
    }
    for fork in input.forks {
        let rate = fork.pair.arm(Arm::Retry).and_then(crate::verdict::ArmOutcome::rate);
        if let Some((label, rate)) = labels.get_mut(&fork.pair.node).zip(rate) {
            label.value = Some(rate);
        }
    }
    labels.retain(|node, _| input.run.nodes.get(*node).is_some_and(is_learnable_node));
    if labels.is_empty() {
        // Without a sweep, the diagnosis says what is missing.
        input.admitted_diagnosis()?;
        return Err(Exclusion::because("no-labelled-step"));
    }
    Ok(labels)
}

/// Whether the sweep counts turns as the branch does.
fn fits(sweep: &Sweep, steps: &[usize]) -> bool {
    sweep.decisive.is_none_or(|decisive| steps.get(decisive.step) == Some(&decisive.node))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{WRONG, fixture};
    use super::{Label, step_labels};
    use crate::id::Hash;
    use crate::verdict::{Flip, Sweep};

    #[test]
    fn turns_are_right_before_the_error_and_wrong_at_it() {
        let fixture = fixture();
        let labels = step_labels(&fixture.input()).unwrap();
        let right = Label { correct: true, ..Label::default() };
        let wrong = Label { value: Some(0.0), ..Label::default() };
        assert_eq!(labels.into_iter().collect::<Vec<_>>(), [(1, right), (WRONG, wrong)]);
    }

    #[test]
    fn a_curve_calls_a_turn_wrong() {
        let mut fixture = fixture();
        fixture.forks.clear();
        fixture.diagnosis.admitted = false;
        let mut sweep = Sweep {
            policy: "test".to_owned(),
            config_hash: Hash::of(b""),
            plan_hash: Hash::of(b""),
            injected: false,
            recoverability: Vec::new(),
            is_monotone: true,
            last_recoverable: Some(3),
            flips: vec![Flip {
                step: 1,
                n: 4,
                corrected: 4,
                retried: 1,
                effect: 0.75,
                low: 0.1,
                high: 1.0,
                p_holm: 0.01,
            }],
            decisive: None,
        };
        let labels = |sweep: &Sweep| {
            let input = fixture.input();
            step_labels(&super::ViewInput { sweep: Some(sweep), ..input })
        };
        let wrong = Label { value: Some(0.25), is_replayed: true, ..Label::default() };
        assert_eq!(labels(&sweep).unwrap().into_iter().collect::<Vec<_>>(), [(WRONG, wrong)]);
        sweep.flips[0].p_holm = 0.2;
        assert_eq!(labels(&sweep).unwrap_err().reason, "diagnosis-not-admitted");
        // The expert could save it before turn 0 and not after it.
        sweep.last_recoverable = Some(0);
        let labels = labels(&sweep).unwrap();
        assert_eq!((labels.len(), labels[&1].correct, labels[&1].is_replayed), (1, false, true));
    }
}
