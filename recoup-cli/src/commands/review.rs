//! `recoup review`: a person looks at runs without their outcome and without any verdict. What they say
//! measures the judges.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use recoup::answers::{Blind, Reviewed};
use recoup::id::TrajectoryId;
use recoup::judges::quality::measure;
use recoup::pipeline::{self, Stratum};
use recoup::statistics::Resampling;
use recoup::store::Store;
use recoup::trajectory::Trajectory;
use recoup::verdict::PersonReview;
use serde::Deserialize;

use super::panel::say_quality;
use super::{project, show};
use crate::Ended;
use crate::args::ReviewArgs;
use crate::clock::now;
use crate::failure::Failure;
use crate::printer::{Printer, write_out};
use crate::settings::Settings;

/// What may be answered.
const WORDS: &str =
    "`admit` (nothing went wrong), `reject` (it failed), `step N` or `node N` (it failed there), `abstain`";

/// Shows runs and keeps what is said of them.
pub(crate) fn review(flags: &ReviewArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let mut store = project::open(settings)?;
    let mut reviewed = Reviewed::default();
    if let Some(path) = &flags.answers {
        for (id, review) in read_answers(&store, path)? {
            reviewed.count(&review);
            pipeline::record_review(&mut store, id, review, &now())?;
        }
    } else {
        let ids = if flags.ids.is_empty() {
            let by = Stratum::ALL.into_iter().find(|by| Some(by.as_str()) == flags.stratify.as_deref());
            pipeline::review_sample(&store, flags.sample, by)?
        } else {
            project::resolve(&store, &flags.ids)?
        };
        let asks = io::stdin().is_terminal() && io::stdout().is_terminal() && !printer.is_json();
        for (number, id) in ids.iter().enumerate() {
            reviewed.shown += 1;
            let run = store.effective(*id)?;
            let text = blind(&run, flags.full, printer);
            if printer.is_json() {
                printer.json(&Blind { run: id.to_string(), text: &text });
                continue;
            }
            write_out(&format!("run {} of {}: {id}\n{text}\n", number + 1, ids.len()));
            if !asks {
                continue;
            }
            match ask(&store, *id)? {
                Said::Review(review) => {
                    reviewed.count(&review);
                    pipeline::record_review(&mut store, *id, review, &now())?;
                }
                Said::Skip => {}
                Said::Quit => break,
            }
        }
        if !asks && !ids.is_empty() {
            printer.note(format_args!("answer in a file of lines `{{\"run\": ID, \"answer\": …}}` and give it with `--answers`: {WORDS}"));
        }
    }
    reviewed.quality =
        measure(&pipeline::judgements(&store)?, Resampling::new(0)).filter(|quality| quality.labelled > 0);
    if printer.is_json() {
        printer.json(&project::answer(&store, settings, reviewed));
    } else {
        if reviewed.recorded > 0 {
            printer.note(format_args!("kept {} answers", reviewed.recorded));
        }
        if let Some(quality) = &reviewed.quality {
            say_quality(quality, printer);
        }
    }
    Ok(Ended::Done)
}

/// A run without anything that says how it ended or what was thought of it.
fn blind(run: &Trajectory, full: bool, printer: Printer) -> String {
    let mut out = format!("task: {}\n", recoup::visible::visible_controls(&run.task.goal));
    show::transcript(&mut out, run, None, full, printer);
    out
}

/// What a person said at the prompt.
enum Said {
    Review(PersonReview),
    Skip,
    Quit,
}

fn ask(store: &Store, id: TrajectoryId) -> Result<Said, Failure> {
    let mut lines = io::stdin().lock().lines();
    loop {
        let _ = write!(io::stderr(), "admit, reject, step N, node N, abstain, skip or quit? ");
        let Some(line) = lines.next() else { return Ok(Said::Quit) };
        let line = line.map_err(|error| Failure::machine("cannot read the answer", &error))?;
        match line.trim() {
            "skip" | "" => return Ok(Said::Skip),
            "quit" | "q" => return Ok(Said::Quit),
            answer => {
                if let Some(review) = pipeline::read_review(store, id, answer)? {
                    return Ok(Said::Review(review));
                }
            }
        }
    }
}

/// A line of a file of answers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    run: String,
    answer: String,
    #[serde(default)]
    note: Option<String>,
}

/// Reads a whole file before anything is kept.
fn read_answers(store: &Store, path: &Path) -> Result<Vec<(TrajectoryId, PersonReview)>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::user(format!("cannot read answers `{}`: {error}", path.display())))?;
    let mut reviews = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("`{}`, line {}", path.display(), number + 1);
        let line: Line = serde_json::from_str(line).map_err(|error| {
            Failure::user(format!("{}: {error}", place()))
                .hint("a line is `{\"run\": ID, \"answer\": …, \"note\"?: …}`")
        })?;
        let id = store.resolve(&line.run)?;
        let review = pipeline::read_review(store, id, &line.answer)?.ok_or_else(|| {
            Failure::user(format!("{}: `{}` is no answer about this run", place(), line.answer)).hint(WORDS)
        })?;
        reviews.push((id, PersonReview { note: line.note, ..review }));
    }
    Ok(reviews)
}
