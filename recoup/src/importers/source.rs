//! A source: one file (or archive member, or standard input) that may hold traces; `paths` leads from
//! what a user names to the sources beneath.
//!
//! A trace never chooses a path. The only way from a trace to another file is [`Source::sibling`]:
//! relative, normal components, resolved beneath the folder that was imported, without symlinks.

mod compression;
mod members;
mod paths;
mod siblings;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::compression::Compression;
pub(super) use self::members::Members;
pub use self::paths::{sources_from_paths, wanted_sources};
use super::{ImportError, Scoring};

/// What the user decided about an import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Which score decides.
    pub scoring: Scoring,
    /// Records above this many bytes are quarantined.
    pub record_bytes_max: u64,
    /// Threads that parse; 1 parses on the calling thread.
    pub threads: usize,
    /// Licence to record for every trajectory.
    pub licence: String,
    /// Decompressed bytes above which a compressed file or archive member is refused.
    pub decompressed_bytes_max: u64,
    /// Decompressed over compressed size above which it is refused as a bomb.
    pub ratio_max: u64,
    /// Members above which an archive is refused.
    pub members_max: usize,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            scoring: Scoring::default(),
            record_bytes_max: 64 << 20,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            licence: "own".to_owned(),
            decompressed_bytes_max: 64 << 30,
            ratio_max: 1000,
            members_max: 200_000,
        }
    }
}

/// Where the bytes are.
#[derive(Clone, Debug)]
enum Backing {
    Path(PathBuf),
    Compressed(PathBuf, Compression),
    /// A temporary file: standard input, or a member unpacked.
    Spool(Arc<tempfile::NamedTempFile>),
    CompressedSpool(Arc<tempfile::NamedTempFile>, Compression),
    Memory(Arc<[u8]>),
}

/// One file that may hold traces.
#[derive(Clone, Debug)]
pub struct Source {
    uri: String,
    name: String,
    backing: Backing,
    /// Folder beneath which siblings may be read, and this file's folder below it.
    root: Option<(PathBuf, PathBuf)>,
    options: Arc<ImportOptions>,
}

/// A path that could not become a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceProblem {
    /// The path as the user gave it or as found beneath it.
    pub uri: String,
    /// Stable word for the cause (`unreadable`, `symlink`, `not-a-file`, `refused`, `bad-archive`,
    /// `bomb`, `not-found`, `bad-glob`).
    pub code: &'static str,
    /// For a person.
    pub reason: String,
}

impl SourceProblem {
    /// True for what is passed over by rule and needs no attention.
    pub fn is_skip(&self) -> bool {
        matches!(self.code, "symlink" | "not-a-file")
    }
}

/// Readable and seekable.
pub trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

impl Source {
    /// A file. `root` is the folder that was imported; siblings are read beneath it.
    pub fn from_path(uri: String, path: PathBuf, root: Option<PathBuf>, options: Arc<ImportOptions>) -> Self {
        let file_name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let (name, backing) = match file_name.rsplit_once('.') {
            Some((stem, "gz")) => (stem.to_owned(), Backing::Compressed(path, Compression::Gzip)),
            Some((stem, "zst")) => (stem.to_owned(), Backing::Compressed(path, Compression::Zstd)),
            _ => (file_name, Backing::Path(path)),
        };
        Self { uri, name, backing, root: root.map(|root| (root, folder)), options }
    }

    /// Bytes in memory.
    pub fn from_bytes(
        uri: impl Into<String>,
        bytes: impl Into<Arc<[u8]>>,
        options: Arc<ImportOptions>,
    ) -> Self {
        let uri = uri.into();
        let name = uri.rsplit(['/', '#']).next().unwrap_or_default().to_owned();
        Self { uri, name, backing: Backing::Memory(bytes.into()), root: None, options }
    }

    /// A stream, copied to a temporary file so that it can be read more than once; unpacked where its
    /// first bytes are those of gzip or zstd. For a zip archive see [`Source::unpacked`].
    ///
    /// # Errors
    /// When the stream or the temporary file fails.
    pub fn from_reader(uri: &str, mut reader: impl Read, options: Arc<ImportOptions>) -> io::Result<Self> {
        let mut spool = tempfile::NamedTempFile::new()?;
        io::copy(&mut reader, spool.as_file_mut())?;
        spool.as_file_mut().flush()?;
        let mut head = Vec::new();
        spool.reopen()?.take(4).read_to_end(&mut head)?;
        let spool = Arc::new(spool);
        let backing = match Compression::of(&head) {
            Some(compression) => Backing::CompressedSpool(spool, compression),
            None => Backing::Spool(spool),
        };
        Ok(Self { uri: uri.to_owned(), name: uri.to_owned(), backing, root: None, options })
    }

    /// How the user would name it: the path, `#member` for an archive's.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// File name without folders and without `.gz` or `.zst`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it belongs to other files' traces and holds none itself: outcomes or settings that importers read as
    /// a sibling.
    pub fn is_companion(&self) -> bool {
        super::COMPANIONS.contains(&self.name())
    }

    /// That name without its ending.
    pub fn stem(&self) -> &str {
        self.name.rsplit_once('.').map_or(&self.name, |(stem, _)| stem)
    }

    /// The user's decisions.
    pub fn options(&self) -> &Arc<ImportOptions> {
        &self.options
    }

