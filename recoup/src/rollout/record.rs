//! The record of an episode: a trajectory like any other, of the format `recoup`.
//!
//! The written policy is the system message, the goal and what the start has shown the user's. Every
//! turn is a message of the agent, every call's answer a message of its tool, the answer to words one of
//! the user. The hash of the state that an exchange led to stands on the message that shows it.
//!
//! The verifier decides the outcome. An error of the environment or of the policy leaves it unknown.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::conversation::{GAP, UNREADABLE, unread_text};
use super::{Advice, Episode, EpisodeLimits, Policy, Spent, Taken, TakesAdvice};
use crate::environments::{self, Action, Exchange, Identity, State, TaskSpec, ToolSpec};
use crate::id::{Hash, hexadecimal};
use crate::json::Json;
use crate::task::{EnvironmentRef, Task, VerifierRef};
use crate::trajectory::{
    Agent, ArgumentsForm, Call, Harness, NativeId, Node, Occurrence, Origin, Outcome, Part, Role, Status,
    ToolCall, ToolResult, Trajectory, Usage,
};

/// Name of the format.
pub const FORMAT: &str = "recoup";

/// The agent's name on the records.
const AGENT: &str = "assistant";

/// Marks a message whose first text was said beside calls: the environment did not see it.
const BESIDE: &str = "words-beside-calls";

/// Marks a message that was meant as a call and could not be read: the environment refused it in words.
const UNREAD: &str = "unreadable-call";

/// Whether a message was meant as a call and could not be read.
pub(crate) fn is_unread(node: &Node) -> bool {
    node.occurrence.extra.as_ref() == Some(&Json::string(UNREAD))
}

/// Whether the first text of a message was said beside calls and is no action.
pub(crate) fn says_beside_calls(node: &Node) -> bool {
    node.occurrence.extra.as_ref() == Some(&Json::string(BESIDE))
}

/// What a record says beside the episode itself.
#[derive(Clone, Copy)]
pub struct Recording<'a> {
    /// The environment.
    pub identity: &'a Identity,
    /// The task.
    pub task: &'a TaskSpec,
    /// The tools that were offered.
    pub tools: &'a [ToolSpec],
    /// Who acted.
    pub policy: &'a dyn Policy,
    /// Seed of the policy's luck.
    pub seed: u64,
    /// Which run of the task, from 0.
    pub trial: u32,
    /// What the run could spend.
    pub limits: EpisodeLimits,
    /// The run that this one continues, where it does.
    pub origin: Option<&'a Origin>,
    /// What the policy was told where it went on.
    pub advice: Option<&'a Advice>,
}

impl Recording<'_> {
    /// The run's own name: see [`native_id`]. A continuation is named after its origin too.
    fn native_id(&self) -> String {
        let key = self.task.key(&self.identity.manifest.name);
        let id = native_id(self.identity, &key, self.policy.name(), self.seed, self.trial, self.limits);
        let Some(origin) = self.origin else { return id };
        let (node, continuation) = ((origin.node as u64).to_le_bytes(), origin.continuation.to_le_bytes());
        let from = [id.as_bytes(), &origin.trajectory.0.0, &node, origin.arm.as_bytes(), &continuation];
        Hash::of_all(&from).to_string()
    }
}

/// A run's own name: a hash of what decides it, so that the same run made again is the same run.
pub(super) fn native_id(
    identity: &Identity,
    task_key: &str,
    policy: &str,
    seed: u64,
    trial: u32,
    limits: EpisodeLimits,
) -> String {
    let (seed, trial) = (seed.to_le_bytes(), trial.to_le_bytes());
    // No run has a budget of nothing, so that 0 can stand for the task's own turns and for no limit.
    let [turns, tokens, time] =
        [limits.turns, limits.tokens, limits.milliseconds].map(|most| most.unwrap_or(0).to_le_bytes());
    let version = identity.version();
    let mut parts = vec![version.as_bytes(), task_key.as_bytes(), policy.as_bytes(), &seed, &trial, &turns];
    if limits.tokens.is_some() || limits.milliseconds.is_some() {
        parts.extend([&tokens[..], &time]);
    }
    Hash::of_all(&parts).to_string()
}

