//! A session while its file is read.

use std::collections::{BTreeMap, VecDeque};

use serde_json::value::RawValue;

use super::event::{Exit, Tokens};
use super::fork::Fork;
use crate::importers::RecordError;
use crate::importers::dialect::{Aside, Item};
use crate::importers::object::Object;
use crate::importers::value::{json_object, text_or_source};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{
    Agent, Call, Harness, Node, Outcome, Part, Role, Termination, TerminationKind, Trajectory,
};

/// Where a session's head names the session that it was forked from.
const FORKED_FROM: &str = "forked_from_id";

/// A session while its file is read.
pub(super) struct Session {
    pub(super) run: Trajectory,
    native: Option<String>,
    /// The last message of the current context.
    pub(super) end: Option<usize>,
    /// The response whose pieces are still coming.
    pub(super) open: Option<usize>,
    /// Exit codes and failures that events told, by call, in order: ids may repeat.
    pub(super) exits: BTreeMap<String, VecDeque<Exit>>,
    pub(super) total: Option<Tokens>,
    model: Option<String>,
    parameters: Option<Json>,
    pub(super) aborted: Option<String>,
    /// How many messages events tell of.
    pub(super) told: usize,
    pub(super) fork: Fork,
    losses: Vec<(String, &'static str)>,
}

impl Session {
    pub(super) fn new(format: &str) -> Self {
        let mut run = Trajectory::new(format, Task::named("codex", ""));
        run.agents.push(Agent { name: "assistant".to_owned(), model: None, system_prompt: None });
        Self {
            run,
            native: None,
            end: None,
            open: None,
            exits: BTreeMap::new(),
            total: None,
            model: None,
            parameters: None,
            aborted: None,
            told: 0,
            fork: Fork::default(),
            losses: Vec::new(),
        }
    }

    pub(super) fn lose(&mut self, field: impl Into<String>, reason: &'static str) {
        self.losses.push((field.into(), reason));
    }

    pub(super) fn meta(&mut self, mut fields: Object<'_>) -> Result<(), RecordError> {
        let id: String = fields.required("id")?;
        if self.native.as_ref().is_some_and(|native| *native != id) {
            self.fork.begin();
            self.run.extra.entry(FORKED_FROM.to_owned()).or_insert_with(|| Json::string(&id));
            return Ok(());
        }
        self.native = Some(id);
        if fields.get(FORKED_FROM).is_some() {
            self.fork.begin();
        }
        let version = fields.optional("cli_version")?;
        let name = fields.optional("originator")?.unwrap_or_else(|| "codex".to_owned());
        self.run.harness = Some(Harness { name, version });
        let base = fields.take("base_instructions");
        let instructions: Vec<String> = [base, fields.take("instructions")]
            .into_iter()
            .flatten()
            .map(|raw| {
                let inner = Object::of(raw).and_then(|mut inner| inner.text("text"));
                inner.unwrap_or_else(|| text_or_source(raw))
            })
            .collect();
        if let (false, Some(agent)) = (instructions.is_empty(), self.run.agents.first_mut()) {
            agent.system_prompt = Some(instructions.join("\n\n"));
        }
        let repository = fields.take("git").map(Json::from);
        let url =
            repository.as_ref().and_then(|git| git.to_value()["repository_url"].as_str().map(str::to_owned));
        self.run.task.group_keys.extend(url.map(|url| format!("repository/{url}")));
        self.run.extra.extend(repository.map(|git| ("git".to_owned(), git)));
        self.run.extra.extend(fields.rest());
        Ok(())
    }

    pub(super) fn context(&mut self, mut fields: Object<'_>) -> Result<(), RecordError> {
        self.model = fields.optional("model")?.or(self.model.take());
        if let Some(agent) = self.run.agents.first_mut() {
            agent.model = agent.model.take().or_else(|| self.model.clone());
        }
        let sampling: BTreeMap<&str, Json> = ["effort", "summary"]
            .into_iter()
            .filter_map(|key| Some((key, fields.take(key).map(Json::from)?)))
            .collect();
        self.parameters = if sampling.is_empty() { None } else { Json::from_serialize(&sampling).ok() };
        // The rest (sandbox, approval, instructions) hardly changes and may be large: kept once.
        if let Some(rest) = json_object(fields.rest())
            && *self.run.extra.entry("turn_context".to_owned()).or_insert_with(|| rest.clone()) != rest
        {
            self.lose("turn_context", "settings that changed between turns");
        }
        Ok(())
    }

