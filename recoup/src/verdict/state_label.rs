//! A state label: what a teacher would do in a state that a student has visited.
//!
//! A state is the task and everything up to a message; an action is a whole turn. The label is kept as what the
//! turn means ([`TurnAst`]), not as what a model wrote, so that each model sees and learns it in its own form. A
//! teacher's reasoning stands apart, and is learned from only where that is asked for.

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::trajectory::{ArgumentsForm, Part, ToolCall, same_action};

/// The two that share a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// Who is to learn.
    Student,
    /// Who is learned from.
    Teacher,
}

impl Actor {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Student, Self::Teacher];

    /// The word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Student => "student",
            Self::Teacher => "teacher",
        }
    }
}

/// What a turn means: words and calls with typed arguments. Reasoning and call ids are no part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TurnAst {
    /// Words: beside calls, or the answer that ends the run. Empty where there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallAst>,
}

/// A call with typed arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallAst {
    /// The tool.
    pub name: String,
    /// A JSON object.
    pub arguments: Json,
}

/// A turn that has no meaning that could be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTurn {
    /// Neither words nor a call.
    #[error("it says nothing and calls nothing")]
    Empty,
    /// Arguments that are no JSON object.
    #[error("the arguments of `{tool}` are no JSON object")]
    Arguments {
        /// The tool.
        tool: String,
    },
}

impl TurnAst {
    /// Reads the parts of an assistant's message, with its reasoning apart.
    ///
    /// # Errors
    /// [`NoTurn`].
    pub fn of_parts(parts: &[Part]) -> Result<(Self, Option<String>), NoTurn> {
        let mut turn = Self::default();
        let mut reasoning = String::new();
        for part in parts {
            match part {
                Part::Text(text) => join(&mut turn.text, &text.text),
                Part::Reasoning { text, .. } => join(&mut reasoning, text),
                Part::ToolCall(call) => turn.calls.push(CallAst::read(&call.name, &call.arguments_raw)?),
                Part::ToolResult(_) | Part::Media(_) | Part::Opaque { .. } => {}
            }
        }
        if turn.calls.is_empty() && turn.text.trim().is_empty() {
            return Err(NoTurn::Empty);
        }
        Ok((turn, Some(reasoning).filter(|text| !text.is_empty())))
    }

    /// The turn as the parts of a message. `first` numbers the id of its first call, so that ids stay apart in a
    /// conversation.
    pub fn to_parts(&self, first: usize) -> Vec<Part> {
        let text = (!self.text.is_empty()).then(|| Part::text(self.text.as_str()));
        let calls =
            self.calls.iter().enumerate().map(|(offset, call)| Part::ToolCall(call.to_call(first + offset)));
        text.into_iter().chain(calls).collect()
    }

    /// Whether two turns do the same: equal calls, or the same words where neither calls a tool.
    pub fn does_the_same(&self, other: &Self) -> bool {
        if self.calls.is_empty() && other.calls.is_empty() {
            return self.text.trim() == other.text.trim();
        }
        self.calls.len() == other.calls.len()
            && self
                .calls
                .iter()
                .zip(&other.calls)
                .all(|(ours, theirs)| same_action(&ours.to_call(0), &theirs.to_call(0)))
    }

    /// Whether it ends the run: words alone.
    pub fn is_answer(&self) -> bool {
        self.calls.is_empty()
    }
}

impl CallAst {
    /// A call as a model wrote it.
    ///
    /// # Errors
    /// [`NoTurn::Arguments`].
    pub fn read(name: &str, arguments: &str) -> Result<Self, NoTurn> {
        // Many models write nothing where a tool takes nothing.
        let text = if arguments.trim().is_empty() { "{}" } else { arguments };
        match Json::parse(text) {
            Ok(arguments) if arguments.as_str().starts_with('{') => {
                Ok(Self { name: name.to_owned(), arguments })
            }
            _ => Err(NoTurn::Arguments { tool: name.to_owned() }),
        }
    }

    fn to_call(&self, number: usize) -> ToolCall {
        ToolCall {
            call_id: Some(format!("call_{number}")),
            name: self.name.clone(),
            arguments_raw: self.arguments.as_str().to_owned(),
            arguments_form: ArgumentsForm::Object,
        }
    }
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// What a teacher would do in a visited state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StateLabel {
    /// Position of the last message of the state: the turn that is asked for comes after it.
    pub state: usize,
    /// Position of the turn that was executed there; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed: Option<usize>,
    /// Which turn of the run it is, from 0.
    pub turn: u64,
    /// Round of collection, from 1.
    pub round: u32,
    /// Who acted.
    pub actor: Actor,
    /// The teacher's name.
    pub teacher: String,
    /// The label; absent where it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<TurnAst>,
    /// The teacher's reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Whether the executed turn does what the label says; absent without either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
    /// Why there is no label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<LabelRefusal>,
    /// The filters that a label can be held back by, of those that apply to this one: which of them count is
    /// decided where examples are made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<LabelMark>,
    /// Whether the label, executed from the state and continued by the teacher, passed; absent where that was
    /// not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// What the label took.
    #[serde(default, skip_serializing_if = "LabelCost::is_nothing")]
    pub cost: LabelCost,
    /// How far the student's executed turn lies from the teacher, where both gave log-probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<TokenShift>,
    /// Why there is no such number, where the student acted and one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unscored: Option<Unscored>,
}

