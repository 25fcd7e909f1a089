//! The record of a trajectory: everything but the bodies of its messages, as canonical JSON.
//!
//! Most of it are its nodes' occurrences, one small object a node, and the definitions of tools. They
//! are written in canonical order by hand, and values that are canonical already as they are; only the
//! small members of the head pass through [`canonicalize_at`]. A property checks the bytes against
//! [`crate::canonical::canonicalize`] of the whole.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Call, Hidden, Occurrence, Tool, Trajectory, Usage};
use crate::canonical::{
    CanonicalError, DEPTH_MAX, canonicalize_at, deepest_value, write_float, write_string,
};
use crate::json::Json;

/// The stored form of a trajectory without what has columns of its own (ids, source) and without
/// bodies. Written as canonical JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The trajectory with `nodes` empty, ids zero and source reduced to its format.
    pub head: Trajectory,
    /// Per node: what is not in the body.
    pub nodes: Vec<RecordNode>,
}

/// What a record says of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordNode {
    /// Position of the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    /// What is particular to this occurrence.
    #[serde(default)]
    pub occurrence: Occurrence,
}

/// How deep the head's members stand: below the record and the head.
const HEAD_DEPTH: usize = 2;
/// How deep an occurrence's members stand: below the record, its nodes, the node and the occurrence.
const MEMBER_DEPTH: usize = 4;

impl Record {
    /// The canonical text.
    ///
    /// # Errors
    /// When some value nests too deeply.
    pub fn canonical(&self) -> Result<String, CanonicalError> {
        let tools: usize = self.head.tools.iter().map(|tool| 64 + tool_len(tool)).sum();
        let mut out = String::with_capacity(1024 + tools + 48 * self.nodes.len());
        out.push_str("{\"head\":");
        write_head(&mut out, &self.head)?;
        out.push_str(",\"nodes\":[");
        for (index, node) in self.nodes.iter().enumerate() {
            out.push_str(if index > 0 { ",{\"occurrence\":" } else { "{\"occurrence\":" });
            write_occurrence(&mut out, &node.occurrence)?;
            if let Some(parent) = node.parent {
                let _ = write!(out, ",\"parent\":{parent}");
            }
            out.push('}');
        }
        out.push_str("]}");
        Ok(out)
    }
}

fn tool_len(tool: &Tool) -> usize {
    let parameters = tool.parameters.as_ref().map_or(0, |parameters| parameters.as_str().len());
    tool.name.len() + tool.description.len() + parameters
}

/// Writes a head with its keys in UTF-8 order, absent members left out.
fn write_head(out: &mut String, head: &Trajectory) -> Result<(), CanonicalError> {
    let Trajectory {
        id,
        key,
        revision,
        source,
        harness,
        trial,
        seed,
        budget,
        task,
        environment,
        verifier,
        agents,
        tools,
        nodes,
        leaves,
        main_leaf,
        licence,
        origin,
        hidden,
        extra,
        media: _,
    } = head;
    let mut members = Members::open(out);
    members.serialized("agents", Some(agents))?;
    members.serialized("budget", budget.as_ref())?;
    members.serialized("environment", environment.as_ref())?;
    if !extra.is_empty() {
        let mut inner = Members::open(members.key("extra"));
        for (name, value) in extra {
            inner.foreign(name, value, HEAD_DEPTH + 1)?;
        }
        inner.close();
    }
    members.serialized("harness", harness.as_ref())?;
    members.serialized("hidden", (*hidden != Hidden::default()).then_some(hidden))?;
    members.serialized("id", Some(id))?;
    members.serialized("key", Some(key))?;
    members.serialized("leaves", Some(leaves))?;
    members.text("licence", Some(licence));
    members.shown("main_leaf", Some(main_leaf));
    members.serialized("nodes", Some(nodes))?;
    members.serialized("origin", origin.as_ref())?;
    members.serialized("revision", Some(revision))?;
    members.shown("seed", *seed);
    members.serialized("source", Some(source))?;
    members.serialized("task", Some(task))?;
    write_tools(members.key("tools"), tools)?;
    members.shown("trial", *trial);
    members.serialized("verifier", verifier.as_ref())?;
    members.close();
    Ok(())
}

