//! What judges say, as tables.

use std::fmt::{self, Write};

use super::super::command::short_id;
use super::super::judges::{lines, panels, steps, unmeasured};
use super::super::model::Report;
use super::super::wording::number;
use super::left_out;
use crate::fence::{cell, prose};

pub(super) fn judges(out: &mut String, report: &Report) -> fmt::Result {
    let Some(judges) = &report.judges else { return Ok(()) };
    writeln!(out, "## What the judges say\n\n{}\n", prose(&panels(judges)))?;
    writeln!(out, "| Measure | What | Figure (95% interval) |\n| --- | --- | --- |")?;
    for line in lines(judges) {
        writeln!(out, "| {} | {} | {} |", cell(&line.name), prose(line.what), line.value)?;
    }
    if let Some(missing) = unmeasured(judges) {
        writeln!(out, "\n{}", prose(missing))?;
    }
    writeln!(
        out,
        "\n| Gate | Admitted | Refused | Abstained | Decided |\n| --- | ---: | ---: | ---: | ---: |"
    )?;
    for (name, gate) in &judges.gates {
        let counts = [gate.admitted, gate.rejected, gate.abstained, gate.decided].map(number);
        writeln!(out, "| {} | {} |", cell(name), counts.join(" | "))?;
    }
    writeln!(out)?;
    if judges.disagreements.items.is_empty() {
        return Ok(());
    }
    writeln!(out, "Runs to look at, where rules and judges name different steps:\n")?;
    writeln!(out, "| Run | Task | Steps | Admitted |\n| --- | --- | --- | --- |")?;
    for found in &judges.disagreements.items {
        let admitted = if found.admitted { "yes" } else { "no" };
        writeln!(
            out,
            "| {} | {} | {} | {admitted} |",
            cell(&short_id(&found.run)),
            cell(&found.task),
            steps(found)
        )?;
    }
    left_out(out, judges.disagreements.left_out, "runs")?;
    writeln!(out)
}
