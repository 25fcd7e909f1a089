//! Bending a call: the expert's, with one argument changed.

use serde_json::{Map, Value};

use super::Moment;
use super::seen;
use crate::environments::{Action, ArgumentKind, Parameter, ToolSpec};
use crate::json::Json;

/// First words of names that nobody gave anything.
const INVENTED: &[&str] = &["cobalt", "amber", "crimson", "spare", "second", "hidden", "golden", "old"];
/// Attempts at a value that was not shown.
const ATTEMPTS: usize = 8;

/// A call taken apart.
pub(super) struct Call<'a> {
    pub(super) tool: &'a ToolSpec,
    pub(super) arguments: Map<String, Value>,
}

impl<'a> Moment<'a> {
    /// The expert's call; `None` where it speaks.
    pub(super) fn call(&self) -> Option<Call<'a>> {
        let Action::Call { tool, arguments } = self.expert else { return None };
        let tool = self.situation.tools.iter().find(|known| known.name == **tool)?;
        let Value::Object(arguments) = arguments.to_value() else { return None };
        Some(Call { tool, arguments })
    }

    /// The same call with a value that occurs nowhere, in the form of the right one.
    pub(super) fn with_invention(&mut self) -> Option<Action> {
        let mut call = self.call()?;
        let named = |parameter: &&Parameter| {
            parameter.options.is_none() && call.arguments.get(&parameter.name).is_some_and(Value::is_string)
        };
        let mut parameters: Vec<&Parameter> = call.tool.parameters.iter().filter(named).collect();
        let has_digit = |parameter: &Parameter| {
            let text = call.arguments.get(&parameter.name).and_then(Value::as_str).unwrap_or_default();
            text.contains(|c: char| c.is_ascii_digit())
        };
        // An id, where there is one, is what agents make up.
        if parameters.iter().any(|parameter| has_digit(parameter)) {
            parameters.retain(|parameter| has_digit(parameter));
        }
        let name = &self.dice.choose(&parameters)?.name;
        let value = call.arguments.get(name)?.as_str()?.to_owned();
        let invented = self.invent(&value)?;
        call.arguments.insert(name.clone(), Value::String(invented));
        call.into_action()
    }

    fn invent(&mut self, value: &str) -> Option<String> {
        for _ in 0..ATTEMPTS {
            let invented = if value.contains(|c: char| c.is_ascii_digit()) {
                value.chars().map(|c| if c.is_ascii_digit() { self.digit() } else { c }).collect()
            } else {
                let word = self.dice.choose(INVENTED)?;
                match value.split_once(' ') {
                    Some((_, rest)) => format!("{word} {rest}"),
                    None => format!("{word} {value}"),
                }
            };
            if invented != value && !seen::is_shown(self.situation, &invented) {
                return Some(invented);
            }
        }
        None
    }

    fn digit(&mut self) -> char {
        char::from(b'0' + self.dice.below(10) as u8)
    }

    /// The same call with another value that would have been possible.
    pub(super) fn with_variant(&mut self) -> Option<Action> {
        let mut call = self.call()?;
        let mut variants: Vec<(&str, Vec<Value>)> = Vec::new();
        for parameter in &call.tool.parameters {
            let Some(value) = call.arguments.get(&parameter.name) else { continue };
            let others: Vec<Value> = match (&parameter.options, value) {
                (Some(options), _) => options.iter().filter(|option| *option != value).cloned().collect(),
                (None, Value::String(text)) => {
                    let like = seen::like(self.situation, &parameter.name, text);
                    like.into_iter().map(Value::String).collect()
                }
                (None, Value::Number(number)) if parameter.kind == ArgumentKind::Integer => {
                    let number = number.as_i64()?;
                    [number.checked_add(1)?, number.checked_sub(1)?.max(0)]
                        .into_iter()
                        .filter(|other| *other != number)
                        .map(Value::from)
                        .collect()
                }
                _ => Vec::new(),
            };
            if !others.is_empty() {
                variants.push((&parameter.name, others));
            }
        }
        let (name, others) = self.dice.choose(&variants)?;
        let other = self.dice.choose(others)?.clone();
        call.arguments.insert((*name).to_owned(), other);
        call.into_action()
    }
}

impl Call<'_> {
    pub(super) fn into_action(self) -> Option<Action> {
        let arguments = Json::from_serialize(&self.arguments).ok()?;
        Some(Action::call(self.tool.name.as_str(), arguments))
    }
}
