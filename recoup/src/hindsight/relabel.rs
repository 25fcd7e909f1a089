//! Relabeling one run: proposals in order, the gates on each, the first that stands.

use std::collections::BTreeSet;

use super::answer::{end_of_turn, final_answer};
use super::check::World;
use super::corpus::Corpus;
use super::episode::Episode;
use super::facts::Facts;
use super::gates::{Ground, refused};
use super::proposal::{Proposal, Source};
use super::templates;
use crate::environments::Environment;
use crate::id::TrajectoryId;
use crate::json::Json;
use crate::replay::ReplayError;
use crate::trajectory::{Citation, Status, Trajectory};
use crate::verdict::{
    Acceptance, Blame, Content, Evidence, FailureClass, GoalClaim, GoalRefusal, Party, Producer, Quote,
    Relabel, Verdict,
};

/// Version of the templates and gates; raised when they would decide otherwise on the same run.
pub const HINDSIGHT_VERSION: u32 = 1;
/// The gate of the environment's own verifier.
const ENVIRONMENT: &str = "environment";
/// Most proposals about one run that are looked at.
const PROPOSALS_MAX: usize = 24;

/// How runs are relabeled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelabelConfig {
    /// Whether the environment is withheld from proposals and gates, and only scores.
    pub blind: bool,
}

/// A run to relabel.
#[derive(Clone, Copy)]
pub struct Subject<'s> {
    /// The run.
    pub run: &'s Trajectory,
    /// The environment that it happened in, where that is here.
    pub environment: Option<&'s dyn Environment>,
    /// The runs among which a goal must stand out.
    pub corpus: &'s Corpus,
    /// The run's number there.
    pub document: Option<u32>,
}

/// What relabeling a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relabeled {
    /// Every goal that was looked at, in order; at most the last is accepted.
    pub goals: Vec<Relabel>,
    /// Why the environment could not be asked, where the run names one that is here.
    pub unsupported: Option<String>,
}

/// Whether a run is one to relabel: it failed by the agent's own fault, and not so badly that nothing is learned
/// from it. Whether it could still have been saved does not matter: the goal changes, not the run.
pub fn is_candidate(run: &Trajectory, blame: Option<&Blame>, class: Option<&FailureClass>) -> bool {
    run.outcome().status == Status::Failure
        && blame.is_some_and(|blame| blame.party == Party::Agent && !blame.suspected)
        && class.is_some_and(|class| class.loss_weight > 0.0)
}

/// Looks for a goal that a run achieved.
pub fn relabel(subject: Subject<'_>, config: RelabelConfig) -> Relabeled {
    let episode = Episode::read(subject.run);
    let mut facts = Facts::of(&episode);
    let (mut world, mut unsupported) = (None, None);
    if let Some(environment) = subject.environment {
        match World::open(subject.run, environment) {
            Ok(opened) => world = Some(opened),
            Err(error) => unsupported = Some(error.to_string()),
        }
    }
    let mut proposals = Vec::new();
    if let Some(world) = world.as_mut().filter(|_| !config.blind) {
        match world.achieved(&episode) {
            Ok(achieved) => proposals = achieved,
            Err(error) => unsupported = Some(error.to_string()),
        }
    }
    proposals.extend(templates::propose(&episode, &mut facts));
    let facts = facts;
    let ground =
        Ground { episode: &episode, facts: &facts, corpus: subject.corpus, document: subject.document };
    let mut memory: BTreeSet<String> = BTreeSet::new();
    let mut goals = Vec::new();
    for proposal in proposals.into_iter().take(PROPOSALS_MAX) {
        // A goal that was refused is not looked at again in the same words.
        if !memory.insert(proposal.goal.clone()) {
            continue;
        }
        let mut goal = bare(&proposal, &ground, goals.len(), config);
        let decided = decide(&proposal, &ground, world.as_mut(), config);
        if let Some(world) = world.as_mut().filter(|_| goal.verified.is_none()) {
            goal.verified = world.verify(&proposal, &episode).ok().flatten();
        }
        match decided {
            Ok(acceptance) => goal.accepted = Some(acceptance),
            Err((gate, reason)) => goal.rejected = Some(GoalRefusal { gate: gate.to_owned(), reason }),
        }
        let is_accepted = goal.accepted.is_some();
        goals.push(goal);
        if is_accepted {
            break;
        }
    }
    Relabeled { goals, unsupported }
}

