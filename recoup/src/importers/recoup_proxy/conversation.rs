//! One conversation, put together from the entries of the log.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::value::RawValue;

use super::visit::{self, Taught, Visit};
use super::{Api, BUDGET, Begin, CONTEXT_FULL, End, Entry, FORMAT, Label, Outcome, Problem, said};
use crate::importers::dialect::Aside;
use crate::importers::slice::RecordError;
use crate::importers::{openai_chat, row, value};
use crate::interleaving::{Delivered, Interleaving, Mixing, Readings, RequestOutcome};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Harness, Outcome as RunOutcome, Role, Status, Trajectory};
use crate::verdict::{Actor, LabelRefusal};
use crate::warning::Loss;

/// Messages that one conversation may hold.
const MESSAGES_MAX: u32 = 10_000_000;

/// A conversation under construction.
pub(super) struct Conversation {
    name: String,
    run: Trajectory,
    /// Position of the last node of each message, by the message's number.
    positions: BTreeMap<u32, Option<usize>>,
    requests: BTreeMap<u32, Request>,
    failed: Vec<Failed>,
    shared: Option<Shared>,
    outcome: RunOutcome,
    last: Option<usize>,
    aside: Aside,
    losses: BTreeSet<Loss>,
}

/// A request, as far as it is known.
struct Request {
    api: Api,
    at: String,
    actor: Actor,
    turn: u64,
    /// Position of the last message of the state that it shows.
    state: Option<usize>,
    parameters: Option<Json>,
    /// Whether it came to an end.
    ended: bool,
    /// Position of its answer.
    executed: Option<usize>,
    /// Whether the teacher was to be asked.
    shared: bool,
    taught: Option<Result<Taught, LabelRefusal>>,
    /// Whether the upstream said that the state is longer than the model's context.
    overflowed: bool,
    /// Whether a cap on spending kept it from being asked.
    capped: bool,
}

struct Shared {
    teacher: String,
    round: u32,
    mixing: Mixing,
    context: Option<u64>,
}

/// A request that nobody answered in whole.
#[derive(Serialize)]
struct Failed {
    request: u32,
    at: String,
    /// Position of the message that it followed.
    node: Option<usize>,
    code: String,
    message: String,
}

/// A conversation as a run.
pub(super) struct Finished {
    pub run: Trajectory,
    /// Its name in the log.
    pub name: String,
    /// The states that were visited while a teacher took part.
    pub visits: Vec<Visit>,
    pub losses: BTreeSet<Loss>,
}

