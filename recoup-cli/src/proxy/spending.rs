//! Spending: what teachers may take, and whether the next question still fits.
//!
//! A question is set aside for before it is sent: its own size, and the answer that it allows. Where only what other
//! questions have set aside stands in the way, it waits. One that a cap has no room for is not sent: its label is
//! missing, a turn of the teacher is refused, and the student goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use recoup::models::{Amount, Budget, Held, ModelError, Price, Usage, tokens};
use recoup::trajectory::Call;
use serde_json::Value;

use crate::printer::Printer;

/// Tokens that an answer is set aside for where the request names no limit.
pub(super) const ANSWER: u64 = 4096;
/// Members in which the APIs limit an answer.
pub(super) const LIMITS: [&str; 3] = ["max_completion_tokens", "max_output_tokens", "max_tokens"];
/// Tokens that an image is set aside for.
const IMAGE: u64 = 2000;
/// How long a question waits before it is looked again whether there is room.
const AGAIN: Duration = Duration::from_millis(20);

/// What teachers may take.
pub(crate) struct Spending {
    budget: Arc<Budget>,
    /// Whether it was said that a cap is reached.
    said: AtomicBool,
    printer: Printer,
}

/// What is set aside for a question. Dropped, all of it counts as spent.
pub(super) struct Hold {
    held: Held<Arc<Budget>>,
    price: Option<Price>,
    /// Tokens of the question, where nobody counts them.
    likely: u64,
}

impl Spending {
    /// Under caps whose time has begun.
    pub(crate) fn new(budget: Arc<Budget>, printer: Printer) -> Self {
        Self { budget, said: AtomicBool::new(false), printer }
    }

    /// Sets aside what a question may take, by its body.
    pub(super) async fn hold(&self, price: Option<Price>, body: &Bytes) -> Result<Hold, String> {
        let is_counted = price.is_some() || self.budget.limits().tokens.is_some();
        let (likely, most, answer) = if is_counted {
            let body = body.clone();
            // Off the threads that relay answers.
            let size = tokio::task::spawn_blocking(move || size(&body)).await;
            size.map_err(|error| error.to_string())?
        } else {
            (tokens::text(body.len() as u64), 0, 0)
        };
        let cost = price.map(|price| price.at_most(most, answer)).unwrap_or_default();
        let claim = Amount { cost, tokens: most + answer, requests: 1 };
        loop {
            match self.budget.hold(claim) {
                Ok(Some(held)) => return Ok(Hold { held, price, likely }),
                Ok(None) => tokio::time::sleep(AGAIN).await,
                Err(error) => return Err(self.reached(&error)),
            }
        }
    }

    /// Why a question is not sent, in words; the first time it is said aloud.
    pub(super) fn reached(&self, error: &ModelError) -> String {
        if !self.said.swap(true, Ordering::Relaxed) {
            self.printer.warn(format_args!("a cap keeps questions from the teacher: {error}"));
        }
        error.to_string()
    }

    /// What was spent.
    pub(super) fn spent(&self) -> Amount {
        self.budget.spent()
    }

    /// Whether a cap has kept a question back.
    pub(super) fn is_reached(&self) -> bool {
        self.said.load(Ordering::Relaxed)
    }
}

impl Hold {
    /// Counts an answer by its own account, and writes down what it cost. Where it has none, by length.
    pub(super) fn answered(self, call: &mut Call, bytes: usize) {
        let usage = call.usage.map_or_else(
            || Usage { prompt: self.likely, cached_prompt: 0, completion: tokens::cautious(bytes as u64) },
            counted,
        );
        let cost = self.price.map(|price| price.of(usage));
        price(self.price, call);
        self.held.settle(Amount {
            cost: cost.unwrap_or_default(),
            tokens: usage.prompt.saturating_add(usage.completion),
            requests: 1,
        });
    }

    /// Counts a question that the provider refused.
    pub(super) fn refused(self) {
        self.held.settle(Amount { requests: 1, ..Amount::default() });
    }
}

/// Writes down what a call cost, where its model has a price and counts.
pub(super) fn price(price: Option<Price>, call: &mut Call) {
    let usage = call.usage.map(counted);
    call.cost = call.cost.or(price.zip(usage).map(|(price, usage)| price.of(usage).to_usd()));
}

fn counted(usage: recoup::trajectory::Usage) -> Usage {
    Usage { prompt: usage.input, cached_prompt: usage.cached, completion: usage.output }
}

/// Tokens that a question likely has, that it has at most, and that its answer may have.
fn size(body: &[u8]) -> (u64, u64, u64) {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let (mut bytes, mut images) = (0, 0);
    count(&body, &mut bytes, &mut images);
    let answer = LIMITS.iter().find_map(|name| body.get(*name)?.as_u64()).unwrap_or(ANSWER);
    (tokens::text(bytes) + images * IMAGE, tokens::cautious(bytes) + images * IMAGE, answer)
}

/// Bytes of text, with the words around it; bytes of images are told apart.
fn count(value: &Value, bytes: &mut u64, images: &mut u64) {
    match value {
        Value::String(text) if text.starts_with("data:") => *images += 1,
        Value::String(text) => *bytes += text.len() as u64,
        Value::Array(values) => values.iter().for_each(|value| count(value, bytes, images)),
        Value::Object(members) => {
            if members.get("type").is_some_and(|kind| kind == "base64") && members.contains_key("data") {
                *images += 1;
                return;
            }
            for (key, value) in members {
                *bytes += key.len() as u64 + 4;
                count(value, bytes, images);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => *bytes += 4,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ANSWER, IMAGE, size};

    #[test]
    fn images_are_no_text_and_a_limit_is_believed() {
        let image = json!({ "type": "image", "source": { "type": "base64", "data": "A".repeat(100_000) } });
        let url = json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{}", "A".repeat(100_000)) } });
        let body = json!({ "model": "m", "messages": [{ "role": "user", "content": [image, url] }] });
        let (likely, most, answer) = size(body.to_string().as_bytes());
        assert!(
            likely >= 2 * IMAGE && most < 2 * IMAGE + 200 && answer == ANSWER,
            "{likely} {most} {answer}"
        );
        let (_, most, answer) =
            size(json!({ "x": "a".repeat(3000), "max_tokens": 7 }).to_string().as_bytes());
        assert!((1500..1600).contains(&most) && answer == 7, "{most} {answer}");
    }
}
