//! A run as the outlets get it: loaded with what was decided about it, then redacted as a whole.

use std::sync::Arc;

use crate::id::{TaskKey, TrajectoryId, VerdictId};
use crate::json::Json;
use crate::pipeline::selection::Selector;
use crate::pipeline::siblings::successes;
use crate::redaction::{Redacted, redact, redact_beside, redact_text};
use crate::replay::REPLAY_VERSION;
use crate::rollout::interleave::labels_of;
use crate::store::{Row, Store, StoreError};
use crate::trajectory::{Node, Status, Trajectory};
use crate::verdict::{
    Acceptance, Arm, Blame, CallAst, Candidate, Content, Diagnosis, FailureClass, FinalAnswer, Finding,
    Quote, Relabel, ReplayPair, Review, Side, StateLabel, Sweep, TurnAst,
};
use crate::views::{Fork, ForkBranch};

/// One run as the store has it.
pub(super) struct Loaded {
    pub row: Row,
    pub run: Trajectory,
    pub blame: Option<Blame>,
    pub class: Option<FailureClass>,
    pub diagnosis: Option<Diagnosis>,
    pub findings: Vec<Finding>,
    pub sweep: Option<Sweep>,
    reviews: Vec<Review>,
    forks: Vec<LoadedFork>,
    siblings: Vec<Arc<Trajectory>>,
    relabel: Option<(VerdictId, Relabel)>,
    shuffled: Option<String>,
    pub labels: Vec<(VerdictId, StateLabel)>,
}

/// Goals that runs on the training side achieved in hindsight, each with its task, in import order.
#[derive(Default)]
pub(super) struct Goals(Vec<(TaskKey, String)>);

/// The successful runs that may teach of the task that was asked for last: runs of one task often follow each other.
#[derive(Default)]
pub(super) struct Siblings(Option<(TaskKey, Vec<Sibling>)>);

struct Sibling {
    split: Option<String>,
    run: Arc<Trajectory>,
}

/// A replay pair and the runs that its arms' first continuations became.
struct LoadedFork {
    id: VerdictId,
    pair: ReplayPair,
    repair: Option<VerdictId>,
    branches: Vec<(Arm, Trajectory)>,
}

/// The same with nothing in it that must not leave.
pub(super) struct Cleared {
    pub redacted: Redacted,
    /// With citations into the redacted run. Its findings come without their messages.
    pub diagnosis: Option<Diagnosis>,
    pub reviews: Vec<Review>,
    pub forks: Vec<Fork>,
    pub siblings: Vec<Trajectory>,
    pub relabel: Option<(VerdictId, Relabel)>,
    pub shuffled: Option<String>,
    pub labels: Vec<(VerdictId, StateLabel)>,
}

impl Goals {
    /// All of a project.
    pub(super) fn read(store: &Store) -> Result<Self, StoreError> {
        let mut goals = Vec::new();
        for (task, verdict) in store.of_kind("relabel")? {
            if let Content::Relabel(relabel) = verdict.content
                && relabel.accepted.is_some()
                && !relabel.blind
                && store.row(verdict.subject)?.split.as_deref() == Some(Side::Train.as_str())
            {
                goals.push((task, relabel.goal));
            }
        }
        Ok(Self(goals))
    }

    /// The goal of a run of another task, drawn by the hash of this one.
    fn of_another(&self, run: &Trajectory) -> Option<String> {
        let drawn = u64::from_le_bytes(*run.id.0.0.first_chunk()?);
        let start = (drawn % (self.0.len() as u64).max(1)) as usize;
        let from = self.0.iter().cycle().skip(start).take(self.0.len());
        let mut others = from.filter(|(task, _)| *task != run.task.key);
        others.next().map(|(_, goal)| goal.clone())
    }
}

