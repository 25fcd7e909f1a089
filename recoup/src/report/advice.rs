//! What to do next, said with commands that can be copied.

use std::collections::BTreeMap;

use super::command::{list, shell_word, short_id, show};
use super::input::RunRow;
use super::model::{Action, AmbiguousFile, Attach, Capped, Outcomes, Report};
use super::wording::{counted, number, party_meaning, percent, runs as some_runs};
use crate::trajectory::Status;
use crate::verdict::Party;

/// Files with several scorers that are listed.
const AMBIGUOUS: usize = 20;

/// How to attach outcomes; `None` where every run has one.
pub(super) fn attach(runs: &[&RunRow], outcomes: Outcomes, project: &str) -> Option<Attach> {
    if outcomes.unknown == 0 {
        return None;
    }
    let mut files: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.outcome == Status::Unknown) {
        if let Some(scorers) = &run.scorers {
            let file = run.uri.split('#').next().unwrap_or_default();
            *files.entry((file, scorers)).or_default() += 1;
        }
    }
    let files: Vec<AmbiguousFile> = files
        .into_iter()
        .map(|((uri, scorers), runs)| AmbiguousFile {
            uri: uri.to_owned(),
            scorers: scorers.to_owned(),
            runs,
        })
        .collect();
    let example = runs.iter().find(|run| run.outcome == Status::Unknown).map_or("ID", |run| &run.id);
    Some(Attach {
        unknown: outcomes.unknown,
        opens: outcomes.unknown * 2 > outcomes.total(),
        ways: ways(files.first(), example, project),
        ambiguous: Capped::new(files, AMBIGUOUS),
    })
}

fn ways(ambiguous: Option<&AmbiguousFile>, example: &str, project: &str) -> Vec<Action> {
    let in_project = format!("--project {}", shell_word(project));
    let mut ways = Vec::new();
    if let Some(file) = ambiguous {
        let named = file.scorers.rsplit(": ").next().unwrap_or_default();
        let first = named.split(", ").next().unwrap_or_default();
        ways.push(action(
            "Choose a scorer",
            "The scores are in the files already; say which of them counts and what passes.",
            vec![format!(
                "recoup run {} {in_project} --score {} --success-at 1",
                shell_word(&file.uri),
                shell_word(first)
            )],
        ));
    }
    ways.push(action(
        "Join a file of outcomes",
        "CSV or JSONL, a line a run: its trajectory, session or task id, and success or failure or a score.",
        vec![format!("recoup run PATH {in_project} --outcomes outcomes.csv")],
    ));
    ways.push(action(
        "Assume that they failed",
        "Where the folder holds failed runs only.",
        vec![format!("recoup run PATH {in_project} --assume failure")],
    ));
    ways.push(action(
        "Label by hand",
        "Read a run, then say how it ended.",
        vec![
            show(example, project),
            format!("recoup label {} --outcome failure {in_project}", shell_word(&short_id(example))),
        ],
    ));
    ways
}

/// What to do next, the most useful first.
pub(super) fn next(report: &Report) -> Vec<Action> {
    let mut actions = Vec::new();
    if report.headline.runs == 0 {
        actions.push(action(
            "Feed in some traces",
            "A file, a folder or standard input; formats are recognized by content.",
            vec![format!("recoup run PATH --project {}", shell_word(&report.project))],
        ));
    }
    actions.extend(outcomes(report));
    actions.extend(read_the_worst(report));
    actions.extend(telling_detector(report));
    actions.extend(train(report));
    actions.extend(rerun(report));
    actions.extend(undiagnosed(report));
    actions.extend(unread(report));
    actions
}

fn outcomes(report: &Report) -> Option<Action> {
    // A report that opens with the ways need not say them twice.
    let attach = report.attach.as_ref().filter(|attach| !attach.opens)?;
    Some(action(
        &format!("Attach outcomes to {}", some_runs(attach.unknown)),
        "Without one a run is diagnosed as a suspicion and teaches nothing.",
        attach.ways.iter().flat_map(|way| way.commands.clone()).collect(),
    ))
}

fn read_the_worst(report: &Report) -> Option<Action> {
    let worst = report.runs.items.first().filter(|entry| entry.run.decisive_node.is_some())?;
    Some(action(
        "Read the clearest failure",
        "Check one diagnosis yourself before trusting the rest; label it if it is wrong.",
        vec![show(&worst.run.id, &report.project)],
    ))
}

