//! Copies across files: history that a session shares with one in a file beside its own.
//!
//! A session that is resumed under a new id begins with every line of the old one, word for word but for the
//! session's id, and does not say so. Such files lie in one folder. Of two sessions that share messages (same
//! `uuid`, same time, same content) the one that went on first, or not at all, has told them; the other has
//! copied them. Both files give the same answer, so each is read by itself.

use std::io::Read as _;

use super::sessions::{Session, stage};
use crate::importers::{Event, ImportError, Sink, Source};
use crate::warning::Loss;

/// Bytes of a file beside in which the first message's id must stand.
const HEAD_BYTES: u64 = 32 << 10;
/// Files beside that are looked at.
const BESIDE_MAX: usize = 512;

/// Marks what sessions have copied from those in files beside theirs.
pub(super) fn mark(
    source: &Source,
    sessions: &mut [Session],
    sink: &mut dyn Sink,
) -> Result<(), ImportError> {
    let roots: Vec<String> = sessions.iter().filter_map(Session::root).map(str::to_owned).collect();
    if roots.is_empty() {
        return Ok(());
    }
    let (beside, more) = source.beside(".jsonl", BESIDE_MAX);
    if more {
        let reason = "too many files lie beside it to look for copies of its history in all";
        sink.loss(Loss::new("claude-code", "session", reason))?;
    }
    for other in beside {
        // A file that cannot be read says so when it is imported itself.
        let Ok(reader) = other.open() else { continue };
        let mut head = Vec::new();
        if reader.take(HEAD_BYTES).read_to_end(&mut head).is_err() {
            continue;
        }
        if !roots.iter().any(|root| memchr::memmem::find(&head, root.as_bytes()).is_some()) {
            continue;
        }
        let mut unheard: Vec<Event> = Vec::new();
        let Ok(others) = stage(&other, &mut unheard) else { continue };
        for session in &mut *sessions {
            for other in &others {
                session.mark_copies_of(other);
            }
        }
    }
    Ok(())
}
