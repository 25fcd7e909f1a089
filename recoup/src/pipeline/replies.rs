//! The answers of models, and what is under way to them, kept in the project.

use crate::id::{Hash, TrajectoryId};
use crate::models::cached::{Kept, ReplyCache};
use crate::models::deferred::{BatchLog, OpenBatch, UnderWay};
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
            took_ms: kept.reply.took_ms,
            body: &body,
        };
        Self::put(self, &reply).map_err(|error| failed(&error))
    }
}

impl BatchLog for Replies {
    fn holds(&self, key: &Hash) -> Result<bool, ModelError> {
        self.in_batch(key).map_err(|error| failed(&error))
    }

    fn begin(
        &self,
        name: &Hash,
        base_url: &str,
        model: &str,
        questions: &[UnderWay],
    ) -> Result<(), ModelError> {
        let rows: Vec<_> =
            questions.iter().map(|question| (question.key, question.stage.clone(), question.run)).collect();
        self.begin_batch(name, base_url, model, &rows).map_err(|error| failed(&error))
    }

    fn sent(&self, name: &Hash, id: &str) -> Result<(), ModelError> {
        self.name_batch(name, id).map_err(|error| failed(&error))
    }

    fn open(&self, base_url: &str, model: &str) -> Result<Vec<OpenBatch>, ModelError> {
        let batches = self.batches(base_url, model).map_err(|error| failed(&error))?;
        Ok(batches.into_iter().map(|(name, id)| OpenBatch { name, id }).collect())
    }

    fn questions(&self, name: &Hash) -> Result<Vec<UnderWay>, ModelError> {
        let rows = self.batch_questions(name).map_err(|error| failed(&error))?;
        Ok(rows.into_iter().map(|(key, stage, run)| UnderWay { key, stage, run }).collect())
    }

    fn end(&self, name: &Hash) -> Result<(), ModelError> {
        self.end_batch(name).map_err(|error| failed(&error))
    }
}

fn failed(error: &StoreError) -> ModelError {
    ModelError::Cache(error.to_string())
}
