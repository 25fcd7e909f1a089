//! `recoup env list`: the environments that come with the program.

use recoup::answers::Listed;
use recoup::environments::bundled;

use crate::Ended;
use crate::failure::Failure;
use crate::printer::{Look, Printer};

/// Prints them, one a line.
pub(crate) fn list(printer: Printer) -> Result<Ended, Failure> {
    if !printer.is_json() {
        let head = format_args!("{:<12} {:<20} {:<16} {}", "NAME", "VERSION", "INTERFACE", "FAMILIES");
        printer.line(printer.paint(Look::Bold, head));
    }
    for name in bundled::names() {
        let environment = super::super::environment::open(name, false)?;
        let identity = environment.identity();
        let manifest = &identity.manifest;
        if printer.is_json() {
            printer.json(&Listed::from(identity));
        } else {
            let (version, interface) = (identity.version(), &manifest.interface);
            printer.line(format_args!(
                "{name:<12} {version:<20} {interface:<16} {}",
                manifest.families.join(", ")
            ));
            printer.line(printer.paint(Look::Dim, format_args!("  {}", manifest.description)));
        }
    }
    Ok(Ended::Done)
}
