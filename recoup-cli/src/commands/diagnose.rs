//! `recoup diagnose`: looks at the runs that nobody has looked at yet, by rules, then with a panel of judges
//! where one is named.

use recoup::pipeline;

use super::panel::{Choice, Panel, ended, no_judge};
use super::project;
use crate::Ended;
use crate::args::DiagnoseArgs;
use crate::clock::now;
use crate::failure::Failure;
use crate::models::Decision;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Diagnoses what waits for it.
pub(crate) fn diagnose(
    flags: &DiagnoseArgs,
    settings: &Settings,
    printer: Printer,
) -> Result<Ended, Failure> {
    let mut store = project::open(settings)?;
    let panel = Panel::open(&flags.judge, settings, &store, printer)?;
    let only = match flags.judging.only.as_slice() {
        [] => None,
        ids => Some(project::resolve(&store, ids)?),
    };
    let is_dry = flags.judge.spend.dry_run;
    if panel.is_none()
        && let Some(flag) = is_dry.then_some("--dry-run").or_else(|| flags.judging.given())
    {
        return Err(no_judge(flag));
    }
    let mut progress = printer.progress();
    let done = match &only {
        _ if is_dry => pipeline::Diagnosing::default(),
        Some(ids) if panel.is_none() => {
            pipeline::diagnose_again(&mut store, ids, &now(), settings.threads, &mut progress)?
        }
        _ => pipeline::diagnose(&mut store, &now(), settings.threads, &mut progress)?,
    };
    progress.finish();
    let Some(panel) = panel else {
        if printer.is_json() {
            printer.json(&project::answer(&store, settings, done));
        } else {
            printer.line(format_args!(
                "looked at {}, diagnosed {}",
                runs(done.runs as usize),
                done.diagnosed
            ));
        }
        return Ok(Ended::Done);
    };
    let judged = panel.with_plan(Choice::of(&flags.judging, only), |plan| {
        if panel.announce(&store, plan, settings, printer)? == Decision::Shown {
            return Ok(None);
        }
        Ok::<_, Failure>(Some(pipeline::judge_runs(&mut store, plan, &now(), &mut progress)?))
    })?;
    progress.finish();
    let Some(judged) = judged else { return Ok(Ended::Done) };
    panel.say(&judged, printer)?;
    let how = ended(&judged, printer)?;
    if printer.is_json() {
        printer.json(&project::answer(&store, settings, judged));
    }
    Ok(how)
}
