//! What shared runs came to, round by round.

use std::fmt::{self, Write};

use super::super::model::Report;
use crate::fence::cell;
use crate::rollout::interleave::lines;

pub(super) fn shared(out: &mut String, report: &Report) -> fmt::Result {
    let Some(shared) = &report.shared else { return Ok(()) };
    writeln!(out, "## What the teacher teaches\n")?;
    writeln!(out, "| Round | Measure | Figure |\n| ---: | --- | --- |")?;
    for round in &shared.rounds {
        for line in lines(round) {
            writeln!(out, "| {} | {} | {} |", round.round, line.name, cell(&line.value))?;
        }
    }
    writeln!(out)
}
