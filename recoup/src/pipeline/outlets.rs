//! The outlets: one pass over every run that writes the training files and the report.
//!
//! Each run is loaded once, redacted once, and only the redacted form goes on.

mod folder;
mod judges;
mod load;
mod pass;
mod previews;
mod replays;
mod rows;

use std::fs;
use std::path::Path;

pub(super) use self::folder::remove_partial;
pub use self::folder::require_own;
use self::pass::{Passed, pass};
use self::replays::replay_row;
use self::rows::{export_row, import_row};
use super::{ContentSettings, Imported, PipelineConfig, PipelineError};
use crate::artifact::{Artifact, Provenance, pretty};
use crate::diagnosis::DETECTORS;
use crate::exporters::{ExportError, ExportWriter, Manifest, Training, exporter, natural, replace};
use crate::failpoint::Failpoint;
use crate::id::TrajectoryId;
use crate::report::{self, DetectorInfo, Preview, ReportInput};
use crate::reporter::Reporter;
use crate::store::Store;
use crate::views::{GoalContrast, View, usual};

/// Heading of every report.
const TITLE: &str = "What failed, and why";
/// What stands in the output folder.
#[derive(Clone, Debug, Default)]
pub struct Outlets {
    /// The training files' manifests.
    pub manifests: Vec<Manifest>,
    /// False where everything was up to date and nothing was written.
    pub written: bool,
}

/// The training files of the main job where no model is named: the usual views as TRL reads them, and goals in
/// contrast, whose loss no trainer has, as they are. Without Parquet the report counts them as refused.
pub fn training_files() -> impl Iterator<Item = Training<'static>> {
    let mut contrast = natural(&GoalContrast);
    if let Some(whole) = exporter("parquet", contrast.view) {
        contrast.exporter = whole;
    }
    usual().map(natural).chain([contrast])
}

/// Writes the training files and the report, unless those that stand there were made from the same
/// runs, verdicts and settings.
///
/// # Errors
/// When the store or the folder fails.
pub fn write_outlets(
    store: &Store,
    imported: Option<&Imported>,
    config: &PipelineConfig<'_>,
    reporter: &mut dyn Reporter,
) -> Result<Outlets, PipelineError> {
    let provenance = Provenance::new(config.settings.hash(), store.fingerprint()?.to_string());
    if let Some(manifests) = current(config, &provenance) {
        return Ok(Outlets { manifests, written: false });
    }
    require_own(config.out)?;
    let failed = |path: &Path, source| PipelineError::Io { path: path.to_owned(), source };
    fs::create_dir_all(config.out).map_err(|error| failed(config.out, error))?;
    remove_partial(config.out).map_err(|error| failed(config.out, error))?;
    let training = config.training;
    let mut writers = writers(training, config.out, &provenance, &config.settings)?;
    let Passed { runs, previews, shared, .. } =
        pass(store, None, training, &config.settings, config.threads, &mut writers, reporter)?;
    let manifests: Vec<Manifest> = writers.into_iter().map(ExportWriter::finish).collect::<Result<_, _>>()?;
    let report = report::summarize(&ReportInput {
        title: TITLE.to_owned(),
        project: config.project.to_owned(),
        provenance: provenance.clone(),
        import: imported.map(import_row),
        runs,
        exports: manifests
            .iter()
            .zip(previews)
            .map(|(manifest, previews)| export_row(manifest, previews))
            .collect(),
        replay: replay_row(store)?,
        judges: judges::judges(store)?,
        shared,
        detectors: DETECTORS
            .iter()
            .map(|detector| DetectorInfo {
                name: detector.name().to_owned(),
                capability: detector.capability().to_owned(),
                description: detector.describe().to_owned(),
            })
            .collect(),
    });
    let settings = Artifact::new(provenance, config.settings.clone());
    // The report's JSON comes last: while it is missing or old, the others are made again.
    for (name, text) in [
        ("settings.json", pretty(&settings)),
        ("report.html", report::html(&report)),
        ("report.md", report::markdown(&report)),
        ("report.json", report::json(&report)),
    ] {
        let path = config.out.join(name);
        replace(&path, &text, Failpoint::Report).map_err(|error| failed(&path, error))?;
    }
    Ok(Outlets { manifests, written: true })
}

/// Writes training files, made from the runs named; of each its manifest, and the examples to show.
///
/// # Errors
/// When the store or the folder fails.
pub fn export_rows(
    store: &Store,
    ids: &[TrajectoryId],
    training: &[Training<'_>],
    out: &Path,
    threads: usize,
    settings: &ContentSettings,
    reporter: &mut dyn Reporter,
) -> Result<Vec<(Manifest, Vec<Preview>)>, PipelineError> {
    fs::create_dir_all(out).map_err(|source| PipelineError::Io { path: out.to_owned(), source })?;
    let provenance = Provenance::new(settings.hash(), store.fingerprint()?.to_string());
    remove_partial(out).map_err(|source| PipelineError::Io { path: out.to_owned(), source })?;
    let mut writers = writers(training, out, &provenance, settings)?;
    let passed = pass(store, Some(ids), training, settings, threads, &mut writers, reporter)?;
    let written = writers.into_iter().zip(passed.previews);
    let written = written.map(|(writer, previews)| Ok((writer.finish()?, previews)));
    Ok(written.collect::<Result<_, ExportError>>()?)
}

/// The runs, among those named, of which something is learned in one of the views.
///
/// # Errors
/// When the store fails.
pub fn runs_of_views(
    store: &Store,
    ids: &[TrajectoryId],
    views: &[&'static dyn View],
    threads: usize,
    settings: &ContentSettings,
    reporter: &mut dyn Reporter,
) -> Result<Vec<TrajectoryId>, PipelineError> {
    let training: Vec<Training<'_>> = views.iter().map(|view| natural(*view)).collect();
    Ok(pass(store, Some(ids), &training, settings, threads, &mut [], reporter)?.given)
}

fn writers<'a>(
    training: &[Training<'a>],
    out: &Path,
    provenance: &Provenance,
    settings: &ContentSettings,
) -> Result<Vec<ExportWriter<'a>>, PipelineError> {
    // Settings have string keys and finite numbers.
    let config = serde_json::to_value(settings).unwrap_or_default();
    let create = |training: &Training<'a>| {
        Ok(ExportWriter::create(out, *training, provenance.clone(), config.clone())?)
    };
    training.iter().map(create).collect()
}

/// The manifests that stand in the folder, where all outlets are there and made from the same.
fn current(config: &PipelineConfig<'_>, provenance: &Provenance) -> Option<Vec<Manifest>> {
    let out = config.out;
    let made_from: Provenance = serde_json::from_slice(&fs::read(out.join("report.json")).ok()?).ok()?;
    let whole = ["report.html", "report.md", "settings.json"].iter().all(|name| out.join(name).is_file());
    if made_from != *provenance || !whole {
        return None;
    }
    config
        .training
        .iter()
        .map(|training| {
            let path = out.join(format!("{}.manifest.json", training.view.name()));
            let manifest: Manifest = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
            let whole = manifest.files.iter().all(|name| out.join(name).is_file());
            (whole && manifest.provenance == *provenance).then_some(manifest)
        })
        .collect()
}
