//! The threads of the journal: one appends lines, one brings them to the disk.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc as blocking};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::segments::create;
use super::{Line, Location, Shared};
use crate::proxy::conversations::{ConversationId, Durable};

/// How long turns are gathered before they are brought to the disk together.
const GROUP: Duration = Duration::from_millis(2);
/// Bytes after which a file is closed and the next one begun.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Bytes that are written at a time.
const BATCH_BYTES: usize = 1 << 20;

/// Who appends lines.
pub(super) struct Writer {
    folder: PathBuf,
    segment: u64,
    length: u64,
    file: Arc<File>,
    shared: Arc<Shared>,
    to_sync: blocking::Sender<ToSync>,
    /// Requests that could not be written.
    lost: HashSet<(ConversationId, u32)>,
}

/// Turns to be brought to the disk with their file.
pub(super) struct ToSync {
    file: Arc<File>,
    turns: Vec<watch::Sender<Durable>>,
}

impl Writer {
    /// Of a file that is there and empty.
    pub(super) fn new(
        (folder, segment, file): (&Path, u64, File),
        shared: Arc<Shared>,
        to_sync: blocking::Sender<ToSync>,
    ) -> Self {
        let (folder, file) = (folder.to_owned(), Arc::new(file));
        Self { folder, segment, length: 0, file, shared, to_sync, lost: HashSet::new() }
    }

    pub(super) fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Line>) {
        while let Some(line) = inbox.blocking_recv() {
            let mut bytes = line.bytes.len();
            let mut batch = vec![line];
            while bytes < BATCH_BYTES {
                let Ok(line) = inbox.try_recv() else { break };
                bytes += line.bytes.len();
                batch.push(line);
            }
            self.write(batch);
            self.shared.queued.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn write(&mut self, batch: Vec<Line>) {
        let lost = &self.lost;
        let is_lost =
            |line: &Line| line.request.is_some_and(|request| lost.contains(&(line.conversation, request)));
        let (orphans, batch): (Vec<Line>, Vec<Line>) = batch.into_iter().partition(is_lost);
        for durable in orphans.into_iter().filter_map(|line| line.durable) {
            durable.send_replace(Durable::Unwritten);
        }
        let written = self.append(&batch);
        if written.is_err() {
            self.shared.unwritten.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        let mut turns = Vec::new();
        let mut offset = self.length;
        let mut ledger = self.shared.ledger();
        for line in batch {
            let length = line.bytes.len() as u64;
            if written.is_ok() {
                ledger.add(line.conversation, Location { segment: self.segment, offset, length });
                offset += length;
            }
            if let Some(told) = line.written {
                if let (Err(_), Some(request)) = (&written, line.request) {
                    self.lost.insert((line.conversation, request));
                }
                // Whoever asked may have gone.
                let _ = told.send(written.is_ok());
            }
            match line.durable {
                Some(durable) if written.is_err() => {
                    durable.send_replace(Durable::Unwritten);
                }
                durable => turns.extend(durable),
            }
        }
        drop(ledger);
        self.length = offset;
        if !turns.is_empty() {
            let _ = self.to_sync.send(ToSync { file: Arc::clone(&self.file), turns });
        }
        if self.length >= SEGMENT_BYTES
            && let Ok(file) = create(&self.folder, self.segment + 1)
        {
            // The last lines of the old file may not have asked for it.
            let _ = self.to_sync.send(ToSync { file: Arc::clone(&self.file), turns: Vec::new() });
            (self.file, self.length) = (Arc::new(file), 0);
            self.segment += 1;
            self.shared.ledger().current = self.segment;
        }
    }

    /// Appends whole lines or none.
    fn append(&mut self, batch: &[Line]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(batch.iter().map(|line| line.bytes.len()).sum());
        for line in batch {
            bytes.extend_from_slice(&line.bytes);
        }
        let mut file = &*self.file;
        file.write_all(&bytes).inspect_err(|_| {
            // What was half written would spoil the next line.
            let _ = file.set_len(self.length);
        })
    }
}

/// Brings turns to the disk, those of [`GROUP`] together.
pub(super) fn sync(inbox: &blocking::Receiver<ToSync>) {
    while let Ok(first) = inbox.recv() {
        std::thread::sleep(GROUP);
        let mut groups = vec![first];
        while let Ok(more) = inbox.try_recv() {
            match groups.last_mut() {
                Some(last) if Arc::ptr_eq(&last.file, &more.file) => last.turns.extend(more.turns),
                _ => groups.push(more),
            }
        }
        for group in groups {
            let state = if group.file.sync_data().is_ok() { Durable::Yes } else { Durable::Failed };
            for turn in group.turns {
                turn.send_replace(state);
            }
        }
    }
}
