//! The journal: what the proxy has seen, on the disk before anything rests on it.
//!
//! One thread appends lines, another brings them to the disk, many turns at a time. Nobody
//! waits for the disk on the way of an answer: an answer waits for the request's line to be written, so
//! that a process that is killed leaves no answer without its request, and the session's next request
//! waits for the turn to be durable.
//!
//! The journal is a folder of numbered files. One that holds nothing but conversations which stand in the
//! project and have ended is deleted. A line that was cut off by a crash is cut off at the next start.

mod segments;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc as blocking};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot, watch};

use self::segments::{create, path};
pub(super) use self::segments::{each_line, segments};
use self::writer::{Writer, sync};
use super::conversations::{ConversationId, Durable};

/// Bytes that may wait to be written; beyond, requests are refused.
const QUEUED_MAX: usize = 128 << 20;

/// A line on its way to the journal.
pub(super) struct Line {
    pub conversation: ConversationId,
    /// The request that it is about: where that could not be written, neither is what came of it.
    pub request: Option<u32>,
    pub bytes: Vec<u8>,
    /// Told once the line is written, or cannot be.
    pub written: Option<oneshot::Sender<bool>>,
    /// Told once it is on the disk, or cannot be.
    pub durable: Option<watch::Sender<Durable>>,
}

/// Where a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    segment: u64,
    offset: u64,
    length: u64,
}

/// The running journal.
pub(super) struct Journal {
    folder: PathBuf,
    lines: Mutex<Option<mpsc::UnboundedSender<Line>>>,
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    ledger: Mutex<Ledger>,
    queued: AtomicUsize,
    /// Lines that could not be written.
    unwritten: AtomicU64,
}

/// Which lines belong to which conversation, and how many each file still holds.
#[derive(Default)]
struct Ledger {
    lines: HashMap<ConversationId, Vec<Location>>,
    held: BTreeMap<u64, usize>,
    current: u64,
}

impl Journal {
    /// Opens the journal of a folder, behind the files that are there.
    pub(super) fn start(folder: &Path, first: u64) -> io::Result<Self> {
        let file = create(folder, first)?;
        let ledger = Ledger { current: first, ..Ledger::default() };
        let shared = Arc::new(Shared {
            ledger: Mutex::new(ledger),
            queued: AtomicUsize::new(0),
            unwritten: AtomicU64::new(0),
        });
        let (lines, inbox) = mpsc::unbounded_channel();
        let (written, to_sync) = blocking::channel();
        let writer = Writer::new((folder, first, file), Arc::clone(&shared), written);
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(run)
        };
        let threads = vec![
            spawn("journal", Box::new(move || writer.run(inbox)))?,
            spawn("journal-sync", Box::new(move || sync(&to_sync)))?,
        ];
        Ok(Self {
            folder: folder.to_owned(),
            lines: Mutex::new(Some(lines)),
            shared,
            threads: Mutex::new(threads),
        })
    }

    /// Hands a line on to be written.
    pub(super) fn append(&self, line: Line) {
        self.shared.queued.fetch_add(line.bytes.len(), Ordering::Relaxed);
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = &*lines {
            // Nobody is there to write it only when the process ends.
            let _ = lines.send(line);
        }
    }

    /// Whether another request may be taken on.
    pub(super) fn has_room(&self) -> bool {
        self.shared.queued.load(Ordering::Relaxed) < QUEUED_MAX
    }

    /// How many lines could not be written.
    pub(super) fn unwritten(&self) -> u64 {
        self.shared.unwritten.load(Ordering::Relaxed)
    }

    /// Ends the threads once everything is on the disk.
    pub(super) fn finish(&self) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
    }

    /// Deletes every file of which nothing is held any more, the current one too: for after the end.
    pub(super) fn clear(&self) {
        let ledger = self.shared.ledger();
        for segment in segments(&self.folder)
            .unwrap_or_default()
            .into_iter()
            .filter(|segment| ledger.held.get(segment).is_none_or(|held| *held == 0))
        {
            // It may have been deleted before.
            let _ = fs::remove_file(path(&self.folder, segment));
        }
    }

    /// How many lines of a conversation are written.
    pub(super) fn line_count(&self, conversation: ConversationId) -> usize {
        self.shared.ledger().lines.get(&conversation).map_or(0, Vec::len)
    }

    /// The lines of a conversation, as they stand in the journal.
    pub(super) fn read(&self, conversation: ConversationId) -> io::Result<Vec<u8>> {
        let locations = self.shared.ledger().lines.get(&conversation).cloned().unwrap_or_default();
        let mut bytes = Vec::with_capacity(locations.iter().map(|location| location.length as usize).sum());
        let mut open: Option<(u64, File)> = None;
        for Location { segment, offset, length } in locations {
            if open.as_ref().is_none_or(|(known, _)| *known != segment) {
                open = Some((segment, File::open(path(&self.folder, segment))?));
            }
            if let Some((_, file)) = &mut open {
                file.seek(SeekFrom::Start(offset))?;
                file.take(length).read_to_end(&mut bytes)?;
            }
        }
        Ok(bytes)
    }

    /// Notes a line of a file that was there at the start.
    pub(super) fn adopt(&self, conversation: ConversationId, location: Location) {
        self.shared.ledger().add(conversation, location);
    }

    /// Lets go of a conversation's lines, and deletes the files that hold no others.
    ///
    /// # Errors
    /// When lines in other files cannot be overwritten; they are let go of all the same.
    pub(super) fn release(&self, conversation: ConversationId) -> io::Result<()> {
        let mut ledger = self.shared.ledger();
        let locations = ledger.lines.remove(&conversation).unwrap_or_default();
        for location in &locations {
            if let Some(held) = ledger.held.get_mut(&location.segment) {
                *held -= 1;
            }
        }
        let current = ledger.current;
        let done: Vec<u64> =
            ledger.held.iter().filter(|(_, held)| **held == 0).map(|(key, _)| *key).collect();
        let stays = |location: &Location| location.segment == current || !done.contains(&location.segment);
        let blanked = self.blank(locations.into_iter().filter(stays));
        for segment in done.into_iter().filter(|segment| *segment != current) {
            ledger.held.remove(&segment);
            // What is left behind is read again at the next start, and found to be known.
            let _ = fs::remove_file(path(&self.folder, segment));
        }
        blanked
    }

    /// Overwrites lines in files that others still need: what was let go of can be deleted for good, and
    /// is not found again at the next start.
    fn blank(&self, locations: impl Iterator<Item = Location>) -> io::Result<()> {
        let mut open: Option<(u64, File)> = None;
        for Location { segment, offset, length } in locations {
            if open.as_ref().is_none_or(|(known, _)| *known != segment) {
                let file = OpenOptions::new().write(true).open(path(&self.folder, segment))?;
                open = Some((segment, file));
            }
            if let Some((_, file)) = &mut open {
                file.seek(SeekFrom::Start(offset))?;
                io::copy(&mut io::repeat(b' ').take(length.saturating_sub(1)), file)?;
            }
        }
        Ok(())
    }
}

