//! Relabeling one run: proposals in order, the gates on each, the first that stands.

use std::collections::BTreeMap;

use super::answer::{end_of_turn, final_answer};
use super::check::World;
use super::corpus::Corpus;
use super::episode::Episode;
use super::extractor::{self, Quotes};
use super::facts::Facts;
use super::gates::{Ground, refused};
use super::judging::{admits, decide};
use super::proposal::{Proposal, Source};
use super::relabeler::{Judges, RefusedGoal, TEMPERATURES};
use super::templates;
use crate::environments::Environment;
use crate::id::TrajectoryId;
use crate::json::Json;
use crate::judges::Case;
use crate::models::ModelError;
use crate::replay::ReplayError;
use crate::trajectory::{Citation, Status, Trajectory};
use crate::verdict::{
    Acceptance, Blame, Content, Evidence, FailureClass, GoalClaim, GoalRefusal, Party, Producer, Quote,
    Relabel, Verdict,
};

/// Version of the templates and gates; raised when they would decide otherwise on the same run.
pub const HINDSIGHT_VERSION: u32 = 2;
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
    /// Goals about the run that were refused before: in the same words they are refused again, and nobody is asked.
    pub refused: &'s [Relabel],
}

/// What relabeling a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relabeled {
    /// Every goal that was looked at, in order; at most the last is accepted.
    pub goals: Vec<Relabel>,
    /// Why the environment could not be asked, where the run names one that is here.
    pub unsupported: Option<String>,
    /// What became of the facts that a model quoted.
    pub quotes: Quotes,
    /// Why a model did not answer: nothing is decided about the run, and nothing of it is kept.
    pub undecided: Option<ModelError>,
}

/// Whether a run is one to relabel: it failed by the agent's own fault, and not so badly that nothing is learned
/// from it. Whether it could still have been saved does not matter: the goal changes, not the run.
pub fn is_candidate(outcome: Status, blame: Option<&Blame>, class: Option<&FailureClass>) -> bool {
    outcome == Status::Failure
        && blame.is_some_and(|blame| blame.party == Party::Agent && !blame.suspected)
        && class.is_some_and(|class| class.loss_weight > 0.0)
}

/// Looks for a goal that a run achieved: the environment's own goals first, then what models propose, or, where
/// none judges, the templates. Nothing stands in for judges that said no.
pub fn relabel(subject: Subject<'_>, config: RelabelConfig, judges: Option<&Judges<'_>>) -> Relabeled {
    let episode = Episode::read(subject.run);
    let mut facts = Facts::of(&episode);
    let (mut world, mut unsupported) = (None, None);
    if let Some(environment) = subject.environment {
        match World::open(subject.run, environment) {
            Ok(opened) => world = Some(opened),
            Err(error) => unsupported = Some(error.to_string()),
        }
    }
    let mut achieved = Vec::new();
    if let Some(world) = world.as_mut().filter(|_| !config.blind) {
        match world.achieved(&episode) {
            Ok(goals) => achieved = goals,
            Err(error) => unsupported = Some(error.to_string()),
        }
    }
    let templates = templates::propose(&episode, &mut facts);
    let remembered = |goal: &Relabel| Some((plain(&goal.goal), goal.rejected.clone()?));
    let memory = subject.refused.iter().filter_map(remembered).collect();
    let mut search = Search { world, config, memory, goals: Vec::new() };
    let found = |search: &mut Search<'_>, ground: Ground<'_>, proposals: Vec<Proposal>| {
        let mut proposals = proposals.iter().take(PROPOSALS_MAX);
        proposals.any(|proposal| search.consider(proposal, &ground, &mut |_| Ok(RULES)).is_ok())
    };
    let (mut quotes, mut undecided) = (Quotes::default(), None);
    if !found(&mut search, ground(&subject, &episode, &facts), achieved) {
        match judges {
            Some(judges) => {
                let case = Case::new(subject.run, &[], false);
                let asked =
                    judges.quotes_facts.then(|| extractor::quote(&judges.relabeler, &case, &mut facts));
                undecided = match asked.transpose() {
                    Ok(quoted) => {
                        quotes = quoted.unwrap_or_default();
                        ask(&mut search, &ground(&subject, &episode, &facts), &case, judges).err()
                    }
                    Err(error) => Some(error),
                };
            }
            None => drop(found(&mut search, ground(&subject, &episode, &facts), templates)),
        }
    }
    Relabeled { goals: search.goals, unsupported, quotes, undecided }
}

