//! Model events: what Inspect notes of each model call. Their messages are the sample's own; what is
//! taken from them is the calls' figures, the tools that were offered, prompts that differ from the
//! conversation and, for a sample that ended before its messages were written, the last prompt.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::attachments::Attachments;
use crate::importers::object::Object;
use crate::importers::value::text;
use crate::json::Json;
use crate::trajectory::{Call, Tool, Usage};

/// What the model events of a sample say.
#[derive(Default)]
pub(super) struct ModelEvents<'a> {
    /// Calls in order, each with the id of the message it gave, in logs that have ids.
    pub calls: Vec<(Option<String>, Call)>,
    /// Tools offered, in order of first appearance.
    pub tools: Vec<Tool>,
    /// Prompts that no later one goes on from, but for those of the scorers, which hold the right answer.
    pub prompts: Vec<Vec<&'a RawValue>>,
    /// Prompt and answer of the last call.
    pub last_conversation: Vec<&'a RawValue>,
}

/// Reads the model events among a sample's events. `pool` holds the messages that `input_refs` refer
/// to, in logs that store each message once.
pub(super) fn read<'a>(
    events: &[&'a RawValue],
    pool: &[&'a RawValue],
    attachments: &Attachments,
) -> ModelEvents<'a> {
    let mut read = ModelEvents::default();
    let mut offered = "";
    let mut names = BTreeSet::new();
    let mut last = None;
    let mut is_scoring = false;
    for raw in events {
        let Some(mut event) = Object::of(raw) else { continue };
        let kind = event.get("event").and_then(text).unwrap_or_default();
        if matches!(&*kind, "span_begin" | "step") {
            let of = event.get("type").and_then(text).unwrap_or_default();
            is_scoring |= matches!(&*of, "scorer" | "scorers");
        }
        if kind != "model" {
            continue;
        }
        if !is_scoring {
            add(&mut read.prompts, prompt(&mut event.clone(), pool));
        }
        let mut output = event.object("output");
        let choices = output.list("choices").unwrap_or_default();
        let mut choice = choices.first().and_then(|raw| Object::of(raw)).unwrap_or_default();
        let answer = choice.take("message");
        let id = answer.and_then(|raw| Object::of(raw)?.text("id"));
        read.calls.push((id, call(&mut event, &mut output, &mut choice)));
        let tools = event.get("tools").map_or("", RawValue::get);
        if tools != offered {
            offered = tools;
            for raw in event.list("tools").unwrap_or_default() {
                let Some(tool) = tool(raw, attachments) else { continue };
                if names.insert(tool.name.clone()) {
                    read.tools.push(tool);
                }
            }
        }
        last = Some((event, answer));
    }
    if let Some((mut event, answer)) = last {
        read.last_conversation = prompt(&mut event, pool);
        read.last_conversation.extend(answer);
    }
    read
}

/// The prompt of a call: written out, or as half-open ranges of the pool. No pool is repeated, so the
/// ranges never hold more than it does.
fn prompt<'a>(event: &mut Object<'a>, pool: &[&'a RawValue]) -> Vec<&'a RawValue> {
    let written = event.list("input").unwrap_or_default();
    if !written.is_empty() {
        return written;
    }
    let ranges: Vec<(usize, usize)> = event.read("input_refs").unwrap_or_default();
    let referred = ranges.into_iter().filter_map(|(start, end)| pool.get(start..end));
    referred.flatten().take(pool.len()).copied().collect()
}

/// Adds a prompt, in the place of the last one where it goes on from it.
fn add<'a>(prompts: &mut Vec<Vec<&'a RawValue>>, prompt: Vec<&'a RawValue>) {
    let id = |raw: &RawValue| Object::of(raw)?.text("id");
    let same = |(one, other): (&&RawValue, &&RawValue)| {
        one.get() == other.get() || id(one).is_some_and(|one| id(other) == Some(one))
    };
    match prompts.last_mut() {
        Some(last) if last.len() <= prompt.len() && last.iter().zip(&prompt).all(same) => *last = prompt,
        _ => prompts.push(prompt),
    }
}

fn call(event: &mut Object, output: &mut Object, choice: &mut Object) -> Call {
    let mut usage = output.object("usage");
    let tokens = usage.read("input_tokens").zip(usage.read("output_tokens"));
    let cached = usage.read("input_tokens_cache_read").unwrap_or(0);
    let reasoning = usage.read("reasoning_tokens").unwrap_or(0);
    let config = event.take("config").filter(|config| config.get() != "{}");
    Call {
        model: event.text("model").or_else(|| output.text("model")),
        parameters: config.map(Json::from),
        finish_reason: choice.text("stop_reason"),
        usage: tokens.map(|(input, output)| Usage { input, output, cached, reasoning }),
        error: event.text("error").or_else(|| output.text("error")),
        ..Call::default()
    }
}

fn tool(raw: &RawValue, attachments: &Attachments) -> Option<Tool> {
    let mut tool = Object::of(raw)?;
    let description = tool.text("description").unwrap_or_default();
    let parameters = tool.take("parameters");
    Some(Tool {
        name: tool.text("name")?,
        description: attachments.resolve(&description).into_owned(),
        parameters: parameters.map(|raw| Json::from_foreign(&attachments.resolve_json(raw.get()))),
        read_only: None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::read;
    use crate::importers::inspect::attachments::Attachments;

    fn raws(texts: &[&str]) -> Vec<Box<RawValue>> {
        texts.iter().map(|text| RawValue::from_string((*text).to_owned()).unwrap()).collect()
    }

    #[test]
    fn a_prompt_is_put_together_from_the_pool() {
        let pool = raws(&["0", "1", "2", "3"]);
        let pool: Vec<&RawValue> = pool.iter().map(|raw| &**raw).collect();
        let prompt = |references: &str| {
            let event = format!(r#"{{"event":"model","input":[],"input_refs":{references},"output":{{}}}}"#);
            let event = raws(&[&event]);
            let read = read(&[&event[0]], &pool, &Attachments::new(BTreeMap::new(), 0));
            read.last_conversation.iter().map(|raw| raw.get()).collect::<String>()
        };
        assert_eq!(prompt("[[0,1],[2,4]]"), "023");
        assert_eq!(prompt("[[3,9],[2,1]]"), "", "ranges outside the pool name nothing");
        assert_eq!(prompt(&format!("[{}[0,4]]", "[0,4],".repeat(1000))), "0123");
    }
}
