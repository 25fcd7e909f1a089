//! A model as a judge: what is asked, and how an answer becomes a proposal or an opinion.

use std::sync::Arc;

use serde_json::json;

use super::answer::{opinion, opinion_schema, proposal, proposal_schema};
use super::prompts::{DIAGNOSE, REVIEW};
use super::seat::Answered;
use super::{Answer, Case, Judge, JudgeConfig, Opinion, Proposal, Refused, Room, Seat, Shown};
use crate::models::{
    ChatMessage, ChatModel, ChatRequest, ModelError, ModelIdentity, exchange, is_other, shortened, whole,
};
use crate::trajectory::Citation;
use crate::visible::visible_controls;

/// A model that judges.
pub struct ModelJudge<'a> {
    seat: Seat<'a>,
}

impl JudgeConfig {
    /// The first question about a run: what it costs can be told without asking it.
    pub fn first_question(&self, case: &Case<'_>) -> ChatRequest {
        self.proposing(case, &[]).0
    }

    fn proposing(&self, case: &Case<'_>, refused: &[Refused]) -> (ChatRequest, Shown) {
        let bytes = self.window_bytes();
        let (mut newest, mut taken) = (Vec::new(), 0);
        for (index, refused) in refused.iter().enumerate().rev() {
            let said = exchange(&refused.answer, bytes / 8, refusal(refused, index + 1));
            let more: usize = said.iter().map(|message| message.content.len()).sum();
            // The last one always; older ones in a quarter of the window.
            if !newest.is_empty() && taken + more > bytes / 4 {
                break;
            }
            taken += more;
            newest.push(said);
        }
        let record = bytes.saturating_sub(taken).max(bytes / 2);
        let shown = case.show(record, refused.last().map_or(&[], |last| &last.cited));
        let mut messages = vec![ChatMessage::system(DIAGNOSE.text), ChatMessage::user(shown.text.as_str())];
        messages.extend(newest.into_iter().rev().flatten());
        (self.request(messages, &DIAGNOSE, proposal_schema()), shown)
    }

    fn reviewing(&self, case: &Case<'_>, proposal: &Proposal, cited: &[Citation]) -> (ChatRequest, Shown) {
        let shown = case.show(self.window_bytes(), cited);
        let user = format!("{}{}", shown.text, told(case, proposal));
        let messages = vec![ChatMessage::system(REVIEW.text), ChatMessage::user(user)];
        (self.request(messages, &REVIEW, opinion_schema()), shown)
    }
}

impl<'a> ModelJudge<'a> {
    /// Makes a judge of a model, with what is known of the room that it has.
    pub fn new(model: Box<dyn ChatModel + 'a>, config: JudgeConfig, room: Arc<Room>) -> Self {
        Self { seat: Seat::new(model, config, room) }
    }

    fn answer<T>(&self, read: Result<T, String>, answered: Answered<Shown>) -> Answer<T> {
        let Answered { reply, shown, spent } = answered;
        let answered_by = is_other(&self.identity().model, &reply.model).then_some(reply.model);
        Answer { read, text: reply.text, shown, spent, answered_by }
    }
}

impl Judge for ModelJudge<'_> {
    fn identity(&self) -> &ModelIdentity {
        self.seat.identity()
    }

    fn propose(&self, case: &Case<'_>, refused: &[Refused]) -> Result<Answer<Proposal>, ModelError> {
        let answered = self.seat.ask(|config| config.proposing(case, refused))?;
        let read = whole(&answered.reply).and_then(|()| proposal(&answered.reply.text));
        Ok(self.answer(read, answered))
    }

    fn review(
        &self,
        case: &Case<'_>,
        proposal: &Proposal,
        cited: &[Citation],
    ) -> Result<Answer<Opinion>, ModelError> {
        let question = |config: JudgeConfig| config.reviewing(case, proposal, cited);
        let (read, answered) = self.seat.ask_until_read(question, opinion)?;
        Ok(self.answer(read, answered))
    }
}

/// A proposal as data for another judge. It was made from foreign text, so it stands between marks too.
fn told(case: &Case<'_>, proposal: &Proposal) -> String {
    let citations: Vec<_> =
        proposal.citations.iter().map(|cited| json!({ "node": cited.node, "quote": cited.quote })).collect();
    let candidate = proposal
        .candidate
        .as_ref()
        .map(|candidate| json!({ "action": candidate.action(), "rationale": candidate.rationale }));
    let diagnosis = json!({
        "citations": citations,
        "decisive_step": proposal.decisive_step,
        "responsible_agent": proposal.responsible_agent,
        "explanation": proposal.explanation,
        "candidate": candidate,
        "blame": proposal.blame.as_ref().map(|blame| json!({ "party": blame.party, "reason": blame.reason })),
    });
    let (mark, text) = (case.mark(), diagnosis.to_string());
    // A judge that echoes the mark forges no line by it: JSON is one line.
    format!("\nThe diagnosis to check:\nBEGIN {mark}\n{}\nEND {mark}\n", visible_controls(&text))
}

/// Why an answer was not admitted, in words for the judge that gave it. Its number, from 1, tells two questions apart
/// whose answers are the same.
fn refusal(refused: &Refused, number: usize) -> String {
    let asks = match refused.gate.as_str() {
        "S1" => "the answer is one JSON object of the given form",
        "S2" => "the decisive step is a node that is marked as a turn",
        "S3" => "the responsible agent is the author of the decisive step",
        "S4" => "every quote stands exactly once in the text of the node it names",
        "S5" => "at least one citation stands at or before the decisive step",
        "S6" => {
            "the candidate is a valid call of a listed tool, or an action in text where agents act so, and not what was done"
        }
        "S7" => "nothing that is hidden is cited",
        "S8" => "no answer stands in it that the record does not hold",
        "S9" => "explanation and candidate name nothing that the record does not hold",
        "M1" => "the explanation follows from the citations",
        "M2" => "the candidate uses only what was known before the decisive step",
        "M3" => "the candidate addresses the error that is named",
        "M4" => "the error was not made up for later",
        _ => "the answer is admitted by every judge",
    };
    // The reason may repeat words of the record, so it is data as well.
    let reason = serde_json::Value::String(visible_controls(shortened(&refused.reason)).into_owned());
    format!(
        "Your answer {number} was not admitted. Gate {} asks that {asks}. What it found, as data: {reason}\nAnswer again, \
         whole, in the same form.",
        refused.gate
    )
}
