//! The rows of a report, made from what the project has, redacted.

use super::load::Loaded;
use crate::exporters::Manifest;
use crate::importers::Scoring;
use crate::pipeline::Imported;
use crate::redaction::{Redacted, redact_name, redact_text};
use crate::report::{ExportRow, FindingRow, ImportRow, Preview, QuoteRow, RunRow, SkippedRow};
use crate::verdict::Side;
use crate::warning::Quarantine;

/// Characters of a quote in the report.
const QUOTE_CHARS_MAX: usize = 400;

/// A run as the report has it.
pub(super) fn run_row(loaded: &Loaded, side: Option<Side>, redacted: &mut Redacted) -> RunRow {
    let Loaded { row, run, blame, class, diagnosis, findings, .. } = loaded;
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
pub(super) fn import_row(imported: &Imported) -> ImportRow {
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

/// A training file as the report has it.
pub(super) fn export_row(manifest: &Manifest, previews: Vec<Preview>) -> ExportRow {
    ExportRow {
        view: manifest.view.clone(),
        format: manifest.format.clone(),
        path: manifest.files.first().cloned().unwrap_or_default(),
        rows: manifest.rows,
        considered: manifest.runs_in,
        excluded: manifest.excluded.clone(),
        refused: manifest.refused.clone(),
        duplicates: manifest.duplicates,
        built: manifest.built.clone(),
        tokens: manifest.tokens,
        previews,
        redactions: manifest
            .redactions
            .iter()
            .map(|(kind, count)| (kind.word().to_owned(), *count))
            .collect(),
    }
}
