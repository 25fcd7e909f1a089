//! A task of a bridge, opened: a state is the list of the actions that led to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::arguments::refusal;
use super::super::{
    Action, Driver, EnvironmentError, Exchange, Fault, Goal, Instance, Score, State, Step, TaskSpec,
    ToolSpec, run_by_value,
};
use super::Shared;
use super::protocol::{ResetBy, START, Shown, Talk};
use crate::id::Hash;

/// A task, and the program that plays it.
pub(super) struct BridgeInstance {
    shared: Arc<Shared>,
    task: TaskSpec,
    key: Hash,
    tools: Arc<[ToolSpec]>,
    first_observation: String,
    /// None after the program has failed; the next call starts another and takes the actions again.
    talk: Option<Talk>,
    /// What each state showed when it was first reached.
    seen: BTreeMap<String, Shown>,
}

impl BridgeInstance {
    pub(super) fn open(shared: &Arc<Shared>, task: &TaskSpec) -> Result<Self, EnvironmentError> {
        let mut instance = Self {
            shared: shared.clone(),
            task: task.clone(),
            key: Hash::of(task.json.as_bytes()),
            tools: Arc::default(),
            first_observation: String::new(),
            talk: None,
            seen: BTreeMap::new(),
        };
        let mut talk = shared.take(instance.key)?;
        let at_start = talk.at.as_ref().is_some_and(|(key, prefix)| *key == instance.key && prefix == START);
        let known = if at_start { talk.first.clone() } else { None };
        let first = match known {
            Some(first) => first,
            None => talk.reset(instance.by(), None)?,
        };
        instance.same_task(&first.task)?;
        instance.tools = ToolSpec::read_all(&shared.name, &first.tools.to_string())?.into();
        instance.first_observation = first.observation;
        instance.talk = Some(talk);
        Ok(instance)
    }

    fn by(&self) -> ResetBy<'_> {
        ResetBy { seed: self.task.seed, difficulty: self.task.difficulty, family: &self.task.family }
    }

    fn broken(&self, message: String) -> EnvironmentError {
        EnvironmentError::new(&self.shared.name, Fault::Contract, message)
    }

    fn same_task(&self, task: &Value) -> Result<(), EnvironmentError> {
        if *task.to_string() == *self.task.json {
            return Ok(());
        }
        let ResetBy { seed, difficulty, .. } = self.by();
        Err(self.broken(format!("seed {seed} of difficulty {difficulty} does not give the same task again")))
    }

    /// Lets the program reach a state and does something there. A program that failed is dropped.
    fn at<T>(
        &mut self,
        state: &State,
        body: impl FnOnce(&mut Self, &mut Talk) -> Result<T, EnvironmentError>,
    ) -> Result<T, EnvironmentError> {
        let mut talk = match self.talk.take() {
            Some(talk) => talk,
            None => self.shared.take(self.key)?,
        };
        let result = self.reach(&mut talk, state).and_then(|()| body(self, &mut talk));
        // Without a known place the program has failed: it may not be trusted with another task.
        if talk.at.is_some() {
            self.talk = Some(talk);
        }
        result
    }

    fn reach(&mut self, talk: &mut Talk, state: &State) -> Result<(), EnvironmentError> {
        if talk.at.as_ref().is_some_and(|(key, prefix)| *key == self.key && prefix == state.as_str()) {
            return Ok(());
        }
        let actions: Vec<Value> = serde_json::from_str(state.as_str())
            .map_err(|error| self.broken(format!("the state is no list of actions: {error}")))?;
        let mut prefixes = vec![START.to_owned()];
        for action in &actions {
            prefixes.push(with(prefixes.last().map_or(START, String::as_str), &action.to_string()));
        }
        if prefixes.last().is_none_or(|last| last != state.as_str()) {
            return Err(self.broken("the state is no list of actions as a bridge writes it".to_owned()));
        }
        let here = talk.at.as_ref().filter(|(key, _)| *key == self.key).map(|(_, prefix)| prefix.as_str());
        let mut from = prefixes.len();
        let mut snapshot = None;
        let mut reset = true;
        while from > 0 {
            from -= 1;
            let Some(prefix) = prefixes.get(from) else { break };
            if here == Some(prefix.as_str()) {
                reset = false;
                break;
            }
            snapshot = talk.snapshots.get(prefix).filter(|_| here.is_some()).cloned();
            if snapshot.is_some() {
                break;
            }
        }
        if reset {
            self.begin(talk, snapshot.as_deref(), prefixes.get(from).map_or(START, String::as_str))?;
        }
        for (prefix, action) in prefixes.iter().zip(actions).skip(from) {
            let shown = self.take(talk, prefix, &action)?;
            let after = talk.at.as_ref().map(|(_, prefix)| prefix.as_str());
            if shown.done && after != Some(state.as_str()) {
                talk.at = None;
                return Err(self.broken("the episode ends before the state's last action".to_owned()));
            }
        }
        Ok(())
    }

    /// Resets the program and compares what it shows with what it showed before.
    fn begin(&self, talk: &mut Talk, snapshot: Option<&str>, prefix: &str) -> Result<(), EnvironmentError> {
        let first = talk.reset(self.by(), snapshot)?;
        let at = talk.at.take();
        self.same_task(&first.task)?;
        if ToolSpec::read_all(&self.shared.name, &first.tools.to_string())? != *self.tools {
            return Err(self.broken("its tools have changed since the task was opened".to_owned()));
        }
        if snapshot.is_none() && !self.shared.alike(&first.observation, &self.first_observation) {
            return Err(self.differs(0, &self.first_observation, &first.observation));
        }
        talk.at = at.map(|(key, _)| (key, prefix.to_owned()));
        Ok(())
    }

    /// Takes an action where the program stands, and compares what it shows with what it showed before.
    fn take(&mut self, talk: &mut Talk, before: &str, action: &Value) -> Result<Shown, EnvironmentError> {
        let after = with(before, &action.to_string());
        let shown = talk.step(action)?;
        let most = self.shared.identity.manifest.limits.observation_bytes;
        if shown.observation.len() as u64 > most {
            talk.at = None;
            let message =
                format!("an observation has {} bytes; at most {most} are allowed", shown.observation.len());
            return Err(EnvironmentError::new(&self.shared.name, Fault::Limit, message));
        }
        if let Some(known) = self.seen.get(&after) {
            let alike = self.shared.alike(&known.observation, &shown.observation)
                && (known.is_error, known.done, &known.hash) == (shown.is_error, shown.done, &shown.hash);
            if !alike {
                talk.at = None;
                let steps = serde_json::from_str::<Vec<Value>>(&after).map_or(0, |actions| actions.len());
                return Err(self.differs(steps, &known.observation, &shown.observation));
            }
        } else {
            self.seen.insert(after.clone(), shown.clone());
        }
        if self.shared.hello.snapshots && !shown.done && !talk.snapshots.contains_key(&after) {
            let name = talk.snapshot()?;
            talk.snapshots.insert(after.clone(), name);
        }
        talk.at = Some((self.key, after));
        Ok(shown)
    }

    fn differs(&self, steps: usize, known: &str, found: &str) -> EnvironmentError {
        use super::super::child::shortened;
        self.broken(format!(
            "not deterministic: after {steps} actions it showed {} and now {}",
            shortened(known),
            shortened(found)
        ))
    }
}

