//! SWE-agent trajectories, `.traj`: one JSON object with the messages (`history`), the steps
//! (`trajectory`), which in some versions repeat the whole prompt each, and `info`.
//!
//! The nodes are the history's messages. A step's figures stand with the turn it sampled; prompts that
//! differ from the history are branches of their own ([`prompts`]). `exit_status` says how a run ended
//! and nothing about success, which the evaluation's `report.json` holds ([`report`]).
//!
//! Runs that failed to start are often equal byte for byte; where only the file's name says which
//! instance it is, the instance is part of the run's identity.
//!
//! An agent that may try again keeps every try in `attempts`; each is a run of its own ([`attempts`]).

mod attempts;
mod prompts;
mod report;

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use self::attempts::Attempt;
use super::harness_message::message;
use super::object::Object;
use super::prompts::{Place, Prompts};
use super::slice::{self, Stop};
use super::value::json_object;
use super::{ImportError, Importer, Outline, Probe, RawRecord, RecordError, Sink, Source, instance};
use crate::json::Json;
use crate::task::{Task, VerifierRef};
use crate::trajectory::{Agent, Harness, Node, Outcome, Role, TerminationKind, Trajectory};
use crate::warning::Loss;

const FORMAT: &str = "swe-agent";

/// SWE-agent trajectories, `.traj`, old and new.
pub(super) struct SweAgent;

impl Importer for SweAgent {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "a run with steps under `trajectory` that have `action`, `observation` and `response`, or with a \
         `history` of messages that name their `agent`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        let is_run = |run: &Outline| has_steps(run) || has_history(run) || failed_to_start(run);
        let attempted =
            |record: &Outline| record.get("attempts").and_then(Outline::first).is_some_and(is_run);
        probe.records().iter().any(|record| is_run(record) || attempted(record))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        slice::each(source, layout, sink, |record, sink| read(source, record, sink))
    }
}

fn has_steps(record: &Outline) -> bool {
    let step = record.get("trajectory").and_then(Outline::first);
    step.is_some_and(|step| step.has_all(&["action", "observation", "response"]))
}

fn has_history(record: &Outline) -> bool {
    let Outline::Object(members) = record else { return false };
    let message = record.get("history").and_then(Outline::first);
    let is_message = message.is_some_and(|message| message.has_all(&["role", "content", "agent"]));
    is_message && (members.len() == 1 || record.get("trajectory").is_some())
}

/// A run that ended before its first message: container or provider failed.
fn failed_to_start(record: &Outline) -> bool {
    let is_empty = |key: &str| record.get(key).is_some_and(|list| list.is_array() && list.first().is_none());
    let ended = record.get("info").is_some_and(|info| info.get("exit_status").is_some());
    ended && is_empty("trajectory") && is_empty("history")
}

fn read(source: &Source, record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut file: Object<'_> = record.parse()?;
    match file.list("attempts").filter(|attempts| !attempts.is_empty()) {
        Some(attempts) => attempts::read(source, record, file, &attempts, sink),
        None => run(source, record, file, Attempt::ONLY, sink),
    }
}

