//! What each detector saw, on failures and on successes, with its clearest examples.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::breakdown::add;
use super::command;
use super::input::{DetectorInfo, FindingRow, QuoteRow, RunRow};
use super::model::{DetectorCount, Example, Outcomes};
use super::summary::share;
use super::wording::clip;
use crate::trajectory::Status;

/// Examples kept for a detector, each from another run.
const EXAMPLES: usize = 3;
/// Quotes kept for an example.
const QUOTES: usize = 3;
/// Characters kept of a quote.
const QUOTE_LENGTH: usize = 360;

/// Every detector, the most decisive first, the silent ones last.
pub(super) fn detectors(runs: &[&RunRow], known: &[DetectorInfo], project: &str) -> Vec<DetectorCount> {
    let mut seen: BTreeMap<&str, Seen<'_>> = BTreeMap::new();
    for detector in known {
        let entry = seen.entry(&detector.name).or_default();
        entry.capability = &detector.capability;
        entry.description = &detector.description;
    }
    let mut all = Outcomes::default();
    for run in runs {
        add(&mut all, run.outcome);
        let mut in_run: BTreeMap<&str, &FindingRow> = BTreeMap::new();
        for finding in &run.findings {
            seen.entry(&finding.detector).or_default().count(finding);
            let clearest = in_run.entry(&finding.detector).or_insert(finding);
            if clarity(run, finding) < clarity(run, clearest) {
                *clearest = finding;
            }
        }
        for (detector, finding) in in_run {
            seen.entry(detector).or_default().count_run(run, finding);
        }
    }
    let mut counts: Vec<DetectorCount> =
        seen.into_iter().map(|(name, seen)| seen.finish(name, all, project)).collect();
    counts.sort_by_key(|count| {
        Reverse((count.decisive, count.runs.failure, count.runs.unknown, count.runs.success))
    });
    counts
}

/// Smaller is clearer: on a failure, decisive, lasting, quoted, strong, early.
fn clarity(run: &RunRow, finding: &FindingRow) -> impl Ord + use<> {
    let outcome = match run.outcome {
        Status::Failure => 0,
        Status::Unknown => 1,
        Status::Success => 2,
    };
    let strength = (finding.strength.clamp(0.0, 1.0) * 1e6) as u64;
    let doubts = (!is_decisive(run, finding), finding.resolved, finding.quotes.is_empty());
    (outcome, doubts, Reverse(strength), finding.node)
}

fn is_decisive(run: &RunRow, finding: &FindingRow) -> bool {
    run.decisive_node == Some(finding.node)
}

#[derive(Default)]
struct Seen<'a> {
    capability: &'a str,
    description: &'a str,
    findings: u64,
    resolved: u64,
    decisive: u64,
    runs: Outcomes,
    /// At most [`EXAMPLES`], the clearest first.
    clearest: Vec<(&'a RunRow, &'a FindingRow)>,
}

impl<'a> Seen<'a> {
    fn count(&mut self, finding: &'a FindingRow) {
        if self.capability.is_empty() {
            self.capability = &finding.capability;
        }
        self.findings += 1;
        self.resolved += u64::from(finding.resolved);
    }

    /// Counts a run with its clearest finding of this detector.
    fn count_run(&mut self, run: &'a RunRow, finding: &'a FindingRow) {
        add(&mut self.runs, run.outcome);
        self.decisive += u64::from(is_decisive(run, finding) && run.outcome != Status::Success);
        let place =
            self.clearest.partition_point(|(other, its)| clarity(other, its) <= clarity(run, finding));
        if place < EXAMPLES {
            self.clearest.truncate(EXAMPLES - 1);
            self.clearest.insert(place, (run, finding));
        }
    }

    fn finish(self, name: &str, all: Outcomes, project: &str) -> DetectorCount {
        DetectorCount {
            name: name.to_owned(),
            capability: self.capability.to_owned(),
            description: self.description.to_owned(),
            findings: self.findings,
            resolved: self.resolved,
            decisive: self.decisive,
            runs: self.runs,
            on_failures: share(self.runs.failure, all.failure),
            on_successes: share(self.runs.success, all.success),
            on_unknown: share(self.runs.unknown, all.unknown),
            examples: self
                .clearest
                .into_iter()
                .map(|(run, finding)| example(run, finding, project))
                .collect(),
        }
    }
}

fn example(run: &RunRow, finding: &FindingRow, project: &str) -> Example {
    Example {
        run: run.id.clone(),
        uri: clip(&run.uri, 300),
        outcome: run.outcome,
        node: finding.node,
        step: finding.step,
        message: clip(&finding.message, 300),
        strength: if finding.strength.is_finite() { finding.strength } else { 0.0 },
        resolved: finding.resolved,
        decisive: is_decisive(run, finding),
        quotes: finding
            .quotes
            .iter()
            .take(QUOTES)
            .map(|quote| QuoteRow { node: quote.node, text: clip(&quote.text, QUOTE_LENGTH) })
            .collect(),
        command: command::show(&run.id, project),
    }
}
