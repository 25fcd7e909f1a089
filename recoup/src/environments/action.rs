//! Actions, what they lead to, and how an episode is scored.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::canonical::write_string;
use crate::json::Json;

/// What a policy does in one step of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A tool call.
    Call {
        /// Name of the tool.
        tool: Arc<str>,
        /// A JSON object.
        arguments: Json,
    },
    /// Words: to the user where there is one, else the end of the run.
    Say(Arc<str>),
}

impl Action {
    /// A tool call; arguments that are no JSON object are sent as they are and refused there.
    pub fn call(tool: impl Into<Arc<str>>, arguments: Json) -> Self {
        Self::Call { tool: tool.into(), arguments }
    }

    /// Words.
    pub fn say(text: impl Into<Arc<str>>) -> Self {
        Self::Say(text.into())
    }

    /// The action as packages see it: `{"tool", "arguments"}` or `{"say"}`.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Call { tool, arguments } => {
                out.push_str("{\"tool\":");
                write_string(&mut out, tool);
                out.push_str(",\"arguments\":");
                out.push_str(arguments.as_str());
            }
            Self::Say(text) => {
                out.push_str("{\"say\":");
                write_string(&mut out, text);
            }
        }
        out.push('}');
        out
    }

    /// Reads what [`Action::to_json`] writes.
    ///
    /// # Errors
    /// In words, where it is neither of the two forms.
    pub fn from_json(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Form {
            tool: Option<String>,
            arguments: Option<Json>,
            say: Option<String>,
        }
        let form: Form = serde_json::from_str(text).map_err(|error| format!("no action: {error}"))?;
        match form {
            Form { tool: Some(tool), arguments: Some(arguments), say: None } => {
                Ok(Self::call(tool, arguments))
            }
            Form { tool: None, arguments: None, say: Some(text) } => Ok(Self::say(text)),
            _ => Err("an action has `tool` and `arguments`, or `say`".to_owned()),
        }
    }
}

/// What a step has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// What the policy sees.
    pub observation: String,
    /// True where the action was refused or failed.
    pub is_error: bool,
    /// True where the episode has ended.
    pub done: bool,
}

impl Step {
    /// What a driver sees first when it continues from a state: nothing new.
    pub fn resumed() -> Self {
        Self::default()
    }
}

/// An action with what it showed: an element of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// What was done.
    pub action: Action,
    /// What was seen.
    pub step: Step,
}

/// A verifier's word on an end state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Score {
    /// True where the goal was reached.
    pub success: bool,
    /// From 0 (nothing done) to 1; above 0.5 exactly where `success`, so that no failure outscores a success.
    pub score: f64,
    /// The conditions looked at, by name.
    pub checks: BTreeMap<String, bool>,
}

impl Score {
    /// A score that keeps the rule: from 0 to 1, and above 0.5 exactly for a success.
    ///
    /// # Errors
    /// In words, where it does not.
    pub fn checked(success: bool, score: f64, checks: BTreeMap<String, bool>) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&score) || success != (score > 0.5) {
            return Err(format!("success is {success} and score {score}; a success scores above 0.5"));
        }
        Ok(Self { success, score, checks })
    }
}

/// A goal that a state fulfills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// In words, as a user would have asked.
    pub goal: String,
    /// Keys to replace in the task, so that its verifier checks this goal: a JSON object.
    pub task: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::Action;
    use crate::json::Json;

    #[test]
    fn an_action_reads_back() {
        let call = Action::call("go", Json::parse(r#"{"to":"a \"b\""}"#).unwrap());
        let say = Action::say("line\nbreak");
        for action in [call, say] {
            assert_eq!(Action::from_json(&action.to_json()).unwrap(), action);
        }
        assert!(Action::from_json(r#"{"tool":"go"}"#).is_err());
        assert!(Action::from_json(r#"{"say":"x","tool":"go","arguments":{}}"#).is_err());
    }
}