/// One run. `file` is what holds its messages, steps and `info`.
fn run(
    source: &Source,
    record: &RawRecord,
    mut file: Object<'_>,
    attempt: Attempt,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let history = file.list("history");
    let steps = file.list("trajectory").unwrap_or_default();
    let history = history.ok_or_else(|| RecordError::new("missing-field", "expected an array `history`"))?;
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut prompts = Prompts::default();
    let mut rests = Vec::with_capacity(history.len());
    let mut turns = Vec::new();
    let mut place = None;
    for raw in history {
        let acted = place.is_some_and(|place: Place| place.acted);
        let mut message = message(raw, acted, &mut run.media)?;
        let is_assistant = message.node.role == Role::Assistant;
        let occurrence = &mut message.node.occurrence;
        let is_turn = is_assistant && !occurrence.copied_context;
        // Without steps the file is a demonstration: somebody wrote it, no policy sampled it.
        occurrence.copied_context |= steps.is_empty();
        occurrence.sampled = is_assistant && !occurrence.copied_context;
        if occurrence.sampled {
            turns.push(rests.len());
        }
        rests.push(message.rest);
        place = Some(prompts.follow(&mut run, place, message.node, is_turn));
    }
    let last = place.map(|place| place.position);
    let mut steps: Vec<Step> = steps.into_iter().map(Step::read).collect::<Result<_, _>>()?;
    let unplaced = place_steps(&run, &turns, &mut steps, &mut rests);
    if !unplaced.is_empty()
        && let Ok(steps) = Json::from_serialize(&unplaced)
    {
        run.extra.insert("steps_outside_history".to_owned(), steps);
    }
    for (node, rest) in run.nodes.iter_mut().zip(&rests) {
        node.occurrence.extra = json_object(rest);
    }
    for step in &steps {
        prompts::walk(&mut prompts, &mut run, &step.prompt)?;
    }
    if steps.iter().any(|step| !step.prompt.is_empty()) {
        let reason = "what a prompt says of a message beside its text is kept once, as in the history";
        sink.loss(Loss::new(FORMAT, "trajectory[].messages", reason))?;
    }
    let (outcome, named_by_file) = describe(&mut run, source, file, attempt);
    super::prompts::finish(&mut run, last, outcome);
    let native = named_by_file.map(|instance| match attempt.number {
        None => format!("{instance}/{}", record.sha256),
        Some(number) => format!("{instance}/{}/{number}", record.sha256),
    });
    record.emit(sink, run, native, Vec::new(), attempt.number.unwrap_or(0))?;
    Ok(())
}

/// One step of `trajectory`.
struct Step<'a> {
    response: Option<String>,
    observation: Option<String>,
    /// The whole prompt: of this step (`query`), or of the next (`messages`, before 1.1.0).
    prompt: Vec<&'a RawValue>,
    rest: BTreeMap<String, Json>,
}

impl<'a> Step<'a> {
    fn read(raw: &'a RawValue) -> Result<Self, RecordError> {
        let mut step = Object::parse(raw, "trajectory[]")?;
        let prompt = step.list("query").or_else(|| step.list("messages")).unwrap_or_default();
        let (response, observation) = (step.text("response"), step.text("observation"));
        // Old files hold the state as a JSON text, new ones as an object.
        let state = step.text("state");
        let mut rest = step.filled_rest();
        if let Some(state) = state.filter(|state| !state.is_empty()) {
            rest.insert("state".to_owned(), Json::from_foreign(&state));
        }
        Ok(Self { response, observation, prompt, rest })
    }
}

/// Puts each step's figures with the turn it sampled, and returns the steps whose turn is not in the
/// history: by position where there are as many of both, else by the response's text, in order.
fn place_steps(
    run: &Trajectory,
    turns: &[usize],
    steps: &mut [Step],
    rests: &mut [BTreeMap<String, Json>],
) -> Vec<BTreeMap<String, Json>> {
    let mut unplaced = Vec::new();
    let mut next = 0;
    let aligned = turns.len() == steps.len();
    let mut by_text: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (turn, position) in turns.iter().enumerate().filter(|_| !aligned) {
        by_text.entry(run.nodes[*position].text()).or_default().push(turn);
    }
    for step in steps {
        let found = if aligned {
            Some(next)
        } else {
            let same = step.response.as_deref().and_then(|response| by_text.get(response));
            same.and_then(|same| same.get(same.partition_point(|turn| *turn < next)).copied())
        };
        let response = step.response.take();
        let observation = step.observation.take();
        let mut rest = std::mem::take(&mut step.rest);
        let Some(turn) = found else {
            rest.extend(response.map(|text| ("response".to_owned(), Json::string(&text))));
            rest.extend(observation.map(|text| ("observation".to_owned(), Json::string(&text))));
            unplaced.push(rest);
            continue;
        };
        next = turn + 1;
        let position = turns[turn];
        let text = run.nodes[position].text();
        let answer = run.nodes.get(position + 1).map(Node::text).unwrap_or_default();
        // What the messages themselves say is not said twice.
        if let Some(response) = response.filter(|response| *response != text) {
            rest.insert("response".to_owned(), Json::string(&response));
        }
        if let Some(observation) = observation.filter(|observation| !answer.contains(observation.as_str())) {
            rest.insert("observation".to_owned(), Json::string(&observation));
        }
        if rest.get("thought") == Some(&Json::string(&text)) {
            rest.remove("thought");
        }
        for (key, value) in rest {
            rests[position].entry(key).or_insert(value);
        }
    }
    unplaced
}