impl Drop for BridgeInstance {
    fn drop(&mut self) {
        if let Some(talk) = self.talk.take() {
            self.shared.give_back(talk);
        }
    }
}

/// A list of actions with one more.
fn with(prefix: &str, action: &str) -> String {
    let open = prefix.strip_suffix(']').unwrap_or(prefix);
    let comma = if open.len() > 1 { "," } else { "" };
    format!("{open}{comma}{action}]")
}

impl Instance for BridgeInstance {
    fn tools(&self) -> &Arc<[ToolSpec]> {
        &self.tools
    }

    fn start(&mut self) -> Result<(State, String), EnvironmentError> {
        Ok((State::new(START), self.first_observation.clone()))
    }

    fn step(&mut self, state: &State, action: &Action) -> Result<(State, Step), EnvironmentError> {
        if let Action::Call { tool, arguments } = action
            && let Some(observation) = refusal(&self.tools, tool, &arguments.to_value())
        {
            return Ok((state.clone(), Step { observation, is_error: true, done: false }));
        }
        let action =
            serde_json::from_str(&action.to_json()).map_err(|error| self.broken(error.to_string()))?;
        self.at(state, |instance, talk| {
            let shown = instance.take(talk, state.as_str(), &action)?;
            let after =
                talk.at.as_ref().map_or_else(|| state.clone(), |(_, prefix)| State::new(prefix.as_str()));
            Ok((after, Step { observation: shown.observation, is_error: shown.is_error, done: shown.done }))
        })
    }

    fn verify(&mut self, state: &State, _transcript: &[Exchange]) -> Result<Score, EnvironmentError> {
        self.at(state, |instance, talk| {
            let verified = talk.verify()?;
            Score::checked(verified.success, verified.score, verified.checks)
                .map_err(|what| instance.broken(format!("verify: {what}")))
        })
    }

    fn expert(&mut self, state: &State) -> Result<Option<Action>, EnvironmentError> {
        if !self.shared.hello.expert {
            return Ok(None);
        }
        self.at(state, |instance, talk| match talk.expert()? {
            Value::Null => Ok(None),
            action => Action::from_json(&action.to_string())
                .map(Some)
                .map_err(|what| instance.broken(format!("expert: {what}"))),
        })
    }

    fn achieved(&mut self, _state: &State) -> Result<Vec<Goal>, EnvironmentError> {
        Ok(Vec::new())
    }

    fn run(&mut self, from: Option<&State>, driver: &mut dyn Driver) -> Result<State, EnvironmentError> {
        run_by_value(self, from, driver)
    }
}

#[cfg(test)]
mod tests {
    use super::{START, with};

    #[test]
    fn a_prefix_grows_by_an_action() {
        let one = with(START, r#"{"say":"a"}"#);
        assert_eq!(one, r#"[{"say":"a"}]"#);
        assert_eq!(with(&one, r#"{"say":"b"}"#), r#"[{"say":"a"},{"say":"b"}]"#);
    }
}
