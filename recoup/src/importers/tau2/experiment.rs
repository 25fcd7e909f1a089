//! What the runs of one experiment share: settings, environment and tasks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::FORMAT;
use crate::importers::object::Object;
use crate::importers::openai_chat::tools;
use crate::importers::slice::RawRecord;
use crate::importers::value::is_object;
use crate::json::Json;
use crate::task::EnvironmentRef;
use crate::trajectory::{Agent, Budget, Harness, Role, Trajectory};
use crate::warning::Loss;

/// Settings and tasks; empty for a run that stands alone.
#[derive(Debug, Default)]
pub(super) struct Experiment<'a> {
    domain: Option<String>,
    policy: Option<String>,
    version: Option<String>,
    steps_max: Option<u64>,
    tools: Option<&'a RawValue>,
    /// Model and settings of the agent and of the user's simulator.
    agent: Player,
    user: Player,
    tasks: BTreeMap<String, Object<'a>>,
    /// Settings that no run has a place for.
    dropped: Vec<String>,
}

#[derive(Debug, Default)]
struct Player {
    model: Option<String>,
    settings: Option<Json>,
}

impl<'a> Experiment<'a> {
    /// Reads the document around the runs; what is not as expected is left out.
    pub(super) fn of(header: Option<&'a RawRecord>) -> Self {
        let mut experiment = Self::default();
        let Some(mut root) = header.and_then(|record| record.parse::<Object<'a>>().ok()) else {
            return experiment;
        };
        for raw in root.list("tasks").unwrap_or_default() {
            let Some(mut task) = Object::of(raw) else { continue };
            if let Some(id) = task.id("id") {
                experiment.tasks.insert(id, task);
            }
        }
        let mut info = root.object("info");
        let mut environment = info.object("environment_info");
        experiment.domain = environment.text("domain_name");
        experiment.policy = environment.text("policy");
        experiment.tools = environment.take("tool_defs");
        experiment.drop_rest("environment_info.", environment);
        experiment.agent = experiment.player(&mut info, "agent_info");
        experiment.user = experiment.player(&mut info, "user_info");
        experiment.version = info.text("git_commit");
        experiment.steps_max = info.read("max_steps");
        experiment.drop_rest("", info);
        experiment
    }

    fn player(&mut self, info: &mut Object<'a>, key: &str) -> Player {
        let mut player = info.object(key);
        let model = player.text("llm");
        let settings = player.take_if("llm_args", is_object).map(Json::from);
        self.drop_rest(&format!("{key}."), player);
        Player { model, settings }
    }

    fn drop_rest(&mut self, prefix: &str, rest: Object<'a>) {
        self.dropped.extend(rest.rest().into_keys().map(|key| format!("info.{prefix}{key}")));
    }

    /// The task's identity; without an experiment its domain is not known.
    pub(super) fn task_key(&self, task_id: &str) -> String {
        match &self.domain {
            Some(domain) => format!("{FORMAT}/{domain}/{task_id}"),
            None => format!("{FORMAT}/{task_id}"),
        }
    }

    /// Writes into a run what its experiment knows of it. `policy` is the run's own, where it has one.
    pub(super) fn describe(
        &self,
        run: &mut Trajectory,
        task_id: &str,
        policy: Option<&str>,
        losses: &mut BTreeSet<Loss>,
    ) {
        run.harness = Some(Harness { name: "tau2-bench".to_owned(), version: self.version.clone() });
        run.budget = self.steps_max.map(|steps| Budget { steps: Some(steps), ..Budget::default() });
        let mut task = self.tasks.get(task_id).cloned().unwrap_or_default();
        run.hidden.gold = task.take("evaluation_criteria").map(Json::from);
        let reset = task.take("initial_state").map(Json::from);
        run.environment = self.domain.clone().map(|name| EnvironmentRef { name, version: None, reset });
        run.extra.extend(task.rest().into_iter().map(|(key, value)| (format!("task.{key}"), value)));
        if let Some(found) = self.tools.and_then(|raw| tools(raw, FORMAT, losses)) {
            run.tools = found;
        }
        let assistant = Role::Assistant.as_str();
        if !run.agents.iter().any(|agent| agent.name == assistant) {
            run.agents.push(Agent { name: assistant.to_owned(), model: None, system_prompt: None });
        }
        for agent in &mut run.agents {
            agent.model.clone_from(&self.agent.model);
            agent.system_prompt = policy.map(str::to_owned).or_else(|| self.policy.clone());
        }
        if self.user.model.is_some() {
            let name = Role::User.as_str().to_owned();
            run.agents.push(Agent { name, model: self.user.model.clone(), system_prompt: None });
        }
        for (key, player) in [("agent_llm_args", &self.agent), ("user_llm_args", &self.user)] {
            run.extra.extend(player.settings.clone().map(|settings| (key.to_owned(), settings)));
        }
        for field in &self.dropped {
            losses.insert(Loss::new(FORMAT, field, "a setting of the experiment, not of a run"));
        }
    }
}