/// The detector that tells failures from successes best, where the intervals of its shares are apart.
fn telling_detector(report: &Report) -> Option<Action> {
    let (detector, failed, passed, example) = report
        .detectors
        .iter()
        .filter_map(|detector| {
            let (failed, passed) = (detector.on_failures?, detector.on_successes?);
            let example = detector.examples.first()?;
            (failed.low > passed.high).then_some((detector, failed, passed, example))
        })
        .max_by(|a, b| (a.1.low - a.2.high).total_cmp(&(b.1.low - b.2.high)).then(b.0.name.cmp(&a.0.name)))?;
    Some(action(
        &format!("Work on {}", detector.capability.replace('_', " ")),
        &format!(
            "The detector {} fires on {} of failures and {} of successes, the widest gap of all.",
            detector.name,
            percent(failed.rate),
            percent(passed.rate)
        ),
        vec![example.command.clone()],
    ))
}

fn train(report: &Report) -> Option<Action> {
    let written: Vec<_> = report.exports.iter().filter(|export| export.rows > 0).collect();
    let rows: u64 = written.iter().map(|export| export.rows).sum();
    let files = written
        .iter()
        .map(|export| format!("{} ({})", export.path, counted(export.rows, "row", "rows")))
        .collect::<Vec<_>>()
        .join(", ");
    (rows > 0).then(|| {
        action(
            "Train on what was written",
            &format!(
                "{} in {}: {files}.",
                counted(rows, "row", "rows"),
                counted(written.len() as u64, "file", "files")
            ),
            Vec::new(),
        )
    })
}

fn rerun(report: &Report) -> Option<Action> {
    let broken: Vec<_> = report
        .blame
        .iter()
        .filter(|count| count.failures > 0 && !matches!(count.party, Party::Agent | Party::Unknown))
        .collect();
    let failures: u64 = broken.iter().map(|count| count.failures).sum();
    (failures > 0).then(|| {
        action(
            &format!("Repair what is not the agent’s and repeat {}", some_runs(failures)),
            &broken
                .iter()
                .map(|count| format!("{}: {}", number(count.failures), party_meaning(count.party)))
                .collect::<Vec<_>>()
                .join("; "),
            broken
                .iter()
                .map(|count| list(&format!("--blame {}", count.party.as_str()), &report.project))
                .collect(),
        )
    })
}

fn undiagnosed(report: &Report) -> Option<Action> {
    let undecided = |code: &str| matches!(code, "blame_unknown" | "no_decisive_step" | "not_admitted");
    let failures: u64 =
        report.learning.kept_out.iter().filter(|kept| undecided(&kept.code)).map(|kept| kept.runs).sum();
    (failures > 0).then(|| {
        action(
            &format!("Look at {} that the rules could not settle", counted(failures, "failure", "failures")),
            "Nobody was blamed, no decisive step was found, or a grounding gate held the diagnosis back.",
            vec![list("--outcome failure", &report.project)],
        )
    })
}

fn unread(report: &Report) -> Option<Action> {
    let import = report.import.as_ref()?;
    let total = |listed: usize, left_out: u64| listed as u64 + left_out;
    let counts = [
        (
            total(import.quarantined.items.len(), import.quarantined.left_out),
            "quarantined record",
            "quarantined records",
        ),
        (
            total(import.unrecognized.items.len(), import.unrecognized.left_out),
            "unrecognized file",
            "unrecognized files",
        ),
        (total(import.skipped.items.len(), import.skipped.left_out), "skipped file", "skipped files"),
    ];
    let said: Vec<String> =
        counts.iter().filter(|(n, ..)| *n > 0).map(|(n, one, many)| counted(*n, one, many)).collect();
    (!said.is_empty()).then(|| {
        action(
            "Repair what could not be read, then import again",
            &format!("{}: listed under Import. What was read already is not read twice.", said.join(", ")),
            vec![format!("recoup import PATH --project {}", shell_word(&report.project))],
        )
    })
}

fn action(title: &str, why: &str, commands: Vec<String>) -> Action {
    Action { title: title.to_owned(), why: why.to_owned(), commands }
}
