//! A fixed list of actions, one a turn, whatever they lead to.

use serde_json::Value;

use super::Family;
use crate::environments::{Action, Scene};
use crate::id::Hash;
use crate::rollout::{Policy, PolicyError, Situation, Turn};

/// See the module. After its last action it stops.
pub struct Scripted {
    name: String,
    actions: Vec<Action>,
}

pub(super) struct ScriptedFamily;

impl Family for ScriptedFamily {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn usage(&self) -> String {
        "scripted:<JSON list of actions>".to_owned()
    }

    fn describe(&self) -> &'static str {
        "takes the listed actions, one a turn, and stops"
    }

    fn parse(&self, parameters: &str) -> Result<Box<dyn Policy>, String> {
        let value: Value = serde_json::from_str(parameters).map_err(|error| format!("no JSON: {error}"))?;
        let list = value.as_array().ok_or("the actions are no list")?;
        let actions: Result<Vec<Action>, String> = list
            .iter()
            .enumerate()
            .map(|(at, action)| {
                Action::from_json(&action.to_string()).map_err(|reason| format!("action {at}: {reason}"))
            })
            .collect();
        Ok(Box::new(Scripted::new(actions?)))
    }
}

impl Scripted {
    /// A policy of these actions. Its name holds their hash, not all of them.
    pub fn new(actions: Vec<Action>) -> Self {
        let texts: Vec<String> = actions.iter().map(Action::to_json).collect();
        let hash = Hash::of(texts.join("\n").as_bytes()).to_string();
        Self { name: format!("scripted:{}", &hash[..12]), actions }
    }
}

impl Policy for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn act(&self, situation: &Situation<'_>, _: &mut dyn Scene) -> Result<Turn, PolicyError> {
        let next = self.actions.get(usize::try_from(situation.turn).unwrap_or(usize::MAX));
        Ok(next.cloned().map(Turn::from).unwrap_or_default())
    }
}
