//! `recoup env`: environments looked at, played, checked, served and exported.

mod check;
mod episode;
mod export;
mod list;
mod play;
mod serve;
mod typed;

use crate::Ended;
use crate::args::EnvCommand;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// Does what was asked about environments.
pub(crate) fn env(command: &EnvCommand, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    match command {
        EnvCommand::List => list::list(printer),
        EnvCommand::Check(flags) => check::check(flags, settings, printer),
        EnvCommand::Play(flags) => play::play(flags, printer),
        EnvCommand::Export(flags) => export::export(flags, settings, printer),
        EnvCommand::Serve(flags) => serve::serve(flags, printer),
    }
}