/// Gates, then the environment unless blind.
fn decide(
    proposal: &Proposal,
    ground: &Ground<'_>,
    world: Option<&mut World<'_>>,
    config: RelabelConfig,
) -> Result<Acceptance, (&'static str, String)> {
    if let Some(refusal) = refused(proposal, ground) {
        return Err(refusal);
    }
    let mut evidence = Evidence::Rules;
    if let Some(world) = world.filter(|_| !config.blind) {
        let broken = |error: ReplayError| (ENVIRONMENT, format!("it could not be asked: {error}"));
        match world.verify(proposal, ground.episode).map_err(broken)? {
            Some(true) => evidence = Evidence::Environment,
            Some(false) => return Err((ENVIRONMENT, "the verifier does not pass the goal".to_owned())),
            None => {}
        }
        if world.reached_original(proposal, ground.episode).map_err(broken)? {
            return Err((ENVIRONMENT, "the original goal had been reached by then".to_owned()));
        }
    }
    let last = end_of_turn(proposal.last, ground.episode);
    let cut_node =
        ground.episode.end_of(last).ok_or_else(|| ("form", "the goal was completed nowhere".to_owned()))?;
    Ok(Acceptance {
        evidence,
        relabeler_confidence: 1.0,
        judge_confidence: 1.0,
        cut_node,
        answer: final_answer(proposal, ground.episode, ground.facts),
    })
}

/// The record of a proposal, not decided yet.
fn bare(proposal: &Proposal, ground: &Ground<'_>, attempt: usize, config: RelabelConfig) -> Relabel {
    let quote = |fact: &usize| {
        let fact = ground.facts.get(*fact)?;
        Some(Quote { at: fact.citation.clone(), quote: fact.value.clone() })
    };
    let claims = proposal.claims.iter().map(|claim| GoalClaim {
        text: claim.text.clone(),
        facts: claim.facts.iter().filter_map(quote).collect(),
    });
    let specification = match proposal.source {
        // What the environment gave may hold what no trace shows.
        Source::Environment => None,
        Source::Template | Source::Model => proposal.specification.as_ref(),
    };
    Relabel {
        goal: proposal.goal.clone(),
        claims: claims.collect(),
        specification: specification.and_then(|it| Json::from_serialize(it).ok()),
        accepted: None,
        rejected: None,
        attempt: attempt as u32,
        background: ground.corpus.has_background(),
        blind: config.blind,
        verified: None,
    }
}

impl Relabeled {
    /// The goal that was accepted.
    pub fn accepted(&self) -> Option<&Relabel> {
        self.goals.last().filter(|goal| goal.accepted.is_some())
    }

    /// The goals as verdicts. An accepted one stands before those refused, and one that the environment passed
    /// before one that rules did.
    pub fn verdicts(&self, run: TrajectoryId, now: &str) -> Vec<Verdict> {
        let verdict = |goal: &Relabel| {
            let rules = Producer::rules("hindsight", HINDSIGHT_VERSION);
            let producer = match goal.accepted.as_ref().map(|accepted| accepted.evidence) {
                Some(Evidence::Environment) => Producer { rank: 80, ..rules },
                Some(_) => rules,
                None => rules.unadmitted(),
            };
            let evidence: Vec<Citation> =
                goal.claims.iter().flat_map(|claim| &claim.facts).map(|quote| quote.at.clone()).collect();
            Verdict::new(run, producer, evidence, Content::Relabel(goal.clone()), now)
        };
        self.goals.iter().map(verdict).collect()
    }
}
