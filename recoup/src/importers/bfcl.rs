//! BFCL, the Berkeley Function Calling Leaderboard: `…_result.json`, a line a task with what the model
//! answered, and `…_score.json` in a folder of its own, which names the failures.
//!
//! An answer is a text, or calls as `[{name: arguments}]`. A run of several turns is a list of turns of
//! steps; its log, where there is one, tells what was asked and what the tools answered. A single-turn
//! result holds no question: only the score file of a failure repeats it.

mod answer;
mod score;

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use self::score::Scores;
use super::dialect::{Aside, Dialect, messages};
use super::object::{Object, missing};
use super::openai_chat::emit_losses;
use super::slice::{self, RawRecord, Stop};
use super::value::{elements, text, value};
use super::{ImportError, Importer, Outline, Probe, Sink, Source, row};
use crate::json::Json;
use crate::task::{Task, VerifierRef};
use crate::trajectory::{Call, Role, TerminationKind, Trajectory, Usage};
use crate::warning::Loss;

const FORMAT: &str = "bfcl";
/// What a result's members beside id and answer are called, of which one suffices.
const FIGURES: [&str; 3] = ["input_token_count", "output_token_count", "inference_log"];
/// How a result begins that no model gave.
const FAILED: &str = "Error during inference";

/// Results and scores of BFCL.
pub(super) struct Bfcl;

impl Importer for Bfcl {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "lines with `id` and `result`, or a score file that starts with `accuracy`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(is_result) || is_score(probe)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        if is_score(&probe) {
            if score::result_of(source).is_none() {
                let reason = "scores without the results they belong to hold no runs";
                sink.loss(Loss::new(FORMAT, "score", reason))?;
            }
            return Ok(());
        }
        let scores = score::of(source, probe.layout());
        let model = score::model(source);
        slice::each(source, probe.layout(), sink, |record, sink| {
            read(record, scores.as_ref(), model.as_deref(), sink)
        })
    }
}

fn is_result(record: &Outline) -> bool {
    record.has_all(&["id", "result"])
        && FIGURES.iter().any(|key| record.get(key).is_some())
        && record.get("messages").is_none()
}

/// A score file begins with its totals.
fn is_score(probe: &Probe) -> bool {
    probe.values.first().is_some_and(|first| first.has_all(&["accuracy", "correct_count", "total_count"]))
        && probe.values.get(1).is_none_or(|entry| entry.has_all(&["id", "valid"]))
}

fn read(
    record: &RawRecord,
    scores: Option<&Scores>,
    model: Option<&str>,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let mut line: Object<'_> = record.parse()?;
    let id = line.id("id").ok_or_else(|| missing("id"))?;
    let result: &RawValue = line.take("result").ok_or_else(|| missing("result"))?;
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let (mut aside, mut losses) = (Aside::default(), BTreeSet::new());
    let failure = scores.and_then(|scores| scores.failure(&id));
    let log = line.list("inference_log").unwrap_or_default();
    let is_told = log.iter().any(|turn| Object::of(turn).is_some_and(|turn| turn.has("begin_of_turn_query")));
    if is_told {
        answer::log(&log, &mut run, &mut aside)?;
    } else {
        if let Some(asked) = failure.and_then(score::Failure::asked) {
            let asked: &RawValue = serde_json::from_str(asked.as_str())?;
            for node in messages(asked, Some(Dialect::Chat), Role::User, &mut aside)? {
                run.push(node);
            }
        }
        if run.nodes.is_empty() {
            aside.lose("prompt", "a result does not hold what was asked");
        }
        let reasoning = line.get("reasoning_content").and_then(text);
        if reasoning.is_some() {
            line.take("reasoning_content");
        }
        answer::push(result, reasoning.as_deref(), &mut run);
    }
    aside.settle(&mut run, &mut losses);
    add_usage(&mut line, &mut run);
    for agent in &mut run.agents {
        agent.model = model.map(str::to_owned);
    }
    run.task = Task::named(format!("{FORMAT}/{id}"), row::goal(&run));
    run.task.template_key = id.rsplit_once('_').map(|(category, _)| format!("{FORMAT}/{category}"));
    let mut outcome = scores.map_or_else(crate::trajectory::Outcome::unknown, |scores| scores.outcome(&id));
    if let Some(said) = text(result).filter(|said| said.starts_with(FAILED)) {
        outcome = outcome.ended(TerminationKind::InfrastructureError, said.into_owned());
    }
    if let Some(failure) = failure {
        run.hidden.gold.clone_from(&failure.gold);
        run.hidden.verifier_output.clone_from(&failure.output);
    }
    run.verifier = scores.map(|_| VerifierRef { name: FORMAT.to_owned(), version: None });
    run.extra.insert("id".to_owned(), Json::string(&id));
    run.extra.extend(line.rest());
    run.finish(outcome);
    emit_losses(losses, sink)?;
    record.emit(sink, run, None, Vec::new(), 0)?;
    Ok(())
}

/// Gives each of the model's turns its tokens, which stand in the same nesting as the answers.
fn add_usage(line: &mut Object<'_>, run: &mut Trajectory) {
    let counts = |key: &str| {
        let mut flat = Vec::new();
        flatten(line.get(key)?, &mut flat, 0);
        Some(flat)
    };
    let (Some(input), Some(output)) = (counts("input_token_count"), counts("output_token_count")) else {
        return;
    };
    let turns: Vec<_> = run.nodes.iter_mut().filter(|node| node.occurrence.sampled).collect();
    if turns.len() != input.len() || turns.len() != output.len() {
        return;
    }
    for (node, (input, output)) in turns.into_iter().zip(input.into_iter().zip(output)) {
        let usage = Usage { input, output, cached: 0, reasoning: 0 };
        node.occurrence.call = Some(Box::new(Call { usage: Some(usage), ..Call::default() }));
    }
    line.take("input_token_count");
    line.take("output_token_count");
}

fn flatten(raw: &RawValue, out: &mut Vec<u64>, depth: usize) {
    match elements(raw) {
        Some(list) if depth < 3 => list.into_iter().for_each(|raw| flatten(raw, out, depth + 1)),
        // Counted as whole numbers or not at all.
        _ => out.extend(value::<f64>(raw).filter(|count| *count >= 0.0).map(|count| count as u64)),
    }
}