impl Shared {
    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    fn add(&mut self, conversation: ConversationId, location: Location) {
        self.lines.entry(conversation).or_default().push(location);
        *self.held.entry(location.segment).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{oneshot, watch};

    use super::{ConversationId, Durable, Journal, Line, each_line, segments};

    fn line(conversation: u64, text: &str) -> Line {
        let bytes = format!("{text}\n").into_bytes();
        let conversation = ConversationId(conversation);
        Line { conversation, request: None, bytes, written: None, durable: None }
    }

    #[test]
    fn lines_come_back_by_conversation() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::start(folder.path(), 3).unwrap();
        let (written, told) = oneshot::channel();
        let (durable, state) = watch::channel(Durable::NotYet);
        journal.append(line(1, "one"));
        journal.append(line(2, "other"));
        journal.append(Line { written: Some(written), durable: Some(durable), ..line(1, "two") });
        assert_eq!(told.blocking_recv(), Ok(true));
        journal.finish();
        assert_eq!(*state.borrow(), Durable::Yes);
        assert_eq!(journal.read(ConversationId(1)).unwrap(), b"one\ntwo\n");
        assert_eq!(journal.line_count(ConversationId(2)), 1);
    }

    #[test]
    fn what_is_let_go_of_is_not_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::start(folder.path(), 0).unwrap();
        for line in [line(1, "secret"), line(2, "other"), line(1, "more")] {
            journal.append(line);
        }
        journal.finish();
        journal.release(ConversationId(1)).unwrap();
        let left = std::fs::read_to_string(folder.path().join("00000000.jsonl")).unwrap();
        assert_eq!(left, "      \nother\n    \n");
        assert_eq!(journal.read(ConversationId(2)).unwrap(), b"other\n");
    }

    #[test]
    fn a_cut_line_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("00000007.jsonl"), "{\"a\":1}\n{\"b\"").unwrap();
        assert_eq!(segments(folder.path()).unwrap(), [7]);
        let mut lines = Vec::new();
        let cut = each_line(folder.path(), 7, |line, _| lines.push(line.to_vec())).unwrap();
        assert_eq!((cut, lines), (4, vec![b"{\"a\":1}\n".to_vec()]));
        assert_eq!(std::fs::read(folder.path().join("00000007.jsonl")).unwrap(), b"{\"a\":1}\n");
    }
}
