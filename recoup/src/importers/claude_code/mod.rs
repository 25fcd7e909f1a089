//! Claude Code session files: JSON lines that form a tree by `uuid` and `parentUuid`.
//!
//! * A line of a session is a message, one content block of a message, or an event of the harness.
//!   Blocks of one API response share `message.id` and become one node, whose usage counts once; the
//!   results of its parallel calls come as several user lines and become one node too.
//! * Rewinding or resuming makes a fork: a second branch. `parentUuid` null starts a root (the first
//!   line, a cleared or compacted context); a parent in another file is noted and starts a root.
//!   A session in which no line names a parent is a line in the order of the file.
//! * Events of the harness are not what the model read: children pass through them to the message
//!   before, and each kind is noted as a loss.
//! * Sessions interleave in one file. [`sessions`] notes where each one's lines stand and reads one
//!   session at a time, so memory is bounded by the largest. A subagent's lines (`agentId`) are a run
//!   of their own. The session id is the run's native id: a file that grew is a new revision.
//!
//! There is no outcome: nobody scored these runs.

mod conversation;
mod line;
mod order;
mod sessions;

use super::slice::Again;
use super::{ImportError, Importer, Outline, Probe, Shape, Sink, Source};

/// Claude Code session files.
pub(super) struct ClaudeCode;

impl Importer for ClaudeCode {
    fn format(&self) -> &'static str {
        "claude-code"
    }

    fn recognizes(&self) -> &'static str {
        "lines with `type`, `uuid`, `parentUuid` and `sessionId`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        let in_session =
            |value: &Outline| value.has_all(&["type", "sessionId"]) || value.has_all(&["type", "leafUuid"]);
        let message = |value: &Outline| value.has_all(&["type", "uuid", "parentUuid", "sessionId"]);
        // A file may begin with events only; then a message must follow in the head.
        let in_head = |needle: &[u8]| memchr::memmem::find(&probe.head, needle).is_some();
        matches!(probe.shape, Shape::Lines | Shape::Object)
            && (probe.values.iter().any(message)
                || probe.values.first().is_some_and(in_session)
                    && in_head(b"\"parentUuid\"")
                    && in_head(b"\"sessionId\""))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let staged = sessions::stage(source, sink)?;
        let mut again = Again::open(source)?;
        for session in staged {
            let (mut lines, joined) = sessions::read(&mut again, &session, sink)?;
            let Some(joined) = joined else { continue };
            let native = session.native_id();
            match conversation::build(self.format(), &native, &mut lines, sink)? {
                Some(run) => joined.emit(sink, run, Some(native), Vec::new(), 0)?,
                None => sink.loss(crate::warning::Loss::new(
                    self.format(),
                    "session",
                    "a session without a message",
                ))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::ClaudeCode;
    use crate::importers::{Event, ImportOptions, Importer as _, Probe, Source};
    use crate::trajectory::Sealed;

    const FIRST: &str =
        r#"{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"content":"hi"}}"#;
    const SECOND: &str = r#"{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"s","message":{"id":"m","content":"hello"}}"#;

    fn run(text: &str) -> Sealed {
        let source = Source::from_bytes("s.jsonl", text.as_bytes(), Arc::new(ImportOptions::default()));
        let mut events: Vec<Event> = Vec::new();
        ClaudeCode.import(&source, &mut events).unwrap();
        match events.pop() {
            Some(Event::Trajectory(run)) if events.is_empty() => *run,
            other => panic!("{other:?} after {events:?}"),
        }
    }

    #[test]
    fn a_session_that_grew_is_the_same_run_in_a_new_revision() {
        let (before, after) = (run(FIRST), run(&format!("{FIRST}\n{SECOND}\n")));
        assert_eq!(before.head.key, after.head.key);
        assert_ne!(before.head.revision, after.head.revision);
        assert_eq!(before.bodies[0].hash, after.bodies[0].hash);
    }

    #[test]
    fn sessions_are_known_by_their_lines() {
        let detected = |text: &str| ClaudeCode.detect(&Probe::of("x.jsonl", text.as_bytes().to_vec(), true));
        assert!(detected(FIRST));
        assert!(detected(&format!("{{\"type\":\"queue-operation\",\"sessionId\":\"s\"}}\n{FIRST}\n")));
        assert!(!detected("{\"type\":\"user\",\"message\":{\"content\":\"hi\"}}\n{\"type\":\"x\"}\n"));
        assert!(!detected("{\"type\":\"session\",\"sessionId\":\"s\"}\n{\"type\":\"message\"}\n"));
    }
}
