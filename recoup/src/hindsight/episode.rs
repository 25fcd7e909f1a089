//! An episode: a run's main branch as exchanges, each what the agent did and what that showed.
//!
//! Only what was shown establishes anything: what an agent thinks or says is never a fact.

use serde_json::Value;

use crate::diagnosis::{DiagnosisConfig, Effect, Run};
use crate::rollout::GAP;
use crate::trajectory::{Citation, Role, Trajectory};

/// A run, read for what it established.
pub struct Episode<'a> {
    /// The run.
    pub run: &'a Trajectory,
    /// What the run opened with beside its goal, where it did.
    pub opening: Option<Shown<'a>>,
    /// What was done, in order.
    pub exchanges: Vec<Exchange<'a>>,
}

/// Something done and what it showed.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// Position of the agent's message in the trajectory.
    pub node: usize,
    /// What was done.
    pub act: Act<'a>,
    /// What that showed, where something did.
    pub shown: Option<Shown<'a>>,
}

/// What was done.
#[derive(Debug)]
pub enum Act<'a> {
    /// A tool was called, or an action written as text.
    Call {
        /// The tool's name.
        tool: &'a str,
        /// Its arguments; the action's text where it is none of a tool.
        arguments: Value,
        /// Whether it may change the world, as the tool declares or its name says.
        writes: bool,
    },
    /// Words to whoever answers.
    Say(&'a str),
}

/// An observation: one text that no agent wrote.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    /// Position of the message that holds it.
    pub node: usize,
    /// Part of the text.
    pub part_path: Vec<usize>,
    /// The text.
    pub text: &'a str,
    /// Whether it reports a failure.
    pub failed: bool,
}

impl Shown<'_> {
    /// Bytes `start..end` of it.
    pub fn cite(&self, start: usize, end: usize) -> Citation {
        Citation { node: self.node, part_path: self.part_path.clone(), start, end }
    }
}

impl<'a> Exchange<'a> {
    /// What it showed, where that reports no failure.
    pub fn success(&self) -> Option<&Shown<'a>> {
        self.shown.as_ref().filter(|shown| !shown.failed)
    }

    /// The call, with what it showed, where it was answered without a failure.
    pub fn called(&self) -> Option<(&'a str, &Value, &Shown<'a>)> {
        match &self.act {
            Act::Call { tool, arguments, .. } => Some((*tool, arguments, self.success()?)),
            Act::Say(_) => None,
        }
    }

    /// The words and the answer to them.
    pub fn said(&self) -> Option<(&'a str, &Shown<'a>)> {
        match &self.act {
            Act::Say(text) => Some((*text, self.shown.as_ref()?)),
            Act::Call { .. } => None,
        }
    }

    /// The member of the arguments of that name, where it is a text.
    pub fn argument(&self, name: &str) -> Option<&str> {
        match &self.act {
            Act::Call { arguments, .. } => arguments.get(name)?.as_str(),
            Act::Say(_) => None,
        }
    }
}

impl<'a> Episode<'a> {
    /// Reads a run.
    pub fn read(run: &'a Trajectory) -> Self {
        let index = Run::new(run, &[], &DiagnosisConfig::default());
        let mut exchanges: Vec<(usize, Exchange<'a>)> = Vec::new();
        for action in index.actions {
            let arguments = match (&action.arguments, action.is_call) {
                (Some(arguments), _) => arguments.clone(),
                (None, _) => Value::String(action.raw.to_owned()),
            };
            let writes = action.effect != Effect::Read;
            let shown = action.observation.map(|shown| Shown {
                node: shown.node,
                part_path: shown.part_path,
                text: shown.text,
                failed: shown.failed,
            });
            let act = Act::Call { tool: action.name, arguments, writes };
            exchanges.push((action.index, Exchange { node: action.node, act, shown }));
        }
        let nodes: Vec<_> = index.branch.nodes().collect();
        for message in &index.messages {
            let answer = nodes.get(message.index + 1).filter(|(_, node)| node.role == Role::User);
            let shown = answer.and_then(|(position, node)| {
                let (part_path, text) = node.texts().next()?;
                Some(Shown { node: *position, part_path, text, failed: false })
            });
            exchanges
                .push((message.index, Exchange { node: message.node, act: Act::Say(message.text), shown }));
        }
        // Several calls of one message keep their order.
        exchanges.sort_by_key(|(index, _)| *index);
        let opening = nodes.iter().find(|(_, node)| node.role == Role::User).and_then(|(position, node)| {
            let (part_path, text) = node.texts().find(|(_, text)| *text != run.task.goal && *text != GAP)?;
            // A message that is the goal and more is not told apart from the goal.
            let is_apart = part_path.first().is_some_and(|part| *part > 0);
            is_apart.then_some(Shown { node: *position, part_path, text, failed: false })
        });
        Self { run, opening, exchanges: exchanges.into_iter().map(|(_, exchange)| exchange).collect() }
    }

    /// What was shown, in order, each with the exchange that it answers; `None` is the opening.
    pub fn shown(&self) -> impl Iterator<Item = (Option<usize>, &Shown<'a>)> {
        let opening = self.opening.iter().map(|shown| (None, shown));
        let answers = self.exchanges.iter().enumerate();
        opening.chain(answers.filter_map(|(at, exchange)| Some((Some(at), exchange.shown.as_ref()?))))
    }

    /// The last message of the run that belongs to an exchange: what it showed, else what was done.
    pub fn end_of(&self, exchange: usize) -> Option<usize> {
        let exchange = self.exchanges.get(exchange)?;
        Some(exchange.shown.as_ref().map_or(exchange.node, |shown| shown.node.max(exchange.node)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Act, Episode};
    use crate::diagnosis::fixture::{call, chat, result, say, user};

    #[test]
    fn calls_and_words_are_exchanges_in_order() {
        let run = chat(vec![
            user("help me"),
            say("Who are you?"),
            user("Ada."),
            call("find_user", r#"{"name":"Ada"}"#),
            result("u_1"),
        ]);
        let episode = Episode::read(&run);
        assert_eq!(episode.exchanges.len(), 2);
        assert_eq!(episode.exchanges[0].said().unwrap().1.text, "Ada.");
        let (tool, arguments, shown) = episode.exchanges[1].called().unwrap();
        assert_eq!((tool, arguments["name"].as_str(), shown.text), ("find_user", Some("Ada"), "u_1"));
        assert!(matches!(episode.exchanges[1].act, Act::Call { writes: false, .. }));
        assert!(episode.opening.is_none());
    }
}
