//! The program `recoup`. It resolves what the user typed, calls a stage of the library and prints.

mod args;
mod clock;
mod commands;
mod failure;
mod guard;
mod interrupt;
mod models;
mod printer;
mod proxy;
mod sandbox;
mod settings;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Arguments, Command};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// Importing makes and drops a string for every message of every run, on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command ended, beside failing: the exit code says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Everything was done; losses and exclusions included.
    Done,
    /// Done, but some records were quarantined or some files could not be read; they are listed.
    Partly,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return misunderstood(&error),
    };
    #[cfg(debug_assertions)]
    if let Some(wanted) = arguments.global.stop_at {
        recoup::failpoint::watch(move |point, side| {
            if (point, side) == wanted {
                std::process::abort();
            }
        });
    }
    let printer = Printer::new(&arguments.global);
    match run(&arguments, printer) {
        Ok(Ended::Done) => ExitCode::SUCCESS,
        Ok(Ended::Partly) => ExitCode::from(1),
        Err(failure) => {
            printer.error(&failure);
            if printer.is_json() {
                printer.json(&failure.answer());
            }
            ExitCode::from(2)
        }
    }
}

/// Says why the command line makes no sense, to a program as well; or what was asked for with `--help`.
fn misunderstood(error: &clap::Error) -> ExitCode {
    // Where it cannot be said, nobody listens.
    let _ = error.print();
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let said = text.strip_prefix("error: ").unwrap_or(&text);
        let message = said.split("\n\n").next().unwrap_or_default();
        Printer::json_only().json(&Failure::user(message).answer());
    }
    ExitCode::from(error.exit_code() as u8)
}

fn run(arguments: &Arguments, printer: Printer) -> Result<Ended, Failure> {
    let out = match &arguments.command {
        Command::Run(flags) => flags.out.as_deref(),
        _ => None,
    };
    let views = match &arguments.command {
        Command::Run(flags) => Some(&flags.views),
        Command::Export(flags) => Some(&flags.views),
        _ => None,
    };
    let settings = Settings::resolve(&arguments.global, out, views)?;
    match &arguments.command {
        Command::Run(flags) => commands::run::run(flags, &settings, printer),
        Command::Import(flags) => commands::import::import(flags, &settings, printer),
        Command::Diagnose(flags) => commands::diagnose::diagnose(flags, &settings, printer),
        Command::Review(flags) => commands::review::review(flags, &settings, printer),
        Command::Ls(flags) => commands::ls::ls(flags, &settings, printer),
        Command::Show(flags) => commands::show::show(flags, &settings, printer),
        Command::Label(flags) => commands::label::label(flags, &settings, printer),
        Command::Collect(flags) => commands::collect::collect(flags, &settings, printer),
        Command::Env(command) => commands::env::env(command, &settings, printer),
        Command::Proxy(flags) => commands::proxy::proxy(flags, &settings, printer),
        Command::Export(flags) => commands::export::export(flags, &settings, printer),
        Command::Release(flags) => commands::release::release(flags, &settings, printer),
        Command::Replay(flags) => commands::replay::replay(flags, &settings, printer),
        Command::Relabel(flags) => commands::relabel::relabel(flags, &settings, printer),
        Command::Ask(flags) => commands::ask::ask(flags, &settings, printer),
        Command::Eval(command) => commands::eval::eval(command, &settings, printer),
        Command::Stats => commands::stats::stats(&settings, printer),
        Command::Verify => commands::verify::verify(&settings, printer),
        Command::Gc => commands::gc::gc(&settings, printer),
        Command::Forget(flags) => commands::forget::forget(flags, &settings, printer),
        Command::EnvWorker(flags) => commands::env_worker::env_worker(flags),
    }
}
