//! `recoup gc`: drops what nothing refers to.

use super::project;
use crate::Ended;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// Collects garbage.
pub(crate) fn gc(settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let report = project::open(settings)?.gc()?;
    if printer.is_json() {
        printer.json(&report);
    } else {
        printer.line(serde_json::to_string_pretty(&report).unwrap_or_default());
    }
    Ok(Ended::Done)
}
