//! Compression around a file, and the limits on what may come out of it.

use std::fs::File;
use std::io::{self, BufReader, Read};

use super::ImportOptions;

/// Compression around a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// The compression of a stream without a name, from its first bytes.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"\x1f\x8b") {
            Some(Self::Gzip)
        } else if head.starts_with(b"\x28\xb5\x2f\xfd") {
            Some(Self::Zstd)
        } else {
            None
        }
    }

    pub(super) fn unpack(self, file: File, options: &ImportOptions) -> io::Result<Box<dyn Read + Send>> {
        let size = file.metadata()?.len();
        let file = BufReader::new(file);
        let reader: Box<dyn Read + Send> = match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
        };
        Ok(Box::new(Limited::new(reader, size, options)))
    }
}

/// Below this size no ratio is suspicious.
const RATIO_FREE_BYTES: u64 = 16 << 20;

/// A decompressing reader that refuses to go past the limits.
pub(super) struct Limited<R> {
    inner: R,
    read: u64,
    limit: u64,
    pub(super) exceeded: bool,
}

impl<R> Limited<R> {
    pub(super) fn new(inner: R, packed: u64, options: &ImportOptions) -> Self {
        let by_ratio = packed.saturating_mul(options.ratio_max).max(RATIO_FREE_BYTES);
        Self { inner, read: 0, limit: by_ratio.min(options.decompressed_bytes_max), exceeded: false }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read += count as u64;
        if self.read > self.limit {
            self.exceeded = true;
            let reason = format!("unpacks to more than {} bytes, far beyond its packed size", self.limit);
            return Err(io::Error::other(reason));
        }
        Ok(count)
    }
}
