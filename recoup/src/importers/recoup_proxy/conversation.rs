//! One conversation, put together from the entries of the log.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Api, Begin, End, Entry, FORMAT, Label, Outcome, Problem};
use crate::importers::object::Object;
use crate::importers::slice::RecordError;
use crate::importers::{openai_chat, row};
use crate::json::Json;
use crate::rollout::interleave::{Delivered, Interleaving, Mixing, Readings, RequestOutcome};
use crate::task::Task;
use crate::trajectory::{Harness, Node, Outcome as RunOutcome, Role, Status, Trajectory};
use crate::verdict::Actor;
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
    sharing: Option<Shared>,
    outcome: RunOutcome,
    last: Option<usize>,
    losses: BTreeSet<Loss>,
}

/// A request, as far as it is known.
struct Request {
    api: Api,
    at: String,
    actor: Actor,
    /// Position of the last message of the state that it shows.
    state: Option<usize>,
    /// Whether it came to an end.
    ended: bool,
    /// Position of its answer.
    executed: Option<usize>,
    labelled: bool,
}

struct Shared {
    teacher: String,
    round: u32,
    mixing: Mixing,
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

impl Conversation {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            run: Trajectory::new(FORMAT, Task::from_goal("")),
            positions: BTreeMap::new(),
            requests: BTreeMap::new(),
            failed: Vec::new(),
            sharing: None,
            outcome: RunOutcome::unknown(),
            last: None,
            losses: BTreeSet::new(),
        }
    }

    /// Takes an entry in, in the order of the log.
    ///
    /// # Errors
    /// When it does not fit what came before.
    pub(super) fn add(&mut self, entry: Entry<'_>) -> Result<(), RecordError> {
        match entry {
            Entry::Begin(begin) => self.begin(begin),
            Entry::End(end) => self.end(end),
            Entry::Label(label) => self.label(&label),
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
        let state = self.messages(begin.api, begin.first, &begin.messages, under, false)?;
        if let Some(tools) = begin.tools.and_then(|raw| openai_chat::tools(raw, FORMAT, &mut self.losses)) {
            for tool in tools {
                if !self.run.tools.contains(&tool) {
                    self.run.tools.push(tool);
                }
            }
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
        if let Some(sharing) = begin.sharing {
            let (teacher, round) = (sharing.teacher.into_owned(), sharing.round);
            self.sharing = Some(Shared { teacher, round, mixing: sharing.mixing });
        }
        let request = Request {
            api: begin.api,
            at: begin.at.into_owned(),
            actor: begin.actor,
            state,
            ended: false,
            executed: None,
            labelled: false,
        };
        self.requests.insert(begin.request, request);
        self.last = state.or(self.last);
        Ok(())
    }

    fn end(&mut self, end: End<'_>) -> Result<(), RecordError> {
        let request = self.requests.get_mut(&end.request).ok_or_else(|| unknown(end.request))?;
        request.ended = true;
        let (api, state) = (request.api, request.state);
        if let Some(Problem { code, message }) = end.error {
            let (code, message) = (code.into_owned(), message.into_owned());
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
        for answer in end.answers {
            let before = self.run.nodes.len();
            let last = self.messages(api, first, &answer, state, true)?;
            first = first.saturating_add(answer.len() as u32);
            let own = self.run.nodes.iter_mut().skip(before).rfind(|node| node.occurrence.sampled);
            if let Some(node) = own {
                node.occurrence.at = Some(end.at.clone().into_owned());
                node.occurrence.call = call.take();
            }
            if self.last == state {
                self.last = last;
            }
            if let Some(request) = self.requests.get_mut(&end.request) {
                request.executed = request.executed.or(last);
            }
        }
        Ok(())
    }

    fn label(&mut self, label: &Label<'_>) -> Result<(), RecordError> {
        let request = self.requests.get_mut(&label.request).ok_or_else(|| unknown(label.request))?;
        request.labelled |= label.error.is_none();
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
    ) -> Result<Option<usize>, RecordError> {
        let mut end = under;
        for (number, raw) in (first..MESSAGES_MAX).zip(messages) {
            for mut node in self.nodes(api, raw)? {
                node.parent = end;
                node.occurrence.copied_context = !sampled && node.role == Role::Assistant;
                node.occurrence.sampled &= sampled;
                end = Some(self.run.push_under(node));
            }
            self.positions.insert(number, end);
        }
        Ok(end)
    }

    fn nodes(&mut self, _api: Api, raw: &RawValue) -> Result<Vec<Node>, RecordError> {
        let mut read = Trajectory::new(FORMAT, Task::from_goal(""));
        let message = Object::parse(raw, "messages[]")?;
        openai_chat::push_messages(vec![message], &mut read, &mut self.losses)?;
        self.run.media.extend(read.media);
        Ok(read.nodes)
    }

    /// The run, its name and what was not carried.
    pub(super) fn finish(mut self) -> (Trajectory, String, BTreeSet<Loss>) {
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
        self.share();
        if let (false, Ok(failed)) = (self.failed.is_empty(), Json::from_serialize(&self.failed)) {
            self.run.extra.insert("failed_requests".to_owned(), failed);
        }
        self.run.finish_tree(self.last, self.outcome);
        (self.run, self.name, self.losses)
    }

    /// Writes down how the conversation was shared, where there was a teacher.
    fn share(&mut self) {
        let Some(shared) = &self.sharing else { return };
        let mut delivered = Delivered::default();
        for request in self.requests.values().filter(|request| request.executed.is_some()) {
            delivered.took(request.actor);
            delivered.missing += u64::from(request.actor == Actor::Student && !request.labelled);
        }
        delivered.is_aborted = self.requests.values().next_back().is_some_and(|last| last.executed.is_none());
        let student = self.run.agents.first().and_then(|agent| agent.model.clone());
        let labels = self.requests.values().filter(|request| request.labelled).count();
        let interleaving = Interleaving {
            round: shared.round,
            student: student.unwrap_or_default(),
            teacher: Some(shared.teacher.clone()),
            mixing: Some(shared.mixing),
            alone: None,
            outcome: RequestOutcome::Aborted,
            student_turns: 0,
            teacher_turns: 0,
            labels: labels as u64,
            readings: Readings::default(),
        };
        interleaving.delivered(&delivered).write(&mut self.run);
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
