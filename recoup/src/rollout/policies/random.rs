//! Random calls: any tool, with arguments that could be right.
//!
//! A value listed in the schema is one of those; words are taken from what has been shown; numbers are
//! small. It looks at no more text than it takes, so a turn costs the same however long the run is.

use std::fmt::Write as _;

use super::{Family, no_parameters};
use crate::canonical::write_string;
use crate::environments::{Action, ArgumentKind, Parameter, Scene, ToolSpec, rand};
use crate::json::Json;
use crate::rollout::{Policy, PolicyError, Situation, Turn};

/// Most words of a value.
const WORDS_MAX: u64 = 3;
/// Numbers are drawn below this.
const NUMBERS: u64 = 10;

/// See the module.
pub struct Random;

pub(super) struct RandomFamily;

impl Family for RandomFamily {
    fn name(&self) -> &'static str {
        "random"
    }

    fn usage(&self) -> String {
        "random".to_owned()
    }

    fn describe(&self) -> &'static str {
        "calls any tool with arguments taken from the schema and from what was shown"
    }

    fn parse(&self, parameters: &str) -> Result<Box<dyn Policy>, String> {
        no_parameters(parameters)?;
        Ok(Box::new(Random))
    }
}

impl Policy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn act(&self, situation: &Situation<'_>, _: &mut dyn Scene) -> Result<Turn, PolicyError> {
        let mut dice = Dice::new(situation, "random");
        Ok(dice
            .choose(situation.tools)
            .map(|tool| call(tool, situation, &mut dice).into())
            .unwrap_or_default())
    }
}

/// A call of a tool with random arguments.
pub(super) fn call(tool: &ToolSpec, situation: &Situation<'_>, dice: &mut Dice) -> Action {
    let mut arguments = String::with_capacity(64);
    arguments.push('{');
    // Whether what is written is in the canonical form as it stands, which reading it again would tell at a cost.
    let mut canonical = true;
    let mut last = "";
    for parameter in &tool.parameters {
        if !tool.required.contains(&parameter.name) && dice.below(2) == 0 {
            continue;
        }
        if arguments.len() > 1 {
            arguments.push(',');
            canonical &= last < parameter.name.as_str();
        }
        last = &parameter.name;
        write_string(&mut arguments, &parameter.name);
        arguments.push(':');
        canonical &= write_value(&mut arguments, parameter, situation, dice);
    }
    arguments.push('}');
    let arguments = if canonical { Json::from_canonical(arguments) } else { Json::from_foreign(&arguments) };
    Action::call(tool.name.as_str(), arguments)
}

/// Writes a value, and says whether it is in the canonical form for sure.
fn write_value(out: &mut String, parameter: &Parameter, situation: &Situation<'_>, dice: &mut Dice) -> bool {
    if let Some(option) = parameter.options.as_ref().and_then(|options| dice.choose(options)) {
        let Some(text) = option.as_str() else {
            let _ = write!(out, "{option}");
            return false;
        };
        write_string(out, text);
        return true;
    }
    match parameter.kind {
        ArgumentKind::String => write_string(out, words(situation, dice)),
        ArgumentKind::Integer | ArgumentKind::Number => drop(write!(out, "{}", dice.below(NUMBERS))),
        ArgumentKind::Boolean => out.push_str(if dice.below(2) == 0 { "false" } else { "true" }),
        ArgumentKind::Array => {
            out.push('[');
            write_string(out, words(situation, dice));
            out.push(']');
        }
        ArgumentKind::Object => out.push_str("{}"),
    }
    true
}

/// A word that was shown somewhere, or a few in a row.
fn words<'a>(situation: &Situation<'a>, dice: &mut Dice) -> &'a str {
    let text = match dice.below(situation.transcript.len() as u64 + 2) {
        0 => situation.goal,
        1 => situation.first_observation,
        at => situation.transcript.get(at as usize - 2).map_or("", |seen| seen.step.observation.as_str()),
    };
    let from = text.ceil_char_boundary(dice.below(text.len() as u64 + 1) as usize);
    let start = text[from..].find(is_word).map_or(0, |found| from + found);
    // Back to where the word begins, wherever it was met.
    let start = text[..start]
        .rfind(|c| !is_word(c))
        .map_or(0, |gap| text[gap..].find(is_word).map_or(gap, |on| gap + on));
    let mut end = start;
    for _ in 0..=dice.below(WORDS_MAX) {
        let next = if end > start && text[end..].starts_with(' ') { end + 1 } else { end };
        let word = text[next..].find(|c| !is_word(c)).unwrap_or(text.len() - next);
        if word == 0 {
            break;
        }
        end = next + word;
    }
    text[start..end].trim_end_matches('.')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '#' | '@' | '.' | '/')
}

/// Chance for one turn: many numbers from one draw.
pub(super) struct Dice {
    seed: u64,
    drawn: u64,
}

impl Dice {
    /// Dice for this turn; `what` names what they decide.
    pub(super) fn new(situation: &Situation<'_>, what: &str) -> Self {
        Self { seed: situation.draw(what, u64::MAX), drawn: 0 }
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.drawn += 1;
        rand(self.seed, "", self.drawn, n)
    }

    /// One of some.
    pub(super) fn choose<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dice, Random, words};
    use crate::environments::{Action, EnvironmentError, Scene, State, ToolSpec};
    use crate::rollout::{Policy as _, Situation};

    struct Nowhere;

    impl Scene for Nowhere {
        fn state(&mut self) -> Result<State, EnvironmentError> {
            Ok(State::new("{}"))
        }

        fn expert(&mut self) -> Result<Option<Action>, EnvironmentError> {
            Ok(None)
        }

        fn expert_after(&mut self, _: &Action) -> Result<Option<Action>, EnvironmentError> {
            Ok(None)
        }
    }

    fn situation<'a>(tools: &'a [ToolSpec], goal: &'a str, turn: u64) -> Situation<'a> {
        Situation {
            goal,
            rules: None,
            tools,
            first_observation: "",
            transcript: &[],
            turns: &[],
            turn,
            turns_left: 1,
            seed: 1,
            advice: None,
        }
    }

    #[test]
    fn words_are_whole_and_stand_in_the_text() {
        let goal = "Bring the brass key, órder #W-12 to Ünal.";
        for turn in 0..300 {
            let situation = situation(&[], goal, turn);
            let found = words(&situation, &mut Dice::new(&situation, "test"));
            assert!(goal.contains(found), "{found:?}");
            let whole = |word: &str| {
                goal.split([' ', ',']).any(|known| known.trim_end_matches('.') == word.trim_end_matches('.'))
            };
            assert!(found.split(' ').all(whole), "{found:?}");
        }
    }

    #[test]
    fn every_call_fits_its_tool() {
        let tools = ToolSpec::read_all(
            "test",
            r#"[{"name":"go","parameters":{"type":"object","properties":{
                "to":{"type":"string","enum":["north","south"]},"far":{"type":"integer"},
                "why":{"type":"string"},"at":{"type":"number","enum":[1.0,25e-1]}},"required":["to"]}}]"#,
        )
        .unwrap();
        for turn in 0..50 {
            let turn = Random.act(&situation(&tools, "go \"on\"", turn), &mut Nowhere).unwrap();
            let [Action::Call { tool, arguments }] = turn.actions.as_slice() else { panic!("{turn:?}") };
            assert_eq!(&**tool, "go");
            assert_eq!(*arguments, crate::json::Json::parse(arguments.as_str()).unwrap());
            let to = arguments.to_value()["to"].as_str().unwrap().to_owned();
            assert!(["north", "south"].contains(&to.as_str()));
        }
    }
}
