//! The input of a view: one run, what was decided about it, and what re-execution made of it. All of it is
//! redacted, and the same value has the same placeholder in a run and in its continuations.

use std::sync::Arc;

use super::{Evidence, Example, Exclusion, Lineage, Message, Segment, View, ViewSettings};
use crate::id::VerdictId;
use crate::trajectory::{Node, Role, Status, Trajectory};
use crate::verdict::{
    Arm, Blame, Decision, Diagnosis, FailureClass, Party, Relabel, ReplayPair, Review, Side, StateLabel,
    Sweep,
};

/// A run and what was decided about it.
#[derive(Clone, Copy, Debug)]
pub struct ViewInput<'a> {
    /// The redacted run, with an outcome that was attached to it later already in place.
    pub run: &'a Trajectory,
    /// Whose failure it was.
    pub blame: Option<&'a Blame>,
    /// What kind of failure it was.
    pub class: Option<&'a FailureClass>,
    /// Where it went wrong; its citations are ranges of the redacted run.
    pub diagnosis: Option<&'a Diagnosis>,
    /// What the gates say of that diagnosis.
    pub reviews: &'a [Review],
    /// What re-execution from one of its turns led to: one fork for each set of conditions.
    pub forks: &'a [Fork],
    /// Where it could still be saved.
    pub sweep: Option<&'a Sweep>,
    /// Successful runs of its task that share its messages up to a turn of the policy where they part. Empty unless
    /// [`ViewSettings::sibling_pairs`].
    pub siblings: &'a [Trajectory],
    /// The goal that it achieved in hindsight.
    pub relabels: Relabels<'a>,
    /// What a teacher would do in the states that it visited, with the verdicts that say so, redacted.
    pub labels: &'a [(VerdictId, StateLabel)],
    /// The one round whose labels count; all where absent.
    pub round: Option<u32>,
    /// How often successful runs must be repeated to teach as much text as goals in hindsight do; absent unless a view
    /// [matches](View::matches_hindsight) them.
    pub repeats: Option<f64>,
    /// Its side of the split.
    pub side: Side,
    /// What the project chose.
    pub settings: &'a ViewSettings,
}

/// What hindsight has made of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Relabels<'a> {
    /// The accepted goal with its verdict, redacted.
    pub accepted: Option<&'a (VerdictId, Relabel)>,
    /// The accepted goal of a run of another task, redacted: for the control of shuffled goals.
    pub shuffled: Option<&'a str>,
}

/// A replay pair with the runs that its arms' first continuations became.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The pair's verdict.
    pub id: VerdictId,
    /// The pair. Its texts are not redacted: of it only numbers may be written.
    pub pair: ReplayPair,
    /// The verdict that calls its candidate a repair, where it is one.
    pub repair: Option<VerdictId>,
    /// Why the candidate was proposed, redacted.
    pub rationale: Option<String>,
    /// The first continuation of each arm, redacted.
    pub branches: Vec<ForkBranch>,
}

/// The first continuation of an arm: a run of its own, whose messages before the fork are copied context.
#[derive(Clone, Debug)]
pub struct ForkBranch {
    /// The arm.
    pub arm: Arm,
    /// The run.
    pub run: Trajectory,
}

impl<'a> ViewInput<'a> {
    /// A run of which nothing is decided.
    pub fn new(run: &'a Trajectory, side: Side, settings: &'a ViewSettings) -> Self {
        Self {
            run,
            blame: None,
            class: None,
            diagnosis: None,
            reviews: &[],
            forks: &[],
            sweep: None,
            siblings: &[],
            relabels: Relabels::default(),
            labels: &[],
            round: None,
            repeats: None,
            side,
            settings,
        }
    }

    /// # Errors
    /// When the run is not on the training side.
    pub(super) fn for_training(&self) -> Result<(), Exclusion> {
        match self.side {
            Side::Train => Ok(()),
            Side::Validation | Side::Test => Err(Exclusion::because("held-out")),
            Side::Excluded => Err(Exclusion::because("crosses-the-split")),
        }
    }

    /// # Errors
    /// When the run is no failure for training that is scored and the agent's own.
    pub(super) fn agents_failure(&self) -> Result<(), Exclusion> {
        match self.run.outcome().status {
            Status::Failure => {}
            Status::Success => return Err(Exclusion::because("succeeded")),
            Status::Unknown => return Err(Exclusion::because("outcome-unknown")),
        }
        self.for_training()?;
        match self.blame {
            Some(blame) if blame.suspected => Err(Exclusion::because("failure-suspected")),
            Some(blame) if blame.party == Party::Agent => Ok(()),
            Some(_) => Err(Exclusion::because("not-the-agents-failure")),
            None => Err(Exclusion::because("no-blame")),
        }
    }

    /// The diagnosis of such a failure that every gate admitted.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn admitted_diagnosis(&self) -> Result<&'a Diagnosis, Exclusion> {
        self.agents_failure()?;
        let diagnosis = self.diagnosis.ok_or(Exclusion::because("no-diagnosis"))?;
        if !diagnosis.admitted || diagnosis.suspected {
            return Err(Exclusion::because("diagnosis-not-admitted"));
        }
        Ok(diagnosis)
    }

    pub(super) fn example(
        &self,
        view: &dyn View,
        context: Vec<Arc<Message>>,
        segments: Vec<Segment>,
    ) -> Example {
        let example = Example::new(context, self.run.tools.as_slice().into(), segments, self.lineage(view));
        Example { objective: view.objective(), ..example }
    }

    pub(super) fn lineage(&self, view: &dyn View) -> Lineage {
        Lineage::new(view.name(), self.run, self.side)
    }

    /// A lineage that rests on the diagnosis and the gates that admitted it.
    pub(super) fn diagnosed_lineage(&self, view: &dyn View) -> Lineage {
        let admits = self.reviews.iter().filter(|review| review.verdict == Decision::Admit);
        let mut gates: Vec<String> = admits.map(|review| review.gate.clone()).collect();
        gates.sort();
        gates.dedup();
        let mut verdicts: Vec<VerdictId> = self.reviews.iter().map(|review| review.of).collect();
        verdicts.dedup();
        Lineage { evidence: Evidence::Diagnosis, verdicts, gates, ..self.lineage(view) }
    }

    /// Whether a message may be learned from: a turn that the policy sampled in this very run.
    pub(super) fn is_learnable(&self, message: &Message) -> bool {
        is_learnable(self.run, message)
    }
}

/// Segments over the messages that are learned; the context is cut behind the last. `None` where none is.
pub(super) fn learn(
    context: &mut Vec<Arc<Message>>,
    is_learned: impl Fn(&Message) -> bool,
) -> Option<Vec<Segment>> {
    let learned: Vec<usize> = (0..context.len()).filter(|index| is_learned(&context[*index])).collect();
    context.truncate(learned.last()? + 1);
    Some(learned.iter().flat_map(|index| context[*index].segments(*index)).collect())
}

/// Whether a message of a run may be learned from: a turn that the policy sampled in that very run.
pub(super) fn is_learnable(run: &Trajectory, message: &Message) -> bool {
    message.node.and_then(|node| run.nodes.get(node)).is_some_and(is_learnable_node)
}

/// The same of a node.
pub(super) fn is_learnable_node(node: &Node) -> bool {
    let occurrence = &node.occurrence;
    let failed = occurrence.call.as_ref().is_some_and(|call| call.error.is_some());
    node.role == Role::Assistant && occurrence.sampled && !occurrence.copied_context && !failed
}
