//! `recoup label`: what a person knows about a run.

use recoup::answers::Labelled;
use recoup::json::Json;
use recoup::trajectory::Status;
use recoup::verdict::{Content, Label, Producer, Verdict};

use super::project;
use crate::Ended;
use crate::args::{LabelArgs, OutcomeChoice};
use crate::clock::now;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Attaches what the flags say to every run named.
pub(crate) fn label(flags: &LabelArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let label = Label {
        outcome: flags.outcome.map(|outcome| match outcome {
            OutcomeChoice::Success => Status::Success,
            OutcomeChoice::Failure => Status::Failure,
            OutcomeChoice::Unknown => Status::Unknown,
        }),
        score: None,
        task: flags.task.clone(),
        environment: flags.environment.clone(),
        reset: flags
            .reset
            .as_deref()
            .map(Json::parse)
            .transpose()
            .map_err(|error| Failure::user(format!("`--reset`: {error}")))?,
        note: flags.note.clone(),
    };
    if label == Label::default() {
        return Err(Failure::user("nothing to attach")
            .hint("give `--outcome`, `--task`, `--environment` or `--note`"));
    }
    for (flag, value) in [("--task", &label.task), ("--environment", &label.environment)] {
        if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
            return Err(Failure::user(format!("`{flag}` is empty")).hint("give it a name"));
        }
    }
    let mut store = project::open(settings)?;
    let now = now();
    let mut verdicts = Vec::new();
    for id in project::resolve(&store, &flags.ids)? {
        // What an earlier label said and this one does not stays; the later version is the current one.
        let mut producer = Producer::person();
        let mut merged = Label::default();
        if let Some(Verdict { producer: by, content: Content::Label(earlier), .. }) =
            store.current(id, "label")?
            && by.name == producer.name
        {
            producer.version = by.version + 1;
            merged = earlier;
        }
        let before = merged.clone();
        merge(&mut merged, &label);
        if merged != before {
            verdicts.push(Verdict::new(id, producer, Vec::new(), Content::Label(merged), &now));
        }
    }
    store.put_verdicts(&verdicts)?;
    if printer.is_json() {
        let labelled = Labelled { labelled: verdicts.len() as u64 };
        printer.json(&project::answer(&store, settings, labelled));
    } else {
        let judged_again = label.outcome.is_some() || label.task.is_some();
        let next = if judged_again { "; `recoup diagnose` looks at them again" } else { "" };
        printer.note(format_args!("labelled {}{next}", runs(verdicts.len())));
    }
    Ok(Ended::Done)
}

fn merge(earlier: &mut Label, later: &Label) {
    fn over<T: Clone>(earlier: &mut Option<T>, later: Option<&T>) {
        if let Some(value) = later {
            *earlier = Some(value.clone());
        }
    }
    over(&mut earlier.outcome, later.outcome.as_ref());
    over(&mut earlier.task, later.task.as_ref());
    over(&mut earlier.environment, later.environment.as_ref());
    over(&mut earlier.reset, later.reset.as_ref());
    over(&mut earlier.note, later.note.as_ref());
}
