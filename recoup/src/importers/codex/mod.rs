//! Codex rollout files: JSON lines `{timestamp, type, payload}`, one session a file.
//!
//! The file says most things twice. Content is read from `response_item`; `event_msg` gives what only
//! it has: exit codes (`exec_command_end`), tokens (`token_count`), the end of a turn
//! (`turn_aborted`). Reasoning, text and calls that follow each other are one response of the model,
//! closed by its token count. `compacted` replaces the context: the replacement starts a new root.
//!
//! A call's arguments are a JSON string whose content need not be JSON (patches with raw newlines);
//! it stays byte for byte. A session without a turn (a failed start) is a run without steps. The
//! session id is the run's native id: a file that grew is a new revision. Nobody scored these runs.

mod event;
mod session;

use serde_json::value::RawValue;

use self::session::Session;
use super::object::Object;
use super::slice::{self, Joined, Layout, RawRecord, RecordError};
use super::{ImportError, Importer, Outline, Probe, Shape, Sink, Source};
use crate::warning::Loss;

/// Codex rollout files.
pub(super) struct Codex;

impl Importer for Codex {
    fn format(&self) -> &'static str {
        "codex"
    }

    fn recognizes(&self) -> &'static str {
        "lines with `timestamp`, `payload` and a `type` such as session_meta or response_item"
    }

    fn detect(&self, probe: &Probe) -> bool {
        const TYPES: [&str; 5] = ["session_meta", "response_item", "turn_context", "event_msg", "compacted"];
        // The first line may be longer than the probe's head, so its payload may be unseen.
        let is_line = |value: &Outline| {
            value.get("timestamp").is_some()
                && value.get("payload").is_some()
                && value.get("type").and_then(Outline::as_str).is_some_and(|kind| TYPES.contains(&kind))
        };
        matches!(probe.shape, Shape::Lines | Shape::Object) && probe.values.iter().any(is_line)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let mut session = Session::new(self.format());
        let mut joined: Option<Joined> = None;
        slice::each_in_order(source, Layout::Lines, sink, |record, _| {
            line(&mut session, record)?;
            joined.get_or_insert_with(|| Joined::new(record)).add(record);
            Ok(())
        })?;
        let Some(joined) = joined else { return Ok(()) };
        let (run, native, losses) = session.finish();
        for (field, reason) in losses {
            sink.loss(Loss::new(self.format(), field, reason))?;
        }
        Ok(joined.finish().emit(sink, run, native, Vec::new(), 0)?)
    }
}

fn line(session: &mut Session, record: &RawRecord) -> Result<(), RecordError> {
    let mut fields: Object<'_> = record.parse()?;
    let kind: String = fields.required("type")?;
    let at: Option<String> = fields.optional("timestamp")?;
    let payload: &RawValue = fields.required("payload")?;
    match kind.as_str() {
        "session_meta" => session.meta(Object::parse(payload, "payload")?),
        "turn_context" => session.context(Object::parse(payload, "payload")?),
        "response_item" => session.item(payload, at),
        "event_msg" => session.event(Object::parse(payload, "payload")?),
        "compacted" => session.compacted(Object::parse(payload, "payload")?, at),
        other => {
            session.lose(other, "a line of a kind that recoup does not know");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Codex;
    use crate::importers::{Event, ImportOptions, Importer, Source, detect};

    #[test]
    fn a_first_line_longer_than_the_probe_is_read() {
        let meta = format!(
            r#"{{"timestamp":"t","type":"session_meta","payload":{{"id":"s","instructions":"{}"}}}}"#,
            "x".repeat(2 << 20)
        );
        let item = r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":"hi"}}"#;
        let text = format!("{meta}\n{item}\n");
        let source = Source::from_bytes("r.jsonl", text.as_bytes(), Arc::new(ImportOptions::default()));
        assert_eq!(detect(&source).unwrap().map(Importer::format), Some("codex"));
        let mut events: Vec<Event> = Vec::new();
        Codex.import(&source, &mut events).unwrap();
        let [Event::Trajectory(run)] = events.as_slice() else { panic!("one run") };
        assert_eq!(run.native_id.as_deref(), Some("s"));
        assert_eq!(run.head.agents[0].system_prompt.as_ref().map(String::len), Some(2 << 20));
    }
}