/// Fills in what the file says of the run beside its messages, and returns how it ended and, where
/// only the file's name tells it, which instance it is.
fn describe(
    run: &mut Trajectory,
    source: &Source,
    mut file: Object,
    attempt: Attempt,
) -> (Outcome, Option<String>) {
    let configuration = file.text("replay_config").map(|text| Json::from_foreign(&text));
    let configuration = configuration.or_else(|| file.take("replay_config").map(Json::from));
    let configured = configuration.as_ref().map(Json::to_value).unwrap_or_default();
    let mut info = file.object("info");
    let exit_status = info.text("exit_status");
    run.harness = Some(Harness { name: FORMAT.to_owned(), version: info.text("swe_agent_version") });
    let is_instance = |name: &String| instance::repository(name).is_some();
    let named = configured.pointer("/problem_statement/id").and_then(|id| id.as_str()).map(str::to_owned);
    let environment = file.text("environment");
    let file_name = source.name().strip_suffix(".traj").map(str::to_owned);
    let inside = named.or_else(|| environment.clone().filter(is_instance));
    let named_by_file = file_name.filter(|name| inside.is_none() && is_instance(name));
    let id = inside.or_else(|| named_by_file.clone());
    let asks = |node: &&Node| node.role == Role::User && node.agent == "user";
    let is_own = |node: &&Node| asks(node) && !node.occurrence.copied_context;
    let asked = run.nodes.iter().find(is_own).or_else(|| run.nodes.iter().find(asks));
    let goal = asked.map(Node::text).unwrap_or_default();
    run.task = match &id {
        Some(id) => instance::task(FORMAT, id, goal),
        None => Task::from_goal(goal),
    };
    let model = configured.pointer("/agent/model/name").and_then(|name| name.as_str());
    for agent in &mut run.agents {
        agent.model = model.map(str::to_owned);
    }
    if run.agents.is_empty() {
        run.agents.push(Agent {
            name: "assistant".to_owned(),
            model: model.map(str::to_owned),
            system_prompt: None,
        });
    }
    run.extra.extend(environment.map(|name| ("environment".to_owned(), Json::string(&name))));
    run.extra.extend(configuration.map(|value| ("replay_config".to_owned(), value)));
    run.extra.extend(json_object(info.filled_rest()).map(|info| ("info".to_owned(), info)));
    run.extra.extend(file.filled_rest());
    run.trial = attempt.number.and_then(|number| number.try_into().ok());
    if attempt.number.is_some() && attempt.is_submitted {
        run.extra.insert("submitted_attempt".to_owned(), Json::from_foreign("true"));
    }
    let mut outcome = Outcome::unknown();
    let report = if attempt.is_submitted { report::find(source, id.as_deref()) } else { None };
    if let Some(report) = report {
        run.hidden.verifier_output = Some(report.output);
        run.verifier = Some(VerifierRef { name: "swe-bench".to_owned(), version: None });
        outcome = report.outcome;
    }
    if let Some(status) = exit_status {
        outcome = outcome.ended(termination(&status), status);
    }
    (outcome, named_by_file)
}

/// How a run ended by its `exit_status`; `submitted (exit_cost)` submitted what it had when the budget
/// was used up.
pub(super) fn termination(exit_status: &str) -> TerminationKind {
    let inner = exit_status.strip_prefix("submitted (").and_then(|rest| rest.strip_suffix(')'));
    match inner.unwrap_or(exit_status) {
        "submitted" | "exit_forfeit" => TerminationKind::Completed,
        "exit_cost" => TerminationKind::BudgetExceeded,
        "exit_context" => TerminationKind::ContextOverflow,
        "exit_format" => TerminationKind::TooManyErrors,
        "exit_command_timeout" | "exit_total_execution_time" => TerminationKind::Timeout,
        "exit_api" | "exit_environment_error" => TerminationKind::InfrastructureError,
        _ => TerminationKind::Other,
    }
}