    /// The bytes from the start, decompressed.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(&self) -> Result<Box<dyn Read + Send>, ImportError> {
        let open = || -> io::Result<Box<dyn Read + Send>> {
            Ok(match &self.backing {
                Backing::Path(path) => Box::new(File::open(path)?),
                Backing::Compressed(path, compression) => {
                    compression.unpack(File::open(path)?, &self.options)?
                }
                Backing::CompressedSpool(spool, compression) => {
                    compression.unpack(spool.reopen()?, &self.options)?
                }
                Backing::Spool(spool) => Box::new(spool.reopen()?),
                Backing::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            })
        };
        open().map_err(|error| ImportError::io(self, error))
    }

    /// The bytes, seekable; a compressed file is unpacked to a temporary one first, as far as it can be.
    ///
    /// # Errors
    /// When the file cannot be opened, or nothing of it unpacked.
    pub fn open_seekable(&self) -> Result<Box<dyn ReadSeek>, ImportError> {
        let seekable = || -> io::Result<Box<dyn ReadSeek>> {
            Ok(match &self.backing {
                Backing::Path(path) => Box::new(File::open(path)?),
                Backing::Spool(spool) => Box::new(spool.reopen()?),
                Backing::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
                Backing::Compressed(..) | Backing::CompressedSpool(..) => {
                    let mut reader = self.open().map_err(io::Error::other)?;
                    let mut spool = tempfile::tempfile()?;
                    let unpacked = io::copy(&mut reader, &mut spool);
                    // What stands before the damage counts, as for who reads the file from its start.
                    if spool.stream_position()? == 0 {
                        unpacked?;
                    }
                    spool.seek(SeekFrom::Start(0))?;
                    Box::new(spool)
                }
            })
        };
        seekable().map_err(|error| ImportError::io(self, error))
    }

    /// The bytes as a file; what is compressed or in memory becomes a temporary one first.
    ///
    /// # Errors
    /// When the file cannot be opened or unpacked.
    #[cfg(feature = "parquet")]
    pub(super) fn open_file(&self) -> Result<File, ImportError> {
        let open = || -> io::Result<File> {
            match &self.backing {
                Backing::Path(path) => File::open(path),
                Backing::Spool(spool) => spool.reopen(),
                Backing::Compressed(..) | Backing::CompressedSpool(..) | Backing::Memory(_) => {
                    let mut spool = tempfile::tempfile()?;
                    io::copy(&mut self.open().map_err(io::Error::other)?, &mut spool)?;
                    Ok(spool)
                }
            }
        };
        open().map_err(|error| ImportError::io(self, error))
    }

    /// All bytes, at most `limit` of them.
    ///
    /// # Errors
    /// When the file cannot be read or is larger.
    pub fn read_all(&self, limit: u64) -> Result<Vec<u8>, ImportError> {
        let mut bytes = Vec::new();
        self.open()?.take(limit + 1).read_to_end(&mut bytes).map_err(|error| ImportError::io(self, error))?;
        if bytes.len() as u64 > limit {
            return Err(ImportError::Unreadable {
                uri: self.uri.clone(),
                code: "too-large",
                reason: format!("larger than {limit} bytes"),
            });
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Cursor, Read as _, Write as _};
    use std::sync::Arc;

    use super::{Source, sources_from_paths};
    use crate::importers::ImportError;

    #[test]
    fn a_bomb_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.jsonl.zst");
        let bytes = zstd::encode_all(std::io::repeat(b'x').take(200 << 20), 3).unwrap();
        fs::write(&path, bytes).unwrap();
        let (sources, _) = sources_from_paths(&[path.to_string_lossy().into_owned()], &Arc::default());
        let mut sink = std::io::sink();
        let error = std::io::copy(&mut sources[0].open().unwrap(), &mut sink).unwrap_err();
        assert!(error.to_string().contains("unpacks to more than"), "{error}");
    }

    fn text(source: &Source) -> String {
        String::from_utf8(source.read_all(1 << 20).unwrap()).unwrap()
    }

    #[test]
    fn a_compressed_file_that_was_cut_off_gives_what_stands_before() {
        let mut random = 7u32;
        let bytes = std::iter::repeat_with(|| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        });
        let bytes: Vec<u8> = bytes.take(100_000).collect();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&bytes).unwrap();
        let packed = gz.finish().unwrap();
        let cut = Source::from_reader("a", &packed[..packed.len() / 2], Arc::default()).unwrap();
        let mut read = Vec::new();
        cut.open_seekable().unwrap().read_to_end(&mut read).unwrap();
        assert!(read.len() > 1000 && bytes.starts_with(&read), "{}", read.len());
    }

    #[test]
    fn a_stream_is_unpacked_by_its_first_bytes() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(b"{}").unwrap();
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for name in ["a.json", "folder/b.json"] {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(b"{}").unwrap();
        }
        let streams = [
            (b"{}".to_vec(), &["-"][..]),
            (gz.finish().unwrap(), &["-"]),
            (zstd::encode_all(&b"{}"[..], 1).unwrap(), &["-"]),
            (zip.finish().unwrap().into_inner(), &["-#a.json", "-#folder/b.json"]),
        ];
        for (bytes, uris) in streams {
            let source = Source::from_reader("-", &*bytes, Arc::default()).unwrap();
            let (sources, problems) = source.unpacked().unwrap();
            assert_eq!(sources.iter().map(Source::uri).collect::<Vec<_>>(), uris);
            assert!(problems.is_empty() && sources.iter().all(|source| text(source) == "{}"));
        }
        let broken = Source::from_reader("-", &b"PK\x03\x04 and nothing more"[..], Arc::default()).unwrap();
        assert!(matches!(broken.unpacked(), Err(ImportError::Unreadable { code: "bad-archive", .. })));
    }
}
