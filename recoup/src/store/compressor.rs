//! The compressor of packs: here, or on a thread of its own.
//!
//! Compression takes more time than all else that an import does on the thread that writes, and that
//! thread is the only one of its kind, so it decides how fast several threads are.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use zstd::zstd_safe::CParameter;

/// zstd level: the fastest that still halves text several times over.
const LEVEL: i32 = 1;
/// Shortest repetition that is looked for: real traces are as small with it as with the level's own, and sooner done.
const MATCH_BYTES: u32 = 7;
/// Packs that wait for the thread.
const WAITING: usize = 16;

/// Compresses one byte string after the other.
pub(super) struct Compressor {
    context: zstd::bulk::Compressor<'static>,
    buffer: Vec<u8>,
}

impl Compressor {
    pub(super) fn new() -> io::Result<Self> {
        let mut context = zstd::bulk::Compressor::new(LEVEL)?;
        context.set_parameter(CParameter::MinMatch(MATCH_BYTES))?;
        Ok(Self { context, buffer: Vec::new() })
    }

    /// A frame of exactly its bytes, for many of them wait for a commit.
    pub(super) fn compress(&mut self, raw: &[u8]) -> io::Result<Vec<u8>> {
        self.buffer.clear();
        self.buffer.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        self.context.compress_to_buffer(raw, &mut self.buffer)?;
        Ok(self.buffer.as_slice().to_vec())
    }

    /// Gives back what a large byte string needed.
    pub(super) fn shrink(&mut self) {
        self.buffer = Vec::new();
    }
}

/// A pack that the thread has compressed.
pub(super) struct Compressed {
    pub(super) pack: usize,
    /// What it was before, to be filled again.
    pub(super) raw: Vec<u8>,
    pub(super) data: io::Result<Vec<u8>>,
}

/// A compressor on a thread of its own, which ends when this is dropped.
pub(super) struct Aside {
    to: SyncSender<(usize, Vec<u8>)>,
    from: Receiver<Compressed>,
    /// Packs that have not come back.
    away: usize,
}

impl Aside {
    pub(super) fn new() -> io::Result<Self> {
        let (to, packs) = sync_channel::<(usize, Vec<u8>)>(WAITING);
        let (done, from) = std::sync::mpsc::channel();
        let mut compressor = Compressor::new()?;
        std::thread::Builder::new().name("compressor".to_owned()).spawn(move || {
            for (pack, raw) in packs {
                let data = compressor.compress(&raw);
                if done.send(Compressed { pack, raw, data }).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { to, from, away: 0 })
    }

    /// Hands a pack over; waits where too many are under way.
    pub(super) fn send(&mut self, pack: usize, raw: Vec<u8>) -> io::Result<()> {
        self.to.send((pack, raw)).map_err(|_| ended())?;
        self.away += 1;
        Ok(())
    }

    /// A pack that is done, if one is.
    pub(super) fn ready(&mut self) -> Option<Compressed> {
        let done = self.from.try_recv().ok()?;
        self.away -= 1;
        Some(done)
    }

    /// The next pack that is done; `None` when all are back.
    pub(super) fn next(&mut self) -> io::Result<Option<Compressed>> {
        if self.away == 0 {
            return Ok(None);
        }
        let done = self.from.recv().map_err(|_| ended())?;
        self.away -= 1;
        Ok(Some(done))
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that compresses has ended")
}
