//! `llamafactory`: LLaMA-Factory's sharegpt form, with an entry in `dataset_info.json`.
//!
//! `{"conversations": [{"from", "value"}], "system": "…", "tools": "…"}`, questions (`human`, `observation`) and
//! answers (`gpt`, `function_call`) in turn; a preference has `chosen` and `rejected` beside it, a wanted or
//! unwanted answer `kto_tag`. The form has no call ids, so several results between two answers are refused.
//! LLaMA-Factory learns every answer of a row, or with `mask_history` the last.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::chat::{chat_messages, tools};
use super::learned::{require_all, require_last};
use super::rows::stepwise;
use super::shape::{Key, Shape, key};
use super::trl::{one_row_a_step, with};
use super::trl_preference::require_pair;
use super::{Built, Exporter, Manifest, Refusal};
use crate::views::{Example, Objective, View};

/// The format's name.
const FORMAT: &str = "llamafactory";
/// The list of data sets that LLaMA-Factory reads.
const LIST: &str = "dataset_info.json";
/// How the default templates frame reasoning and calls beside other text.
const REASONING: [&str; 2] = ["<think>\n", "\n</think>\n\n"];
const CALLS: [&str; 2] = ["<tool_call>", "</tool_call>"];

/// See the module.
pub(super) struct LlamaFactory {
    /// Whether a row is a whole conversation, or ends with the one message that is learned.
    learns_whole_runs: bool,
}

/// What writes a view.
pub(super) fn of_view(view: &dyn View) -> &'static dyn Exporter {
    if view.learns_whole_runs() {
        &LlamaFactory { learns_whole_runs: true }
    } else {
        &LlamaFactory { learns_whole_runs: false }
    }
}

/// A conversation in the form's words: what the system says, and the turns.
struct Turns {
    system: String,
    turns: Vec<Value>,
}

impl Turns {
    fn of(example: &Example) -> Result<Self, Refusal> {
        let mut out = Self { system: String::new(), turns: Vec::new() };
        for (index, message) in chat_messages(example)?.iter().enumerate() {
            let text = message["content"].as_str().unwrap_or_default();
            let (from, value) = match message["role"].as_str() {
                Some("system") if index == 0 => {
                    text.clone_into(&mut out.system);
                    continue;
                }
                Some("system") => return Err(Refusal::because("system-message-inside")),
                Some("assistant") => answer(message, text)?,
                Some("tool") => ("observation", text.to_owned()),
                _ => ("human", text.to_owned()),
            };
            let is_an_answer = matches!(from, "gpt" | "function_call");
            if is_an_answer != (out.turns.len() % 2 == 1) {
                return Err(Refusal::because("turns-do-not-alternate"));
            }
            out.turns.push(json!({"from": from, "value": value}));
        }
        Ok(out)
    }

    fn row(self, example: &Example, more: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
        let functions = tools(example).map(|tools| {
            let functions = tools.into_iter().map(|mut tool| tool["function"].take()).collect();
            Value::Array(functions).to_string()
        });
        let mut row = Map::new();
        row.insert("conversations".to_owned(), self.turns.into());
        row.insert("system".to_owned(), self.system.into());
        row.insert("tools".to_owned(), functions.unwrap_or_default().into());
        row.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        row.into()
    }
}

/// What an assistant's message is called, and its text.
fn answer(message: &Value, text: &str) -> Result<(&'static str, String), Refusal> {
    let mut value = String::new();
    if let Some(reasoning) = message["reasoning_content"].as_str() {
        let [before, after] = REASONING;
        value.extend([before, reasoning, after]);
    }
    let Some(calls) = message["tool_calls"].as_array() else { return Ok(("gpt", value + text)) };
    let mut functions: Vec<&Value> = calls.iter().map(|call| &call["function"]).collect();
    let functions = match functions.as_mut_slice() {
        [one] => one.to_string(),
        several => json!(several).to_string(),
    };
    if text.is_empty() {
        return Ok(("function_call", value + &functions));
    }
    if CALLS.iter().any(|word| text.contains(word) || functions.contains(word)) {
        return Err(Refusal::because("text-that-looks-like-a-call"));
    }
    let [before, after] = CALLS;
    value.extend([text, before, &functions, after]);
    Ok(("function_call", value))
}