/// A task as records name it.
pub(super) fn task_of(identity: &Identity, task: &TaskSpec) -> Task {
    let name = &identity.manifest.name;
    Task {
        template_key: Some(format!("{name}/{}", task.family)),
        // What one seed makes at another difficulty may share its world.
        group_keys: vec![format!("{name}/{}", task.seed)],
        ..Task::named(task.key(name), task.goal.clone())
    }
}

/// Makes a trajectory of an episode, ready to be sealed.
pub fn record(episode: &Episode, of: &Recording<'_>) -> (Trajectory, NativeId) {
    let name = &of.identity.manifest.name;
    let mut run = Trajectory::new(FORMAT, task_of(of.identity, of.task));
    run.source.uri = format!("environment:{name}");
    run.source.sha256 = hexadecimal(&Sha256::digest(of.task.json.as_bytes()));
    run.harness = Some(Harness { name: FORMAT.to_owned(), version: None });
    run.trial = Some(i64::from(of.trial));
    run.seed = Some(of.seed as i64);
    run.budget = Some(of.limits.budget(of.task));
    run.environment = Some(EnvironmentRef {
        name: name.clone(),
        version: Some(of.identity.version()),
        reset: Some(environments::reset(of.task)),
    });
    run.verifier = Some(VerifierRef { name: name.clone(), version: Some(of.identity.version()) });
    let model = Some(of.policy.name().to_owned());
    run.agents = vec![Agent { name: AGENT.to_owned(), model, system_prompt: None }];
    run.tools = of.tools.iter().map(ToolSpec::to_tool).collect();
    run.origin = of.origin.cloned();
    run.hidden.verifier_output = episode.score.as_ref().and_then(|score| Json::from_serialize(score).ok());
    if of.policy.advice() == TakesAdvice::Synthetic {
        run.extra.insert("takes_advice".to_owned(), Json::string("synthetic"));
    }
    if let Some((code, message)) = episode.end.error() {
        let error = BTreeMap::from([("code", code), ("message", message.as_str())]);
        run.extra.extend(Json::from_serialize(&error).ok().map(|error| ("error".to_owned(), error)));
    }
    for state in &episode.checkpoints {
        run.media.insert(state.hash(), state.as_str().as_bytes().to_vec());
    }
    push_messages(&mut run, episode, of);
    run.finish(outcome(episode));
    (run, NativeId::Named(of.native_id()))
}

fn push_messages(run: &mut Trajectory, episode: &Episode, of: &Recording<'_>) {
    if let Some(rules) = &of.identity.policy {
        run.push(Node::new(Role::System, "system", vec![Part::text(rules.clone())]));
    }
    // A task that could not be generated has no words.
    if !of.task.goal.is_empty() {
        let mut parts = vec![Part::text(of.task.goal.clone())];
        if !episode.first_observation.is_empty() {
            parts.extend([GAP, &episode.first_observation].map(Part::text));
        }
        let mut node = Node::new(Role::User, "user", parts);
        if episode.prefix_turns == 0 {
            node.occurrence = shown(episode, 0);
        }
        run.push(node);
    }
    let prefix: usize = episode.turns.iter().take(episode.prefix_turns).map(|turn| turn.exchanges).sum();
    let mut next = 0;
    for (number, turn) in episode.turns.iter().enumerate() {
        if number == episode.prefix_turns
            && let Some(advice) = of.advice
        {
            run.push(Node::new(Role::User, "user", vec![Part::text(advice.text())]));
        }
        let exchanges = episode.transcript.get(next..next + turn.exchanges).unwrap_or_default();
        let copied = number < episode.prefix_turns;
        push_turn(run, turn, exchanges, next, |exchange| Occurrence {
            copied_context: copied,
            ..exchange.checked_sub(prefix).map_or_else(Occurrence::default, |own| shown(episode, own + 1))
        });
        next += turn.exchanges;
    }
}