impl Conversation {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            run: Trajectory::new(FORMAT, Task::from_goal("")),
            positions: BTreeMap::new(),
            requests: BTreeMap::new(),
            failed: Vec::new(),
            shared: None,
            outcome: RunOutcome::unknown(),
            last: None,
            aside: Aside::default(),
            losses: BTreeSet::new(),
        }
    }

    /// Whether the log holds a request of it.
    pub(super) fn has_begun(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Takes an entry in, in the order of the log.
    ///
    /// # Errors
    /// When it does not fit what came before.
    pub(super) fn add(&mut self, entry: Entry<'_>) -> Result<(), RecordError> {
        match entry {
            Entry::Begin(begin) => self.begin(begin),
            Entry::End(end) => self.end(end),
            Entry::Label(label) => self.label(label),
            Entry::Outcome(outcome) => {
                self.outcome = judged(&outcome);
                Ok(())
            }
        }
    }

    fn begin(&mut self, begin: Begin<'_>) -> Result<(), RecordError> {
        let under = match begin.parent {
            None => None,
            Some(parent) => self.position(parent)?,
        };
        let state = self.messages(begin.api, begin.first, &begin.messages, under, false);
        for tool in begin.tools.and_then(value::elements).unwrap_or_default() {
            self.tool(tool);
        }
        if let (Some(task), true) = (begin.task, self.run.task.derived) {
            self.run.task = Task::named(task, "");
        }
        let trial = begin.episode.and_then(|episode| i64::try_from(episode).ok());
        self.run.trial = self.run.trial.or(trial);
        if let (Some(harness), None) = (&begin.harness, &self.run.harness) {
            let named = harness.split_once('/');
            let (name, version) = named.map_or((&**harness, None), |(name, version)| (name, Some(version)));
            self.run.harness = Some(Harness { name: name.to_owned(), version: version.map(str::to_owned) });
        }
        let request = Request {
            api: begin.api,
            at: begin.at.into_owned(),
            actor: begin.actor,
            turn: begin.turn.into(),
            state,
            parameters: begin.parameters.map(Json::from),
            ended: false,
            executed: None,
            shared: begin.sharing.is_some(),
            taught: None,
            overflowed: false,
            capped: false,
        };
        if let Some(sharing) = begin.sharing {
            let super::Sharing { teacher, round, mixing, context } = sharing;
            self.shared = Some(Shared { teacher: teacher.into_owned(), round, mixing, context });
        }
        self.requests.insert(begin.request, request);
        self.last = state.or(self.last);
        Ok(())
    }

    /// A tool that was offered; one that only the provider knows has no definition.
    fn tool(&mut self, raw: &RawValue) {
        let Ok(list) = RawValue::from_string(format!("[{}]", raw.get())) else { return };
        let Some(tools) = openai_chat::tools(&list, FORMAT, &mut self.losses) else {
            let reason = "a tool that the provider runs has no definition";
            self.losses.insert(Loss::new(FORMAT, "tools[]", reason));
            return;
        };
        for tool in tools {
            if !self.run.tools.contains(&tool) {
                self.run.tools.push(tool);
            }
        }
    }

    fn end(&mut self, end: End<'_>) -> Result<(), RecordError> {
        let request = self.requests.get_mut(&end.request).ok_or_else(|| unknown(end.request))?;
        request.ended = true;
        let (api, state) = (request.api, request.state);
        let parameters = request.parameters.take();
        if let Some(Problem { code, message }) = end.error {
            let (code, message) = (code.into_owned(), message.into_owned());
            request.overflowed = code == CONTEXT_FULL;
            request.capped = code == BUDGET;
            self.failed.push(Failed {
                request: end.request,
                at: end.at.into_owned(),
                node: state,
                code,
                message,
            });
            return Ok(());
        }
        let (mut first, mut call) = (end.first, end.call);
        if let Some(call) = &mut call {
            call.parameters = parameters;
        }
        let mut executed = None;
        for answer in end.answers {
            let before = self.run.nodes.len();
            let last = self.messages(api, first, &answer, state, true);
            first = first.saturating_add(answer.len() as u32);
            let own = self.run.nodes.iter_mut().skip(before).rfind(|node| node.occurrence.sampled);
            if let Some(node) = own {
                node.occurrence.at = Some(end.at.clone().into_owned());
                node.occurrence.call = call.take();
            }
            executed = executed.or(last.filter(|_| last != state));
        }
        if self.last == state {
            self.last = executed.or(state);
        }
        if let Some(request) = self.requests.get_mut(&end.request) {
            request.executed = executed;
        }
        Ok(())
    }

    fn label(&mut self, label: Label<'_>) -> Result<(), RecordError> {
        let request = self.requests.get_mut(&label.request).ok_or_else(|| unknown(label.request))?;
        request.taught = Some(visit::asked(request.api, &label.answer, label.call, label.refused));
        Ok(())
    }

    fn position(&self, number: u32) -> Result<Option<usize>, RecordError> {
        let unknown = || RecordError::new("no-message", format!("message {number} is not in this log"));
        self.positions.get(&number).copied().ok_or_else(unknown)
    }

    /// Adds messages under a node and returns the last one's.
    fn messages(
        &mut self,
        api: Api,
        first: u32,
        messages: &[&RawValue],
        under: Option<usize>,
        sampled: bool,
    ) -> Option<usize> {
        let mut end = under;
        for (number, nodes) in (first..MESSAGES_MAX).zip(said::nodes(api, messages, &mut self.aside)) {
            for mut node in nodes {
                node.parent = end;
                node.occurrence.copied_context = !sampled && node.role == Role::Assistant;
                node.occurrence.sampled &= sampled;
                end = Some(self.run.push_under(node));
            }
            self.positions.insert(number, end);
        }
        end
    }

    /// The run, once the log holds no more of it.
    pub(super) fn finish(mut self) -> Finished {
        for (number, request) in self.requests.iter().filter(|(_, request)| !request.ended) {
            let (code, message) = ("stopped".to_owned(), "the log ends before the answer".to_owned());
            let (at, node) = (request.at.clone(), request.state);
            self.failed.push(Failed { request: *number, at, node, code, message });
        }
        self.run.task = if self.run.task.derived {
            row::derived_task(&self.run)
        } else {
            Task { goal: row::goal(&self.run), ..self.run.task }
        };
        for agent in &mut self.run.agents {
            let own = self.run.nodes.iter().filter(|node| node.agent == agent.name);
            agent.model = own.filter_map(|node| node.occurrence.call.as_ref()?.model.clone()).next_back();
        }
        if let (false, Ok(failed)) = (self.failed.is_empty(), Json::from_serialize(&self.failed)) {
            self.run.extra.insert("failed_requests".to_owned(), failed);
        }
        std::mem::take(&mut self.aside).settle(&mut self.run, &mut self.losses);
        self.run.finish_tree(self.last, std::mem::replace(&mut self.outcome, RunOutcome::unknown()));
        let visits = self.visits();
        Finished { run: self.run, name: self.name, visits, losses: self.losses }
    }

    /// The states that were visited, and on the run how it was shared, where there was a teacher.
    fn visits(&mut self) -> Vec<Visit> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let mut delivered = Delivered::default();
        let mut visits = Vec::new();
        let requests = std::mem::take(&mut self.requests);
        let unanswered = requests.values().next_back().filter(|last| last.executed.is_none());
        delivered.is_aborted = unanswered.is_some_and(|last| !last.capped);
        delivered.is_capped = unanswered.is_some_and(|last| last.capped);
        let student = requests.values().filter(|request| request.actor == Actor::Student);
        let student = student.filter_map(|request| self.run.nodes.get(request.executed?)).next_back();
        let student = student.and_then(|node| node.occurrence.call.as_ref()?.model.clone());
        for request in requests.into_values() {
            if request.executed.is_some() {
                delivered.took(request.actor);
            }
            let (Some(state), true) = (request.state, request.shared) else { continue };
            let acted = request.executed.filter(|_| request.actor == Actor::Teacher);
            let taught = match acted.and_then(|node| self.run.nodes.get(node)) {
                Some(node) => {
                    let call = node.occurrence.call.as_deref().cloned();
                    Ok(Taught { parts: node.parts.clone(), call })
                }
                None => request.taught.unwrap_or_else(visit::missing),
            };
            delivered.missing += u64::from(taught.is_err() && request.executed.is_some());
            visits.push(Visit {
                state,
                executed: request.executed,
                turn: request.turn,
                round: shared.round,
                actor: request.actor,
                teacher: shared.teacher.clone(),
                taught,
                context: shared.context,
                overflowed: request.overflowed,
            });
        }
        let interleaving = Interleaving {
            round: shared.round,
            student: student.unwrap_or_default(),
            teacher: Some(shared.teacher.clone()),
            mixing: Some(shared.mixing),
            alone: None,
            outcome: RequestOutcome::Aborted,
            student_turns: 0,
            teacher_turns: 0,
            labels: visits.len() as u64,
            readings: Readings::default(),
        };
        interleaving.delivered(&delivered).write(&mut self.run);
        visits
    }
}

fn unknown(request: u32) -> RecordError {
    RecordError::new("no-request", format!("request {request} did not begin in this log"))
}

fn judged(outcome: &Outcome<'_>) -> RunOutcome {
    let Outcome { status, score, .. } = outcome;
    let evidence = match status {
        Status::Unknown => String::new(),
        status => format!("outcome = {}", status.as_str()),
    };
    RunOutcome { status: *status, score: *score, termination: None, evidence }
}
