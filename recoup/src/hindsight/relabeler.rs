//! The relabeler: a model that proposes goals, and the second that judges them.
//!
//! Both see the redacted record between marks that no trace can forge. The relabeler gets the facts by number and
//! cites them; what it was refused before stands in its next question. It is asked three times at most.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;

use super::episode::Episode;
use super::facts::{FactKind, Facts};
use super::judging::Opinion;
use super::proposal::{Claim, Proposal, Source};
use crate::judges::answer::{object, read, reply};
use crate::judges::{Case, Prompt, WINDOW_TOKENS_MIN};
use crate::models::{ChatMessage, ChatModel, ChatRequest, ModelError, ReplySchema, whole};
use crate::visible::visible_controls;

/// Temperatures of the relabeler's attempts.
pub const TEMPERATURES: [f64; 3] = [0.3, 0.7, 0.7];
/// Facts that a question lists, the latest ones.
const FACTS_SHOWN: usize = 150;
/// Characters of a fact in a question.
const FACT_CHARS: usize = 160;
/// Bytes that are taken for a token.
const TOKEN_BYTES: usize = 3;

static RELABEL: LazyLock<Prompt> = LazyLock::new(|| Prompt::of(include_str!("prompts/relabel.md")));
static CHECK: LazyLock<Prompt> = LazyLock::new(|| Prompt::of(include_str!("prompts/check.md")));

/// The models that propose goals and judge them.
pub struct Judges<'j> {
    /// Proposes.
    pub relabeler: Box<dyn ChatModel + 'j>,
    /// Judges what the other proposes.
    pub judge: Option<Box<dyn ChatModel + 'j>>,
    /// Tokens of a run in one question.
    pub window_tokens: usize,
    /// Most tokens of an answer.
    pub answer_tokens: u32,
}

/// A goal that was refused, for the next question.
#[derive(Clone, Debug)]
pub(super) struct RefusedGoal {
    pub goal: String,
    pub reason: String,
}

/// What a relabeler answers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    goal: String,
    claims: Vec<AnsweredClaim>,
    valid: bool,
    confidence: f64,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnsweredClaim {
    text: String,
    facts: Vec<usize>,
}

