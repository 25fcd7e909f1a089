//! A scripted model: answers come from a closure or a list. It is the model of nearly all tests.

use std::sync::Mutex;

use super::{ChatModel, ChatReply, ChatRequest, ModelError, ModelIdentity};

type Script = dyn Fn(&ChatRequest) -> Result<ChatReply, ModelError> + Send + Sync;

/// A model whose answers were written beforehand.
pub struct ScriptedModel {
    identity: ModelIdentity,
    script: Box<Script>,
}

impl ScriptedModel {
    /// A model of `family` that answers with a function of the request, so in any order of asking.
    pub fn new(
        family: &str,
        script: impl Fn(&ChatRequest) -> Result<ChatReply, ModelError> + Send + Sync + 'static,
    ) -> Self {
        let identity = ModelIdentity {
            provider: "scripted".to_owned(),
            model: family.to_owned(),
            base_url: String::new(),
            family: family.to_owned(),
        };
        Self { identity, script: Box::new(script) }
    }

    /// A model that gives its answers one after the other and then fails. Only for one asker at a time.
    pub fn list(family: &str, answers: impl IntoIterator<Item = Result<ChatReply, ModelError>>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        let answers = Mutex::new(answers);
        Self::new(family, move |_| {
            let next = answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
            next.unwrap_or_else(|| {
                Err(ModelError::Unsupported("the script has no further answer".to_owned()))
            })
        })
    }
}

impl ChatModel for ScriptedModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        (self.script)(request)
    }
}

#[cfg(test)]
mod tests {
    use super::ScriptedModel;
    use crate::models::{ChatMessage, ChatModel as _, ChatReply, ChatRequest};

    #[test]
    fn a_list_answers_in_order_and_then_fails() {
        let model = ScriptedModel::list("toy", [Ok(ChatReply::text("a")), Ok(ChatReply::text("b"))]);
        let request = ChatRequest::new(vec![ChatMessage::user("?")], 10);
        assert_eq!(model.complete(&request).unwrap().text, "a");
        assert_eq!(model.complete(&request).unwrap().text, "b");
        assert!(model.complete(&request).is_err());
    }
}
