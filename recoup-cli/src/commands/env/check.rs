//! `recoup env check`: whether an environment may train anyone.

use recoup::synthesis::admission::{AdmissionConfig, admit};

use super::super::environment;
use crate::Ended;
use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::printer::{Look, Printer};
use crate::settings::Settings;

/// Runs the admission battery. The exit code is 1 where a gate fails.
pub(crate) fn check(flags: &CheckArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let opened = environment::open(&flags.named.package, flags.named.trust)?;
    let config = AdmissionConfig {
        seeds: flags.seeds,
        cheater_seeds: flags.cheater_seeds,
        target: None,
        threads: settings.threads,
    };
    let mut progress = printer.progress();
    let admission = admit(&*opened, &config, &mut progress);
    progress.finish();
    let ended = if admission.admitted { Ended::Done } else { Ended::Partly };
    if printer.is_json() {
        let flags = (config.seeds, config.cheater_seeds);
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
    let word = if admission.admitted { "admitted" } else { "not admitted" };
    printer.line(printer.paint(Look::Bold, format_args!("{}: {word}", admission.package)));
    Ok(ended)
}
