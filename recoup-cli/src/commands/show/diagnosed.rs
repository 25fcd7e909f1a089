//! Where a run went wrong, how far that is proved, and what the run achieved all the same.

use std::fmt::Write as _;

use recoup::id::VerdictId;
use recoup::replay;
use recoup::trajectory::{Branch, Trajectory};
use recoup::verdict::{Content, Diagnosis, Relabel, Verdict};
use recoup::visible::{visible_controls, visible_line};

use crate::printer::{Look, Printer};

pub(super) fn diagnosed(out: &mut String, run: &Trajectory, diagnosis: &Diagnosis, printer: Printer) {
    let branch = run.main_branch();
    let mut place = place(&branch, diagnosis.decisive_node);
    if let Some(step) = branch.step(diagnosis.decisive_node) {
        let _ = write!(place, ", step {step}");
    }
    let admitted = if diagnosis.admitted { "" } else { " (not admitted by every gate)" };
    let title =
        format!("\ndecisive step: {place}, {}{admitted}", visible_controls(&diagnosis.responsible_agent));
    let _ = writeln!(out, "{}", printer.paint(Look::Red, title));
    let _ = writeln!(out, "{}", visible_controls(&diagnosis.explanation));
    for finding in &diagnosis.findings {
        let resolved = if finding.resolved_at.is_some() { ", resolved later" } else { "" };
        let index = branch.node_index(finding.node).unwrap_or(finding.node);
        let _ = writeln!(
            out,
            "  {} node {index}{resolved}: {}",
            printer.paint(Look::Yellow, &finding.detector),
            visible_controls(&finding.message)
        );
    }
}

/// How far the diagnosis is proved, and by which arms.
pub(super) fn claimed(
    out: &mut String,
    verdicts: &[Verdict],
    of: VerdictId,
    diagnosis: &Diagnosis,
    printer: Printer,
) {
    let stored = verdicts.iter().find_map(|verdict| match &verdict.content {
        Content::Claim(claim) if claim.of == of => Some(claim.clone()),
        _ => None,
    });
    let reviewed = replay::is_reviewed(of, verdicts);
    let claim = stored.unwrap_or_else(|| replay::claim(of, diagnosis, reviewed, None, false));
    let title = format!("proved: {}", claim.rung.as_str());
    let _ = writeln!(out, "{}: {}", printer.paint(Look::Bold, title), visible_controls(&claim.reason));
    let pair = verdicts.iter().find_map(|verdict| match &verdict.content {
        Content::ReplayPair(pair) if claim.pair.is_none_or(|id| verdict.id == id) => Some(pair),
        _ => None,
    });
    let Some(pair) = pair else { return };
    if let Some(unsupported) = &pair.unsupported {
        let _ = writeln!(out, "  not replayed: {}", visible_controls(&unsupported.reason));
    }
    for outcome in &pair.arms {
        let (passed, of) = outcome.passed();
        let synthetic = if outcome.synthetic { ", synthetic" } else { "" };
        let _ = writeln!(out, "  {:<10} {passed} of {of} passed{synthetic}", outcome.arm.as_str());
    }
    if let Some(candidate) = &pair.candidate {
        let _ = writeln!(out, "  repair     {}", visible_controls(candidate.action.as_str()));
    }
}

/// A goal that the run did achieve, and where each of its claims stands; or what refused the last one.
pub(super) fn hindsight(out: &mut String, run: &Trajectory, relabel: &Relabel, printer: Printer) {
    let branch = run.main_branch();
    let goal = visible_controls(&relabel.goal);
    let Some(accepted) = &relabel.accepted else {
        if let Some(refusal) = &relabel.rejected {
            let reason = visible_controls(&refusal.reason);
            let title = format!("\ngoal in hindsight, refused by {} ({reason}):", refusal.gate);
            let _ = writeln!(out, "{} {goal}", printer.paint(Look::Dim, title));
        }
        return;
    };
    let title = format!(
        "\nachieved by {} (evidence: {}):",
        place(&branch, accepted.cut_node),
        accepted.evidence.as_str()
    );
    let _ = writeln!(out, "{} {goal}", printer.paint(Look::Green, title));
    for claim in &relabel.claims {
        for fact in &claim.facts {
            let (at, quote) = (place(&branch, fact.at.node), visible_line(&fact.quote));
            let _ =
                writeln!(out, "  {} {at}: {quote}", printer.paint(Look::Yellow, visible_line(&claim.text)));
        }
    }
}

/// Where a node stands.
fn place(branch: &Branch<'_>, node: usize) -> String {
    match branch.node_index(node) {
        Some(index) => format!("node {index}"),
        None => format!("node {node} of another branch"),
    }
}
