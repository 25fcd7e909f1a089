//! The outlets: one pass over every run that writes the training files and the report.
//!
//! Each run is loaded once, redacted once, and only the redacted form goes on.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::diagnose::text_len;
use super::{Imported, PipelineConfig, PipelineError};
use crate::diagnosis::DETECTORS;
use crate::exporters::{
    ExportWriter, Exporter, Manifest, PARTIAL, Provenance, TrlMessages, TrlPromptCompletion, partial, place,
};
use crate::failpoint::Failpoint;
use crate::importers::Scoring;
use crate::parallel;
use crate::redaction::{Redacted, redact, redact_name, redact_text};
use crate::report::{
    self, DetectorInfo, ExportRow, FindingRow, ImportRow, QuoteRow, ReportInput, RunRow, SkippedRow,
};
use crate::reporter::Reporter;
use crate::store::{Filter, Page, Row, Store, StoreError};
use crate::trajectory::{Status, Trajectory};
use crate::verdict::{Blame, Content, Diagnosis, FailureClass, Finding, Side};
use crate::views::{Example, Exclusion, StepMaskedSft, SuccessSft, View, ViewInput};
use crate::warning::Quarantine;

/// Program and version that artifacts name.
pub const PRODUCER: &str = concat!("recoup ", env!("CARGO_PKG_VERSION"));

/// Training files that the main job writes: a view, and the format that can carry it. TRL reads no
/// per-message weights, so the masked view goes out one kept step a row.
const TRAINING: &[(&dyn View, &dyn Exporter)] =
    &[(&SuccessSft, &TrlMessages), (&StepMaskedSft, &TrlPromptCompletion)];

/// Text of one parallel batch of runs, in bytes.
const BATCH_BYTES: usize = 16 << 20;
/// Runs of one batch.
const BATCH_RUNS: u64 = 256;
/// Characters of a quote in the report.
const QUOTE_CHARS_MAX: usize = 400;

/// What stands in the output folder.
#[derive(Clone, Debug, Default)]
pub struct Outlets {
    /// The training files' manifests.
    pub manifests: Vec<Manifest>,
    /// False where everything was up to date and nothing was written.
    pub written: bool,
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
    let provenance = Provenance {
        producer: PRODUCER.to_owned(),
        config_hash: config.config_hash.clone(),
        inputs_hash: store.fingerprint()?.to_string(),
    };
    if let Some(manifests) = current(config.out, &provenance) {
        return Ok(Outlets { manifests, written: false });
    }
    let failed = |path: &Path, source| PipelineError::Io { path: path.to_owned(), source };
    fs::create_dir_all(config.out).map_err(|error| failed(config.out, error))?;
    remove_partial(config.out).map_err(|error| failed(config.out, error))?;
    let mut writers = Vec::new();
    for (view, exporter) in TRAINING {
        writers.push(ExportWriter::create(config.out, view.name(), *exporter, provenance.clone())?);
    }
    let runs = pass(store, config.threads, &mut writers, reporter)?;
    let manifests: Vec<Manifest> = writers.into_iter().map(ExportWriter::finish).collect::<Result<_, _>>()?;
    let report = report::summarize(&ReportInput {
        title: "What failed, and why".to_owned(),
        project: config.project.to_owned(),
        producer: provenance.producer,
        config_hash: provenance.config_hash,
        inputs_hash: provenance.inputs_hash,
        import: imported.map(import_row),
        runs,
        exports: manifests.iter().map(export_row).collect(),
        detectors: DETECTORS
            .iter()
            .map(|detector| DetectorInfo {
                name: detector.name().to_owned(),
                capability: detector.capability().to_owned(),
                description: detector.describe().to_owned(),
            })
            .collect(),
    });
    // The JSON comes last: while it is missing or old, the others are made again.
    for (name, text) in [
        ("report.html", report::html(&report)),
        ("report.md", report::markdown(&report)),
        ("report.json", report::json(&report)),
    ] {
        let path = config.out.join(name);
        replace(&path, &text, Failpoint::Report).map_err(|error| failed(&path, error))?;
    }
    Ok(Outlets { manifests, written: true })
}