fn write_tools(out: &mut String, tools: &[Tool]) -> Result<(), CanonicalError> {
    out.push('[');
    for (index, Tool { name, description, parameters, read_only }) in tools.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let mut members = Members::open(out);
        members.text("description", Some(description));
        members.text("name", Some(name));
        members.json("parameters", parameters.as_ref(), HEAD_DEPTH + 2)?;
        members.shown("read_only", *read_only);
        members.close();
    }
    out.push(']');
    Ok(())
}

/// Writes an occurrence with its keys in UTF-8 order, absent members left out.
fn write_occurrence(out: &mut String, occurrence: &Occurrence) -> Result<(), CanonicalError> {
    let Occurrence { at, sampled, copied_context, call, state_hash, checkpoint, extra } = occurrence;
    let mut members = Members::open(out);
    members.text("at", at.as_deref());
    if let Some(call) = call {
        write_call(members.key("call"), call)?;
    }
    members.shown("checkpoint", checkpoint.map(|hash| format!("\"{hash}\"")));
    members.shown("copied_context", copied_context.then_some(true));
    members.json("extra", extra.as_ref(), MEMBER_DEPTH)?;
    members.shown("sampled", sampled.then_some(true));
    members.shown("state_hash", state_hash.map(|hash| format!("\"{hash}\"")));
    members.close();
    Ok(())
}

fn write_call(out: &mut String, call: &Call) -> Result<(), CanonicalError> {
    let Call {
        model,
        parameters,
        finish_reason,
        usage,
        cost,
        error,
        prompt_ids,
        completion_ids,
        logprobs,
        template_hash,
    } = call;
    let write_id = |out: &mut String, id: &u32| {
        let _ = write!(out, "{id}");
    };
    let mut members = Members::open(out);
    members.list("completion_ids", completion_ids.as_deref(), write_id);
    if let Some(cost) = cost {
        write_number(members.key("cost"), *cost);
    }
    members.text("error", error.as_deref());
    members.text("finish_reason", finish_reason.as_deref());
    members.list("logprobs", logprobs.as_deref(), |out, value| write_number(out, *value));
    members.text("model", model.as_deref());
    members.json("parameters", parameters.as_ref(), MEMBER_DEPTH + 1)?;
    members.list("prompt_ids", prompt_ids.as_deref(), write_id);
    members.text("template_hash", template_hash.as_deref());
    if let Some(Usage { input, output, cached, reasoning }) = usage {
        let _ = write!(
            members.key("usage"),
            "{{\"cached\":{cached},\"input\":{input},\"output\":{output},\"reasoning\":{reasoning}}}"
        );
    }
    members.close();
    Ok(())
}

/// A double; what is not finite has no number in JSON and is null, as serde writes it.
fn write_number(out: &mut String, value: f64) {
    if value.is_finite() {
        write_float(out, value);
    } else {
        out.push_str("null");
    }
}

/// An object while it is written; its keys come in order.
struct Members<'a> {
    out: &'a mut String,
    is_empty: bool,
}

impl<'a> Members<'a> {
    fn open(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(',');
        }
    }

    /// Writes a key, after which its value must follow.
    fn key(&mut self, key: &str) -> &mut String {
        self.separate();
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
        self.out
    }

    fn text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            write_string(self.key(key), value);
        }
    }

    /// A value that displays as JSON.
    fn shown(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            let _ = write!(self.key(key), "{value}");
        }
    }

    fn list<T>(&mut self, key: &str, values: Option<&[T]>, write: impl Fn(&mut String, &T)) {
        let Some(values) = values else { return };
        let out = self.key(key);
        out.push('[');
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write(out, value);
        }
        out.push(']');
    }

    /// A small member of the head.
    fn serialized<T: Serialize>(&mut self, key: &str, value: Option<&T>) -> Result<(), CanonicalError> {
        let Some(value) = value else { return Ok(()) };
        let text = serde_json::to_string(value)
            .map_err(|_| CanonicalError::Syntax { at: 0, expected: "a serializable value" })?;
        canonicalize_at(&text, HEAD_DEPTH, self.key(key))
    }

    /// A value whose text is canonical already and stands `depth` levels deep.
    fn json(&mut self, key: &str, value: Option<&Json>, depth: usize) -> Result<(), CanonicalError> {
        let Some(value) = value else { return Ok(()) };
        write_json(self.key(key), value, depth)
    }

    /// The same under a key of the source's own.
    fn foreign(&mut self, key: &str, value: &Json, depth: usize) -> Result<(), CanonicalError> {
        self.separate();
        write_string(self.out, key);
        self.out.push(':');
        write_json(self.out, value, depth)
    }

    fn close(self) {
        self.out.push('}');
    }
}

