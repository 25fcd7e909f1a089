//! Runs out in an interchange format, one file each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::PipelineError;
use super::outlets::remove_partial;
use crate::artifact::{Artifact, Provenance, pretty};
use crate::exporters::atif::atif;
use crate::exporters::replace;
use crate::failpoint::Failpoint;
use crate::id::TrajectoryId;
use crate::redaction::{leftovers, redact};
use crate::reporter::Reporter;
use crate::store::Store;
use crate::warning::Loss;

/// What an export did.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AtifExport {
    /// Files written.
    pub written: u64,
    /// Whether secrets and personal data were replaced first.
    pub redacted: bool,
    /// Runs that were not written, and why.
    pub refused: Vec<RefusedRun>,
    /// What the format cannot carry, with how often it occurred.
    pub losses: Vec<LostField>,
}

/// A field that the format has no place for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LostField {
    /// The field.
    pub field: String,
    /// Why, in words for a person.
    pub reason: String,
    /// How often it occurred.
    pub count: u64,
}

/// A run that became no file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RefusedRun {
    /// The run.
    pub id: TrajectoryId,
    /// Why, in words for a person.
    pub reason: &'static str,
}

/// Writes each run as `<start of its id>.atif.json`, and `export.manifest.json` that says so. Without `redacting`, secrets and personal data go
/// out with it.
///
/// # Errors
/// When the store or the folder fails.
pub fn export_atif(
    store: &Store,
    ids: &[TrajectoryId],
    out: &Path,
    redacting: bool,
    provenance: Provenance,
    reporter: &mut dyn Reporter,
) -> Result<AtifExport, PipelineError> {
    let failed = |path: &Path, source| PipelineError::Io { path: path.to_owned(), source };
    fs::create_dir_all(out).map_err(|error| failed(out, error))?;
    remove_partial(out).map_err(|error| failed(out, error))?;
    reporter.stage("export", Some(ids.len() as u64));
    let mut export = AtifExport { redacted: redacting, ..AtifExport::default() };
    let mut lost: BTreeMap<Loss, u64> = BTreeMap::new();
    for id in ids {
        let mut run = store.effective(*id)?;
        for hash in media_of(&run) {
            if let Some(bytes) = store.media(hash)? {
                run.media.insert(hash, bytes);
            }
        }
        let mut refuse = |reason| export.refused.push(RefusedRun { id: *id, reason });
        if run.nodes.is_empty() {
            // Readers of the format demand a step.
            refuse("it has no messages");
            reporter.advance(1);
            continue;
        }
        let mut losses = Vec::new();
        let text = if redacting {
            let mut redacted = redact(&run).trajectory;
            redacted.media = run.media;
            format!("{:#}\n", atif(&redacted, &mut losses))
        } else {
            format!("{:#}\n", atif(&run, &mut losses))
        };
        reporter.advance(1);
        if redacting && !leftovers(&text).is_empty() {
            refuse("it holds something that should have been redacted");
            continue;
        }
        let path = out.join(format!("{}.atif.json", &id.to_string()[..16]));
        replace(&path, &text, Failpoint::Export).map_err(|error| failed(&path, error))?;
        export.written += 1;
        for loss in losses {
            *lost.entry(loss).or_default() += 1;
        }
    }
    let named = |(loss, count): (Loss, u64)| LostField { field: loss.field, reason: loss.reason, count };
    export.losses = lost.into_iter().map(named).collect();
    let path = out.join("export.manifest.json");
    replace(&path, &pretty(&Artifact::new(provenance, export.clone())), Failpoint::Manifest)
        .map_err(|error| failed(&path, error))?;
    Ok(export)
}

fn media_of(run: &crate::trajectory::Trajectory) -> Vec<crate::id::Hash> {
    use crate::trajectory::Part;
    fn collect(parts: &[Part], hashes: &mut Vec<crate::id::Hash>) {
        for part in parts {
            match part {
                Part::Media(media) => hashes.extend(media.blob),
                Part::ToolResult(result) => collect(&result.parts, hashes),
                _ => {}
            }
        }
    }
    let mut hashes = Vec::new();
    for node in &run.nodes {
        collect(&node.parts, &mut hashes);
    }
    hashes
}
