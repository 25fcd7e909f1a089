//! Members: what a zip archive holds, each a source of its own. Their names are data; nothing is ever
//! written under them.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};

use super::compression::Limited;
use super::{ReadSeek, Source, SourceProblem};
use crate::importers::{ImportError, detect};

impl Source {
    /// The sources that a stream without a name holds: the members where it is a zip archive, unless a
    /// format reads the archive as a whole.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn unpacked(self) -> Result<(Vec<Self>, Vec<SourceProblem>), ImportError> {
        let mut magic = Vec::new();
        let read = self.open()?.take(4).read_to_end(&mut magic);
        let is_zip = read.is_ok() && magic == *b"PK\x03\x04";
        if !is_zip || detect(&self)?.is_some() {
            return Ok((vec![self], Vec::new()));
        }
        let (mut sources, mut problems) = (Vec::new(), Vec::new());
        self.add_members(&mut sources, &mut problems);
        Ok((sources, problems))
    }

    /// Every member of a zip archive, or why it cannot be read.
    pub(super) fn add_members(&self, sources: &mut Vec<Self>, problems: &mut Vec<SourceProblem>) {
        let mut members = match self.members() {
            Ok(members) => members,
            Err(error) => {
                let (code, reason) = match error {
                    ImportError::Unreadable { code, reason, .. } => (code, reason),
                    ImportError::Io { source, .. } => ("unreadable", source.to_string()),
                    ImportError::Sink(error) => ("unreadable", error.to_string()),
                };
                problems.push(SourceProblem { uri: self.uri.clone(), code, reason });
                return;
            }
        };
        if members.archive.has_duplicate_names() {
            let ended = self.add_in_file_order(sources, problems);
            problems.extend(ended.err());
            return;
        }
        for name in members.names() {
            match members.read(&name) {
                Ok(member) => sources.push(member),
                Err(problem) => problems.push(problem),
            }
        }
    }

    /// Every member as it comes in the file. The archive's index knows only the last of several with
    /// one name; the others are `name#2` and so on here.
    fn add_in_file_order(
        &self,
        sources: &mut Vec<Self>,
        problems: &mut Vec<SourceProblem>,
    ) -> Result<(), SourceProblem> {
        self.in_file_order(|member, name, count| {
            let uri = match count {
                1 => format!("{}#{name}", self.uri),
                count => format!("{}#{name}#{count}", self.uri),
            };
            let packed = member.compressed_size();
            match self.unpack_member(member, packed, name, &uri) {
                Ok(member) => sources.push(member),
                Err(problem) => problems.push(problem),
            }
        })
    }

    /// Shows `see` every member that holds data as it comes in the file, with its name and how many have
    /// come with that name, itself included.
    fn in_file_order<F>(&self, mut see: F) -> Result<(), SourceProblem>
    where
        F: FnMut(zip::read::ZipFile<'_, BufReader<Box<dyn ReadSeek>>>, &str, u32),
    {
        let problem = |reason: String| SourceProblem {
            uri: self.uri.clone(),
            code: "bad-archive",
            reason: format!("members share a name and cannot all be read: {reason}"),
        };
        let file = self.open_seekable().map_err(|error| problem(error.to_string()))?;
        let mut file = BufReader::new(file);
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for _ in 0..self.options.members_max {
            let member = zip::read::read_zipfile_from_stream(&mut file);
            let Some(member) = member.map_err(|error| problem(error.to_string()))? else { return Ok(()) };
            let name = member.name().map_err(|error| problem(error.to_string()))?.into_owned();
            if name.ends_with('/') {
                continue;
            }
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            see(member, &name, *count);
        }
        Ok(())
    }

    /// One member, unpacked.
    fn unpack_member(
        &self,
        member: impl Read,
        packed: u64,
        name: &str,
        uri: &str,
    ) -> Result<Self, SourceProblem> {
        let problem = |code, reason: String| SourceProblem { uri: uri.to_owned(), code, reason };
        let mut reader = Limited::new(member, packed, &self.options);
        let mut bytes = Vec::new();
        reader.by_ref().take(MEMORY_BYTES_MAX).read_to_end(&mut bytes).map_err(|error| {
            let code = if reader.exceeded { "bomb" } else { "bad-archive" };
            problem(code, error.to_string())
        })?;
        let mut unpacked = if (bytes.len() as u64) < MEMORY_BYTES_MAX {
            Self::from_bytes(uri, bytes, self.options.clone())
        } else {
            let whole = io::Cursor::new(bytes).chain(reader);
            Self::from_reader(uri, whole, self.options.clone())
                .map_err(|error| problem("bad-archive", error.to_string()))?
        };
        name.rsplit('/').next().unwrap_or_default().clone_into(&mut unpacked.name);
        Ok(unpacked)
    }

    /// The members of a zip archive that hold data, in the archive's order.
    ///
    /// # Errors
    /// When it is no readable archive or breaks the limits.
    pub fn members(&self) -> Result<Members, ImportError> {
        let unreadable =
            |code, reason: String| ImportError::Unreadable { uri: self.uri.clone(), code, reason };
        let archive = zip::ZipArchive::new(BufReader::new(self.open_seekable()?))
            .map_err(|error| unreadable("bad-archive", error.to_string()))?;
        if archive.len() > self.options.members_max {
            let reason = format!("{} members, at most {} are read", archive.len(), self.options.members_max);
            return Err(unreadable("bomb", reason));
        }
        Ok(Members { archive, source: self.clone() })
    }
}

