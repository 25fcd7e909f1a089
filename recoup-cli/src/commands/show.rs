//! `recoup show`: a run, readable, with its decisive step and citations marked.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use recoup::answers::Shown;
use recoup::id::VerdictId;
use recoup::replay;
use recoup::trajectory::{Citation, Node, Part, Status, Trajectory};
use recoup::verdict::{Content, Diagnosis, Judging, Verdict};
use recoup::visible::visible_controls;

use super::project;
use crate::Ended;
use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::printer::{Look, Printer, write_out};
use crate::settings::Settings;

/// Characters of one part that are shown without `--full`, around citations whole.
const PART_CHARS_MAX: usize = 1200;

/// Shows one run.
pub(crate) fn show(flags: &ShowArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let store = project::open(settings)?;
    let id = store.resolve(&flags.id)?;
    let run = store.effective(id)?;
    let verdicts = in_force(store.verdicts(id)?, run.outcome().status);
    if printer.is_json() {
        printer.json(&project::answer(&store, settings, Shown { trajectory: run, verdicts }));
        return Ok(Ended::Done);
    }
    let diagnosis = verdicts.iter().find_map(|verdict| match &verdict.content {
        Content::Diagnosis(diagnosis) => Some((verdict.id, diagnosis)),
        _ => None,
    });
    let text = render(&run, &verdicts, diagnosis, flags.full, printer);
    page(&text, flags.no_pager);
    Ok(Ended::Done)
}

/// What counts of verdicts that come with the current one of each kind first. Of labels and of what
/// replays found that is all: each may say something that no other does. A solved run has no failure to explain, whatever was
/// decided while it counted as one.
fn in_force(verdicts: Vec<Verdict>, status: Status) -> Vec<Verdict> {
    let mut kept: Vec<Verdict> = Vec::new();
    for verdict in verdicts {
        let kind = verdict.content.kind();
        let counts = match &verdict.content {
            Content::Label(_)
            | Content::ReferenceLabel(_)
            | Content::RejectedAnswer(_)
            | Content::Review(_)
            | Content::ReplayPair(_)
            | Content::Repair(_)
            | Content::Sweep(_) => true,
            Content::Claim(_) => status != Status::Success,
            Content::Blame(_) | Content::FailureClass(_) | Content::Diagnosis(_)
                if status == Status::Success =>
            {
                false
            }
            _ => kept.iter().all(|other| other.content.kind() != kind),
        };
        if counts {
            kept.push(verdict);
        }
    }
    kept
}

fn render(
    run: &Trajectory,
    verdicts: &[Verdict],
    diagnosis: Option<(VerdictId, &Diagnosis)>,
    full: bool,
    printer: Printer,
) -> String {
    let mut out = String::new();
    head(&mut out, run, verdicts, printer);
    if let Some((id, diagnosis)) = diagnosis {
        diagnosed(&mut out, run, diagnosis, printer);
        claimed(&mut out, verdicts, id, diagnosis, printer);
    }
    transcript(&mut out, run, diagnosis.map(|(_, diagnosis)| diagnosis), full, printer);
    out
}

/// The messages of a run's main branch, what a diagnosis names marked in them.
pub(super) fn transcript(
    out: &mut String,
    run: &Trajectory,
    diagnosis: Option<&Diagnosis>,
    full: bool,
    printer: Printer,
) {
    let branch = run.main_branch();
    let citations: Vec<&Citation> = diagnosis
        .map(|diagnosis| diagnosis.citations.iter().map(|quote| &quote.at).collect())
        .unwrap_or_default();
    let mut step = 0;
    for (index, (position, node)) in branch.nodes().enumerate() {
        let decisive = diagnosis.is_some_and(|diagnosis| diagnosis.decisive_node == position);
        let mut title = format!("node {index}");
        if node.occurrence.sampled {
            let _ = write!(title, " · step {step}");
            step += 1;
        }
        let _ = write!(title, " · {}", node.role.as_str());
        if node.agent != node.role.as_str() {
            let _ = write!(title, " · {}", visible_controls(&node.agent));
        }
        if node.occurrence.copied_context {
            title.push_str(" · copied context");
        }
        if decisive {
            title.push_str("  ◀ decisive step");
        }
        let look = if decisive { Look::Red } else { Look::Bold };
        let _ = writeln!(out, "\n{}", printer.paint(look, title));
        body(out, position, node, &citations, full, printer);
    }
    let hidden = run.nodes.len() - branch.len();
    if hidden > 0 {
        let text = format!("\n{hidden} more nodes on {} other branches", run.leaves.len() - 1);
        let _ = writeln!(out, "{}", printer.paint(Look::Dim, text));
    }
}

