//! What a panel decided, as verdicts: the diagnosis or the answers that were refused, every gate's word,
//! blame and class where a judge refines them, and the protocol.

use super::{Judged, RULES_VERSION, Tried};
use crate::id::{Hash, TrajectoryId, VerdictId};
use crate::judges::{DIAGNOSE, REVIEW};
use crate::models::ModelIdentity;
use crate::trajectory::{Citation, Status, Trajectory};
use crate::triage;
use crate::verdict::{
    Attempt, Blame, Content, Decision, FailureClass, Judging, Member, Party, Producer, RejectedAnswer,
    Review, Verdict,
};

/// Version of what is made of judges' answers; raised when the same answers would be decided otherwise.
pub const JUDGE_VERSION: u32 = 2;

/// Name of the producer of what judges say who saw the gold answer.
pub const JUDGE_WITH_GROUND_TRUTH: &str = "judge-with-ground-truth";

/// Bytes kept of an answer that was refused.
const ANSWER_BYTES: usize = 4_000;

/// Who judged, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgingConfig {
    /// The members' models, the proposer's first.
    pub members: Vec<ModelIdentity>,
    /// Whether they saw the gold answer.
    pub with_ground_truth: bool,
    /// Which of several judgements of the same run, from 0.
    pub sample: u32,
}

impl JudgingConfig {
    fn models(&self) -> impl Iterator<Item = String> {
        self.members.iter().map(ModelIdentity::name)
    }

    fn producer(&self, prompt_hash: &str, model: &str) -> Producer {
        let producer = Producer::judge(JUDGE_VERSION, prompt_hash, model);
        if self.with_ground_truth {
            // It knows what the agent could not: for comparison only, behind every other word.
            return Producer { name: JUDGE_WITH_GROUND_TRUTH.to_owned(), rank: 10, ..producer };
        }
        producer
    }
}

/// Whether this panel, with these prompts, has judged a run already.
pub fn is_judged(verdicts: &[Verdict], config: &JudgingConfig) -> bool {
    verdicts.iter().any(|verdict| match &verdict.content {
        Content::Judging(judging) => {
            let prompts = verdict.producer.prompt_hash.as_deref() == Some(&prompts_hash());
            prompts
                && verdict.producer.version == JUDGE_VERSION
                && judging.with_ground_truth == config.with_ground_truth
                && judging.sample == config.sample
                && judging.members.iter().map(|member| member.model.clone()).eq(config.models())
        }
        _ => false,
    })
}

/// Both prompts in one hash.
fn prompts_hash() -> String {
    Hash::of_all(&[DIAGNOSE.hash.as_bytes(), REVIEW.hash.as_bytes()]).to_string()
}

/// The verdicts on a run. `blame` and `class` are what the rules say; `now` is the caller's clock.
pub fn judging_verdicts(
    run: &Trajectory,
    judged: &Judged,
    (blame, class): (Option<&Blame>, Option<&FailureClass>),
    config: &JudgingConfig,
    now: &str,
) -> Vec<Verdict> {
    let mut out =
        Writer { subject: run.id, now, config, models: config.models().collect(), verdicts: Vec::new() };
    let Some(proposer) = out.models.first().cloned() else { return Vec::new() };
    let producer = config.producer(&DIAGNOSE.hash, &proposer);
    let admitted = judged.is_admitted();
    let mut kept = None;
    for (at, tried) in judged.attempts.iter().enumerate() {
        let is_last = at + 1 == judged.attempts.len();
        let stands = is_last && (admitted || judged.keeps_step());
        let of = match (&tried.refused, stands) {
            (Some((gate, reason)), false) => {
                let rejected = RejectedAnswer {
                    attempt: at as u32,
                    sample: config.sample,
                    gate: gate.clone(),
                    reason: reason.clone(),
                    answer: tried.text[..tried.text.floor_char_boundary(ANSWER_BYTES)].to_owned(),
                    diagnosis: tried.diagnosis.clone(),
                };
                out.put(producer.clone().unadmitted(), &tried.cited, Content::RejectedAnswer(rejected))
            }
            // Only the first of several judgements decides anything; the others show how sure it is.
            _ if config.sample > 0 => continue,
            _ => {
                kept = out.stands(run, tried, &producer, (blame, class), admitted);
                match kept {
                    Some(id) => id,
                    None => continue,
                }
            }
        };
        out.reviews(of, tried, if is_last { &judged.opinions } else { &[] });
    }
    out.protocol(run, judged, kept);
    out.verdicts
}

struct Writer<'a> {
    subject: TrajectoryId,
    now: &'a str,
    config: &'a JudgingConfig,
    models: Vec<String>,
    verdicts: Vec<Verdict>,
}

