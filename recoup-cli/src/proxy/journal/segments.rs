//! The files of the journal, which are numbered.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::Location;

/// The name of a file by its number.
pub(super) fn path(folder: &Path, segment: u64) -> PathBuf {
    folder.join(format!("{segment:08}.jsonl"))
}

/// Makes a file that is not there.
pub(super) fn create(folder: &Path, segment: u64) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let file = options.open(path(folder, segment))?;
    // The file's name must outlive a crash too.
    File::open(folder)?.sync_all()?;
    Ok(file)
}

/// The numbers of the files of a folder, in order.
pub(in crate::proxy) fn segments(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".jsonl")?.parse::<u64>().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Shows every whole line of a file with its place, but what was overwritten, and cuts off what a crash has left after them.
/// Returns how many bytes that were.
pub(in crate::proxy) fn each_line(
    folder: &Path,
    segment: u64,
    mut show: impl FnMut(&[u8], Location),
) -> io::Result<u64> {
    let path = path(folder, segment);
    let mut reader = io::BufReader::with_capacity(1 << 20, File::open(&path)?);
    let (mut offset, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let length = io::BufRead::read_until(&mut reader, b'\n', &mut line)? as u64;
        if length == 0 {
            return Ok(0);
        }
        if !line.ends_with(b"\n") {
            OpenOptions::new().write(true).open(&path)?.set_len(offset)?;
            return Ok(length);
        }
        if !line.trim_ascii().is_empty() {
            show(&line, Location { segment, offset, length });
        }
        offset += length;
    }
}