fn write_json(out: &mut String, value: &Json, depth: usize) -> Result<(), CanonicalError> {
    if depth + deepest_value(value.as_str()) > DEPTH_MAX {
        return Err(CanonicalError::TooDeep { at: out.len() });
    }
    out.push_str(value.as_str());
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::num::f64::ANY;
    use proptest::option::of;
    use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

    use super::{Record, RecordNode};
    use crate::canonical::{DEPTH_MAX, canonicalize};
    use crate::id::Hash;
    use crate::json::Json;
    use crate::task::Task;
    use crate::trajectory::{Agent, Call, Harness, Occurrence, Outcome, Tool, Trajectory, Usage};

    /// JSON of every kind, some of it close to the limit on nesting.
    fn json() -> impl Strategy<Value = Json> {
        let nested = (DEPTH_MAX - 8..DEPTH_MAX, any::<bool>()).prop_map(|(depth, filled)| {
            let inner = if filled { "1" } else { "" };
            format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth))
        });
        let plain = prop_oneof![
            Just(r#"{"b":[1.50,"\"[{\\"],"a":{}}"#.to_owned()),
            Just("null".to_owned()),
            any::<String>().prop_map(|text| serde_json::to_string(&[text]).unwrap()),
        ];
        prop_oneof![4 => plain, 1 => nested].prop_map(|text| Json::parse(&text).unwrap())
    }

    fn call() -> impl Strategy<Value = Call> {
        let usage = any::<[u64; 4]>().prop_map(|[input, output, cached, reasoning]| Usage {
            input,
            output,
            cached,
            reasoning,
        });
        let texts = (of(any::<String>()), of(any::<String>()), of(any::<String>()), of(any::<String>()));
        let lists = (of(any::<Vec<u32>>()), of(any::<Vec<u32>>()), of(proptest::collection::vec(ANY, 0..3)));
        (texts, of(json()), of(usage), of(ANY), lists).prop_map(
            |((model, finish_reason, error, template_hash), parameters, usage, cost, lists)| {
                let (prompt_ids, completion_ids, logprobs) = lists;
                Call {
                    model,
                    parameters,
                    finish_reason,
                    usage,
                    cost,
                    error,
                    prompt_ids,
                    completion_ids,
                    logprobs,
                    template_hash,
                }
            },
        )
    }

    fn node() -> impl Strategy<Value = RecordNode> {
        let hash = || of(any::<[u8; 32]>().prop_map(Hash));
        let flags = any::<(bool, bool)>();
        (of(any::<usize>()), of(any::<String>()), flags, of(call()), hash(), hash(), of(json())).prop_map(
            |(parent, at, (sampled, copied_context), call, state_hash, checkpoint, extra)| {
                let call = call.map(Box::new);
                let occurrence =
                    Occurrence { at, sampled, copied_context, call, state_hash, checkpoint, extra };
                RecordNode { parent, occurrence }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn a_record_is_canonical(
            nodes in proptest::collection::vec(node(), 0..4),
            extra in proptest::collection::btree_map(any::<String>(), json(), 0..3),
            tools in proptest::collection::vec((any::<String>(), any::<String>(), of(json()), any::<Option<bool>>()), 0..3),
            hidden in of(json()),
            (goal, seed, trial) in any::<(String, Option<i64>, Option<i64>)>(),
        ) {
            let mut head = Trajectory::new("test", Task::from_goal(goal));
            head.finish(Outcome::unknown());
            head.agents.push(Agent { name: "a".to_owned(), model: None, system_prompt: Some("\n".to_owned()) });
            let tool = |(name, description, parameters, read_only)| Tool { name, description, parameters, read_only };
            head.tools = tools.into_iter().map(tool).collect();
            (head.extra, head.hidden.gold, head.seed, head.trial) = (extra, hidden, seed, trial);
            head.harness = Some(Harness { name: "h".to_owned(), version: None });
            let record = Record { head, nodes };
            let whole = canonicalize(&serde_json::to_string(&record).unwrap());
            assert_eq!(record.canonical().ok(), whole.ok());
        }
    }
}
