//! What re-execution proves, as tables.

use std::fmt::{self, Write};

use super::super::command::short_id;
use super::super::model::Report;
use super::super::wording::{self, number, percent};
use super::left_out;
use crate::fence::{cell, prose};
use crate::verdict::Arm;

pub(super) fn replay(out: &mut String, report: &Report) -> fmt::Result {
    let Some(replays) = &report.replay else { return Ok(()) };
    writeln!(out, "## What replay proves\n")?;
    writeln!(out, "{}\n", prose(&wording::replayed(replays)))?;
    for group in &replays.groups {
        writeln!(out, "Continued by {} in {}:\n", cell(&group.policy), cell(&group.environment))?;
        writeln!(out, "| Arm | First | Passed | Of | Rate (95% interval) |")?;
        writeln!(out, "| --- | --- | ---: | ---: | --- |")?;
        for arm in Arm::ALL {
            let Some(rate) = group.arms.get(arm.as_str()) else { continue };
            let interval = match (rate.low, rate.high) {
                (Some(low), Some(high)) => {
                    format!(" ({}–{})", percent(low).trim_end_matches('%'), percent(high))
                }
                _ => String::new(),
            };
            writeln!(
                out,
                "| {} | {} | {} | {} | {}{interval} |",
                arm.as_str(),
                wording::arm(group, arm, rate.synthetic),
                number(rate.passed),
                number(rate.n),
                percent(rate.rate)
            )?;
        }
        writeln!(out, "\n| Difference | Points (95% interval) | p after Holm | Pairs | Tasks |")?;
        writeln!(out, "| --- | --- | --- | ---: | ---: |")?;
        for (name, difference) in &group.differences {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                name.replace('-', " − "),
                wording::difference(difference),
                wording::p_value(difference.p_holm),
                number(difference.pairs),
                number(difference.tasks)
            )?;
        }
        writeln!(out)?;
    }
    if replays.curves.items.is_empty() {
        return Ok(());
    }
    writeln!(out, "| Run | Task | Decisive step | Recoverable until |")?;
    writeln!(out, "| --- | --- | --- | --- |")?;
    for curves in &replays.curves.items {
        let word = |step: Option<usize>| step.map_or_else(|| "–".to_owned(), |step| format!("step {step}"));
        writeln!(
            out,
            "| {} | {} | {} | {} |",
            cell(&short_id(&curves.run)),
            cell(&curves.task),
            word(curves.sweep.decisive.map(|decisive| decisive.step)),
            word(curves.sweep.last_recoverable)
        )?;
    }
    left_out(out, replays.curves.left_out, "runs")?;
    writeln!(out)
}