fn head(out: &mut String, run: &Trajectory, verdicts: &[Verdict], printer: Printer) {
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

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn diagnosed(out: &mut String, run: &Trajectory, diagnosis: &Diagnosis, printer: Printer) {
    let branch = run.main_branch();
    let node = branch.node_index(diagnosis.decisive_node);
    let step = branch.step(diagnosis.decisive_node);
    let place = match (node, step) {
        (Some(node), Some(step)) => format!("node {node}, step {step}"),
        (Some(node), None) => format!("node {node}"),
        _ => format!("node {} of another branch", diagnosis.decisive_node),
    };
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
fn claimed(out: &mut String, verdicts: &[Verdict], of: VerdictId, diagnosis: &Diagnosis, printer: Printer) {
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

fn body(
    out: &mut String,
    position: usize,
    node: &Node,
    citations: &[&Citation],
    full: bool,
    printer: Printer,
) {
    for (index, part) in node.parts.iter().enumerate() {
        show_part(out, position, &[index], part, citations, full, printer);
    }
}

fn show_part(
    out: &mut String,
    position: usize,
    path: &[usize],
    part: &Part,
    citations: &[&Citation],
    full: bool,
    printer: Printer,
) {
    let cited: Vec<(usize, usize)> = citations
        .iter()
        .filter(|citation| citation.node == position && citation.part_path == path)
        .map(|citation| (citation.start, citation.end))
        .collect();
    match part {
        Part::Text(text) => indented(out, "", &marked(&text.text, &cited, full, printer)),
        Part::Reasoning { text, .. } => indented(out, "reasoning: ", &marked(text, &cited, full, printer)),
        Part::ToolCall(call) => {
            let name = printer.paint(Look::Bold, visible_controls(&call.name));
            indented(out, "call ", &format!("{name} {}", marked(&call.arguments_raw, &cited, full, printer)));
        }
        Part::ToolResult(result) => {
            let mut label = "result".to_owned();
            if result.is_error == Some(true) {
                label.push_str(" (error)");
            }
            if let Some(code) = result.exit_code {
                let _ = write!(label, " (exit code {code})");
            }
            if result.parts.is_empty() {
                indented(out, &format!("{label}: "), "(empty)");
            }
            for (inner, part) in result.parts.iter().enumerate() {
                let path = [path[0], inner];
                let mut text = String::new();
                show_part(&mut text, position, &path, part, citations, full, printer);
                indented(out, &format!("{label}: "), text.trim_start());
            }
        }
        Part::Media(media) => {
            let reference = media.reference.as_deref().unwrap_or("stored");
            indented(out, "", &visible_controls(&format!("[{}: {reference}]", media.mime)));
        }
        Part::Opaque { kind, raw } => {
            indented(out, &format!("[{}] ", visible_controls(kind)), &marked(raw, &cited, full, printer));
        }
    }
}

fn indented(out: &mut String, label: &str, text: &str) {
    for (number, line) in text.trim_end_matches('\n').split('\n').enumerate() {
        let label = if number == 0 { label } else { "" };
        let _ = writeln!(out, "  {label}{line}");
    }
}

/// The text with its citations marked (`⟦…⟧` where there are no colors), shortened around them.
fn marked(text: &str, cited: &[(usize, usize)], full: bool, printer: Printer) -> String {
    let mut cited: Vec<(usize, usize)> =
        cited.iter().copied().filter(|(start, end)| text.get(*start..*end).is_some()).collect();
    cited.sort_unstable();
    let mut out = String::new();
    let mut at = 0;
    for (start, end) in cited {
        if start < at {
            continue;
        }
        out.push_str(&shortened(&text[at..start], full));
        let quote = visible_controls(&text[start..end]);
        if printer.has_colors() {
            out.push_str(&printer.paint(Look::Mark, quote));
        } else {
            let _ = write!(out, "⟦{quote}⟧");
        }
        at = end;
    }
    out.push_str(&shortened(&text[at..], full));
    out
}

fn shortened(text: &str, full: bool) -> String {
    let count = text.chars().count();
    if full || count <= PART_CHARS_MAX {
        return visible_controls(text).into_owned();
    }
    let head: String = text.chars().take(PART_CHARS_MAX / 2).collect();
    let tail: String = text.chars().skip(count - PART_CHARS_MAX / 2).collect();
    let left_out = count - PART_CHARS_MAX;
    format!(
        "{} […{left_out} characters, `--full` shows them…] {}",
        visible_controls(&head),
        visible_controls(&tail)
    )
}

/// Through `$PAGER` (or `less`) on a terminal, else straight out.
fn page(text: &str, no_pager: bool) {
    if !no_pager && std::io::stdout().is_terminal() {
        let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
        let mut words = pager.split_whitespace();
        let child = words.next().map(|program| {
            Command::new(program).args(words).env("LESS", "FRX").stdin(Stdio::piped()).spawn()
        });
        if let Some(Ok(mut child)) = child {
            if let Some(mut input) = child.stdin.take() {
                // The reader may quit before the end.
                let _ = input.write_all(text.as_bytes());
            }
            let _ = child.wait();
            return;
        }
    }
    write_out(text);
}

#[cfg(test)]
mod tests {
    use recoup::id::{Hash, TrajectoryId};
    use recoup::trajectory::Status;
    use recoup::verdict::{Blame, Content, Party, Producer, Verdict};

    use super::in_force;

    fn blame(party: Party, version: u32) -> Verdict {
        let (rule, reason) = (String::new(), String::new());
        let content = Content::Blame(Blame { party, rule, reason, suspected: false });
        let subject = TrajectoryId(Hash::of(b"run"));
        Verdict::new(subject, Producer::rules("triage", version), Vec::new(), content, "")
    }

    #[test]
    fn only_the_current_verdict_of_a_kind_counts_and_none_on_a_success() {
        let both = vec![blame(Party::Agent, 2), blame(Party::Task, 1)];
        assert_eq!(in_force(both.clone(), Status::Failure), both[..1]);
        assert_eq!(in_force(both, Status::Success), []);
    }
}
