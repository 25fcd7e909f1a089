//! The report's figures, each counted once.

use crate::triage::SEVERITY_MAX_TRAINED;
use std::collections::BTreeMap;

use super::breakdown::breakdowns;
use super::detectors::detectors;
use super::input::{ImportRow, ReplayRow, ReportInput, RunRow};
use super::learning::learning;
use super::model::{
    BlameCount, Capped, ClassCount, Headline, ImportSummary, LossCount, Named, Outcomes, Positions, Rate,
    Replays, Report, RunEntry, Severities,
};
use super::wording::clip;
use super::{advice, breakdown};
use crate::statistics::{Interval, Z_95, wilson};
use crate::trajectory::Status;
use crate::verdict::{Class, Party};

/// Runs in the list: what a person may still scroll through.
const RUNS_LISTED: usize = 500;
/// Entries in any other list.
const LISTED: usize = 50;
/// Runs whose curves are drawn.
const CURVES_SHOWN: usize = 12;

/// Counts everything that the report says.
pub fn summarize(input: &ReportInput) -> Report {
    let mut runs: Vec<&RunRow> = input.runs.iter().collect();
    // The caller's order must not show in the bytes.
    runs.sort_by(|a, b| a.id.cmp(&b.id));
    let headline = headline(&runs);
    let detectors = detectors(&runs, &input.detectors, &input.project);
    let learning = learning(&runs);
    let import = input.import.as_ref().map(import);
    let attach = advice::attach(&runs, headline.outcomes, &input.project);
    let listed = listed(&mut runs.clone());
    let mut report = Report {
        format: "recoup.report",
        format_version: 1,
        provenance: input.provenance.clone(),
        title: input.title.clone(),
        project: input.project.clone(),
        blame: blame(&runs, headline.outcomes.failure),
        classes: classes(&runs),
        responsible: responsible(&runs),
        positions: positions(&runs),
        breakdowns: breakdowns(&runs),
        headline,
        attach,
        detectors,
        learning,
        exports: input.exports.clone(),
        replay: input.replay.as_ref().map(replays),
        judges: input.judges.clone(),
        shared: Some(input.shared.clone()).filter(|shared| !shared.rounds.is_empty()),
        import,
        next: Vec::new(),
        runs: listed,
    };
    report.next = advice::next(&report);
    report
}

/// A share with its interval; `None` without trials.
pub(super) fn share(hits: u64, of: u64) -> Option<Rate> {
    (of > 0).then(|| {
        let Interval { rate, low, high } = wilson(hits, of, Z_95);
        Rate { hits, of, rate, low, high }
    })
}

/// Whether a failure, scored, is the agent's own.
pub(super) fn is_agent_failure(run: &RunRow) -> bool {
    run.outcome == Status::Failure && run.blame == Some(Party::Agent)
}

/// Whether a run without an outcome is held for a failure.
fn is_suspected(run: &RunRow) -> bool {
    run.outcome == Status::Unknown && (run.decisive_node.is_some() || run.blame.is_some())
}

fn headline(runs: &[&RunRow]) -> Headline {
    let mut outcomes = Outcomes::default();
    for run in runs {
        breakdown::add(&mut outcomes, run.outcome);
    }
    let count = |test: &dyn Fn(&RunRow) -> bool| runs.iter().filter(|run| test(run)).count() as u64;
    let located = |status| move |run: &RunRow| run.outcome == status && run.decisive_node.is_some();
    Headline {
        runs: runs.len() as u64,
        outcomes,
        success_rate: share(outcomes.success, outcomes.scored()),
        agent_failures: count(&is_agent_failure),
        diagnosed: count(&located(Status::Failure)),
        suspected: count(&located(Status::Unknown)),
        median_steps_failure: median_steps(runs, Status::Failure),
        median_steps_success: median_steps(runs, Status::Success),
    }
}

fn median_steps(runs: &[&RunRow], status: Status) -> Option<u64> {
    let mut steps: Vec<u64> =
        runs.iter().filter(|run| run.outcome == status).map(|run| run.steps as u64).collect();
    steps.sort_unstable();
    steps.get(steps.len().saturating_sub(1) / 2).copied()
}

fn blame(runs: &[&RunRow], all_failures: u64) -> Vec<BlameCount> {
    Party::ALL
        .iter()
        .map(|&party| {
            let mut count =
                BlameCount { party, failures: 0, share: None, suspected: 0, rules: BTreeMap::new() };
            for run in runs {
                let blamed = run.blame.unwrap_or(Party::Unknown) == party;
                match run.outcome {
                    Status::Failure if blamed => count.failures += 1,
                    Status::Unknown if blamed && is_suspected(run) => count.suspected += 1,
                    _ => continue,
                }
                if let Some(rule) = &run.blame_rule {
                    *count.rules.entry(rule.clone()).or_default() += 1;
                }
            }
            count.share = share(count.failures, all_failures);
            count
        })
        .collect()
}

fn classes(runs: &[&RunRow]) -> Vec<ClassCount> {
    let mut counts: Vec<ClassCount> = Class::ALL
        .iter()
        .map(|&class| {
            let of_class: Vec<&&RunRow> = runs
                .iter()
                .filter(|run| run.class == Some(class) && run.outcome != Status::Success)
                .collect();
            let failures = of_class.iter().filter(|run| run.outcome == Status::Failure).count() as u64;
            let mut modes = BTreeMap::new();
            for mode in of_class.iter().filter_map(|run| run.mode.clone()) {
                *modes.entry(mode).or_default() += 1;
            }
            let severity = severities(of_class.iter().filter_map(|run| run.severity));
            ClassCount { class, failures, suspected: of_class.len() as u64 - failures, severity, modes }
        })
        .collect();
    // A stable sort keeps the order of `Class::ALL` among equals.
    counts.sort_by_key(|count| std::cmp::Reverse((count.failures, count.suspected)));
    counts
}

