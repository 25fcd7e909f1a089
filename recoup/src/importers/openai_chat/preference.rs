//! A row of two answers to one context, of which people or a judge preferred one: `input{messages, tools}`,
//! `preferred_output`, `non_preferred_output`, as fine-tuning for preferences takes it. It is a tree with
//! two leaves; the preferred answer's is the main one. That one is better says of neither that it is good.

use std::collections::BTreeSet;

use super::{FORMAT, is_conversation, take_tools};
use crate::importers::dialect::push_messages;
use crate::importers::object::{Object, missing};
use crate::importers::slice::Stop;
use crate::importers::{Outline, RecordError, Scoring, row};
use crate::trajectory::{Leaf, Outcome, Trajectory};
use crate::warning::Loss;

const PREFERRED: &str = "preferred_output";
const OTHER: &str = "non_preferred_output";

/// True for such a row.
pub(super) fn is_preference(record: &Outline) -> bool {
    let context = record.get("input").and_then(|input| input.get("messages"));
    context.is_some_and(is_conversation) && [PREFERRED, OTHER].iter().any(|key| record.get(key).is_some())
}

/// True where the members of a row without messages are those of two answers.
pub(super) fn has_answers(row: &Object<'_>) -> bool {
    row.has(PREFERRED) || row.has(OTHER)
}

/// Reads the row into a run and returns the source's own id of it.
pub(super) fn read(
    mut row: Object<'_>,
    run: &mut Trajectory,
    scoring: &Scoring,
    losses: &mut BTreeSet<Loss>,
) -> Result<Option<String>, Stop> {
    let mut input = row.object("input");
    push_messages(input.required("messages")?, run, losses)?;
    take_tools(&mut input, "tools", run, losses);
    for key in input.keys() {
        losses.insert(Loss::new(FORMAT, format!("input.{key}"), "a run has no place for it"));
    }
    let fork = run.nodes.len().checked_sub(1);
    let mut ends = Vec::new();
    for key in [PREFERRED, OTHER] {
        let answer: Vec<Object<'_>> = row.required(key)?;
        if answer.is_empty() {
            return Err(missing(&format!("{key}[0]")).into());
        }
        let first = run.nodes.len();
        push_messages(answer, run, losses)
            .map_err(|error| RecordError::new(error.code, format!("{key}: {error}")))?;
        run.nodes[first].parent = fork;
        ends.push(Leaf { node: Some(run.nodes.len() - 1), outcome: said(key) });
    }
    let native = row::settle(run, row, scoring);
    // What the row says of an outcome it says of the answer that it prefers.
    if run.outcome().status != Outcome::unknown().status {
        ends[0].outcome = run.outcome().clone();
    }
    run.leaves = ends;
    run.main_leaf = 0;
    Ok(native)
}

/// No outcome, and which of the two answers it is.
fn said(key: &str) -> Outcome {
    Outcome {
        evidence: format!("`{key}`: one of two answers, compared and not scored"),
        ..Outcome::unknown()
    }
}