    pub(super) fn item(&mut self, raw: &RawValue, at: Option<String>) -> Result<(), RecordError> {
        let mut aside = Aside::default();
        let item = Item::read(raw, &mut aside)?;
        self.run.media.extend(aside.media);
        self.losses.extend(aside.lost);
        match item {
            Item::Message(role, parts) => {
                self.open = None;
                self.push(Node::new(role, role.as_str(), parts), at);
            }
            Item::Output(result) => {
                self.open = None;
                self.push(Node::new(Role::Tool, "tool", vec![Part::ToolResult(result)]), at);
            }
            // Reasoning that the provider neither shows nor seals.
            Item::Piece(parts) if parts.is_empty() => {}
            Item::Piece(parts) => {
                if let Some(open) = self.open {
                    self.run.nodes[open].parts.extend(parts);
                    return Ok(());
                }
                let mut node = Node::new(Role::Assistant, "assistant", parts).sampled();
                node.occurrence.call = Some(Box::new(Call {
                    model: self.model.clone(),
                    parameters: self.parameters.clone(),
                    ..Call::default()
                }));
                self.open = Some(self.push(node, at));
            }
            Item::Other(kind) => self.lose(kind, "neither read nor written by the model"),
        }
        Ok(())
    }

    fn push(&mut self, mut node: Node, at: Option<String>) -> usize {
        node.parent = self.end;
        node.occurrence.at = at;
        if self.fork.is_copying() {
            node.occurrence.sampled = false;
            node.occurrence.copied_context = true;
        }
        let position = self.run.push_under(node);
        self.end = Some(position);
        position
    }

    /// The context is replaced: what follows does not continue what came before.
    pub(super) fn compacted(
        &mut self,
        mut fields: Object<'_>,
        at: Option<String>,
    ) -> Result<(), RecordError> {
        let summary: Option<String> = fields.optional("message")?;
        let history: Vec<&RawValue> = fields.optional("replacement_history")?.unwrap_or_default();
        self.open = None;
        self.end = None;
        let first = self.run.nodes.len();
        for raw in &history {
            self.item(raw, None)?;
        }
        for node in &mut self.run.nodes[first..] {
            node.occurrence.sampled = false;
            node.occurrence.copied_context = true;
        }
        self.open = None;
        if let (Some(summary), true) = (summary, history.is_empty()) {
            self.push(Node::new(Role::User, "user", vec![Part::text(summary)]), at);
        }
        Ok(())
    }

    /// The run, its native id and what was lost.
    pub(super) fn finish(mut self) -> (Trajectory, Option<String>, Vec<(String, &'static str)>) {
        for result in self.run.nodes.iter_mut().flat_map(|node| &mut node.parts) {
            if let Part::ToolResult(result) = result
                && let Some(exit) = result
                    .call_id
                    .as_ref()
                    .and_then(|id| self.exits.get_mut(id))
                    .and_then(VecDeque::pop_front)
            {
                result.exit_code = exit.code.or(result.exit_code);
                result.is_error = exit.failed.or(result.is_error);
            }
        }
        if self.exits.values().any(|exits| !exits.is_empty()) {
            self.lose("exec_command_end", "tells of a call without a result");
        }
        let talks = |node: &Node| node.parts.iter().any(|part| part.as_text().is_some());
        if self.told > 0 && !self.run.nodes.iter().any(talks) {
            self.lose("event_msg", "messages that only events tell");
        }
        self.run.task = Task { group_keys: std::mem::take(&mut self.run.task.group_keys), ..self.task() };
        let mut outcome = Outcome::unknown();
        outcome.termination =
            self.aborted.map(|reason| Termination { kind: TerminationKind::Cancelled, native: reason });
        self.run.finish_tree(self.end, outcome);
        (self.run, self.native, self.losses)
    }

    /// The first thing the user said, passing over what the harness says in the user's name.
    fn task(&self) -> Task {
        const HARNESS: [&str; 4] =
            ["<environment_context>", "<user_instructions>", "# AGENTS.md", "<INSTRUCTIONS>"];
        let users = self.run.nodes.iter().filter(|node| node.role == Role::User);
        let texts = users.filter_map(|node| node.parts.iter().find_map(Part::as_text));
        let goal =
            texts.into_iter().find(|text| !HARNESS.iter().any(|start| text.trim_start().starts_with(start)));
        match goal {
            Some(goal) => Task::from_goal(goal),
            None => Task::named(format!("codex/{}", self.native.as_deref().unwrap_or_default()), ""),
        }
    }
}
