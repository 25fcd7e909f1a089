//! The relabeler: a model that proposes goals, and the second that judges them.
//!
//! Both see the redacted record between marks that no trace can forge. The relabeler gets the facts by number and
//! cites them; what it was refused before stands in its next question. It is asked three times at most, and each time once
//! more where its answer cannot be read. Both are asked with less of the record where it is more than they take.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;

use super::episode::Episode;
use super::extractor;
use super::facts::{FactKind, Facts};
use super::judging::Opinion;
use super::proposal::{Claim, Proposal, Source};
use crate::judges::answer::{object, read, reply};
use crate::judges::{Case, JudgeConfig, Prompt, Seat};
use crate::models::{ChatMessage, ChatRequest, ModelError, ReplySchema};
use crate::visible::visible_controls;

/// Temperatures of the relabeler's attempts.
pub const TEMPERATURES: [f64; 3] = [0.3, 0.7, 0.7];
/// Facts that a question lists, the latest ones.
const FACTS_SHOWN: usize = 150;
/// Characters of a fact in a question.
const FACT_CHARS: usize = 160;

static RELABEL: LazyLock<Prompt> = LazyLock::new(|| Prompt::of(include_str!("prompts/relabel.md")));
static CHECK: LazyLock<Prompt> = LazyLock::new(|| Prompt::of(include_str!("prompts/check.md")));

/// The models that propose goals and judge them.
pub struct Judges<'j> {
    /// Proposes.
    pub relabeler: Seat<'j>,
    /// Judges what the other proposes.
    pub judge: Option<Seat<'j>>,
    /// Whether the one that proposes quotes facts of its own before it does.
    pub quotes_facts: bool,
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
        config: &JudgeConfig,
        case: &Case<'_>,
        facts: &Facts<'_, '_>,
        refused: &[RefusedGoal],
        attempt: usize,
    ) -> ChatRequest {
        let mark = case.mark();
        let mut text = case.show(config.window_bytes(), &[]).text;
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
            ..ChatRequest::new(messages, config.answer_tokens)
        }
    }

    /// The first question about a run: what relabeling costs can be told without asking it.
    pub fn first_question(&self, case: &Case<'_>) -> ChatRequest {
        if self.quotes_facts {
            return extractor::question(self.relabeler.config(), case);
        }
        let episode = Episode::read(case.run());
        let facts = Facts::of(&episode);
        Self::question(self.relabeler.config(), case, &facts, &[], 0)
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
        let question = |config: JudgeConfig| (Self::question(&config, case, facts, refused, attempt), ());
        let (answer, _) = self.relabeler.ask_until_read(question, read::<Answer>)?;
        Ok(answer.map(|answer| {
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
        let (mark, request) = (case.mark(), visible_controls(&request));
        let question = |config: JudgeConfig| {
            let shown = case.show(config.window_bytes(), &citations).text;
            let user = format!("{shown}\nThe request:\nBEGIN {mark}\n{request}\nEND {mark}\n");
            let messages = vec![ChatMessage::system(CHECK.text), ChatMessage::user(user)];
            (config.request(messages, &CHECK, opinion_schema()), ())
        };
        Some(judge.ask_until_read(question, read).map(|(opinion, _)| opinion))
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
