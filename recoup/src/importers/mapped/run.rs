//! A run while its record, or its records, are read as a mapping says.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::mapping::{Mapping, MessageFields, RoleWord};
use super::path::Path;
use crate::importers::function_call::{called, tool_call};
use crate::importers::object::{Object, missing};
use crate::importers::openai_chat::tools;
use crate::importers::value::{json_object, text, text_or_source, value};
use crate::importers::{RecordError, Scoring, Sink, SinkError, row};
use crate::json::Json;
use crate::task::{EnvironmentRef, Task};
use crate::trajectory::{Call, Harness, Node, Outcome, Part, Role, Status, ToolCall, ToolResult, Trajectory};
use crate::warning::Loss;

/// Characters kept of a word that the mapping does not know.
const WORD_CHARACTERS_MAX: usize = 40;

/// A run while it is read.
pub(super) struct Draft<'m> {
    mapping: &'m Mapping,
    run: Trajectory,
    native: Option<String>,
    task: Option<String>,
    goal: Option<String>,
    model: Option<String>,
    /// As the source writes them: the last record of a run that says one is right.
    outcome: Option<Box<RawValue>>,
    score: Option<Box<RawValue>>,
    losses: BTreeSet<Loss>,
}

impl<'m> Draft<'m> {
    pub(super) fn new(mapping: &'m Mapping) -> Self {
        Self {
            mapping,
            run: Trajectory::new(&mapping.name, Task::from_goal("")),
            native: None,
            task: None,
            goal: None,
            model: None,
            outcome: None,
            score: None,
            losses: BTreeSet::new(),
        }
    }

    /// Takes what a record says of the run. Of several records the first that says something counts, and the
    /// last for how it went.
    pub(super) fn head(&mut self, raw: &RawValue) {
        let fields = &self.mapping.run;
        let first = |path: Option<&Path>| path.and_then(|path| path.first(raw));
        let said = |path: Option<&Path>| first(path).map(text_or_source);
        self.native = self.native.take().or_else(|| said(fields.id.as_ref()));
        self.task = self.task.take().or_else(|| said(fields.task.as_ref()));
        self.goal = self.goal.take().or_else(|| said(fields.goal.as_ref()));
        self.model = self.model.take().or_else(|| fields.model.as_ref()?.text(raw));
        let run = &mut self.run;
        run.trial = run.trial.or_else(|| first(fields.trial.as_ref()).and_then(value));
        run.seed = run.seed.or_else(|| first(fields.seed.as_ref()).and_then(value));
        let named = |name| Harness { name, version: None };
        run.harness = run.harness.take().or_else(|| fields.harness.as_ref()?.text(raw).map(named));
        let world = |name| EnvironmentRef { name, version: None, reset: None };
        run.environment =
            run.environment.take().or_else(|| fields.environment.as_ref()?.text(raw).map(world));
        if let (true, Some(raw)) = (run.tools.is_empty(), first(fields.tools.as_ref())) {
            match tools(raw, &self.mapping.name, &mut self.losses) {
                Some(found) => run.tools = found,
                None => self.lose(fields.tools.as_ref(), "no list of tools as OpenAI writes them"),
            }
        }
        self.run.hidden.gold = first(fields.gold.as_ref()).map(Json::from).or(self.run.hidden.gold.take());
        self.outcome = first(fields.outcome.as_ref()).map(ToOwned::to_owned).or(self.outcome.take());
        self.score = first(fields.score.as_ref()).map(ToOwned::to_owned).or(self.score.take());
    }