fn severities(values: impl Iterator<Item = f64>) -> Option<Severities> {
    let mut all = Severities { runs: 0, mean: 0.0, tenths: [0; 10], too_severe: 0 };
    let mut sum = 0.0;
    for value in values.filter(|value| value.is_finite()) {
        let value = value.clamp(0.0, 1.0);
        all.runs += 1;
        sum += value;
        all.too_severe += u64::from(value > SEVERITY_MAX_TRAINED);
        if let Some(tenth) = all.tenths.get_mut(((value * 10.0) as usize).min(9)) {
            *tenth += 1;
        }
    }
    (all.runs > 0).then(|| Severities { mean: sum / all.runs as f64, ..all })
}

fn responsible(runs: &[&RunRow]) -> Capped<Named> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.outcome != Status::Success) {
        if let Some(agent) = &run.responsible {
            *counts.entry(agent).or_default() += 1;
        }
    }
    let mut named: Vec<Named> =
        counts.into_iter().map(|(name, runs)| Named { name: clip(name, 80), runs }).collect();
    named.sort_by_key(|agent| std::cmp::Reverse(agent.runs));
    Capped::new(named, 10)
}

/// A step stands in the middle of its share of the run, so the only step of two halves is not an end.
fn positions(runs: &[&RunRow]) -> Positions {
    let mut positions = Positions::default();
    for run in runs.iter().filter(|run| run.outcome != Status::Success) {
        let Some(step) = run.decisive_step else {
            positions.none += 1;
            continue;
        };
        if run.steps <= 1 {
            positions.single_step += 1;
            continue;
        }
        let tenth = ((step.min(run.steps - 1) * 2 + 1) * 5 / run.steps).min(9);
        let bins = match run.outcome {
            Status::Failure => &mut positions.failures,
            _ => &mut positions.suspected,
        };
        if let Some(bin) = bins.get_mut(tenth) {
            *bin += 1;
        }
    }
    positions
}

/// The most informative runs: the agent's own failures with an admitted diagnosis, the severest first,
/// then other failures, suspicions, and last what passed.
fn listed(runs: &mut [&RunRow]) -> Capped<RunEntry> {
    let tier = |run: &RunRow| match run.outcome {
        Status::Failure if run.blame == Some(Party::Agent) && run.admitted => 0,
        Status::Failure if run.decisive_node.is_some() => 1,
        Status::Failure => 2,
        Status::Unknown if is_suspected(run) => 3,
        Status::Unknown => 4,
        Status::Success if run.findings.iter().any(|finding| !finding.resolved) => 5,
        Status::Success => 6,
    };
    let severity = |run: &RunRow| run.severity.filter(|value| value.is_finite()).unwrap_or(-1.0);
    runs.sort_by(|a, b| {
        tier(a).cmp(&tier(b)).then(severity(b).total_cmp(&severity(a))).then_with(|| a.id.cmp(&b.id))
    });
    Capped {
        items: runs.iter().take(RUNS_LISTED).map(|run| entry(run)).collect(),
        left_out: runs.len().saturating_sub(RUNS_LISTED) as u64,
    }
}

fn entry(run: &RunRow) -> RunEntry {
    let mut detectors: Vec<String> = run
        .findings
        .iter()
        .filter(|finding| !finding.resolved)
        .map(|finding| finding.detector.clone())
        .collect();
    detectors.sort();
    detectors.dedup();
    let name = |text: &Option<String>| text.as_ref().map(|text| clip(text, 80));
    let run = RunRow {
        uri: clip(&run.uri, 300),
        task: clip(&run.task, 120),
        agent: clip(&run.agent, 80),
        model: name(&run.model),
        harness: name(&run.harness),
        severity: run.severity.filter(|value| value.is_finite()),
        responsible: name(&run.responsible),
        explanation: run.explanation.as_ref().map(|text| clip(text, 600)),
        findings: Vec::new(),
        ..run.clone()
    };
    RunEntry { run, detectors }
}

fn replays(row: &ReplayRow) -> Replays {
    let mut curves = row.curves.clone();
    curves.sort_by(|a, b| a.run.cmp(&b.run));
    Replays {
        unsupported: row.summary.reasons.clone(),
        groups: row.summary.groups.clone(),
        claims: row.claims.clone(),
        curves: Capped::new(curves, CURVES_SHOWN),
    }
}

fn import(row: &ImportRow) -> ImportSummary {
    let mut losses: Vec<LossCount> =
        row.losses.iter().map(|(loss, count)| LossCount { loss: loss.clone(), count: *count }).collect();
    losses.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.loss.cmp(&b.loss)));
    ImportSummary {
        files: row.files,
        trajectories: row.trajectories,
        new: row.new,
        duplicates: row.duplicates,
        quarantined: Capped::new(sorted(&row.quarantined), LISTED),
        unrecognized: Capped::new(sorted(&row.unrecognized), LISTED),
        skipped: Capped::new(sorted(&row.skipped), LISTED),
        losses: Capped::new(losses, LISTED),
    }
}

fn sorted<T: Ord + Clone>(items: &[T]) -> Vec<T> {
    let mut items = items.to_vec();
    items.sort();
    items
}
