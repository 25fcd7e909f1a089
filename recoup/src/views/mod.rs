//! Views: families of training examples, one file each, and the reasons why a run gives none.
//!
//! A view is a function of a run and of what was decided about it. What holds for all of them:
//!
//! * it sees the redacted run, whose `hidden` is empty;
//! * only turns that the policy sampled in this run are learned from; what the system, the user and
//!   the tools wrote, and turns copied in from elsewhere, have weight 0;
//! * a run on another side of the split than training gives nothing;
//! * a run that gives nothing says why ([`Exclusion`]), and the reason is counted.
//!
//! Adding a view is one file here and one line in [`VIEWS`], the one list.

mod dagger;
mod deduplicator;
mod diagnosis_sft;
mod example;
#[cfg(test)]
mod fixture;
mod goal_contrast;
mod hindsight_controls;
mod hindsight_sft;
mod input;
mod kto;
mod lineage;
mod preference;
mod prevention_sft;
mod process_reward;
mod recovery_sft;
mod settings;
mod step_labels;
mod step_masked_sft;
mod success_sft;
mod tally;
mod tree;
mod turn;

pub use self::dagger::Dagger;
pub use self::deduplicator::Deduplicator;
pub use self::diagnosis_sft::DiagnosisSft;
pub use self::example::{Example, Message, Objective, Pair, Sampled, Segment, StepLabel};
pub use self::goal_contrast::GoalContrast;
pub use self::hindsight_controls::{FailureSft, ShuffledSft, SuccessOnlySft};
pub use self::hindsight_sft::HindsightSft;
pub use self::input::{Fork, ForkBranch, Relabels, ViewInput};
pub use self::kto::Kto;
pub use self::lineage::{Evidence, Lineage};
pub use self::preference::Preference;
pub use self::prevention_sft::PreventionSft;
pub use self::process_reward::ProcessReward;
pub use self::recovery_sft::{REJECTION, RecoverySft};
pub use self::settings::{DiagnosisAnswer, PreventionTarget, ViewSettings};
pub use self::step_masked_sft::StepMaskedSft;
pub use self::success_sft::SuccessSft;
pub use self::tally::Tally;

/// A family of examples.
pub trait View: Sync {
    /// The view's name in files and reports.
    fn name(&self) -> &'static str;

    /// What a trainer makes of its examples: the objective of each.
    fn objective(&self) -> Objective;

    /// Whether it learns all that the policy wrote in its conversations, so that a row can be a whole one.
    fn learns_whole_runs(&self) -> bool {
        false
    }

    /// Whether its weights are other than 1, so that a format without weights has to draw rows.
    fn is_weighted(&self) -> bool {
        false
    }

    /// Whether it puts a goal of another run in the place of a run's own.
    fn draws_goals(&self) -> bool {
        false
    }

    /// Whether it repeats successful runs until they teach as much as goals in hindsight do.
    fn matches_hindsight(&self) -> bool {
        false
    }

    /// Whether `recoup export` builds it only when it is named: a control, which is for measuring, or a loss that no
    /// common trainer has.
    fn is_on_request(&self) -> bool {
        false
    }

    /// What a run teaches under this view. Both halves of a preference stand next to each other, the chosen
    /// one first, and have the same [`Pair::id`].
    ///
    /// # Errors
    /// The reason why it teaches nothing.
    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion>;
}

/// Every view, in the order of reports.
pub const VIEWS: &[&dyn View] = &[
    &SuccessSft,
    &DiagnosisSft,
    &PreventionSft,
    &RecoverySft,
    &StepMaskedSft,
    &Preference,
    &Kto,
    &ProcessReward,
    &HindsightSft,
    &Dagger,
    &GoalContrast,
    &FailureSft,
    &ShuffledSft,
    &SuccessOnlySft,
];

/// The views that are built where none is named.
pub fn usual() -> impl Iterator<Item = &'static dyn View> {
    VIEWS.iter().copied().filter(|view| !view.is_on_request())
}

/// Why a run is in no example of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("not in the view: {reason}")]
pub struct Exclusion {
    /// Stable words, by which reports count.
    pub reason: &'static str,
}

impl Exclusion {
    const fn because(reason: &'static str) -> Self {
        Self { reason }
    }
}