/// An open zip archive.
pub struct Members {
    archive: zip::ZipArchive<BufReader<Box<dyn ReadSeek>>>,
    source: Source,
}

impl Members {
    /// How the user would name the archive.
    pub fn uri(&self) -> &str {
        &self.source.uri
    }

    /// Names of the members that hold data, in the archive's order. They are data: nothing is ever
    /// written under them.
    pub fn names(&self) -> Vec<String> {
        self.archive
            .file_names()
            .filter_map(|name| Some(name.ok()?.into_owned()))
            .filter(|name| !name.ends_with('/'))
            .collect()
    }

    /// Names that several members have, each with how many: only the last of them can be read by name.
    ///
    /// # Errors
    /// When there are some and the archive does not tell which.
    pub fn shared_names(&self) -> Result<Vec<(String, u32)>, SourceProblem> {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        if self.archive.has_duplicate_names() {
            self.source.in_file_order(|_, name, count| {
                counts.insert(name.to_owned(), count);
            })?;
        }
        Ok(counts.into_iter().filter(|(_, count)| *count > 1).collect())
    }

    /// Unpacks one member.
    ///
    /// # Errors
    /// When it does not exist, is damaged, or is larger than the limits allow.
    pub fn read(&mut self, name: &str) -> Result<Source, SourceProblem> {
        let uri = format!("{}#{name}", self.source.uri);
        let problem = |code, reason: String| SourceProblem { uri: uri.clone(), code, reason };
        let member = self.archive.by_name(name).map_err(|error| problem("bad-archive", error.to_string()))?;
        let packed = member.compressed_size();
        self.source.unpack_member(member, packed, name, &uri)
    }
}

/// Members up to this size stay in memory.
const MEMORY_BYTES_MAX: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Cursor, Write as _};
    use std::sync::Arc;

    use crate::importers::{Source, sources_from_paths};

    #[test]
    fn members_of_one_name_are_all_read() {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in [("a.json", "1"), ("b.json", "2"), ("c.json", "3")] {
            let stored =
                zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            zip.start_file(name, stored).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        let mut bytes = zip.finish().unwrap().into_inner();
        while let Some(at) = bytes.windows(6).position(|window| window == b"b.json") {
            bytes[at] = b'a';
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.zip");
        fs::write(&path, bytes).unwrap();
        let (sources, problems) = sources_from_paths(&[path.to_string_lossy().into_owned()], &Arc::default());
        assert_eq!(problems, []);
        let members: Vec<(&str, String)> = sources
            .iter()
            .map(|source| {
                (
                    source.uri().split_once('#').unwrap().1,
                    String::from_utf8(source.read_all(9).unwrap()).unwrap(),
                )
            })
            .collect();
        let expected = [("a.json", "1"), ("a.json#2", "2"), ("c.json", "3")];
        assert_eq!(members, expected.map(|(name, text)| (name, text.to_owned())));
        assert_eq!(sources.iter().map(Source::name).collect::<Vec<_>>(), ["a.json", "a.json", "c.json"]);

        // One that is damaged costs only itself.
        let mut bytes = fs::read(&path).unwrap();
        let second = bytes.windows(7).position(|window| window == b"a.json2").unwrap() + 6;
        bytes[second] = b'9';
        fs::write(&path, bytes).unwrap();
        let (sources, problems) = sources_from_paths(&[path.to_string_lossy().into_owned()], &Arc::default());
        assert_eq!(sources.iter().map(Source::name).collect::<Vec<_>>(), ["a.json", "c.json"]);
        assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["bad-archive"]);
    }
}
