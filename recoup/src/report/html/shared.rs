//! What shared runs came to: how far the student lies from its teacher round by round, and each round in figures.

use std::fmt::{self, Write};

use super::super::model::Report;
use super::super::wording::{percent, two_decimals};
use super::charts::{self, AtRound};
use super::text::Plain;
use crate::rollout::interleave::{RoundReport, lines};
use crate::statistics::Bounds;

const HOW: &str = "A student and a teacher share runs, and the teacher says at every visited state what it would do. The \
    further the student's actions lie from the teacher's, the less it has learned of it. Intervals (95%) resample tasks; \
    below ten tasks there are none.";

/// The section, where runs were shared.
pub(super) fn shared(out: &mut String, report: &Report) -> fmt::Result {
    let Some(shared) = &report.shared else { return Ok(()) };
    super::section(out, "shared", "What the teacher teaches", HOW)?;
    let rounds = &shared.rounds;
    let disagreement: Vec<AtRound> = rounds.iter().filter_map(disagreement).collect();
    charts::by_round(
        out,
        "failure",
        "Action disagreement, share of labelled states",
        &disagreement,
        percent,
    )?;
    let divergence: Vec<AtRound> = rounds.iter().filter_map(divergence).collect();
    charts::by_round(out, "infrastructure", "Reverse KL, nats a token", &divergence, two_decimals)?;
    for round in rounds {
        write!(out, "<h3>Round {}</h3><ul class=\"tally named\">", round.round)?;
        for line in lines(round) {
            write!(out, "<li><b>{}</b> <span>{}</span></li>", Plain(line.name), Plain(&line.value))?;
        }
        out.push_str("</ul>");
    }
    out.push_str("</section>");
    Ok(())
}

fn disagreement(round: &RoundReport) -> Option<AtRound> {
    let rate = round.shift.disagreement?;
    let interval = rate.interval.map(|Bounds { low, high }| (low, high));
    Some(AtRound { round: round.round, value: rate.rate, interval })
}

fn divergence(round: &RoundReport) -> Option<AtRound> {
    Some(AtRound { round: round.round, value: round.shift.reverse_kl?, interval: None })
}