/// The manifests that stand in the folder, where all outlets are there and made from the same.
fn current(out: &Path, provenance: &Provenance) -> Option<Vec<Manifest>> {
    #[derive(serde::Deserialize)]
    struct Header {
        producer: String,
        config_hash: String,
        inputs_hash: String,
    }
    let header: Header = serde_json::from_slice(&fs::read(out.join("report.json")).ok()?).ok()?;
    let same = header.producer == provenance.producer
        && header.config_hash == provenance.config_hash
        && header.inputs_hash == provenance.inputs_hash;
    if !same || !out.join("report.html").is_file() || !out.join("report.md").is_file() {
        return None;
    }
    TRAINING
        .iter()
        .map(|(view, _)| {
            let path = out.join(format!("{}.manifest.json", view.name()));
            let manifest: Manifest = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
            let whole = out.join(format!("{}.jsonl", view.name())).is_file();
            (whole && manifest.inputs_hash == provenance.inputs_hash).then_some(manifest)
        })
        .collect()
}

/// Writes beside the file and renames, so that a reader sees the old or the new one.
pub(super) fn replace(path: &Path, text: &str, point: Failpoint) -> std::io::Result<()> {
    let mut file = partial(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    place(file, path, point)
}

/// Removes what a call that was killed left behind.
pub(super) fn remove_partial(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// One run as the store has it.
struct Loaded {
    row: Row,
    run: Trajectory,
    blame: Option<Blame>,
    class: Option<FailureClass>,
    diagnosis: Option<Diagnosis>,
    findings: Vec<Finding>,
}

/// What one run gives to every outlet.
struct Given {
    redacted: Redacted,
    examples: Vec<Result<Vec<Example>, Exclusion>>,
    row: RunRow,
}

fn pass(
    store: &Store,
    threads: usize,
    writers: &mut [ExportWriter],
    reporter: &mut dyn Reporter,
) -> Result<Vec<RunRow>, PipelineError> {
    reporter.stage("write", Some(store.count(&Filter::default())?));
    let mut rows = Vec::new();
    let mut offset = 0;
    loop {
        let page = store.list(&Filter::default(), Page { offset, limit: BATCH_RUNS })?;
        if page.is_empty() {
            return Ok(rows);
        }
        offset += page.len() as u64;
        let mut batch = Vec::new();
        let mut bytes = 0;
        let mut page = page.into_iter().peekable();
        while let Some(row) = page.next() {
            let loaded = load(store, row)?;
            bytes += text_len(&loaded.run);
            batch.push(loaded);
            if bytes < BATCH_BYTES && page.peek().is_some() {
                continue;
            }
            reporter.advance(batch.len() as u64);
            for given in parallel::map(&std::mem::take(&mut batch), threads, give) {
                for (writer, built) in writers.iter_mut().zip(given.examples) {
                    writer.offer(&given.redacted, built)?;
                }
                rows.push(given.row);
            }
            bytes = 0;
        }
    }
}

fn load(store: &Store, row: Row) -> Result<Loaded, StoreError> {
    let run = store.effective(row.id)?;
    let current = |kind| Ok::<_, StoreError>(store.current(row.id, kind)?.map(|verdict| verdict.content));
    let (mut blame, mut class, mut diagnosis, mut findings) = (None, None, None, Vec::new());
    // A solved run has no failure, whatever was decided while it counted as one.
    if run.outcome().status != Status::Success {
        if let Some(Content::Blame(found)) = current("blame")? {
            blame = Some(found);
        }
        if let Some(Content::FailureClass(found)) = current("failure_class")? {
            class = Some(found);
        }
        if let Some(Content::Diagnosis(found)) = current("diagnosis")? {
            findings.clone_from(&found.findings);
            diagnosis = Some(found);
        }
    }
    if diagnosis.is_none()
        && let Some(Content::Findings(found)) = current("findings")?
    {
        findings = found;
    }
    Ok(Loaded { row, run, blame, class, diagnosis, findings })
}

fn give(loaded: &Loaded) -> Given {
    let mut redacted = redact(&loaded.run);
    let side = side(loaded.row.split.as_deref());
    let input = ViewInput {
        run: &redacted.trajectory,
        blame: loaded.blame.as_ref(),
        class: loaded.class.as_ref(),
        diagnosis: loaded.diagnosis.as_ref(),
        side: side.unwrap_or(Side::Excluded),
    };
    let examples = TRAINING.iter().map(|(view, _)| view.build(&input)).collect();
    let row = run_row(loaded, side, &mut redacted);
    Given { redacted, examples, row }
}

fn side(word: Option<&str>) -> Option<Side> {
    [Side::Train, Side::Validation, Side::Test, Side::Excluded]
        .into_iter()
        .find(|side| Some(side.as_str()) == word)
}

fn run_row(loaded: &Loaded, side: Option<Side>, redacted: &mut Redacted) -> RunRow {
    let Loaded { row, run, blame, class, diagnosis, findings } = loaded;
    let branch = run.main_branch();
    let outcome = run.outcome();
    let findings = findings
        .iter()
        .map(|finding| FindingRow {
            detector: finding.detector.clone(),
            capability: finding.capability.clone(),
            message: redact_text(&finding.message, &mut redacted.placeholders),
            strength: finding.strength,
            node: branch.node_index(finding.node).unwrap_or(finding.node),
            step: branch.step(finding.node),
            resolved: finding.resolved_at.is_some(),
            quotes: finding
                .citations
                .iter()
                .filter_map(|citation| {
                    let text = redacted.map.to_redacted(citation).quote(&redacted.trajectory).ok()?;
                    let node = branch.node_index(citation.node).unwrap_or(citation.node);
                    let text = shortened(&redact_text(text, &mut redacted.placeholders));
                    Some(QuoteRow { node, text })
                })
                .collect(),
        })
        .collect();
    let mut redact = |text: &str| redact_text(text, &mut redacted.placeholders);
    RunRow {
        id: row.id.to_string(),
        uri: redact(&row.uri),
        format: row.format.clone(),
        // Runs are grouped by these, so they read the same in each.
        task: redact_name(&row.task.0),
        agent: row.agent.as_deref().map_or_else(|| "none".to_owned(), redact_name),
        model: row.model.as_deref().map(redact_name),
        harness: row.harness.as_deref().map(redact_name),
        outcome: outcome.status,
        blame: blame.as_ref().map(|blame| blame.party),
        blame_rule: blame.as_ref().map(|blame| blame.rule.clone()),
        suspected: blame.as_ref().is_some_and(|blame| blame.suspected),
        class: class.as_ref().map(|class| class.class),
        mode: class.as_ref().and_then(|class| class.mode.as_deref()).map(redact_name),
        severity: class.as_ref().map(|class| class.severity),
        nodes: branch.len(),
        steps: branch.steps().len(),
        decisive_node: diagnosis.as_ref().and_then(|diagnosis| branch.node_index(diagnosis.decisive_node)),
        decisive_step: diagnosis.as_ref().and_then(|diagnosis| branch.step(diagnosis.decisive_node)),
        responsible: diagnosis.as_ref().map(|diagnosis| redact_name(&diagnosis.responsible_agent)),
        explanation: diagnosis.as_ref().map(|diagnosis| redact(&diagnosis.explanation)),
        admitted: diagnosis.as_ref().is_some_and(|diagnosis| diagnosis.admitted),
        findings,
        split: side,
        scorers: Scoring::is_undecided(outcome).then(|| redact(&outcome.evidence)),
    }
}

fn shortened(text: &str) -> String {
    let mut chars = text.chars();
    let mut out: String = chars.by_ref().take(QUOTE_CHARS_MAX).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

/// Paths and reasons come from folders and records, so they are redacted like everything else.
fn import_row(imported: &Imported) -> ImportRow {
    let counts = &imported.stored.counts;
    let quarantined = imported.stored.quarantined.iter().map(|entry| Quarantine {
        uri: redact_name(&entry.uri),
        reason: redact_name(&entry.reason),
        ..entry.clone()
    });
    let skipped = imported.problems.iter().map(|problem| SkippedRow {
        uri: redact_name(&problem.uri),
        code: problem.code.to_owned(),
        reason: redact_name(&problem.reason),
    });
    ImportRow {
        files: imported.file_count(),
        unrecognized: imported.unrecognized.iter().map(|uri| redact_name(uri)).collect(),
        trajectories: counts.trajectories,
        new: counts.new,
        duplicates: counts.duplicates,
        quarantined: quarantined.collect(),
        losses: imported.stored.losses.iter().map(|(loss, count)| (loss.clone(), *count)).collect(),
        skipped: skipped.collect(),
    }
}

fn export_row(manifest: &Manifest) -> ExportRow {
    ExportRow {
        view: manifest.view.clone(),
        format: manifest.format.clone(),
        path: format!("{}.jsonl", manifest.view),
        rows: manifest.rows,
        considered: manifest.runs_in,
        excluded: manifest.excluded.clone(),
        refused: manifest.refused.clone(),
        redactions: manifest
            .redactions
            .iter()
            .map(|(kind, count)| (kind.word().to_owned(), *count))
            .collect(),
    }
}
