//! `recoup release`: every run with what was decided about it, for publication.

use recoup::pipeline::{self, ReleaseConfig};
use serde_json::json;

use super::project;
use crate::Ended;
use crate::args::ReleaseArgs;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Settings that decide content, for their hash.
fn chosen(flags: &ReleaseArgs) -> serde_json::Value {
    json!({ "skip_unknown": flags.skip_unknown })
}

/// Writes the tables and their card.
pub(crate) fn release(flags: &ReleaseArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let store = project::open(settings)?;
    let config = ReleaseConfig { skip_unknown: flags.skip_unknown, threads: settings.threads };
    let provenance = project::provenance_as(&store, &chosen(flags));
    let mut progress = printer.progress();
    let released = pipeline::release(&store, &flags.out, config, provenance, &mut progress)?;
    progress.finish();
    let body = &released.body;
    if printer.is_json() {
        printer.json(&released);
    } else {
        printer.line(format_args!(
            "released {} and {} continuations to {}",
            runs(body.runs as usize),
            body.continuations,
            flags.out.display()
        ));
        for (table, rows) in &body.rows {
            let statuses = body.statuses.get(table).map(|statuses| {
                let each: Vec<String> =
                    statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
                format!(": {}", each.join(", "))
            });
            printer.line(format_args!("  {table}.parquet {rows} rows{}", statuses.unwrap_or_default()));
        }
        printer
            .note("that a run is in it says nothing of whether it may be trained on; README.md says what is");
    }
    for (reason, count) in &body.refused {
        printer.warn(format_args!("{} left out: {reason}", runs(*count as usize)));
    }
    Ok(if body.refused.is_empty() { Ended::Done } else { Ended::Partly })
}