/// What proposals about a run are held against.
fn ground<'g>(subject: &Subject<'g>, episode: &'g Episode<'g>, facts: &'g Facts<'g, 'g>) -> Ground<'g> {
    Ground { episode, facts, corpus: subject.corpus, document: subject.document }
}

/// What gates alone are worth.
const RULES: Word = Word { evidence: Evidence::Rules, relabeler: 1.0, judge: 1.0 };

/// What an accepted goal rests on, with both confidences.
#[derive(Clone, Copy)]
struct Word {
    evidence: Evidence,
    relabeler: f64,
    judge: f64,
}

/// Lets the models propose: until a goal stands, three times at most, or until one of them does not answer.
fn ask(
    search: &mut Search<'_>,
    ground: &Ground<'_>,
    case: &Case<'_>,
    judges: &Judges<'_>,
) -> Result<(), ModelError> {
    let mut refused: Vec<RefusedGoal> = Vec::new();
    for attempt in 0..TEMPERATURES.len() {
        let (proposal, opinion) = match judges.propose(case, ground.facts, &refused, attempt)? {
            Ok(answer) => answer,
            Err(reason) => {
                refused.push(RefusedGoal { goal: String::new(), reason });
                continue;
            }
        };
        let mut failure = None;
        let considered = search.consider(&proposal, ground, &mut |proposal| {
            let first = admits(Ok(&opinion)).map_err(|why| ("relabeler", why))?;
            let Some(answer) = judges.check(case, ground.facts, proposal) else {
                return Ok(Word { evidence: Evidence::OneJudge, relabeler: first, judge: 0.0 });
            };
            let second = match &answer {
                Ok(Ok(opinion)) => Ok(opinion),
                Ok(Err(unreadable)) => Err(unreadable.clone()),
                Err(error) => Err(error.to_string()),
            };
            failure = answer.as_ref().err().cloned();
            let (relabeler, judge) = decide(Ok(&opinion), second.as_ref().copied().map_err(String::as_str))?;
            // Two models of one family err alike: they are one judge.
            let evidence = if judges.are_two() { Evidence::TwoJudges } else { Evidence::OneJudge };
            Ok(Word { evidence, relabeler, judge })
        });
        let Err(GoalRefusal { gate, reason }) = considered else { return Ok(()) };
        if let Some(error) = failure {
            return Err(error);
        }
        refused.push(RefusedGoal { goal: proposal.goal, reason: format!("{gate}: {reason}") });
    }
    Ok(())
}

/// What was looked at so far.
struct Search<'w> {
    world: Option<World<'w>>,
    config: RelabelConfig,
    /// What was refused, by its plain words, and why.
    memory: BTreeMap<String, GoalRefusal>,
    goals: Vec<Relabel>,
}

/// Whoever judges a proposal: its word, or the gate that refuses and why.
type Judge<'j> = dyn FnMut(&Proposal) -> Result<Word, (&'static str, String)> + 'j;

