//! A mapping: which values of a log's records become what, as a person writes it down.
//!
//! Every field is a path into the record (or message, or call) it stands under; fields that hold text take a
//! constant instead, any text that does not begin with `$`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use super::path::{Path, Taken};
use crate::importers::IMPORTERS;
use crate::importers::value::text_or_source;
use crate::trajectory::{Role, Status};

/// A mapping, read and checked; it is an importer.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "File")]
pub struct Mapping {
    pub(super) name: String,
    pub(super) records: Option<Path>,
    pub(super) run: RunFields,
    pub(super) message: MessageFields,
    pub(super) call: Option<CallFields>,
    pub(super) roles: BTreeMap<String, RoleWord>,
    pub(super) outcomes: BTreeMap<String, Status>,
    pub(super) recognizes: String,
    pub(super) taken: Fields,
}

/// What is left of records and messages.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// What a record loses to the run and its messages.
    pub(super) record: Taken,
    /// What a message loses; one that is a record of its own loses to the run too.
    pub(super) message: Taken,
}

/// The mapping file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    records: Option<Path>,
    run: RunFields,
    message: MessageFields,
    call: Option<CallFields>,
    #[serde(default)]
    roles: BTreeMap<String, RoleWord>,
    #[serde(default)]
    outcomes: BTreeMap<String, Status>,
}

/// `[run]`: paths into a record.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunFields {
    pub(super) id: Option<Path>,
    pub(super) messages: Option<Path>,
    pub(super) order: Option<Path>,
    pub(super) task: Option<Path>,
    pub(super) goal: Option<Path>,
    pub(super) outcome: Option<Path>,
    pub(super) score: Option<Path>,
    pub(super) success_at: Option<f64>,
    pub(super) gold: Option<Path>,
    pub(super) model: Option<Field>,
    pub(super) harness: Option<Field>,
    pub(super) environment: Option<Field>,
    pub(super) trial: Option<Path>,
    pub(super) seed: Option<Path>,
    pub(super) tools: Option<Path>,
}

/// `[message]`: paths into a message.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageFields {
    pub(super) role: Field,
    pub(super) agent: Option<Field>,
    pub(super) content: Option<Path>,
    pub(super) reasoning: Option<Path>,
    pub(super) calls: Option<Path>,
    pub(super) result: Option<Path>,
    pub(super) call_id: Option<Path>,
    pub(super) error: Option<Path>,
    pub(super) exit_code: Option<Path>,
    pub(super) at: Option<Path>,
    pub(super) model: Option<Path>,
}

/// `[call]`: paths into a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallFields {
    pub(super) name: Field,
    pub(super) arguments: Option<Path>,
    pub(super) id: Option<Path>,
}

/// What a word for a role means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RoleWord {
    System,
    User,
    Assistant,
    Tool,
    /// No message.
    Skip,
}

impl RoleWord {
    /// The role, unless it is no message's.
    pub(super) fn role(self) -> Option<Role> {
        match self {
            Self::System => Some(Role::System),
            Self::User => Some(Role::User),
            Self::Assistant => Some(Role::Assistant),
            Self::Tool => Some(Role::Tool),
            Self::Skip => None,
        }
    }
}

/// A text: at a path, or the same everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    At(Path),
    Constant(String),
}

impl Field {
    pub(super) fn text(&self, raw: &RawValue) -> Option<String> {
        match self {
            Self::At(path) => path.first(raw).map(text_or_source),
            Self::Constant(text) => Some(text.clone()),
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::At(path) => Some(path),
            Self::Constant(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.starts_with('$') {
            return Path::parse(&text).map(Self::At).map_err(de::Error::custom);
        }
        Ok(Self::Constant(text))
    }
}

impl RunFields {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let fields = [&self.model, &self.harness, &self.environment];
        let paths = [
            &self.id,
            &self.messages,
            &self.order,
            &self.task,
            &self.goal,
            &self.outcome,
            &self.score,
            &self.gold,
            &self.trial,
            &self.seed,
            &self.tools,
        ];
        paths.into_iter().flatten().chain(fields.into_iter().flatten().filter_map(Field::path))
    }
}

impl MessageFields {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let fields = [Some(&self.role), self.agent.as_ref()];
        let paths = [
            &self.content,
            &self.reasoning,
            &self.result,
            &self.call_id,
            &self.error,
            &self.exit_code,
            &self.at,
            &self.model,
        ];
        paths.into_iter().flatten().chain(fields.into_iter().flatten().filter_map(Field::path))
    }
}

