//! Packs: many small byte strings in one zstd frame.
//!
//! Messages are short and alike; compressed one by one they hardly shrink. A frame of up to
//! [`PACK_BYTES`] shrinks well and is still cheap to open for one message. A longer byte string has
//! a frame of its own.

use std::io;
use std::rc::Rc;

use rusqlite::{Connection, OptionalExtension as _};

use super::StoreError;
use super::compressor::{Aside, Compressed, Compressor};

/// Most bytes of several strings in one frame, before compression.
pub(super) const PACK_BYTES: usize = 256 << 10;
/// Largest frame that is opened; a greater length in the file is damage.
const RAW_MAX: usize = 1 << 31;
/// Opened frames that are kept: runs are read in import order, so a few are enough.
const CACHE_PACKS: usize = 16;

/// What a pack holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Message bodies, which text search reads.
    Bodies = 0,
    /// Records of trajectories.
    Records = 1,
    /// Media.
    Media = 2,
}

/// A compressed pack, ready to be stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) raw_len: usize,
    pub(super) data: Vec<u8>,
}

/// Where a byte string lies: the pack by its number in this packer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) pack: usize,
    pub(super) offset: usize,
    pub(super) len: usize,
}

/// Fills packs, one open pack a kind.
pub(super) struct Packer {
    compressor: Compressor,
    /// Where full packs are compressed on another thread: from the first one on.
    aside: Option<Aside>,
    threads: usize,
    frames: Vec<Frame>,
    bytes: usize,
    open: [Option<(usize, Vec<u8>)>; 3],
    /// Buffers that serve again: large ones are dear to make.
    spare: Vec<Vec<u8>>,
}

impl Packer {
    /// With several `threads`, one of them compresses.
    pub(super) fn new(threads: usize) -> Result<Self, StoreError> {
        Ok(Self {
            compressor: Compressor::new().map_err(compression)?,
            aside: None,
            threads,
            frames: Vec::new(),
            bytes: 0,
            open: [None, None, None],
            spare: Vec::new(),
        })
    }

    /// Appends a byte string.
    pub(super) fn push(&mut self, kind: Kind, bytes: &[u8]) -> Result<Place, StoreError> {
        self.bytes += bytes.len();
        if bytes.len() > PACK_BYTES {
            let pack = self.reserve(kind);
            let data = self.compressor.compress(bytes).map_err(compression)?;
            self.compressor.shrink();
            self.fill(pack, bytes.len(), data);
            return Ok(Place { pack, offset: 0, len: bytes.len() });
        }
        let fits = |raw: &Vec<u8>| raw.len() + bytes.len() <= PACK_BYTES;
        if let Some((pack, raw)) = self.open[kind as usize].take_if(|(_, raw)| !fits(raw)) {
            self.close(pack, raw)?;
        }
        let (pack, raw) = if let Some(open) = self.open[kind as usize].take() {
            open
        } else {
            let mut raw = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(PACK_BYTES));
            raw.clear();
            (self.reserve(kind), raw)
        };
        let (pack, raw) = self.open[kind as usize].insert((pack, raw));
        let place = Place { pack: *pack, offset: raw.len(), len: bytes.len() };
        raw.extend_from_slice(bytes);
        Ok(place)
    }

    /// Bytes pushed so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Closes the open packs and returns all, in the order of their numbers.
    pub(super) fn finish(&mut self) -> Result<&[Frame], StoreError> {
        for kind in 0..self.open.len() {
            if let Some((pack, raw)) = self.open[kind].take() {
                self.close(pack, raw)?;
            }
        }
        while let Some(done) = self.aside.as_mut().map_or(Ok(None), Aside::next).map_err(compression)? {
            self.take_back(done)?;
        }
        Ok(&self.frames)
    }

    fn reserve(&mut self, kind: Kind) -> usize {
        self.frames.push(Frame { kind, raw_len: 0, data: Vec::new() });
        self.frames.len() - 1
    }

    fn close(&mut self, pack: usize, raw: Vec<u8>) -> Result<(), StoreError> {
        if self.aside.is_none() && self.threads > 1 {
            self.aside = Some(Aside::new().map_err(compression)?);
        }
        let Some(aside) = &mut self.aside else {
            let data = self.compressor.compress(&raw);
            return self.take_back(Compressed { pack, raw, data });
        };
        aside.send(pack, raw).map_err(compression)?;
        while let Some(done) = self.aside.as_mut().and_then(Aside::ready) {
            self.take_back(done)?;
        }
        Ok(())
    }

    fn take_back(&mut self, done: Compressed) -> Result<(), StoreError> {
        self.fill(done.pack, done.raw.len(), done.data.map_err(compression)?);
        self.spare.push(done.raw);
        Ok(())
    }

    fn fill(&mut self, pack: usize, raw_len: usize, data: Vec<u8>) {
        let frame = &mut self.frames[pack];
        (frame.raw_len, frame.data) = (raw_len, data);
    }
}

