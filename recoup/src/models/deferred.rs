//! Deferred questions: they are sent together, at half the price, and answered within a day.
//!
//! A stage that asks such a question hears that the answer is pending. When the provider is done, answers go
//! among those that are kept, and the stage, run again, finds them there. What is under way is written down
//! before it is sent, so that a command that is stopped sends nothing twice.

use super::{ChatRequest, ModelError};
use crate::id::{Hash, TrajectoryId};

/// Takes questions to be sent later.
pub trait Defer: Send + Sync {
    /// Takes a question, unless it is under way.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    fn defer(
        &self,
        key: Hash,
        request: &ChatRequest,
        stage: &str,
        run: Option<TrajectoryId>,
    ) -> Result<(), ModelError>;

    /// Whether a question is under way.
    ///
    /// # Errors
    /// [`ModelError::Cache`], or why the provider has refused it since the command began.
    fn is_under_way(&self, key: &Hash) -> Result<bool, ModelError>;
}

/// A question that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// Hash of the question and of who is asked.
    pub key: Hash,
    /// The stage that asked.
    pub stage: String,
    /// The run that it is about.
    pub run: Option<TrajectoryId>,
}

/// A batch that a provider works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenBatch {
    /// Hash of its questions.
    pub name: Hash,
    /// The provider's id; `None` where the command was stopped before it heard it.
    pub id: Option<String>,
}

/// Writes down what is under way.
pub trait BatchLog: Send + Sync {
    /// Whether a question is in a batch.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    fn holds(&self, key: &Hash) -> Result<bool, ModelError>;

    /// Notes a batch before it is sent.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    fn begin(
        &self,
        name: &Hash,
        base_url: &str,
        model: &str,
        questions: &[UnderWay],
    ) -> Result<(), ModelError>;

    /// Notes the provider's id of a batch.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    fn sent(&self, name: &Hash, id: &str) -> Result<(), ModelError>;

    /// The batches of a model that are not over.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    fn open(&self, base_url: &str, model: &str) -> Result<Vec<OpenBatch>, ModelError>;

    /// The questions of a batch.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    fn questions(&self, name: &Hash) -> Result<Vec<UnderWay>, ModelError>;

    /// Strikes out a batch that is over.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    fn end(&self, name: &Hash) -> Result<(), ModelError>;
}
