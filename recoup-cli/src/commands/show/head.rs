//! What stands above the messages of a run: where it is from, how it ended, what was decided about it.

use std::fmt::Write as _;

use recoup::trajectory::{Status, Trajectory};
use recoup::verdict::{Content, Judging, Verdict};
use recoup::visible::visible_controls;

use crate::printer::{Look, Printer, counted};

pub(super) fn head(out: &mut String, run: &Trajectory, verdicts: &[Verdict], printer: Printer) {
    let outcome = run.outcome();
    let look = match outcome.status {
        Status::Success => Look::Green,
        Status::Failure => Look::Red,
        Status::Unknown => Look::Yellow,
    };
    let mut field = |name: &str, value: String| {
        let _ = writeln!(out, "{:<10} {}", printer.paint(Look::Dim, format_args!("{name:<10}")), value);
    };
    field("run", run.id.to_string());
    field("source", visible_controls(&format!("{} ({})", run.source.uri, run.source.format)).into_owned());
    field("task", visible_controls(&run.task.key.0).into_owned());
    if let Some(origin) = &run.origin {
        let (arm, continuation) = (visible_controls(&origin.arm), origin.continuation);
        field(
            "origin",
            format!("{} at node {}, arm {arm}, continuation {continuation}", origin.trajectory, origin.node),
        );
    }
    let mut status = printer.paint(look, outcome.status.as_str());
    if !outcome.evidence.is_empty() {
        let _ = write!(status, " ({})", visible_controls(&outcome.evidence));
    }
    if let Some(termination) = &outcome.termination {
        let _ = write!(status, ", ended by {}", visible_controls(&termination.native));
    }
    field("outcome", status);
    let mut noted = false;
    for verdict in verdicts {
        match &verdict.content {
            Content::Blame(blame) => {
                let suspected = if blame.suspected { ", suspected" } else { "" };
                field(
                    "blame",
                    format!("{}{suspected}: {}", blame.party.as_str(), visible_controls(&blame.reason)),
                );
            }
            Content::FailureClass(class) => {
                let mode = class.mode.as_ref().map(|mode| format!(" / {mode}")).unwrap_or_default();
                field("class", format!("{}{mode}, severity {:.2}", class.class.as_str(), class.severity));
            }
            Content::Label(label) => {
                if let Some(note) = label.note.as_ref().filter(|_| !noted) {
                    noted = true;
                    field("note", visible_controls(note).into_owned());
                }
            }
            Content::Sweep(sweep) => {
                let word =
                    |step: Option<usize>| step.map_or_else(|| "none".to_owned(), |step| step.to_string());
                let decisive = sweep.decisive.map(|decisive| decisive.step);
                field(
                    "sweep",
                    format!(
                        "decisive step {}, last step from which the expert recovers {}",
                        word(decisive),
                        word(sweep.last_recoverable)
                    ),
                );
            }
            Content::Judging(judging) => field("judged", judged(run, judging)),
            Content::Split(split) => field("split", split.side.as_str().to_owned()),
            _ => {}
        }
    }
}

/// Who judged, what came of it, and the step that each member holds for decisive.
fn judged(run: &Trajectory, judging: &Judging) -> String {
    let branch = run.main_branch();
    let members: Vec<String> = judging
        .members
        .iter()
        .map(|member| {
            let step = member.node.and_then(|node| branch.step(node));
            let step = step.map_or_else(|| "no step".to_owned(), |step| format!("step {step}"));
            let mut others = String::new();
            for name in &member.answered_by {
                let _ = write!(others, "`{}` answered; ", visible_controls(name));
            }
            format!("{} ({others}{step})", visible_controls(&member.model))
        })
        .collect();
    let gate = judging.attempts.last().and_then(|attempt| attempt.gate.as_deref());
    let word = match gate {
        None => "admitted".to_owned(),
        Some(gate) => format!("refused by {}", visible_controls(gate)),
    };
    let doubt = match judging.members.as_slice() {
        [_] => " alone: nobody looked at its reasons (M1 to M4)",
        [first, others @ ..] if others.iter().all(|other| other.family == first.family) => {
            ", all of one family"
        }
        _ => "",
    };
    format!("{word} after {} by {}{doubt}", counted(judging.attempts.len(), "answer"), members.join(", "))
}
