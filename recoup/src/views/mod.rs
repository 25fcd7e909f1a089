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
//! Adding a view is one file here and one line in [`crate::exporters::TRAINING`], which says what format carries it.

mod deduplicator;
mod example;
mod step_masked_sft;
mod success_sft;

use std::sync::Arc;

pub use self::deduplicator::Deduplicator;
pub use self::example::{Example, Lineage, Message, Objective, Pair, Sampled, Segment, StepLabel};
pub use self::step_masked_sft::StepMaskedSft;
pub use self::success_sft::SuccessSft;
use crate::trajectory::{Role, Trajectory};
use crate::verdict::{Blame, Diagnosis, FailureClass, Side};

/// A family of examples.
pub trait View: Sync {
    /// The view's name in files and reports.
    fn name(&self) -> &'static str;

    /// What a run teaches under this view.
    ///
    /// # Errors
    /// The reason why it teaches nothing.
    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion>;
}

/// A run and what was decided about it.
#[derive(Clone, Copy, Debug)]
pub struct ViewInput<'a> {
    /// The redacted run, with an outcome that was attached to it later already in place.
    pub run: &'a Trajectory,
    /// Whose failure it was.
    pub blame: Option<&'a Blame>,
    /// What kind of failure it was.
    pub class: Option<&'a FailureClass>,
    /// Where it went wrong.
    pub diagnosis: Option<&'a Diagnosis>,
    /// Its side of the split.
    pub side: Side,
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

impl ViewInput<'_> {
    /// # Errors
    /// When the run is not on the training side.
    fn for_training(&self) -> Result<(), Exclusion> {
        match self.side {
            Side::Train => Ok(()),
            Side::Validation | Side::Test => Err(Exclusion::because("held-out")),
            Side::Excluded => Err(Exclusion::because("crosses-the-split")),
        }
    }

    fn example(&self, view: &dyn View, context: Vec<Arc<Message>>, segments: Vec<Segment>) -> Example {
        Example::new(context, self.run.tools.as_slice().into(), segments, self.lineage(view))
    }

    fn lineage(&self, view: &dyn View) -> Lineage {
        Lineage {
            view: view.name().to_owned(),
            trajectory: self.run.id,
            task: self.run.task.key.clone(),
            licence: self.run.licence.clone(),
            side: self.side,
        }
    }

    /// Whether a message may be learned from: a turn that the policy sampled in this very run.
    fn is_learnable(&self, message: &Message) -> bool {
        let node = message.node.and_then(|node| self.run.nodes.get(node));
        node.is_some_and(|node| {
            let occurrence = &node.occurrence;
            let failed = occurrence.call.as_ref().is_some_and(|call| call.error.is_some());
            node.role == Role::Assistant && occurrence.sampled && !occurrence.copied_context && !failed
        })
    }
}