impl Writer<'_> {
    fn put(&mut self, producer: Producer, evidence: &[Citation], content: Content) -> VerdictId {
        let verdict = Verdict::new(self.subject, producer, evidence.to_vec(), content, self.now);
        let id = verdict.id;
        self.verdicts.push(verdict);
        id
    }

    /// What an answer that stands decides; the verdict that its reviews are about.
    fn stands(
        &mut self,
        run: &Trajectory,
        tried: &Tried,
        producer: &Producer,
        (blame, class): (Option<&Blame>, Option<&FailureClass>),
        admitted: bool,
    ) -> Option<VerdictId> {
        let proposal = tried.proposal.as_ref()?;
        let mut about = None;
        if let Some(diagnosis) = &tried.diagnosis {
            let mut diagnosis = diagnosis.clone();
            // Nothing is trained on what was made with the answer in sight.
            diagnosis.admitted &= !self.config.with_ground_truth;
            let by = if admitted { producer.clone() } else { producer.clone().unadmitted() };
            about = Some(self.put(by, &tried.cited, Content::Diagnosis(diagnosis)));
        }
        if !admitted {
            return about;
        }
        // Whose failure it was and how bad decide what is learned: what nobody else has looked at stands behind
        // the rules.
        let is_alone = self.models.len() < 2;
        let refines = if is_alone { producer.clone().unadmitted() } else { producer.clone() };
        let party = proposal.party();
        if blame.is_none_or(|known| known.party != party) {
            let reason = proposal.blame.as_ref().map(|named| named.reason.clone()).unwrap_or_default();
            let suspected = run.outcome().status == Status::Unknown;
            let refined = Blame { party, rule: "judge".to_owned(), reason, suspected };
            let id = self.put(refines.clone(), &tried.cited, Content::Blame(refined));
            about = about.or(Some(id));
        }
        if let Some(named) = &proposal.failure_class
            && party == Party::Agent
            && !triage::is_class_explicit(run)
        {
            let refined = FailureClass {
                class: named.class,
                mode: class.filter(|known| known.class == named.class).and_then(|known| known.mode.clone()),
                recoverable: named.recoverable,
                severity: named.severity,
                loss_weight: triage::loss_weight(named.severity),
            };
            self.put(refines, &tried.cited, Content::FailureClass(refined));
        }
        about
    }

    /// The gates' words, then the members' words and the steps they hold for decisive.
    fn reviews(&mut self, of: VerdictId, tried: &Tried, opinions: &[super::Answered]) {
        for review in &tried.reviews {
            let content = word(of, review.gate, review.decision, &review.reason);
            self.put(Producer::rules("rules", RULES_VERSION), &[], content);
        }
        let decisive = tried.diagnosis.as_ref().map(|diagnosis| diagnosis.decisive_node);
        for (at, opinion) in opinions.iter().enumerate() {
            let Some(model) = self.models.get(at + 1).cloned() else { continue };
            let producer = self.config.producer(&REVIEW.hash, &model);
            for review in &opinion.words {
                let content = word(of, review.gate, review.decision, &review.reason);
                self.put(producer.clone(), &[], content);
            }
            if let Some(decisive) = decisive {
                let (decision, reason) = match opinion.node {
                    Some(node) if node == decisive => (Decision::Admit, String::new()),
                    Some(node) => {
                        (Decision::Reject, format!("holds the node at position {node} for decisive"))
                    }
                    None => (Decision::Abstain, String::new()),
                };
                self.put(producer, &[], word(of, "step", decision, &reason));
            }
        }
    }

    fn protocol(&mut self, run: &Trajectory, judged: &Judged, diagnosis: Option<VerdictId>) {
        let last = judged.last();
        let on_branch = |node: &usize| *node < run.nodes.len();
        let proposed = last.and_then(|last| last.diagnosis.as_ref()).map(|diagnosis| diagnosis.decisive_node);
        let members = self.config.members.iter().zip(&self.models).enumerate();
        let members = members.map(|(at, (identity, model))| {
            let opinion = at.checked_sub(1).and_then(|other| judged.opinions.get(other));
            let node = if at == 0 { proposed } else { opinion.and_then(|opinion| opinion.node) };
            Member {
                model: model.clone(),
                family: identity.family.clone(),
                answered_by: if at == 0 {
                    judged.attempts.iter().filter_map(|tried| tried.answered_by.clone()).collect()
                } else {
                    opinion.and_then(|opinion| opinion.answered_by.clone()).into_iter().collect()
                },
                node: node.filter(on_branch),
                word: opinion.map(super::Answered::word),
            }
        });
        let judging = Judging {
            members: members.collect(),
            with_ground_truth: self.config.with_ground_truth,
            sample: self.config.sample,
            admitted: judged.is_admitted(),
            diagnosis,
            attempts: judged
                .attempts
                .iter()
                .map(|tried| Attempt { gate: tried.refused.as_ref().map(|(gate, _)| gate.clone()) })
                .collect(),
            calls: judged.spent.calls,
            prompt_tokens: judged.spent.usage.prompt,
            completion_tokens: judged.spent.usage.completion,
            cost_usd: judged.spent.cost_usd,
        };
        let producer = self.config.producer(&prompts_hash(), &self.models[0]);
        self.put(producer, &[], Content::Judging(judging));
    }
}

fn word(of: VerdictId, gate: &str, decision: Decision, reason: &str) -> Content {
    Content::Review(Review { of, gate: gate.to_owned(), verdict: decision, reason: reason.to_owned() })
}
