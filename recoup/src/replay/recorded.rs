//! A stored run as the environment saw it: what was done in each turn and what that showed.
//!
//! It is read from the main branch as [`rollout::record`](crate::rollout::record) writes it: prompts, then
//! for every turn the agent's message and, in the order of its actions, a tool's message for a call and
//! a user's for words that were answered.

use super::ReplayError;
use crate::environments::Action;
use crate::id::Hash;
use crate::json::Json;
use crate::rollout::{self, GAP, Spent, Turn};
use crate::trajectory::{ArgumentsForm, Node, Part, Role, ToolCall, Trajectory, same_action};

/// What a stored run says of its episode, on its main branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// What the start has shown.
    pub start: Seen,
    /// The policy's turns.
    pub turns: Vec<RecordedTurn>,
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTurn {
    /// Position of the policy's message.
    pub node: usize,
    /// Its reasoning beside the actions.
    pub thought: Option<String>,
    /// Its words beside calls.
    pub said: Option<String>,
    /// What choosing it took, as far as it is on record.
    pub spent: Spent,
    /// Its actions, in order.
    pub actions: Vec<Action>,
    /// What each showed, in the order of the actions; fewer where the record ends before.
    pub seen: Vec<Seen>,
}

/// An observation as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Position of the message that holds it.
    pub node: usize,
    /// Its text.
    pub observation: String,
    /// Whether it was an error, where the record says.
    pub is_error: Option<bool>,
    /// Hash of the state after it, where recorded.
    pub state_hash: Option<Hash>,
}

impl Recorded {
    /// Reads a run's main branch.
    ///
    /// # Errors
    /// [`ReplayError::Record`] at the first message that the environment cannot have answered.
    pub fn read(run: &Trajectory) -> Result<Self, ReplayError> {
        let branch = run.main_branch();
        let mut nodes = branch.nodes().peekable();
        let mut start = None;
        while let Some((position, node)) = nodes.next_if(|(_, node)| !node.occurrence.sampled) {
            if node.role == Role::User {
                start = Some(opening(position, node, &run.task.goal)?);
            }
        }
        let start = start.ok_or(ReplayError::Record { node: 0, reason: "no message opens the run" })?;
        let mut turns = Vec::new();
        while let Some((position, node)) = nodes.next() {
            if !node.occurrence.sampled {
                return Err(ReplayError::Record {
                    node: position,
                    reason: "no action has asked for this message",
                });
            }
            let mut turn = RecordedTurn::open(position, node)?;
            for action in 0..turn.actions.len() {
                let is_words = rollout::is_unread(node) || matches!(turn.actions[action], Action::Say(_));
                let role = if is_words { Role::User } else { Role::Tool };
                let answer = nodes.next_if(|(_, node)| !node.occurrence.sampled && node.role == role);
                match answer {
                    Some((position, node)) => turn.seen.push(answered(position, node)?),
                    // Words that nobody answers lead to a state, which then stands on the turn itself.
                    None if role == Role::User => turn.seen.push(Seen {
                        node: position,
                        observation: String::new(),
                        is_error: None,
                        state_hash: node.occurrence.state_hash,
                    }),
                    None => break,
                }
            }
            turns.push(turn);
        }
        Ok(Self { start, turns })
    }

    /// The turn of a node: its own, for a message of the policy; the one before it, for what a turn
    /// showed; none for what stands before the first turn.
    pub fn turn_of(&self, node: usize) -> Option<usize> {
        self.turns.iter().rposition(|turn| turn.node <= node)
    }
}

impl RecordedTurn {
    /// The turn, to be taken again.
    pub fn as_turn(&self) -> Turn {
        let (thought, said) = (self.thought.clone(), self.said.clone());
        Turn { thought, said, spent: self.spent, actions: self.actions.clone(), ..Turn::default() }
    }

    /// Whether the turn is this one action, numbers compared as numbers.
    pub fn is(&self, action: &Action) -> bool {
        match (self.actions.as_slice(), action) {
            ([Action::Say(ours)], Action::Say(other)) => ours == other,
            ([Action::Call { tool, arguments }], Action::Call { tool: other, arguments: others }) => {
                same_action(&call(tool, arguments), &call(other, others))
            }
            _ => false,
        }
    }

    fn open(position: usize, node: &Node) -> Result<Self, ReplayError> {
        let usage = node.occurrence.call.as_ref().and_then(|call| call.usage);
        let spent = usage.map_or_else(Spent::default, |usage| Spent {
            tokens: usage.input.saturating_add(usage.output),
            answer_tokens: usage.output,
            ..Spent::default()
        });
        let (actions, seen) = (Vec::new(), Vec::new());
        let mut turn = Self { node: position, thought: None, said: None, spent, actions, seen };
        let mut says = rollout::says_beside_calls(node);
        for part in &node.parts {
            match part {
                Part::Reasoning { text, .. } => turn.thought = Some(text.clone()),
                Part::Text(text) if std::mem::take(&mut says) => turn.said = Some(text.text.clone()),
                Part::Text(text) if rollout::is_unread(node) => {
                    turn.actions.push(rollout::unread(&text.text));
                }
                Part::Text(text) => turn.actions.push(Action::say(text.text.as_str())),
                Part::ToolCall(call) => {
                    let arguments = Json::from_foreign(&call.arguments_raw);
                    turn.actions.push(Action::call(call.name.as_str(), arguments));
                }
                _ => {
                    let reason = "a turn holds something that is neither words nor a call";
                    return Err(ReplayError::Record { node: position, reason });
                }
            }
        }
        Ok(turn)
    }
}

fn call(tool: &str, arguments: &Json) -> ToolCall {
    ToolCall {
        call_id: None,
        name: tool.to_owned(),
        arguments_raw: arguments.as_str().to_owned(),
        arguments_form: ArgumentsForm::Object,
    }
}

/// The message that opens a run: the goal, then what the start has shown, where it shows something.
fn opening(position: usize, node: &Node, goal: &str) -> Result<Seen, ReplayError> {
    let wrong = |reason| ReplayError::Record { node: position, reason };
    let texts: Option<Vec<&str>> = node.parts.iter().map(Part::as_text).collect();
    let observation = match texts.as_deref() {
        Some([first]) if *first == goal => "",
        Some([first, GAP, observation]) if *first == goal => observation,
        // As it was recorded before the gap was.
        Some([first, observation]) if *first == goal => observation,
        Some(_) => return Err(wrong("the message that opens the run is not its goal and an observation")),
        None => return Err(wrong("the message that opens the run holds more than text")),
    };
    Ok(Seen {
        node: position,
        observation: observation.to_owned(),
        is_error: None,
        state_hash: node.occurrence.state_hash,
    })
}

/// What an action showed.
fn answered(position: usize, node: &Node) -> Result<Seen, ReplayError> {
    let (parts, is_error) = match node.parts.as_slice() {
        [Part::ToolResult(result)] => (result.parts.as_slice(), result.is_error),
        parts => (parts, None),
    };
    match parts {
        [Part::Text(text)] => Ok(Seen {
            node: position,
            observation: text.text.clone(),
            is_error,
            state_hash: node.occurrence.state_hash,
        }),
        _ => Err(ReplayError::Record { node: position, reason: "an observation is not one text" }),
    }
}