impl CallFields {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        [self.name.path(), self.arguments.as_ref(), self.id.as_ref()].into_iter().flatten()
    }
}

impl TryFrom<File> for Mapping {
    type Error = String;

    fn try_from(file: File) -> Result<Self, String> {
        let File { name, records, run, message, call, roles, outcomes } = file;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!("`name` is `{name}`; use small letters, digits and hyphens"));
        }
        if IMPORTERS.iter().any(|importer| importer.format() == name) {
            return Err(format!("`name` is `{name}`, a format that recoup knows; choose another"));
        }
        if run.messages.is_none() && run.id.is_none() {
            return Err(
                "`[run]` has neither `messages` nor `id`: name the messages inside a record, or, where a \
                        record is one message, what ties the messages of a run together"
                    .to_owned(),
            );
        }
        if run.messages.is_some() && run.order.is_some() {
            return Err(
                "`order` in `[run]` is for logs in which a record is one message; those of `messages` stand \
                        in order"
                    .to_owned(),
            );
        }
        if run.success_at.is_some() && run.score.is_none() {
            return Err("`success_at` in `[run]` needs a `score`".to_owned());
        }
        if message.content.is_none() && message.calls.is_none() && message.result.is_none() {
            return Err("`[message]` has neither `content`, `calls` nor `result`".to_owned());
        }
        if call.is_some() && message.calls.is_none() {
            return Err("`[call]` needs `calls` in `[message]`; `calls = \"$\"` where a message is the call"
                .to_owned());
        }
        let mut in_message: Vec<Path> = message.paths().cloned().collect();
        match (&message.calls, &call) {
            (Some(calls), Some(call)) => in_message.extend(call.paths().map(|path| calls.join(path))),
            (Some(calls), None) => in_message.push(calls.clone()),
            (None, _) => {}
        }
        if run.messages.is_none() {
            in_message.extend(run.paths().cloned());
        }
        let taken = Fields { record: Taken::by(run.paths()), message: Taken::by(&in_message) };
        let wanted = match (&run.messages, &run.id) {
            (Some(messages), _) => format!("records with messages at `{messages}`"),
            (None, Some(id)) => format!("records that are messages, with their run at `{id}`"),
            (None, None) => String::new(),
        };
        let recognizes = match message.role.path() {
            Some(role) => format!("{wanted} and roles at `{role}`, as the mapping says"),
            None => format!("{wanted}, as the mapping says"),
        };
        Ok(Self { name, records, run, message, call, roles, outcomes, recognizes, taken })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Mapping;

    fn refused(change: impl FnOnce(&mut Value)) -> String {
        let mut mapping = json!({
            "name": "mine",
            "run": { "messages": "$.turns[*]" },
            "message": { "role": "$.who", "content": "$.text" },
        });
        change(&mut mapping);
        serde_json::from_value::<Mapping>(mapping).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (field, value, word) in [
            ("/name", json!("My Log"), "small letters"),
            ("/name", json!("openai-chat"), "that recoup knows"),
            ("/run", json!({}), "neither `messages` nor `id`"),
            ("/run", json!({ "mesages": "$.turns" }), "mesages"),
            ("/run", json!({ "id": "$.id", "success_at": 1.0 }), "needs a `score`"),
            ("/run", json!({ "messages": "$.turns[*]", "order": "$.n" }), "is one message"),
            ("/run/messages", json!("turns"), "does not begin with `$`"),
            ("/message", json!({ "role": "$.who" }), "neither `content`"),
            ("/message", json!({ "role": "$[", "content": "$.text" }), "not closed"),
        ] {
            let error = refused(|mapping| *mapping.pointer_mut(field).unwrap() = value);
            assert!(error.contains(word), "{field}: {error}");
        }
        assert!(refused(|mapping| mapping["call"] = json!({ "name": "$.n" })).contains("needs `calls`"));
        assert!(refused(|mapping| mapping["roles"] = json!({ "bot": "robot" })).contains("assistant"));
    }
}