    /// Keeps what no path takes of a record that holds its messages.
    pub(super) fn keep_rest(&mut self, raw: &RawValue) {
        let Some(rest) = self.mapping.taken.record.rest_of(raw) else { return };
        match serde_json::from_str::<Object<'_>>(&rest) {
            Ok(object) => self.run.extra.extend(object.rest()),
            Err(_) => self.run.extra.extend([("record".to_owned(), Json::from_foreign(&rest))]),
        }
    }

    /// Adds a message; `place` names it in errors.
    pub(super) fn message(&mut self, raw: &RawValue, place: &str) -> Result<(), RecordError> {
        let within = |error: RecordError| RecordError::new(error.code, format!("{place}: {error}"));
        let fields = &self.mapping.message;
        let field = || fields.role.path().map(Path::to_string).unwrap_or_default();
        let word = fields.role.text(raw).ok_or_else(|| within(missing(&field())))?;
        let Some(role) = self.role(&word, &field()).map_err(within)? else {
            let reason = "a message whose role the mapping skips";
            self.losses.insert(Loss::new(&self.mapping.name, word, reason));
            return Ok(());
        };
        let agent = fields.agent.as_ref().and_then(|field| field.text(raw));
        let parts = if role == Role::Tool { Vec::new() } else { self.spoken(fields, raw) };
        let calls =
            parts.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None });
        let only_call = match calls.collect::<Vec<_>>().as_slice() {
            [call] => call.call_id.clone(),
            _ => None,
        };
        let at = fields.at.as_ref().and_then(|path| path.first(raw)).map(text_or_source);
        let mut extra = self.mapping.taken.message.rest_of(raw).map(|rest| Json::from_foreign(&rest));
        if role != Role::Tool {
            let mut node = Node::new(role, agent.clone().unwrap_or_else(|| role.as_str().to_owned()), parts);
            node.occurrence.sampled = role == Role::Assistant;
            node.occurrence.at.clone_from(&at);
            node.occurrence.extra = extra.take();
            let model = fields.model.as_ref().and_then(|path| path.first(raw)).map(text_or_source);
            node.occurrence.call =
                model.map(|model| Box::new(Call { model: Some(model), ..Call::default() }));
            self.run.push(node);
        }
        let answered = fields.result.as_ref().is_some_and(|path| path.first(raw).is_some());
        if role == Role::Tool || answered {
            let result = self.result(fields, role, only_call, raw);
            let agent =
                agent.filter(|_| role == Role::Tool).unwrap_or_else(|| Role::Tool.as_str().to_owned());
            let mut node = Node::new(Role::Tool, agent, vec![Part::ToolResult(result)]);
            node.occurrence.at = at;
            node.occurrence.extra = extra;
            self.run.push(node);
        }
        Ok(())
    }

    /// The role that a word means; `None` where the mapping skips it.
    fn role(&self, word: &str, field: &str) -> Result<Option<Role>, RecordError> {
        if let Some(known) = self.mapping.roles.get(word) {
            return Ok(RoleWord::role(*known));
        }
        match word {
            "system" | "developer" => Ok(Some(Role::System)),
            "user" => Ok(Some(Role::User)),
            "assistant" => Ok(Some(Role::Assistant)),
            "tool" | "function" => Ok(Some(Role::Tool)),
            _ => {
                let reason = format!("`{field}` is `{}`, which `[roles]` does not name", short(word));
                Err(RecordError::new("unknown-role", reason))
            }
        }
    }

    /// Reasoning, content and calls, in the order in which a model writes them.
    fn spoken(&mut self, fields: &MessageFields, raw: &RawValue) -> Vec<Part> {
        let mut parts = Vec::new();
        let thought = fields.reasoning.as_ref().and_then(|path| path.first(raw)).map(text_or_source);
        parts.extend(thought.map(|text| Part::Reasoning { text, signature: None }));
        parts.extend(self.texts(fields.content.as_ref(), raw));
        let Some(calls) = &fields.calls else { return parts };
        for item in calls.all(raw) {
            let call = match &self.mapping.call {
                None => self.openai_call(item),
                Some(call) => call.name.text(item).map(|name| {
                    let first = |path: Option<&Path>| path.and_then(|path| path.first(item));
                    called(first(call.id.as_ref()).map(text_or_source), name, first(call.arguments.as_ref()))
                }),
            };
            match call {
                Some(call) => parts.push(Part::ToolCall(call)),
                // A message that may be a call and is none.
                None if calls.is_root() => {}
                None => parts.push(Part::Opaque { kind: "call".to_owned(), raw: item.get().to_owned() }),
            }
        }
        parts
    }

    /// A call in OpenAI's form, where the mapping names no fields of calls.
    fn openai_call(&mut self, raw: &RawValue) -> Option<ToolCall> {
        let mut members = Object::of(raw)?;
        let call = tool_call(&mut members)?;
        for key in members.keys() {
            self.losses.insert(Loss::new(&self.mapping.name, key, "a call has no place for it"));
        }
        Some(call)
    }

    fn result(
        &mut self,
        fields: &MessageFields,
        role: Role,
        only_call: Option<String>,
        raw: &RawValue,
    ) -> ToolResult {
        let first = |path: Option<&Path>| path.and_then(|path| path.first(raw));
        let mut parts =
            if role == Role::Tool { self.texts(fields.content.as_ref(), raw) } else { Vec::new() };
        parts.extend(self.texts(fields.result.as_ref(), raw));
        let error = first(fields.error.as_ref());
        let is_error =
            error.map(|raw| value(raw).unwrap_or_else(|| text(raw).is_none_or(|text| !text.is_empty())));
        // An error told in words is what the agent read, too.
        parts.extend(error.and_then(text).filter(|text| !text.is_empty()).map(Part::text));
        ToolResult {
            call_id: first(fields.call_id.as_ref()).map(text_or_source).or(only_call),
            parts,
            is_error,
            exit_code: first(fields.exit_code.as_ref()).and_then(value),
        }
    }

    /// The texts at a path; of anything else its JSON.
    fn texts(&mut self, path: Option<&Path>, raw: &RawValue) -> Vec<Part> {
        let found = path.map(|path| path.all(raw)).unwrap_or_default();
        if found.iter().any(|raw| text(raw).is_none()) {
            self.lose(path, "no text: its JSON stands for it");
        }
        found.into_iter().map(|raw| Part::text(text_or_source(raw))).collect()
    }

    fn lose(&mut self, path: Option<&Path>, reason: &str) {
        let field = path.map(Path::to_string).unwrap_or_default();
        self.losses.insert(Loss::new(&self.mapping.name, field, reason));
    }

    /// The run, and the source's own id of it; losses go to the sink.
    pub(super) fn finish(
        mut self,
        scoring: &Scoring,
        sink: &mut dyn Sink,
    ) -> Result<(Trajectory, Option<String>), SinkError> {
        let outcome = self.outcome(scoring);
        let judged = [("outcome", &self.outcome), ("score", &self.score)];
        self.run.hidden.verifier_output =
            json_object(judged.into_iter().filter_map(|(name, raw)| Some((name, raw.as_ref()?.get()))));
        let goal = self.goal.take();
        self.run.task = match (self.task.take(), goal) {
            (Some(key), goal) => Task::named(key, goal.unwrap_or_else(|| row::goal(&self.run))),
            (None, Some(goal)) => Task::from_goal(goal),
            (None, None) => row::derived_task(&self.run),
        };
        for agent in &mut self.run.agents {
            agent.model.clone_from(&self.model);
        }
        self.run.finish(outcome);
        self.losses.into_iter().try_for_each(|loss| sink.loss(loss))?;
        Ok((self.run, self.native))
    }

    /// What the mapping's outcome says, else its score.
    fn outcome(&mut self, scoring: &Scoring) -> Outcome {
        let fields = &self.mapping.run;
        let named = |path: Option<&Path>| path.map(Path::to_string).unwrap_or_default();
        let score = self.score.as_deref().and_then(|raw| text_or_source(raw).parse::<f64>().ok());
        let score = score.filter(|score| score.is_finite());
        let Some(raw) = self.outcome.as_deref() else {
            return match score {
                Some(score) => {
                    let scores = [(named(fields.score.as_ref()), score)];
                    scoring.outcome(&scores, fields.success_at.unwrap_or(1.0))
                }
                None => Outcome::unknown(),
            };
        };
        let field = named(fields.outcome.as_ref());
        let word = text_or_source(raw);
        let status = self.mapping.outcomes.get(&word).copied().or(match word.as_str() {
            "true" | "success" => Some(Status::Success),
            "false" | "failure" => Some(Status::Failure),
            "unknown" => Some(Status::Unknown),
            _ => None,
        });
        if status.is_none() {
            let reason = "a word that `[outcomes]` does not name";
            self.losses.insert(Loss::new(&self.mapping.name, field.as_str(), reason));
        }
        let evidence = format!("{field} = {}", short(&word));
        Outcome { status: status.unwrap_or(Status::Unknown), score, termination: None, evidence }
    }
}

fn short(word: &str) -> String {
    word.chars().take(WORD_CHARACTERS_MAX).collect()
}
