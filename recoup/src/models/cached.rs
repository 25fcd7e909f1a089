//! Cached answers: no question is paid for twice, not even after the process was killed.
//!
//! An answer is kept before anybody sees it. It is found by the hash of who was asked what: wire format,
//! base URL, model, and the canonical request, in which the prompt's hash and the sample's number stand.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};

use super::{ChatReply, ChatRequest, Cost, ModelError, ModelIdentity, Usage};
use crate::id::{Hash, TrajectoryId};
use crate::json::Json;

/// Keeps answers that were paid for.
pub trait ReplyCache: Send + Sync {
    /// The answer to a question, where it was asked before; `run` is one more run that it is about.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    fn get(&self, key: &Hash, run: Option<TrajectoryId>) -> Result<Option<ChatReply>, ModelError>;

    /// Keeps an answer; it is safe when this returns.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    fn put(&self, kept: &Kept<'_>) -> Result<(), ModelError>;
}

/// An answer with what is kept beside it.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    /// Hash of the question and of who was asked.
    pub key: &'a Hash,
    /// The run that the question is about: its answer is forgotten with it. One about no run goes with
    /// the first run that is forgotten.
    pub run: Option<TrajectoryId>,
    /// The stage that asked.
    pub stage: &'a str,
    /// The model's name.
    pub model: &'a str,
    /// The answer.
    pub reply: &'a ChatReply,
    /// Tokens that count as used.
    pub usage: Usage,
    /// What it cost; `None` where the model has no price.
    pub cost: Option<Cost>,
}

/// The hash of a question and of who is asked.
///
/// # Errors
/// [`ModelError::Unsupported`] for a question without a canonical form.
pub fn key(identity: &ModelIdentity, request: &ChatRequest) -> Result<Hash, ModelError> {
    let canonical = Json::from_serialize(request)
        .map_err(|error| ModelError::Unsupported(format!("the question has no canonical form: {error}")))?;
    Ok(Hash::of_all(&[
        b"model-reply-1",
        identity.provider.as_bytes(),
        identity.base_url.as_bytes(),
        identity.model.as_bytes(),
        canonical.as_str().as_bytes(),
    ]))
}

/// Questions that are being asked: who asks the same waits for the first.
#[derive(Default)]
pub(super) struct Flights {
    asked: Mutex<BTreeSet<Hash>>,
    landed: Condvar,
}

impl Flights {
    /// Waits until nobody else asks this question.
    pub(super) fn enter(&self, key: Hash) -> Flight<'_> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        while !asked.insert(key) {
            asked = self.landed.wait(asked).unwrap_or_else(PoisonError::into_inner);
        }
        Flight { flights: self, key }
    }
}

/// A question that is being asked.
pub(super) struct Flight<'a> {
    flights: &'a Flights,
    key: Hash,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.flights.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
        self.flights.landed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::key;
    use crate::models::{ChatMessage, ChatRequest, ModelIdentity};

    #[test]
    fn the_key_is_who_is_asked_what() {
        let identity = ModelIdentity {
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            base_url: "http://h/v1".to_owned(),
            family: "m".to_owned(),
        };
        let request = ChatRequest::new(vec![ChatMessage::user("?")], 10);
        let first = key(&identity, &request).unwrap();
        assert_eq!(first, key(&identity.clone(), &request.clone()).unwrap());
        let others = [
            key(&ModelIdentity { base_url: "http://i/v1".to_owned(), ..identity.clone() }, &request),
            key(&ModelIdentity { model: "n".to_owned(), ..identity.clone() }, &request),
            key(&identity, &ChatRequest { sample: 1, ..request.clone() }),
            key(&identity, &ChatRequest { prompt_hash: Some("p".to_owned()), ..request.clone() }),
            key(&identity, &ChatRequest { temperature: 1.0, ..request }),
        ];
        for other in others {
            assert_ne!(other.unwrap(), first);
        }
    }
}