/// What is known of the state after an exchange; 0 is the state before the first one.
fn shown(episode: &Episode, number: usize) -> Occurrence {
    Occurrence {
        state_hash: episode.hashes.get(number).copied(),
        checkpoint: episode.checkpoints.get(number).map(State::hash),
        ..Occurrence::default()
    }
}

/// One turn: the agent's message, then the answers. `first` numbers its first exchange.
fn push_turn(
    run: &mut Trajectory,
    taken: &Taken,
    exchanges: &[Exchange],
    first: usize,
    occurrence: impl Fn(usize) -> Occurrence,
) {
    let id = |offset: usize| Some(format!("call_{}", first + offset));
    let thought = taken.thought.as_ref().map(|text| Part::Reasoning { text: text.clone(), signature: None });
    let mut parts: Vec<Part> = thought.into_iter().chain(taken.said.as_ref().map(Part::text)).collect();
    let mut answers: Vec<Node> = Vec::new();
    let mut unanswered = None;
    let mut mark = taken.said.is_some().then_some(BESIDE);
    for (offset, Exchange { action, step }) in exchanges.iter().enumerate() {
        let (part, answer) = match action {
            Action::Call { tool, arguments } if **tool == *UNREADABLE => {
                mark = Some(UNREAD);
                let reply = Node::new(Role::User, "user", vec![Part::text(step.observation.clone())]);
                (Part::text(unread_text(arguments)), Some(reply))
            }
            Action::Call { tool, arguments } => {
                let call = ToolCall {
                    call_id: id(offset),
                    name: tool.to_string(),
                    arguments_raw: arguments.as_str().to_owned(),
                    arguments_form: ArgumentsForm::Object,
                };
                let result = ToolResult {
                    call_id: id(offset),
                    parts: vec![Part::text(step.observation.clone())],
                    is_error: Some(step.is_error),
                    exit_code: None,
                };
                (Part::ToolCall(call), Some(Node::new(Role::Tool, &**tool, vec![Part::ToolResult(result)])))
            }
            Action::Say(text) => {
                let reply = (!step.observation.is_empty())
                    .then(|| Node::new(Role::User, "user", vec![Part::text(step.observation.clone())]));
                (Part::text(text.to_string()), reply)
            }
        };
        parts.push(part);
        match answer {
            Some(mut node) => {
                node.occurrence = occurrence(first + offset);
                answers.push(node);
            }
            None => unanswered = Some(occurrence(first + offset)),
        }
    }
    let mut turn = Node::new(Role::Assistant, AGENT, parts);
    // Words that nobody answers lead to a state too.
    turn.occurrence = unanswered.filter(|_| answers.is_empty()).unwrap_or_default();
    turn.occurrence.copied_context = occurrence(first).copied_context;
    turn.occurrence.extra = mark.map(Json::string);
    if !turn.occurrence.copied_context {
        turn.occurrence.call = call(taken.spent).map(Box::new);
    }
    run.push(turn.sampled());
    for answer in answers {
        run.push(answer);
    }
}

/// What choosing a turn took, where that is known.
fn call(spent: Spent) -> Option<Call> {
    let Spent { tokens, answer_tokens, cost, .. } = spent;
    let usage =
        Usage { input: tokens.saturating_sub(answer_tokens), output: answer_tokens, ..Usage::default() };
    let call = Call {
        usage: (tokens > 0).then_some(usage),
        cost: cost.map(crate::models::Cost::to_usd),
        ..Call::default()
    };
    (call != Call::default()).then_some(call)
}

fn outcome(episode: &Episode) -> Outcome {
    let outcome = match (&episode.score, episode.end.error()) {
        (Some(score), None) => Outcome {
            score: Some(score.score),
            evidence: format!("verify: success = {}, score {}", score.success, score.score),
            ..Outcome::from_flag(score.success, "success")
        },
        (_, error) => Outcome {
            status: Status::Unknown,
            evidence: error.map_or_else(String::new, |(_, message)| message),
            ..Outcome::unknown()
        },
    };
    outcome.ended(episode.end.kind(), episode.end.as_str())
}
