//! A panel: one judge proposes, the gates check, the others review; what is refused is tried again.
//!
//! A proposal stands where no gate of S1 to S9 refuses it and every other member admits it on M1 to M4;
//! who abstains does not admit. A refused answer goes back to its judge with the gate that refused it, up
//! to three times. An answer that fails nothing but S9 at last keeps its step if the members admit it, and
//! is not admitted itself. A provider that fails is an error and no verdict.

use super::gates;
use super::{GateReview, Run};
use crate::json::Json;
use crate::judges::{Answer, Case, Judge, Misquote, Opinion, Proposal, Refused, Shown, Spent};
use crate::models::ModelError;
use crate::redaction::redact;
use crate::trajectory::{Citation, Status, Trajectory};
use crate::verdict::{Candidate, Decision, Diagnosis, Finding, Party, Quote};

/// Times that a refused answer is asked for again.
pub const RETRIES: u32 = 3;
/// Questions to each member but the first about one run, at most: what it says of every answer, asked for once more
/// where that cannot be read.
pub const REVIEWS_MAX: u32 = 2 * (RETRIES + 1);

/// What the rules already say of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// What the detectors found; a diagnosis carries it on.
    pub findings: &'a [Finding],
    /// Whose failure the harness's own record says it was: no judge overrules it.
    pub settled: Option<Party>,
}

/// What a panel made of a run.
#[derive(Debug)]
pub struct Judged {
    /// The proposer's answers, in order; the last one decides.
    pub attempts: Vec<Tried>,
    /// The last words of the other members, in their order; empty where they were not asked.
    pub opinions: Vec<Answered>,
    /// What it all took.
    pub spent: Spent,
}

/// One answer of the proposer, gated.
#[derive(Debug)]
pub struct Tried {
    /// Its words, as it wrote them.
    pub text: String,
    /// What they say, where they could be read.
    pub proposal: Option<Proposal>,
    /// The diagnosis that they make, as it is kept; `None` where they cannot be read or blame another.
    pub diagnosis: Option<Diagnosis>,
    /// The bytes of the run that they rest on.
    pub cited: Vec<Citation>,
    /// The words of the gates, S1 to S9.
    pub reviews: Vec<GateReview>,
    /// What refused it first: a gate and its reason.
    pub refused: Option<(String, String)>,
    /// The name under which another model than the one asked for answered.
    pub answered_by: Option<String>,
}

/// What a member says of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Position of the node that it holds for decisive.
    pub node: Option<usize>,
    /// Its words on M1 to M4.
    pub words: Vec<GateReview>,
    /// The name under which another model than the one asked for answered.
    pub answered_by: Option<String>,
}

impl Answered {
    /// Admits where it admits all; rejects where it rejects any.
    pub fn word(&self) -> Decision {
        let any = |decision| self.words.iter().any(|word| word.decision == decision);
        if any(Decision::Reject) {
            Decision::Reject
        } else if any(Decision::Abstain) || self.words.is_empty() {
            Decision::Abstain
        } else {
            Decision::Admit
        }
    }
}

impl Judged {
    /// The last answer.
    pub fn last(&self) -> Option<&Tried> {
        self.attempts.last()
    }

    /// Whether the last answer was admitted by all.
    pub fn is_admitted(&self) -> bool {
        self.last().is_some_and(|last| last.refused.is_none())
    }

    /// Whether the last answer fails S9 alone and the members admit it: its step is kept.
    pub fn keeps_step(&self) -> bool {
        let is_s9 = |last: &Tried| {
            last.diagnosis.is_some() && last.refused.as_ref().is_some_and(|(gate, _)| gate == "S9")
        };
        self.last().is_some_and(is_s9)
            && self.opinions.iter().all(|opinion| opinion.word() == Decision::Admit)
    }
}

