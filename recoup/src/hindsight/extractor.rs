//! Facts by a model: what it quotes, word for word, from what tools and users said.
//!
//! A quote that does not stand in the message it names, or stands in one that reports a failure, is dropped and counted. Gates
//! hold a quoted fact as strictly as one that rules found; it has no label, so a goal can only name something by it.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;

use super::facts::Facts;
use crate::judges::answer::{object, read, reply};
use crate::judges::{Case, JudgeConfig, Prompt, Seat};
use crate::models::{ChatMessage, ChatRequest, ModelError, ReplySchema};

/// Quotes that are read of one answer.
const QUOTES_MAX: usize = 40;

static FACTS: LazyLock<Prompt> = LazyLock::new(|| Prompt::of(include_str!("prompts/facts.md")));

/// What became of a model's quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotes {
    /// They stand where they are said to.
    pub kept: u64,
    /// They do not.
    pub dropped: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    facts: Vec<Quote>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quote {
    node: usize,
    quote: String,
}

/// Asks a model for facts and adds those that it quotes. An answer that cannot be read adds none.
///
/// # Errors
/// When no answer came.
pub(super) fn quote(
    seat: &Seat<'_>,
    case: &Case<'_>,
    facts: &mut Facts<'_, '_>,
) -> Result<Quotes, ModelError> {
    let (answer, _) = seat.ask_until_read(|config| (question(&config, case), ()), read::<Answer>)?;
    let mut quotes = Quotes::default();
    for quote in answer.map(|answer| answer.facts).unwrap_or_default().into_iter().take(QUOTES_MAX) {
        let is_named = |node: usize| case.index(node) == Some(quote.node);
        match facts.quote(&case.restore(&quote.quote), is_named) {
            Some(_) => quotes.kept += 1,
            None => quotes.dropped += 1,
        }
    }
    Ok(quotes)
}

/// The question about a run.
pub(super) fn question(config: &JudgeConfig, case: &Case<'_>) -> ChatRequest {
    let shown = case.show(config.window_bytes(), &[]).text;
    config.request(vec![ChatMessage::system(FACTS.text), ChatMessage::user(shown)], &FACTS, schema())
}

fn schema() -> ReplySchema {
    let quote = object(&[("node", json!({ "type": "integer" })), ("quote", json!({ "type": "string" }))]);
    reply("quoted_facts", &object(&[("facts", json!({ "type": "array", "items": quote }))]))
}
