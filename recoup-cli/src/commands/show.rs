//! `recoup show`: a run, readable, with its decisive step and citations marked.

mod diagnosed;
mod head;
mod transcript;

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use recoup::answers::Shown;
use recoup::id::VerdictId;
use recoup::trajectory::{Status, Trajectory};
use recoup::verdict::{Content, Diagnosis, Verdict};

use self::diagnosed::{claimed, diagnosed, hindsight};
use self::head::head;
pub(super) use self::transcript::transcript;
use super::project;
use crate::Ended;
use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::printer::{Printer, write_out};
use crate::settings::Settings;

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
            Content::Blame(_) | Content::FailureClass(_) | Content::Diagnosis(_) | Content::Relabel(_)
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
    if let Some(relabel) = verdicts.iter().find_map(|verdict| match &verdict.content {
        Content::Relabel(relabel) => Some(relabel),
        _ => None,
    }) {
        hindsight(&mut out, run, relabel, printer);
    }
    transcript(&mut out, run, diagnosis.map(|(_, diagnosis)| diagnosis), full, printer);
    out
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