impl Search<'_> {
    /// Looks at a proposal; what was refused is not looked at again in the same words.
    fn consider(
        &mut self,
        proposal: &Proposal,
        ground: &Ground<'_>,
        judge: &mut Judge<'_>,
    ) -> Result<(), GoalRefusal> {
        let words = plain(&proposal.goal);
        let known = self.memory.get(&words).cloned();
        if let Some(refusal) = &known
            && self.goals.iter().any(|goal| plain(&goal.goal) == words)
        {
            return Err(refusal.clone());
        }
        let mut goal = bare(proposal, ground, self.goals.len(), self.config);
        // The environment scores every goal, and has its word in the decision unless blind.
        let verified = self.world.as_mut().map(|world| world.verify(proposal, ground.episode));
        let decided = match known {
            Some(refusal) => Err(refusal),
            None => self
                .decide(proposal, ground, verified.as_ref(), judge)
                .map_err(|(gate, reason)| GoalRefusal { gate: gate.to_owned(), reason }),
        };
        goal.verified = verified.and_then(Result::ok).flatten();
        let decided = match decided {
            Ok(acceptance) => {
                goal.accepted = Some(acceptance);
                Ok(())
            }
            Err(refusal) => {
                self.memory.insert(words, refusal.clone());
                goal.rejected = Some(refusal.clone());
                Err(refusal)
            }
        };
        self.goals.push(goal);
        decided
    }

    /// Gates, then the environment unless blind, then whoever judges.
    fn decide(
        &mut self,
        proposal: &Proposal,
        ground: &Ground<'_>,
        verified: Option<&Result<Option<bool>, ReplayError>>,
        judge: &mut Judge<'_>,
    ) -> Result<Acceptance, (&'static str, String)> {
        if let Some(refusal) = refused(proposal, ground) {
            return Err(refusal);
        }
        let mut word = None;
        if let Some((world, verified)) = self.world.as_mut().zip(verified).filter(|_| !self.config.blind) {
            let broken = |error: &ReplayError| (ENVIRONMENT, format!("it could not be asked: {error}"));
            match verified.as_ref().map_err(broken)? {
                Some(true) => word = Some(Word { evidence: Evidence::Environment, ..RULES }),
                Some(false) => return Err((ENVIRONMENT, "the verifier does not pass the goal".to_owned())),
                None => {}
            }
            if world.reached_original(proposal, ground.episode).map_err(|error| broken(&error))? {
                return Err((ENVIRONMENT, "the original goal had been reached by then".to_owned()));
            }
        }
        let Word { evidence, relabeler, judge } = word.map_or_else(|| judge(proposal), Ok)?;
        let last = end_of_turn(proposal.last, ground.episode);
        let nowhere = || ("form", "the goal was completed nowhere".to_owned());
        Ok(Acceptance {
            evidence,
            relabeler_confidence: relabeler,
            judge_confidence: judge,
            cut_node: ground.episode.end_of(last).ok_or_else(nowhere)?,
            answer: final_answer(proposal, ground.episode, ground.facts),
        })
    }
}

/// A goal's letters and digits: what makes two wordings the same.
fn plain(goal: &str) -> String {
    goal.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
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

    /// What the accepted goal rests on.
    pub(crate) fn rests_on(&self) -> Option<Evidence> {
        Some(self.goals.last()?.accepted.as_ref()?.evidence)
    }

    /// The goals as verdicts. An accepted one stands before those refused, and one that the environment passed
    /// before one that rules did. `model` names
    /// the models that were asked.
    pub fn verdicts(&self, run: TrajectoryId, model: Option<&str>, now: &str) -> Vec<Verdict> {
        let rules =
            Producer { model: model.map(str::to_owned), ..Producer::rules("hindsight", HINDSIGHT_VERSION) };
        let verdict = |goal: &Relabel| {
            let producer = match goal.accepted.as_ref().map(|accepted| accepted.evidence) {
                Some(Evidence::Environment) => Producer { rank: 80, ..rules.clone() },
                Some(Evidence::TwoJudges) => Producer { rank: 60, ..rules.clone() },
                Some(Evidence::Rules) => rules.clone(),
                Some(Evidence::OneJudge) | None => rules.clone().unadmitted(),
            };
            let evidence: Vec<Citation> =
                goal.claims.iter().flat_map(|claim| &claim.facts).map(|quote| quote.at.clone()).collect();
            Verdict::new(run, producer, evidence, Content::Relabel(goal.clone()), now)
        };
        self.goals.iter().map(verdict).collect()
    }
}
