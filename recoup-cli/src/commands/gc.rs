//! `recoup gc`: drops what nothing refers to.

use super::project;
use crate::Ended;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// Collects garbage.
pub(crate) fn gc(settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let mut store = project::open(settings)?;
    let report = store.gc()?;
    if printer.is_json() {
        printer.json(&project::answer(&store, settings, report));
    } else {
        printer.line(format_args!(
            "dropped {} messages, {} byte strings and {} packs; {} bytes fewer",
            report.nodes, report.blobs, report.packs, report.packed_bytes
        ));
    }
    Ok(Ended::Done)
}
