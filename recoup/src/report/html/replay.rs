//! What re-execution proves: a forest plot of the differences, pass rates by arm, and the curves of the
//! runs that were swept.

use std::fmt::{self, Write};

use super::super::command::short_id;
use super::super::model::{Curves, Replays, Report};
use super::super::wording::{self, counted, number, percent, points};
use super::charts;
use super::text::Plain;
use crate::replay::{ArmRate, Comparison, Group};
use crate::verdict::Arm;

const HOW: &str = "Each failed run is executed again to its decisive step, every observation compared, and continued \
    from there in matched arms that share policy, budget, verifier and luck. A difference above 0 supports the repair \
    under these conditions; it does not show that the cause was the only one.";
const CURVES: &str = "Line: whether the expert, taking over before a step, still reaches the goal. Marks: what \
    correcting that one step changes, with its interval; the filled one is the decisive step.";

/// The section, where anything was replayed.
pub(super) fn replay(out: &mut String, report: &Report) -> fmt::Result {
    let Some(replays) = &report.replay else { return Ok(()) };
    super::section(out, "replay", "What replay proves", HOW)?;
    write!(out, "<p class=muted>{}</p>", Plain(&wording::replayed(replays)))?;
    replays.groups.iter().try_for_each(|group| arms(out, group, replays.groups.len() > 1))?;
    curves(out, replays)?;
    out.push_str("</section>");
    Ok(())
}

fn arms(out: &mut String, group: &Group, named: bool) -> fmt::Result {
    if named {
        let place = format!("{}, repairs by {}", group.environment, wording::candidates(group));
        write!(out, "<h3>{} <small>{}</small></h3>", Plain(&group.policy), Plain(&place))?;
    }
    out.push_str("<div class=\"rows tight\">");
    for arm in Arm::ALL {
        let Some(rate) = group.arms.get(arm.as_str()) else { continue };
        write!(
            out,
            "<div class=row><div class=what><b>{}</b><small>{}</small></div><div class=chart>",
            arm.as_str(),
            Plain(&wording::arm(group, arm, rate.synthetic))
        )?;
        charts::mark(out, &said(rate), (rate.rate, rate.low, rate.high))?;
        write!(
            out,
            "</div><div class=value><b>{}</b> <small>{} of {}</small></div></div>",
            percent(rate.rate),
            number(rate.passed),
            number(rate.n)
        )?;
    }
    charts::axis(out, 1.0)?;
    out.push_str("</div>");
    forest(out, group)
}

fn said(rate: &ArmRate) -> String {
    match (rate.low, rate.high) {
        (Some(low), Some(high)) => {
            format!("{} ({} to {})", percent(rate.rate), percent(low), percent(high))
        }
        _ => percent(rate.rate),
    }
}

/// The differences in the order of the family, each with its interval around the line of no difference.
fn forest(out: &mut String, group: &Group) -> fmt::Result {
    if group.differences.is_empty() {
        return Ok(());
    }
    out.push_str("<h4>Paired differences</h4><div class=\"rows tight forest\">");
    for (treatment, control) in crate::replay::FAMILY {
        let name = format!("{}-{}", treatment.as_str(), control.as_str());
        let Some(difference) = group.differences.get(&name) else { continue };
        write!(
            out,
            "<div class=row><div class=what><b>{} − {}</b><small>{}</small></div><div class=chart>",
            treatment.as_str(),
            control.as_str(),
            Plain(&support(difference))
        )?;
        let [at, low, high] = [Some(difference.points), difference.low, difference.high];
        charts::difference(out, &wording::difference(difference), (at.unwrap_or(0.0), low, high))?;
        write!(
            out,
            "</div><div class=value><b>{}</b> <small>{}</small></div></div>",
            points(difference.points),
            Plain(&wording::p_value(difference.p_holm))
        )?;
    }
    charts::difference_axis(out);
    out.push_str("</div>");
    Ok(())
}

fn support(difference: &Comparison) -> String {
    format!("{}, {}", counted(difference.pairs, "pair", "pairs"), counted(difference.tasks, "task", "tasks"))
}

fn curves(out: &mut String, replays: &Replays) -> fmt::Result {
    if replays.curves.items.is_empty() {
        return Ok(());
    }
    write!(out, "<h3>Curves of runs</h3><p class=how>{}</p>", Plain(CURVES))?;
    for curves in &replays.curves.items {
        let Curves { run, task, sweep, .. } = curves;
        let decisive = sweep.decisive.map_or_else(
            || "no step is decisive".to_owned(),
            |decisive| format!("step {} is decisive", decisive.step),
        );
        write!(
            out,
            "<figure class=curves><figcaption><code>{}</code> <span>{}</span> <small>{decisive}</small></figcaption>",
            Plain(&short_id(run)),
            Plain(task)
        )?;
        charts::curves(out, curves)?;
        out.push_str("</figure>");
    }
    if replays.curves.left_out > 0 {
        write!(out, "<p class=muted>and {} more</p>", number(replays.curves.left_out))?;
    }
    Ok(())
}