impl Loaded {
    pub(super) fn read(store: &Store, row: &Row, goals: &Goals) -> Result<Self, StoreError> {
        let run = store.effective(row.id)?;
        let current = |kind| store.current(row.id, kind);
        let mut loaded = Self {
            blame: None,
            class: None,
            diagnosis: None,
            findings: Vec::new(),
            sweep: None,
            reviews: Vec::new(),
            forks: Vec::new(),
            siblings: Vec::new(),
            relabel: None,
            shuffled: None,
            labels: labels_of(store, row.id)?,
            row: row.clone(),
            run,
        };
        // A solved run has no failure, whatever was decided while it counted as one.
        if loaded.run.outcome().status != Status::Success {
            if let Some(Content::Blame(found)) = current("blame")?.map(|verdict| verdict.content) {
                loaded.blame = Some(found);
            }
            if let Some(Content::FailureClass(found)) =
                current("failure_class")?.map(|verdict| verdict.content)
            {
                loaded.class = Some(found);
            }
            if let Some(verdict) = current("diagnosis")?
                && let Content::Diagnosis(found) = verdict.content
            {
                loaded.findings.clone_from(&found.findings);
                loaded.diagnosis = Some(found);
                for review in store.of_run(row.id, "review")? {
                    if let Content::Review(review) = review.content
                        && review.of == verdict.id
                    {
                        loaded.reviews.push(review);
                    }
                }
            }
            loaded.replays(store)?;
            loaded.relabel =
                store.of_run(row.id, "relabel")?.into_iter().find_map(|verdict| match verdict.content {
                    Content::Relabel(relabel) if relabel.accepted.is_some() && !relabel.blind => {
                        Some((verdict.id, relabel))
                    }
                    _ => None,
                });
            if loaded.relabel.is_some() {
                loaded.shuffled = goals.of_another(&loaded.run);
            }
        }
        if loaded.diagnosis.is_none()
            && let Some(Content::Findings(found)) = current("findings")?.map(|verdict| verdict.content)
        {
            loaded.findings = found;
        }
        Ok(loaded)
    }

