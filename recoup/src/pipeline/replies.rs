//! The answers of models, kept in the project.

use crate::id::{Hash, TrajectoryId};
use crate::models::cached::{Kept, ReplyCache};
use crate::models::{ChatReply, ModelError};
use crate::store::{Replies, Reply, StoreError};

impl ReplyCache for Replies {
    fn get(&self, key: &Hash, run: Option<TrajectoryId>) -> Result<Option<ChatReply>, ModelError> {
        let Some(body) = Self::get(self, key, run).map_err(|error| failed(&error))? else { return Ok(None) };
        serde_json::from_str(&body)
            .map(Some)
            .map_err(|error| ModelError::Cache(format!("an answer in the project is damaged: {error}")))
    }

    fn put(&self, kept: &Kept<'_>) -> Result<(), ModelError> {
        let body = serde_json::to_string(kept.reply).map_err(|error| ModelError::Cache(error.to_string()))?;
        let reply = Reply {
            key: kept.key,
            run: kept.run,
            stage: kept.stage,
            model: kept.model,
            prompt_tokens: kept.usage.prompt,
            completion_tokens: kept.usage.completion,
            cost: kept.cost.map(|cost| cost.0),
            took_ms: kept.took_ms,
            body: &body,
        };
        Self::put(self, &reply).map_err(|error| failed(&error))
    }
}

fn failed(error: &StoreError) -> ModelError {
    ModelError::Cache(error.to_string())
}
