//! `preference`: one state, two messages, one of which was better. The pair ends at the decision point.
//!
//! Three kinds of evidence, each of which saw both ways end:
//!
//! * *replay*: two arms of a fork, where the first continuation of one passed and that of the other failed, and
//!   their pass rates differ by two thirds or more over at least three continuations of each;
//! * *sibling*, where asked for: a successful run of the task that shares every earlier message byte for byte;
//! * *tree*: two attempts of one search that part at a message, where some attempt below one finished with
//!   success and every attempt below the other failed, one of them by finishing.

use std::sync::Arc;

use super::input::is_learnable;
use super::tree;
use super::turn::{contrasts, same_turn};
use super::{Evidence, Example, Exclusion, Lineage, Message, Objective, View, ViewInput};
use crate::trajectory::{Status, Trajectory};

/// See the module.
pub struct Preference;

impl View for Preference {
    fn name(&self) -> &'static str {
        "preference"
    }

    fn objective(&self) -> Objective {
        Objective::Preference
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let mut pairs: Vec<[Example; 2]> = Vec::new();
        let failure = input.agents_failure();
        if failure.is_ok() {
            pairs.extend(input.forks.iter().flat_map(|fork| forked(self, input, fork)));
            pairs.extend(input.siblings.iter().filter_map(|sibling| parted(self, input, sibling)));
        }
        let is_tree = input.run.leaves.len() > 1;
        if is_tree && (failure.is_ok() || input.run.outcome().status == Status::Success) {
            input.for_training()?;
            pairs.extend(tree::contrasts(self, input));
        }
        if pairs.is_empty() {
            return Err(match failure {
                _ if is_tree => Exclusion::because("no-contrasting-finished-attempts"),
                Err(exclusion) => exclusion,
                Ok(()) if input.forks.is_empty() => Exclusion::because("not-replayed"),
                Ok(()) => Exclusion::because("no-contrasting-arms"),
            });
        }
        Ok(pairs.into_iter().flatten().collect())
    }
}

/// The pairs of a fork's arms.
fn forked(view: &Preference, input: &ViewInput<'_>, fork: &super::Fork) -> Vec<[Example; 2]> {
    let arms = &fork.pair.arms;
    let mut pairs = Vec::new();
    for better in arms.iter().filter(|outcome| fork.passed(outcome.arm) == Some(true)) {
        for worse in arms.iter().filter(|outcome| fork.passed(outcome.arm) == Some(false)) {
            if !contrasts(better, worse) {
                continue;
            }
            let Some((chosen, rejected)) = fork.turn(better.arm).zip(fork.turn(worse.arm)) else { continue };
            if chosen.same_state(&rejected) && !same_turn(&chosen.message, &rejected.message) {
                let half = |turn: &super::turn::Turn<'_>| turn.example(fork.lineage(view, turn, input));
                pairs.push(Example::paired(half(&chosen), half(&rejected), Objective::Preference));
            }
        }
    }
    pairs
}

/// The pair of the turns at which a successful run of the task parts from this failed one.
fn parted(view: &Preference, input: &ViewInput<'_>, sibling: &Trajectory) -> Option<[Example; 2]> {
    let ours = Message::of_branch(input.run, &input.run.main_branch());
    let theirs = Message::of_branch(sibling, &sibling.main_branch());
    let at = ours.iter().zip(&theirs).position(|(ours, theirs)| !ours.reads_as(theirs))?;
    let may_learn = is_learnable(input.run, &ours[at]) && is_learnable(sibling, &theirs[at]);
    if !may_learn || input.run.tools != sibling.tools || same_turn(&ours[at], &theirs[at]) {
        return None;
    }
    let half = |run: &Trajectory, messages: &[Arc<Message>]| {
        let lineage = Lineage { evidence: Evidence::Sibling, ..Lineage::new(view.name(), run, input.side) };
        let segments = messages[at].segments(at).collect();
        Example::new(messages[..=at].to_vec(), run.tools.as_slice().into(), segments, lineage)
    };
    Some(Example::paired(half(sibling, &theirs), half(input.run, &ours), Objective::Preference))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{call, fixture};
    use super::Preference;
    use crate::trajectory::Outcome;
    use crate::verdict::Arm;
    use crate::views::{Evidence, View};

    #[test]
    fn arms_that_contrast_are_pairs_that_end_at_the_decision() {
        let mut fixture = fixture();
        let examples = Preference.build(&fixture.input()).unwrap();
        // The reconsidered turn passed first and failed twice: no contrast.
        let [chosen, rejected] = examples.as_slice() else { panic!("one pair") };
        assert_eq!(chosen.context[..3], rejected.context[..3]);
        assert_eq!((chosen.context.len(), rejected.context.len()), (4, 4));
        let (good, bad) = (chosen.pair.as_ref().unwrap(), rejected.pair.as_ref().unwrap());
        assert!(good.chosen && !bad.chosen && good.id == bad.id);
        assert_ne!(chosen.content_hash(), rejected.content_hash());
        let arms = &mut fixture.forks[0].pair.arms;
        arms.iter_mut().find(|arm| arm.arm == Arm::Repair).unwrap().continuations[1].passed = None;
        assert_eq!(Preference.build(&fixture.input()).unwrap_err().reason, "no-contrasting-arms");
    }

    #[test]
    fn advice_is_no_part_of_the_state() {
        let mut fixture = fixture();
        let arms = &mut fixture.forks[0].pair.arms;
        let reconsidered = arms.iter_mut().find(|arm| arm.arm == Arm::Reconsider).unwrap();
        reconsidered.continuations.iter_mut().for_each(|one| one.passed = Some(true));
        let examples = Preference.build(&fixture.input()).unwrap();
        assert_eq!(examples.len(), 4);
        assert!(
            examples
                .iter()
                .all(|half| half.context.len() == 4 && half.context[..3] == examples[1].context[..3])
        );
    }

    #[test]
    fn siblings_are_paired_where_they_part() {
        let mut fixture = fixture();
        fixture.forks.clear();
        let mut sibling = fixture.run.clone();
        sibling.nodes[3].parts = call("cancel", "A1").parts;
        sibling.finish(Outcome::from_flag(true, "resolved"));
        let siblings = [sibling];
        let mut input = fixture.input();
        assert_eq!(Preference.build(&input).unwrap_err().reason, "not-replayed");
        input.siblings = &siblings;
        let examples = Preference.build(&input).unwrap();
        assert_eq!((examples.len(), examples[0].lineage.evidence), (2, Evidence::Sibling));
        assert_eq!(examples[0].context[3].parts, siblings[0].nodes[3].parts);
        // Another earlier message is another state.
        let mut other = siblings[0].clone();
        other.nodes[0].parts = vec![crate::trajectory::Part::text("Cancel A1!")];
        let others = [other];
        input.siblings = &others;
        assert!(Preference.build(&input).is_err());
    }
}