impl Judges<'_> {
    /// Whether two models of two families judge.
    pub fn are_two(&self) -> bool {
        self.judge.as_ref().is_some_and(|judge| judge.identity().family != self.relabeler.identity().family)
    }

    /// The question for an attempt, from 0.
    fn question(
        &self,
        case: &Case<'_>,
        facts: &Facts<'_, '_>,
        refused: &[RefusedGoal],
        attempt: usize,
    ) -> ChatRequest {
        let mark = case.mark();
        let mut text = case.show(self.budget(), &[]).text;
        let _ = writeln!(text, "\nFacts:\nBEGIN {mark}");
        let all = facts.all().iter().enumerate().filter(|(_, fact)| fact.kind != FactKind::Phrase);
        let skipped = all.clone().count().saturating_sub(FACTS_SHOWN);
        for (number, fact) in all.skip(skipped) {
            let line: String = case.redact(&fact.line()).chars().take(FACT_CHARS).collect();
            let node = case.index(fact.citation.node);
            text.push_str(&visible_controls(
                &json!({ "fact": number, "node": node, "says": line }).to_string(),
            ));
            text.push('\n');
        }
        let _ = writeln!(text, "END {mark}");
        if !refused.is_empty() {
            let _ = writeln!(text, "\nGoals that were refused, not to be proposed again:\nBEGIN {mark}");
            for it in refused {
                let line =
                    json!({ "goal": case.redact(&it.goal), "refused": case.redact(&it.reason) }).to_string();
                text.push_str(&visible_controls(&line));
                text.push('\n');
            }
            let _ = writeln!(text, "END {mark}");
        }
        let messages = vec![ChatMessage::system(RELABEL.text), ChatMessage::user(text)];
        ChatRequest {
            schema: Some(answer_schema()),
            temperature: TEMPERATURES.get(attempt).copied().unwrap_or(0.0),
            sample: attempt as u32,
            prompt_hash: Some(RELABEL.hash.clone()),
            ..ChatRequest::new(messages, self.answer_tokens)
        }
    }

    /// The first question about a run: what relabeling costs can be told without asking it.
    pub fn first_question(&self, case: &Case<'_>) -> ChatRequest {
        let episode = Episode::read(case.run());
        let facts = Facts::of(&episode);
        self.question(case, &facts, &[], 0)
    }

    fn budget(&self) -> usize {
        self.window_tokens.max(WINDOW_TOKENS_MIN).saturating_mul(TOKEN_BYTES)
    }

    /// Asks for a goal. An answer that cannot be read is none.
    ///
    /// # Errors
    /// When no answer came.
    pub(super) fn propose(
        &self,
        case: &Case<'_>,
        facts: &Facts<'_, '_>,
        refused: &[RefusedGoal],
        attempt: usize,
    ) -> Result<Result<(Proposal, Opinion), String>, ModelError> {
        let answer = self.relabeler.complete(&self.question(case, facts, refused, attempt))?;
        Ok(whole(&answer).and_then(|()| read::<Answer>(&answer.text)).map(|answer| {
            let opinion =
                Opinion { valid: answer.valid, confidence: answer.confidence, reason: answer.reason.clone() };
            (proposal(answer, case, facts), opinion)
        }))
    }

    /// Asks the second judge about a goal; `None` where there is none.
    pub(super) fn check(
        &self,
        case: &Case<'_>,
        facts: &Facts<'_, '_>,
        proposal: &Proposal,
    ) -> Option<Result<Result<Opinion, String>, ModelError>> {
        let judge = self.judge.as_ref()?;
        let cited: Vec<_> = proposal.claims.iter().flat_map(|claim| &claim.facts).collect();
        let citations: Vec<_> =
            cited.iter().filter_map(|fact| facts.get(**fact)).map(|fact| fact.citation.clone()).collect();
        let claims: Vec<_> = proposal
            .claims
            .iter()
            .map(|claim| {
                let rests: Vec<String> = claim
                    .facts
                    .iter()
                    .filter_map(|fact| facts.get(*fact))
                    .map(|fact| case.redact(&fact.line()))
                    .collect();
                json!({ "text": case.redact(&claim.text), "rests_on": rests })
            })
            .collect();
        let request = json!({ "request": case.redact(&proposal.goal), "claims": claims }).to_string();
        let mark = case.mark();
        let shown = case.show(self.budget(), &citations).text;
        let user =
            format!("{shown}\nThe request:\nBEGIN {mark}\n{}\nEND {mark}\n", visible_controls(&request));
        let messages = vec![ChatMessage::system(CHECK.text), ChatMessage::user(user)];
        let question = ChatRequest {
            schema: Some(opinion_schema()),
            prompt_hash: Some(CHECK.hash.clone()),
            ..ChatRequest::new(messages, self.answer_tokens)
        };
        Some(judge.complete(&question).map(|answer| whole(&answer).and_then(|()| read(&answer.text))))
    }
}

/// A model's answer as a proposal, placeholders put back.
fn proposal(answer: Answer, case: &Case<'_>, facts: &Facts<'_, '_>) -> Proposal {
    let claims: Vec<Claim> = answer
        .claims
        .into_iter()
        .map(|claim| Claim { text: case.restore(&claim.text), facts: claim.facts })
        .collect();
    let cited = || claims.iter().flat_map(|claim| &claim.facts).filter_map(|fact| facts.get(*fact));
    let last = cited().filter_map(|fact| fact.exchange).max().unwrap_or(0);
    let mut said: Vec<String> =
        cited().filter(|fact| fact.exchange == Some(last)).map(super::facts::Fact::line).collect();
    said.dedup();
    Proposal {
        goal: case.restore(&answer.goal),
        specification: None,
        task: None,
        doubts: Vec::new(),
        last,
        answer: format!("{}.", said.join("; ")),
        source: Source::Model,
        claims,
    }
}

fn answer_schema() -> ReplySchema {
    let claim = object(&[
        ("text", json!({ "type": "string" })),
        ("facts", json!({ "type": "array", "items": { "type": "integer" } })),
    ]);
    reply(
        "hindsight_goal",
        &object(&[
            ("goal", json!({ "type": "string" })),
            ("claims", json!({ "type": "array", "items": claim })),
            ("valid", json!({ "type": "boolean" })),
            ("confidence", json!({ "type": "number" })),
            ("reason", json!({ "type": "string" })),
        ]),
    )
}

fn opinion_schema() -> ReplySchema {
    reply(
        "opinion",
        &object(&[
            ("reason", json!({ "type": "string" })),
            ("valid", json!({ "type": "boolean" })),
            ("confidence", json!({ "type": "number" })),
        ]),
    )
}