/// Opens a frame whose length before compression is known.
pub(super) fn open(data: &[u8], raw_len: usize) -> Result<Vec<u8>, StoreError> {
    if raw_len > RAW_MAX {
        return Err(StoreError::Corrupt(format!("a pack claims {raw_len} bytes")));
    }
    match zstd::bulk::decompress(data, raw_len) {
        Ok(raw) if raw.len() == raw_len => Ok(raw),
        Ok(raw) => Err(StoreError::Corrupt(format!("a pack holds {} bytes, not {raw_len}", raw.len()))),
        Err(error) => Err(StoreError::Corrupt(format!("a pack cannot be read: {error}"))),
    }
}

/// Opened packs, the last used first.
#[derive(Default)]
pub(super) struct PackCache(Vec<(i64, Rc<Vec<u8>>)>);

impl PackCache {
    /// A pack's bytes.
    pub(super) fn pack(&mut self, connection: &Connection, id: i64) -> Result<Rc<Vec<u8>>, StoreError> {
        if let Some(at) = self.0.iter().position(|(known, _)| *known == id) {
            self.0[..=at].rotate_right(1);
        } else {
            let mut statement = connection.prepare_cached("SELECT raw_len, data FROM pack WHERE id = ?1")?;
            let row = statement.query_row([id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)));
            let (raw_len, data) =
                row.optional()?.ok_or_else(|| StoreError::Corrupt(format!("pack {id} is missing")))?;
            let raw = open(&data, usize::try_from(raw_len).unwrap_or(usize::MAX))?;
            if raw.len() > PACK_BYTES {
                // At most one large string stays open.
                self.0.retain(|(_, kept)| kept.len() <= PACK_BYTES);
            }
            self.0.truncate(CACHE_PACKS - 1);
            self.0.insert(0, (id, Rc::new(raw)));
        }
        Ok(self.0[0].1.clone())
    }

    /// A stored byte string, by the id of its blob.
    pub(super) fn blob(&mut self, connection: &Connection, id: i64) -> Result<Vec<u8>, StoreError> {
        let mut statement = connection.prepare_cached("SELECT pack, offset, len FROM blob WHERE id = ?1")?;
        let row = statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let (pack, offset, len) =
            row.optional()?.ok_or_else(|| StoreError::Corrupt(format!("blob {id} is missing")))?;
        let raw = self.pack(connection, pack)?;
        slice(&raw, offset, len)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| StoreError::Corrupt(format!("blob {id} lies outside pack {pack}")))
    }

    /// Forgets everything: packs have been rewritten.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The bytes of a blob in its opened pack.
pub(super) fn slice(raw: &[u8], offset: i64, len: i64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    raw.get(start..end)
}

fn compression(error: io::Error) -> StoreError {
    StoreError::Io { path: "zstd".into(), source: error }
}

#[cfg(test)]
mod tests {
    use super::{Kind, PACK_BYTES, Packer, open};

    #[test]
    fn strings_come_back_from_their_places() {
        let texts: Vec<Vec<u8>> =
            (0..2000_usize).map(|i| format!("message {i} ").repeat(i % 60).into_bytes()).collect();
        let large = vec![b'x'; PACK_BYTES + 1];
        let packed = |threads| {
            let mut packer = Packer::new(threads).unwrap();
            let mut places = Vec::new();
            for (i, text) in texts.iter().enumerate() {
                places.push((packer.push(Kind::Bodies, text).unwrap(), text));
                if i == 1000 {
                    places.push((packer.push(Kind::Bodies, &large).unwrap(), &large));
                }
            }
            packer.finish().unwrap();
            (packer.frames, places)
        };
        let (frames, places) = packed(1);
        assert_eq!((&frames, &places), (&packed(2).0, &packed(2).1), "whatever the thread count");
        assert!(frames.len() > 2);
        for (place, text) in places {
            let frame = &frames[place.pack];
            assert!(frame.raw_len <= PACK_BYTES || frame.raw_len == large.len());
            let raw = open(&frame.data, frame.raw_len).unwrap();
            assert_eq!(&raw[place.offset..place.offset + place.len], text.as_slice());
        }
    }

    #[test]
    fn a_damaged_frame_is_an_error() {
        assert!(open(b"not a frame", 11).is_err());
        let mut packer = Packer::new(1).unwrap();
        packer.push(Kind::Bodies, b"hello").unwrap();
        let frames = packer.finish().unwrap();
        assert!(open(&frames[0].data, 4).is_err());
        assert!(open(&frames[0].data, usize::MAX).is_err());
    }
}