/// Why nobody knows how far a student's turn lies from its teacher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unscored {
    /// The student gave no log-probabilities of its own tokens.
    Student,
    /// The teacher does not score tokens that it is given.
    Teacher,
    /// The two cut the turn into different tokens.
    Tokens,
    /// The turn went through the proxy, which has nothing scored.
    Recorded,
}

impl Unscored {
    /// For a person.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Student => "the student gave no log-probabilities",
            Self::Teacher => "the teacher does not score given tokens",
            Self::Tokens => "student and teacher cut the turn into different tokens",
            Self::Recorded => "turns that went through the proxy are not scored",
        }
    }
}

/// Why a state has no label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelRefusal {
    /// Which rule.
    pub code: RefusalCode,
    /// In words, for a person.
    pub reason: String,
}

impl LabelRefusal {
    /// Of an answer that cannot be read as a turn.
    pub fn unreadable(why: impl std::fmt::Display) -> Self {
        Self { code: RefusalCode::Unreadable, reason: why.to_string() }
    }
}

/// The rules by which a teacher's answer is no label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The teacher gave no answer; the student went on without.
    Missing,
    /// The answer cannot be read as a turn.
    Unreadable,
    /// It calls a tool that the student does not have, or with arguments that the tool does not take.
    ForeignTool,
    /// Written in the student's form and read again, it says something else.
    ParseBack,
    /// It holds a placeholder of a redacted value that nobody can restore.
    Unrestored,
}

impl RefusalCode {
    /// Every rule.
    pub const ALL: [Self; 5] =
        [Self::Missing, Self::Unreadable, Self::ForeignTool, Self::ParseBack, Self::Unrestored];

    /// The rule's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::ForeignTool => "foreign_tool",
            Self::ParseBack => "parse_back",
            Self::Unrestored => "unrestored",
        }
    }
}

/// A filter of labels that applies to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LabelMark {
    /// The teacher's answer could be read by lenient rules only.
    NonParsing,
    /// The state is longer than the student's context.
    ContextOverflow,
    /// The run goes in circles at this state.
    Loop,
    /// The teacher ends the run here, and the task is not solved.
    UnsolvedFinish,
}

impl LabelMark {
    /// Every filter.
    pub const ALL: [Self; 4] = [Self::NonParsing, Self::ContextOverflow, Self::Loop, Self::UnsolvedFinish];

    /// The filter's name in settings, on the command line and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NonParsing => "non_parsing",
            Self::ContextOverflow => "context_overflow",
            Self::Loop => "loop",
            Self::UnsolvedFinish => "unsolved_finish",
        }
    }
}

/// What a label took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelCost {
    /// Tokens of the question.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    /// US dollars; `None` where the teacher has no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

impl LabelCost {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Part of the reverse KL divergence on student states: the mean over student tokens of log π_s − log π_t is the
/// sum of all `sum` over the sum of all `tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TokenShift {
    /// Σ log π_s − log π_t over the tokens of the student's turn, natural logarithm.
    pub sum: f64,
    /// Their number.
    pub tokens: u64,
}

#[cfg(test)]
mod tests {
    use super::{CallAst, NoTurn, TurnAst};
    use crate::trajectory::Part;

    fn call(name: &str, arguments: &str) -> CallAst {
        CallAst::read(name, arguments).unwrap()
    }

    #[test]
    fn parts_and_meaning_are_the_same() {
        let turn = TurnAst {
            text: "Let me look.".to_owned(),
            calls: vec![call("go", r#"{"to": 1}"#), call("see", "")],
        };
        assert_eq!(TurnAst::of_parts(&turn.to_parts(4)).unwrap(), (turn.clone(), None));
        let reasoning = Part::Reasoning { text: "why".to_owned(), signature: None };
        let parts: Vec<Part> = [reasoning].into_iter().chain(turn.to_parts(0)).collect();
        assert_eq!(TurnAst::of_parts(&parts).unwrap(), (turn, Some("why".to_owned())));
    }

    #[test]
    fn what_has_no_meaning_is_no_turn() {
        assert_eq!(TurnAst::of_parts(&[Part::text(" ")]), Err(NoTurn::Empty));
        assert!(matches!(CallAst::read("go", "[1]"), Err(NoTurn::Arguments { .. })));
        assert!(matches!(CallAst::read("go", r#"{"a":1,"a":2}"#), Err(NoTurn::Arguments { .. })));
    }

    #[test]
    fn words_beside_calls_do_not_tell_turns_apart() {
        let turn = |text: &str, arguments: &str| TurnAst {
            text: text.to_owned(),
            calls: vec![call("go", arguments)],
        };
        assert!(turn("a", r#"{"n":1}"#).does_the_same(&turn("b", r#"{"n":1.0}"#)));
        assert!(!turn("a", r#"{"n":1}"#).does_the_same(&turn("a", r#"{"n":2}"#)));
        let say = |text: &str| TurnAst { text: text.to_owned(), calls: Vec::new() };
        assert!(say("done ").does_the_same(&say("done")) && !say("done").does_the_same(&turn("done", "{}")));
    }
}