/// Judges a run. The first of `panel` proposes; an empty panel says nothing.
///
/// # Errors
/// When a model gives no answer: nothing is decided then.
pub fn judge(
    case: &Case<'_>,
    run: &Run<'_>,
    panel: &[Box<dyn Judge + '_>],
    known: Known<'_>,
) -> Result<Judged, ModelError> {
    let mut judged = Judged { attempts: Vec::new(), opinions: Vec::new(), spent: Spent::default() };
    let Some((proposer, others)) = panel.split_first() else { return Ok(judged) };
    let mut refused: Vec<Refused> = Vec::new();
    for attempt in 0..=RETRIES {
        let answer = match proposer.propose(case, &refused) {
            // What was said of the run so far stands, as refused: there is no room to say what was wrong with it.
            Err(error) if error.is_context_full() && attempt > 0 => {
                if let Some(last) = judged.attempts.last_mut().filter(|_| !others.is_empty()) {
                    last.diagnosis = None;
                }
                break;
            }
            answer => answer?,
        };
        judged.spent.add(answer.spent);
        let mut tried = gated(case, run, answer, known);
        judged.opinions.clear();
        let only_s9 = attempt == RETRIES && tried.refused.as_ref().is_some_and(|(gate, _)| gate == "S9");
        if let Some(proposal) = tried.proposal.as_ref().filter(|_| tried.refused.is_none() || only_s9) {
            for other in others {
                let (opinion, spent) = asked(case, other.as_ref(), proposal, &tried.cited)?;
                judged.spent.add(spent);
                judged.opinions.push(opinion);
            }
            if tried.refused.is_none() {
                tried.refused = judged.opinions.iter().flat_map(|opinion| &opinion.words).find_map(|word| {
                    (word.decision != Decision::Admit).then(|| (word.gate.to_owned(), word.reason.clone()))
                });
            }
        }
        if let Some(diagnosis) = &mut tried.diagnosis {
            diagnosis.admitted = tried.refused.is_none();
        }
        let next = tried.refused.as_ref().map(|(gate, reason)| Refused {
            answer: tried.text.clone(),
            gate: gate.clone(),
            reason: reason.clone(),
            cited: tried.cited.clone(),
        });
        judged.attempts.push(tried);
        match next {
            Some(next) => refused.push(next),
            None => break,
        }
    }
    Ok(judged)
}

/// A member's words on a proposal; where they cannot be read, it abstains.
fn asked(
    case: &Case<'_>,
    judge: &dyn Judge,
    proposal: &Proposal,
    cited: &[Citation],
) -> Result<(Answered, Spent), ModelError> {
    let Answer { read, spent, answered_by, .. } = judge.review(case, proposal, cited)?;
    let answered = match read {
        Ok(opinion) => Answered { answered_by, ..answered(case, proposal, &opinion) },
        Err(reason) => {
            let silent = |gate| GateReview { gate, decision: Decision::Abstain, reason: reason.clone() };
            Answered { node: None, words: SEMANTIC.map(silent).to_vec(), answered_by }
        }
    };
    Ok((answered, spent))
}

/// The gates that judges decide.
const SEMANTIC: [&str; 4] = ["M1", "M2", "M3", "M4"];

fn answered(case: &Case<'_>, proposal: &Proposal, opinion: &Opinion) -> Answered {
    // A failure that is not the agent's has no step: only whether the citations show it is asked.
    let asked = if proposal.decisive_step.is_some() { 4 } else { 1 };
    let word = |(gate, word): (&'static str, &crate::judges::Word)| GateReview {
        gate,
        decision: word.verdict,
        reason: case.redact(&word.reason),
    };
    let node = opinion.decisive_step.and_then(|step| case.position(usize::try_from(step).ok()?));
    let words = opinion.words().into_iter().take(asked).map(word).collect();
    Answered { node, words, answered_by: None }
}

/// Puts an answer through the gates.
fn gated(case: &Case<'_>, run: &Run<'_>, answer: Answer<Proposal>, known: Known<'_>) -> Tried {
    let Answer { read, text, shown, answered_by, .. } = answer;
    let proposal = match read {
        Ok(proposal) => proposal,
        Err(reason) => {
            let reason = case.redact(&reason);
            return Tried {
                text,
                proposal: None,
                diagnosis: None,
                cited: Vec::new(),
                reviews: vec![GateReview { gate: "S1", decision: Decision::Reject, reason: reason.clone() }],
                refused: Some(("S1".to_owned(), reason)),
                answered_by,
            };
        }
    };
    let (quotes, misquotes) = quotes(case, &shown, &proposal);
    let (kept, restored) = diagnoses(case, run, &proposal, quotes, known);
    let mut reviews = gates::review(run, &restored);
    if let Some(reason) = misquotes {
        overrule(&mut reviews, "S4", Decision::Reject, &reason);
    }
    if proposal.decisive_step.is_none() {
        for gate in ["S2", "S3", "S5", "S6"] {
            overrule(&mut reviews, gate, Decision::Abstain, "no step is named");
        }
    }
    if let Some(party) = known.settled.filter(|party| *party != proposal.party()) {
        let reason = format!("the harness's own record blames another: `{}`", party.as_str());
        overrule(&mut reviews, "S2", Decision::Reject, &reason);
    }
    for review in &mut reviews {
        review.reason = case.redact(&review.reason);
    }
    let refused = reviews
        .iter()
        .find(|review| review.decision == Decision::Reject)
        .map(|review| (review.gate.to_owned(), review.reason.clone()));
    let cited = kept.citations.iter().map(|quote| quote.at.clone()).collect();
    let diagnosis = proposal.decisive_step.is_some().then_some(kept);
    Tried { text, proposal: Some(proposal), diagnosis, cited, reviews, refused, answered_by }
}

fn overrule(reviews: &mut [GateReview], gate: &str, decision: Decision, reason: &str) {
    if let Some(review) = reviews.iter_mut().find(|review| review.gate == gate) {
        (review.decision, review.reason) = (decision, reason.to_owned());
    }
}

/// The exact bytes of each quote, and what is wrong with the first one that has none.
fn quotes(case: &Case<'_>, shown: &Shown, proposal: &Proposal) -> (Vec<Quote>, Option<String>) {
    let (mut quotes, mut wrong) = (Vec::new(), None);
    for cited in &proposal.citations {
        let found = usize::try_from(cited.node).map_err(|_| Misquote::NoNode);
        let found = found.and_then(|node| case.cite(shown, node, &cited.quote));
        let reason = match found {
            Ok(at) | Err(Misquote::Hidden(at)) => match at.quote(case.run()) {
                Ok(text) => {
                    quotes.push(Quote { quote: text.to_owned(), at });
                    continue;
                }
                Err(error) => error.to_string(),
            },
            Err(Misquote::NoNode) => format!("no node {} is shown", cited.node),
            Err(Misquote::Absent) => format!("what is quoted of node {} does not stand there", cited.node),
            Err(Misquote::Ambiguous) => {
                format!("what is quoted of node {} stands there more than once; quote more of it", cited.node)
            }
        };
        wrong.get_or_insert(reason);
    }
    (quotes, wrong)
}

/// The diagnosis that a proposal makes: as it is kept, with placeholders in its text, and as the gates see
/// it, with what they stand for.
fn diagnoses(
    case: &Case<'_>,
    run: &Run<'_>,
    proposal: &Proposal,
    citations: Vec<Quote>,
    known: Known<'_>,
) -> (Diagnosis, Diagnosis) {
    let nodes = &run.trajectory.nodes;
    let decisive_node = match proposal.decisive_step {
        // A number that is no node's stays one that is no node's.
        Some(step) => usize::try_from(step)
            .map_or(nodes.len(), |step| case.position(step).unwrap_or(nodes.len().max(step))),
        None => run.last_step().map_or(0, |step| step.node),
    };
    let author = nodes.get(decisive_node).map(|node| node.agent.clone());
    let named = proposal.responsible_agent.clone().unwrap_or_default();
    let is_author = proposal.decisive_step.is_none() || case.is_shown_agent(decisive_node, &named);
    let candidate = |restore: bool| {
        proposal.candidate.as_ref().map(|proposed| {
            let action = proposed.action();
            let action = if restore { restored_values(&|text| case.restore(text), action) } else { action };
            let rationale = &proposed.rationale;
            Candidate {
                action: Json::from_foreign(&action.to_string()),
                rationale: if restore { case.restore(rationale) } else { rationale.clone() },
            }
        })
    };
    let reason = proposal.blame.as_ref().filter(|blame| blame.party != Party::Agent);
    let explanation = match reason {
        Some(blame) => format!("{}\n{}", proposal.explanation, blame.reason),
        None => proposal.explanation.clone(),
    };
    let kept = Diagnosis {
        decisive_node,
        responsible_agent: author.filter(|_| is_author).unwrap_or(named),
        explanation,
        citations,
        candidate: candidate(false),
        rank: 0,
        findings: known.findings.to_vec(),
        admitted: false,
        suspected: run.trajectory.outcome().status == Status::Unknown,
    };
    let restored = Diagnosis {
        explanation: case.restore(&kept.explanation),
        candidate: candidate(true),
        ..kept.clone()
    };
    (kept, restored)
}

/// A candidate as it can be executed: a judge wrote it with placeholders for what it was not shown.
pub fn restored(run: &Trajectory, candidate: Candidate) -> Candidate {
    if !candidate.action.as_str().contains('<') {
        return candidate;
    }
    let placeholders = redact(run).placeholders;
    let action = restored_values(&|text| placeholders.restore(text), candidate.action.to_value());
    Candidate { action: Json::from_foreign(&action.to_string()), ..candidate }
}

/// The values of an action with what placeholders stand for.
fn restored_values(restore: &dyn Fn(&str) -> String, value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => Value::String(restore(&text)),
        Value::Array(items) => items.into_iter().map(|item| restored_values(restore, item)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, member)| (key, restored_values(restore, member))).collect()
        }
        other => other,
    }
}
