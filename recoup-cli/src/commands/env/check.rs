//! `recoup env check`: whether an environment may train anyone.

use std::path::Path;

use recoup::deduplication::HeldOut;
use recoup::environments::ToolSpec;
use recoup::synthesis::admission::{AdmissionConfig, admit};
use serde_json::Value;

use super::super::environment;
use crate::Ended;
use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::printer::{Look, Printer};
use crate::settings::{Settings, listed};

/// Runs the admission battery. The exit code is 1 where a gate fails.
pub(crate) fn check(flags: &CheckArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let opened = environment::open(&flags.named.package, flags.named.trust)?;
    let held_out: HeldOut = listed(&flags.held_out)?;
    if !flags.held_out.is_empty() && !held_out.has_texts() {
        return Err(Failure::user("`--held-out` names ids alone, with which nothing can be compared")
            .hint("give the tasks' texts, one a line, or JSON lines that hold them"));
    }
    let config = AdmissionConfig {
        seeds: flags.seeds,
        cheater_seeds: flags.cheater_seeds,
        target: flags.target.as_deref().map(target).transpose()?,
        held_out,
        gates: flags.gates.clone(),
        threads: settings.threads,
    };
    let mut progress = printer.progress();
    let admission = admit(&*opened, &config, &mut progress);
    progress.finish();
    let passed = admission.gates.iter().all(|gate| gate.passed);
    let ended = if passed { Ended::Done } else { Ended::Partly };
    if printer.is_json() {
        let held_out = config.held_out.hashes();
        let flags = (config.seeds, config.cheater_seeds, &config.gates, &flags.target, held_out);
        printer.json(&environment::answer(&*opened, &flags, admission));
        return Ok(ended);
    }
    for gate in &admission.gates {
        let (look, word) = if gate.passed { (Look::Green, "pass") } else { (Look::Red, "FAIL") };
        printer.line(format_args!("{} {:<14} {}", printer.paint(look, word), gate.name, gate.figure));
        if !gate.passed {
            printer.line(printer.paint(Look::Dim, format_args!("     {:<14} {}", "", gate.rule)));
        }
    }
    let word = match (admission.admitted, passed) {
        (true, _) => "admitted",
        (false, true) => "these gates passed; all of them admit",
        (false, false) => "not admitted",
    };
    printer.line(printer.paint(Look::Bold, format_args!("{}: {word}", admission.package)));
    Ok(ended)
}

/// The tools of a target, as `tools` of a package gives them or as chat-completion APIs take them.
fn target(path: &Path) -> Result<Vec<ToolSpec>, Failure> {
    let shown = path.display().to_string();
    let unreadable = |what: String| {
        Failure::user(format!("{shown}: {what}"))
            .hint("a JSON list of `{\"name\", \"description\", \"parameters\"}`, with a JSON Schema")
    };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let mut list: Vec<Value> =
        serde_json::from_str(&text).map_err(|error| unreadable(format!("no list of tools: {error}")))?;
    for tool in &mut list {
        if let Some(function) = tool.get_mut("function") {
            *tool = function.take();
        }
    }
    Ok(ToolSpec::read_all(&shown, &Value::Array(list).to_string())?)
}
