//! `scout`: transcripts for Inspect Scout, a Parquet table of one transcript a row.
//!
//! Scout looks at transcripts and trains nothing, so every example is carried; which bytes are learned stands in a
//! column of ours, `learned`.

use serde_json::{Value, json};

use super::chat::chat_messages;
use super::shape::{Shape, key, optional};
use super::{Exporter, Refusal};
use crate::trajectory::Role;
use crate::views::Example;

/// See the module.
pub(super) struct Scout;

/// A chat message as Inspect has it.
fn inspect(message: &Value) -> Value {
    let mut out = json!({"role": message["role"]});
    out["content"] = match message["reasoning_content"].as_str() {
        None => message["content"].clone(),
        Some(reasoning) => json!([
            {"type": "reasoning", "reasoning": reasoning}, {"type": "text", "text": message["content"]},
        ]),
    };
    if let Some(calls) = message["tool_calls"].as_array() {
        let call = |call: &Value| {
            json!({
                "id": call["id"], "type": "function",
                "function": call["function"]["name"], "arguments": call["function"]["arguments"],
            })
        };
        out["tool_calls"] = calls.iter().map(call).collect();
    }
    if message["role"] == "tool" {
        out["tool_call_id"] = message["tool_call_id"].clone();
        out["function"] = message["name"].clone();
    }
    out
}

impl Exporter for Scout {
    fn format(&self) -> &'static str {
        "scout"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        let messages: Vec<Value> = chat_messages(example)?.iter().map(inspect).collect();
        let lineage = &example.lineage;
        let agent = example.context.iter().find(|message| message.role == Role::Assistant);
        let mut row = json!({
            "transcript_id": example.content_hash().to_string(),
            "source_type": "recoup",
            "source_id": lineage.trajectory.to_string(),
            "task_set": lineage.view,
            "task_id": lineage.task.0,
            "message_count": messages.len(),
            // As text: a reader of the table wants one.
            "messages": Value::Array(messages).to_string(),
            "licence": lineage.licence,
            "split": lineage.side.as_str(),
            "objective": example.objective,
            "learned": json!(example.segments).to_string(),
        });
        if let Some(agent) = agent {
            row["agent"] = json!(agent.agent);
        }
        if let Some(pair) = &example.pair {
            row["pair"] = json!(pair.id);
            row["chosen"] = json!(pair.chosen);
        }
        if let Some(is_wanted) = example.desirable {
            row["desirable"] = json!(is_wanted);
        }
        Ok(row)
    }

    fn carries_everything(&self) -> bool {
        true
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape = Shape::Object(&[
            key("transcript_id", Shape::Text),
            key("source_type", Shape::Text),
            key("source_id", Shape::Text),
            key("task_set", Shape::Text),
            key("task_id", Shape::Text),
            optional("agent", Shape::Text),
            key("message_count", Shape::Integer),
            key("messages", Shape::Text),
            key("licence", Shape::Text),
            key("split", Shape::Text),
            key("objective", Shape::Text),
            key("learned", Shape::Text),
            optional("pair", Shape::Text),
            optional("chosen", Shape::Flag),
            optional("desirable", Shape::Flag),
        ]);
        &ROW
    }

    fn is_columnar(&self) -> bool {
        true
    }

    fn mask(&self) -> &'static str {
        "`learned`, the byte ranges of each message's parts with their weights"
    }
}
