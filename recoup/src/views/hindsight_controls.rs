//! Controls of hindsight: what stands in its place beside the successful runs.
//!
//! * `failure_sft`: the same runs, cut alike and weighted alike, under the goal that they missed (`SFT-random`).
//! * `shuffled_sft`: the same under the goal that a run of another task achieved.
//! * `success_only_sft`: successful runs once more, as often as makes them teach as much text.
//!
//! A gain of `hindsight_sft` counts as one of relabeling only beside what these reach.

use super::hindsight_sft::Relabeled;
use super::{Example, Exclusion, Objective, SuccessSft, View, ViewInput};

/// The runs under the goal that they missed.
pub struct FailureSft;

/// The runs under goals of other runs.
pub struct ShuffledSft;

/// Successful runs, as often as makes them teach as much as goals in hindsight do.
pub struct SuccessOnlySft;

impl View for FailureSft {
    fn name(&self) -> &'static str {
        "failure_sft"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn is_weighted(&self) -> bool {
        true
    }

    fn is_on_request(&self) -> bool {
        true
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        Relabeled::of(input)?
            .example(self, input, &input.run.task.goal, input.settings.synthetic_answers)
            .map(|example| vec![example])
    }
}

impl View for ShuffledSft {
    fn name(&self) -> &'static str {
        "shuffled_sft"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn is_weighted(&self) -> bool {
        true
    }

    fn draws_goals(&self) -> bool {
        true
    }

    fn is_on_request(&self) -> bool {
        true
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let relabeled = Relabeled::of(input)?;
        let goal = input.relabels.shuffled.ok_or(Exclusion::because("no-goal-of-another-task"))?;
        relabeled.example(self, input, goal, input.settings.synthetic_answers).map(|example| vec![example])
    }
}

impl View for SuccessOnlySft {
    fn name(&self) -> &'static str {
        "success_only_sft"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn learns_whole_runs(&self) -> bool {
        true
    }

    fn is_weighted(&self) -> bool {
        true
    }

    fn matches_hindsight(&self) -> bool {
        true
    }

    fn is_on_request(&self) -> bool {
        true
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let mut example = SuccessSft::demonstration(self, input)?;
        let repeats = input.repeats.ok_or(Exclusion::because("no-goal-in-hindsight-to-match"))?;
        example.segments.iter_mut().for_each(|segment| segment.weight = repeats);
        Ok(vec![example])
    }
}

#[cfg(test)]
mod tests {
    use super::{FailureSft, ShuffledSft, SuccessOnlySft};
    use crate::trajectory::Outcome;
    use crate::verdict::{Evidence, FinalAnswer};
    use crate::views::fixture::{achieved, class, fixture};
    use crate::views::hindsight_sft::HindsightSft;
    use crate::views::{Relabels, View, ViewInput};

    #[test]
    fn controls_differ_from_the_demonstration_in_the_goal_alone() {
        let (fixture, class) = (fixture(), class());
        let goal = achieved(Evidence::Rules, FinalAnswer::Composed { text: "A1 is open.".to_owned() });
        let of = |shuffled| ViewInput {
            class: Some(&class),
            relabels: Relabels { accepted: Some(&goal), shuffled },
            ..fixture.input()
        };
        let built = |view: &dyn View| view.build(&of(Some("Is the shop in Riga open?"))).unwrap().remove(0);
        let (relabeled, failed, shuffled) = (built(&HindsightSft), built(&FailureSft), built(&ShuffledSft));
        assert_eq!(failed.context[0].parts[0].cited_text(), Some("cancel A1"));
        assert_eq!(shuffled.context[0].parts[0].cited_text(), Some("Is the shop in Riga open?"));
        for control in [&failed, &shuffled] {
            assert_eq!(control.context[1..], relabeled.context[1..]);
            assert_eq!(control.segments, relabeled.segments);
        }
        assert_eq!(ShuffledSft.build(&of(None)).unwrap_err().reason, "no-goal-of-another-task");
    }

    #[test]
    fn successes_are_repeated_as_often_as_they_are_told() {
        let mut fixture = fixture();
        fixture.run.finish(Outcome::from_flag(true, "resolved"));
        let of = |repeats| ViewInput { repeats, ..fixture.input() };
        let [example] = SuccessOnlySft.build(&of(Some(2.5))).unwrap().try_into().unwrap();
        let weights: Vec<String> =
            example.segments.iter().map(|segment| segment.weight.to_string()).collect();
        assert!(!weights.is_empty() && weights.iter().all(|weight| weight == "2.5"), "{weights:?}");
        assert_eq!(SuccessOnlySft.build(&of(None)).unwrap_err().reason, "no-goal-in-hindsight-to-match");
    }
}
