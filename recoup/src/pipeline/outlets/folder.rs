//! The folder that outlets write into: whole files only, and none of somebody else's lost.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::TITLE;
use crate::exporters::PARTIAL;
use crate::pipeline::PipelineError;

/// The reports, and what stands in the head of each that recoup wrote.
const REPORTS: [(&str, &str); 3] = [
    ("report.html", "<meta name=generator content=\"recoup "),
    ("report.md", TITLE),
    ("report.json", "\"format\": \"recoup.report\""),
];
/// Bytes of a report that are searched for it.
const REPORT_HEAD_BYTES: u64 = 512;

/// Refuses a folder where a report stands that recoup did not write: it would be gone.
///
/// # Errors
/// [`PipelineError::Foreign`] with the file's path.
pub fn require_own(out: &Path) -> Result<(), PipelineError> {
    for (name, own) in REPORTS {
        let path = out.join(name);
        let Ok(file) = fs::File::open(&path) else { continue };
        let mut head = Vec::new();
        let read = file.take(REPORT_HEAD_BYTES).read_to_end(&mut head);
        let is_own = read.is_ok() && memchr::memmem::find(&head, own.as_bytes()).is_some();
        if !is_own && !head.is_empty() {
            return Err(PipelineError::Foreign { path });
        }
    }
    Ok(())
}

/// Removes what a call that was killed left behind.
pub(in crate::pipeline) fn remove_partial(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
