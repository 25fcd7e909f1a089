//! `goal_contrast`: the same actions under the goal that they reached and under the one they missed.
//!
//! The two halves share their actions and differ in what was asked, so this is no ordinary preference: its loss is
//! `−w·log σ(β[(log π(τ∣ĝ) − log π_ref(τ∣ĝ)) − (log π(τ∣g) − log π_ref(τ∣g))])`, and formats of preferences refuse it.

use super::hindsight_sft::Relabeled;
use super::{Example, Exclusion, Objective, View, ViewInput};

/// See the module.
pub struct GoalContrast;

impl View for GoalContrast {
    fn name(&self) -> &'static str {
        "goal_contrast"
    }

    fn objective(&self) -> Objective {
        Objective::GoalContrast
    }

    fn is_on_request(&self) -> bool {
        true
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let relabeled = Relabeled::of(input)?;
        // An answer that was composed for the new goal is no action of the run.
        let half = |goal: &str| relabeled.example(self, input, goal, false);
        let (reached, missed) = (half(relabeled.goal)?, half(&input.run.task.goal)?);
        Ok(Example::paired(reached, missed, Objective::GoalContrast).into())
    }
}

#[cfg(test)]
mod tests {
    use super::GoalContrast;
    use crate::verdict::{Evidence, FinalAnswer};
    use crate::views::fixture::{achieved, class, fixture};
    use crate::views::{Objective, Relabels, View, ViewInput};

    #[test]
    fn the_actions_are_the_same_and_only_the_goal_differs() {
        let mut fixture = fixture();
        fixture.settings.synthetic_answers = true;
        let class = class();
        let goal = achieved(Evidence::Rules, FinalAnswer::Composed { text: "A1 is open.".to_owned() });
        let relabels = Relabels { accepted: Some(&goal), shuffled: None };
        let input = ViewInput { class: Some(&class), relabels, ..fixture.input() };
        let examples = GoalContrast.build(&input).unwrap();
        let [reached, missed] = examples.as_slice() else { panic!("two halves") };
        assert_eq!(reached.context[0].parts[0].cited_text(), Some("Is order A1 open?"));
        assert_eq!(missed.context[0].parts[0].cited_text(), Some("cancel A1"));
        assert_eq!(reached.context[1..], missed.context[1..]);
        assert_eq!(reached.segments, missed.segments);
        // A composed answer is no action of the run, whatever the settings say.
        assert_eq!(reached.context.len(), 2);
        let pair = |half: &crate::views::Example| half.pair.clone().unwrap();
        assert_eq!(pair(reached).id, pair(missed).id);
        assert!(pair(reached).chosen && !pair(missed).chosen);
        assert_eq!(reached.objective, Objective::GoalContrast);
    }
}