    /// What re-execution made of the run: of each configuration the current pair, natural faults only.
    fn replays(&mut self, store: &Store) -> Result<(), StoreError> {
        let id = self.row.id;
        for verdict in store.of_run(id, "replay_pair")? {
            let Content::ReplayPair(pair) = verdict.content else { continue };
            let known = self.forks.iter().any(|fork| fork.pair.config_hash == pair.config_hash);
            let stands = pair.unsupported.is_none() && verdict.producer.version == REPLAY_VERSION;
            if !pair.injected && !known && stands {
                self.forks.push(LoadedFork { id: verdict.id, pair, repair: None, branches: Vec::new() });
            }
        }
        if let Some(Content::Sweep(sweep)) = store.current(id, "sweep")?.map(|verdict| verdict.content) {
            self.sweep = Some(sweep).filter(|sweep| !sweep.injected);
        }
        if self.forks.is_empty() {
            return Ok(());
        }
        for verdict in store.of_run(id, "repair")? {
            let Content::Repair(repair) = verdict.content else { continue };
            if let Some(fork) = self.forks.iter_mut().find(|fork| fork.id == repair.pair()) {
                fork.repair = Some(verdict.id);
            }
        }
        let side = self.row.split.clone();
        for fork in &mut self.forks {
            for outcome in &fork.pair.arms {
                let Some(id) = outcome.continuations.first().and_then(|first| first.trajectory) else {
                    continue;
                };
                match branch(store, id, side.as_deref()) {
                    Ok(run) => fork.branches.extend(run.map(|run| (outcome.arm, run))),
                    // It was forgotten since.
                    Err(StoreError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Adds the successful runs of a failure's task that share its messages byte for byte up to a turn of the
    /// policy where they part.
    pub(super) fn add_siblings(
        &mut self,
        store: &Store,
        selector: &Selector<'_>,
        known: &mut Siblings,
    ) -> Result<(), StoreError> {
        if self.run.outcome().status != Status::Failure {
            return Ok(());
        }
        let task = &self.run.task.key;
        if known.0.as_ref().is_none_or(|(last, _)| last != task) {
            let mut siblings = Vec::new();
            for run in successes(store, task)? {
                let row = store.row(run.id)?;
                if selector.check(&run, row.native_id.as_deref()).is_ok() {
                    siblings.push(Sibling { split: row.split, run: Arc::new(run) });
                }
            }
            known.0 = Some((task.clone(), siblings));
        }
        for Sibling { split, run } in known.0.iter().flat_map(|(_, siblings)| siblings) {
            if *split == self.row.split && parts_at_a_turn(&self.run, run) {
                self.siblings.push(Arc::clone(run));
            }
        }
        Ok(())
    }

    /// Every run that this one brings into memory.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Trajectory> {
        let branches = self.forks.iter().flat_map(|fork| &fork.branches);
        std::iter::once(&self.run)
            .chain(branches.map(|(_, run)| run))
            .chain(self.siblings.iter().map(AsRef::as_ref))
    }

    /// Redacts the run, and beside it everything that speaks of it or goes on from it.
    pub(super) fn clear(&self) -> Cleared {
        let mut redacted = redact(&self.run);
        let diagnosis = self.diagnosis.as_ref().map(|diagnosis| clear_diagnosis(diagnosis, &mut redacted));
        let forks = self.forks.iter().map(|fork| fork.clear(&mut redacted)).collect();
        let beside = |run: &Arc<Trajectory>| redact_beside(run, redacted.placeholders.clone()).trajectory;
        let siblings = self.siblings.iter().map(beside).collect();
        let relabel = self.relabel.as_ref().map(|(id, relabel)| (*id, clear_relabel(relabel, &mut redacted)));
        let shuffled = self.shuffled.as_ref().map(|goal| redact_text(goal, &mut redacted.placeholders));
        let labels = self.labels.iter().map(|(id, label)| (*id, clear_label(label, &mut redacted))).collect();
        let reviews = self.reviews.clone();
        Cleared { redacted, diagnosis, reviews, forks, siblings, relabel, shuffled, labels }
    }
}

/// A continuation, where it stands on its origin's side of the split.
fn branch(store: &Store, id: TrajectoryId, side: Option<&str>) -> Result<Option<Trajectory>, StoreError> {
    let is_beside = store.row(id)?.split.as_deref() == side;
    if is_beside { store.effective(id).map(Some) } else { Ok(None) }
}

/// Whether two runs show the same up to a turn of the policy, and differ there.
fn parts_at_a_turn(run: &Trajectory, sibling: &Trajectory) -> bool {
    let (ours, theirs) = (run.main_branch(), sibling.main_branch());
    let mut pairs = ours.nodes().zip(theirs.nodes());
    let differ = |ours: &Node, theirs: &Node| {
        (ours.role, &ours.agent, &ours.parts) != (theirs.role, &theirs.agent, &theirs.parts)
    };
    let parting = pairs.find(|((_, ours), (_, theirs))| differ(ours, theirs));
    parting.is_some_and(|((_, ours), (_, theirs))| ours.occurrence.sampled && theirs.occurrence.sampled)
}

impl LoadedFork {
    fn clear(&self, redacted: &mut Redacted) -> Fork {
        let branch = |(arm, run): &(Arm, Trajectory)| ForkBranch {
            arm: *arm,
            run: redact_beside(run, redacted.placeholders.clone()).trajectory,
        };
        let branches = self.branches.iter().map(branch).collect();
        let candidate = self.pair.candidate.as_ref();
        Fork {
            id: self.id,
            pair: self.pair.clone(),
            repair: self.repair,
            rationale: candidate
                .map(|candidate| redact_text(&candidate.rationale, &mut redacted.placeholders)),
            branches,
        }
    }
}

/// What a view shows of a goal: its words and the answer to it. Its claims stay behind.
fn clear_relabel(relabel: &Relabel, redacted: &mut Redacted) -> Relabel {
    let mut clear = |text: &str| redact_text(text, &mut redacted.placeholders);
    let accepted = relabel.accepted.as_ref().map(|accepted| Acceptance {
        answer: match &accepted.answer {
            FinalAnswer::Kept { node } => FinalAnswer::Kept { node: *node },
            FinalAnswer::Composed { text } => FinalAnswer::Composed { text: clear(text) },
        },
        ..accepted.clone()
    });
    Relabel {
        goal: clear(&relabel.goal),
        claims: Vec::new(),
        specification: None,
        accepted,
        rejected: None,
        ..relabel.clone()
    }
}

fn clear_label(label: &StateLabel, redacted: &mut Redacted) -> StateLabel {
    let mut clear = |text: &str| redact_text(text, &mut redacted.placeholders);
    let action = label.action.as_ref().map(|action| TurnAst {
        text: clear(&action.text),
        calls: action
            .calls
            .iter()
            .map(|call| CallAst {
                name: call.name.clone(),
                arguments: Json::from_foreign(&clear(call.arguments.as_str())),
            })
            .collect(),
    });
    let reasoning = label.reasoning.as_deref().map(&mut clear);
    StateLabel { action, reasoning, refused: None, ..label.clone() }
}

fn clear_diagnosis(diagnosis: &Diagnosis, redacted: &mut Redacted) -> Diagnosis {
    let citations = diagnosis.citations.iter().filter_map(|quote| {
        let at = redacted.map.to_redacted(&quote.at);
        let quote = at.quote(&redacted.trajectory).ok()?.to_owned();
        Some(Quote { at, quote })
    });
    let citations = citations.collect();
    let findings = diagnosis.findings.iter().map(|finding| Finding {
        message: String::new(),
        citations: finding.citations.iter().map(|at| redacted.map.to_redacted(at)).collect(),
        ..finding.clone()
    });
    let findings = findings.collect();
    let mut clear = |text: &str| redact_text(text, &mut redacted.placeholders);
    Diagnosis {
        responsible_agent: redacted
            .trajectory
            .nodes
            .get(diagnosis.decisive_node)
            .map_or_else(|| clear(&diagnosis.responsible_agent), |node| node.agent.clone()),
        explanation: clear(&diagnosis.explanation),
        citations,
        candidate: diagnosis.candidate.as_ref().map(|candidate| Candidate {
            action: Json::from_foreign(&clear(candidate.action.as_str())),
            rationale: clear(&candidate.rationale),
        }),
        findings,
        ..diagnosis.clone()
    }
}