impl Exporter for LlamaFactory {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        if self.learns_whole_runs { require_all(example) } else { require_last(example) }?;
        Ok(Turns::of(example)?.row(example, []))
    }

    fn pair(&self, chosen: &Example, rejected: &Example) -> Result<Value, Refusal> {
        require_pair(chosen, rejected)?;
        let mut turns = Turns::of(chosen)?;
        let (better, worse) = (turns.turns.pop(), Turns::of(rejected)?.turns.pop());
        let answers = [("chosen", better), ("rejected", worse)];
        Ok(turns.row(chosen, answers.into_iter().filter_map(|(name, turn)| Some((name, turn?)))))
    }

    fn labelled(&self, example: &Example, is_wanted: bool) -> Result<Value, Refusal> {
        require_last(example)?;
        Ok(Turns::of(example)?.row(example, [("kto_tag", is_wanted.into())]))
    }

    fn rows(&self, example: Example) -> Vec<Built> {
        if self.learns_whole_runs {
            let row = self.row(&example);
            return vec![Built::one(example, row)];
        }
        stepwise(example, |step| self.row(step))
    }

    fn shape(&self) -> &'static Shape {
        const TURN: Shape = Shape::Object(&[
            key("from", Shape::Word(&["human", "gpt", "function_call", "observation"])),
            key("value", Shape::Text),
        ]);
        const TURNS: Key = key("conversations", Shape::List(&TURN));
        const SYSTEM: Key = key("system", Shape::Text);
        const TOOLS: Key = key("tools", Shape::Text);
        const ROW: Shape = Shape::Either(&[
            Shape::Object(&[TURNS, SYSTEM, TOOLS]),
            Shape::Object(&[TURNS, SYSTEM, TOOLS, key("chosen", TURN), key("rejected", TURN)]),
            Shape::Object(&[TURNS, SYSTEM, TOOLS, key("kto_tag", Shape::Flag)]),
        ]);
        &ROW
    }

    fn mask(&self) -> &'static str {
        if self.learns_whole_runs {
            "every answer is learned; rows where one is not are refused"
        } else {
            "one learned message a row, its last"
        }
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        let settings = with(one_row_a_step(objective), "train_on_prompt", false);
        match objective {
            Objective::TokenSum | Objective::MeanPerExample => {
                with(settings, "mask_history", !self.learns_whole_runs)
            }
            _ => settings,
        }
    }

    /// The view's entry in the list, beside those that stand there.
    fn companions(&self, folder: &Path, manifest: &Manifest) -> std::io::Result<Vec<(&'static str, String)>> {
        let mut list: Map<String, Value> = match std::fs::read(folder.join(LIST)) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Map::new(),
            Err(error) => return Err(error),
        };
        let mut columns = json!({"messages": "conversations", "system": "system", "tools": "tools"});
        let is_a_preference = manifest.objective == Objective::Preference;
        if is_a_preference {
            columns["chosen"] = json!("chosen");
            columns["rejected"] = json!("rejected");
        }
        if matches!(manifest.objective, Objective::Desirability | Objective::StepRewards) {
            columns["kto_tag"] = json!("kto_tag");
        }
        let mut entry = json!({
            "file_name": self.file(&manifest.view), "formatting": "sharegpt", "columns": columns,
        });
        if is_a_preference {
            entry["ranking"] = json!(true);
        }
        list.insert(manifest.view.clone(), entry);
        list.sort_keys();
        Ok(vec![(LIST, format!("{:#}\n", Value::Object(list)))])
    }
}
