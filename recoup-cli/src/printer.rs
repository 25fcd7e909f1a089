//! The printer: the one way out. Data goes to standard output, everything else to standard error.
//!
//! Text from traces has its controls made visible before it reaches a terminal, so an escape sequence in
//! an observation is shown, not obeyed, and a line feed in a name forges no line.

use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressStyle};
use recoup::id::TrajectoryId;
use recoup::reporter::Reporter;
use recoup::visible::{is_invisible, visible_line};
use serde::Serialize;

use crate::args::{ColorChoice, Global};

/// Where output goes and how it looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    json: bool,
    quiet: bool,
    colors: bool,
}

/// Looks that mean something; without colors they vanish and the text still says it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look {
    /// A heading.
    Bold,
    /// Secondary.
    Dim,
    /// Good.
    Green,
    /// Bad.
    Red,
    /// Look here.
    Yellow,
    /// A citation.
    Mark,
}

#[expect(
    clippy::unused_self,
    reason = "all output goes through the printer, also what needs none of its settings"
)]
impl Printer {
    /// A printer as the flags and the terminal want it.
    pub(crate) fn new(global: &Global) -> Self {
        let colors = match global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        };
        Self { json: global.json, quiet: global.quiet, colors }
    }

    /// A printer for a program whose flags are not known.
    pub(crate) fn json_only() -> Self {
        Self { json: true, quiet: true, colors: false }
    }

    /// True when standard output is for programs.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// True when standard error is for errors only.
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// One line of data. A reader that went away (`| head`) ends the program quietly.
    pub(crate) fn line(self, text: impl Display) {
        write_out(&format!("{text}\n"));
    }

    /// One JSON object on one line of standard output.
    pub(crate) fn json<T: Serialize>(self, value: &T) {
        match serde_json::to_string(value) {
            Ok(text) => self.line(escaped(&text)),
            Err(error) => self.error(error),
        }
    }

    /// Something a person should know; left out when quiet.
    pub(crate) fn note(self, text: impl Display) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{}", visible_line(&text.to_string()));
        }
    }

    /// A warning; left out when quiet.
    pub(crate) fn warn(self, text: impl Display) {
        self.note(format_args!("warning: {text}"));
    }

    /// An error, always.
    pub(crate) fn error(self, text: impl Display) {
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Text with a look, where colors are on.
    pub(crate) fn paint(self, look: Look, text: impl Display) -> String {
        if !self.colors {
            return text.to_string();
        }
        let code = match look {
            Look::Bold => "1",
            Look::Dim => "2",
            Look::Green => "32",
            Look::Red => "31",
            Look::Yellow => "33",
            Look::Mark => "1;4;33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Whether output is painted.
    pub(crate) fn has_colors(self) -> bool {
        self.colors
    }

    /// Progress bars on standard error, where that is a terminal.
    pub(crate) fn progress(self) -> Progress {
        Progress { printer: self, shown: !self.quiet && io::stderr().is_terminal(), bar: None }
    }
}

/// JSON whose strings hold no character that a terminal obeys: `\u` says the same.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_invisible(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// `1 answer`, `2 answers`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// `1 run`, `2 runs`.
pub(crate) fn runs(count: usize) -> String {
    counted(count, "run")
}

/// The start of a run's id, long enough to name it.
pub(crate) fn short_id(run: TrajectoryId) -> String {
    run.to_string()[..12].to_owned()
}

/// Writes data; where that is impossible, ends the program: as a closed pipe asks, without a message.
pub(crate) fn write_out(text: &str) {
    if let Err(error) = io::stdout().lock().write_all(text.as_bytes()) {
        let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
        if !is_closed {
            let _ = writeln!(io::stderr(), "error: cannot write standard output: {error}");
        }
        let code = if is_closed { 0 } else { 2 };
        #[expect(clippy::exit, reason = "nobody is left to hand an error to")]
        std::process::exit(code);
    }
}

/// Progress bars.
pub(crate) struct Progress {
    printer: Printer,
    shown: bool,
    bar: Option<ProgressBar>,
}

impl Reporter for Progress {
    fn stage(&mut self, name: &str, total: Option<u64>) {
        self.finish();
        if !self.shown {
            return;
        }
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        let template = match total {
            Some(_) => "{prefix:>10} [{bar:30}] {pos}/{len} {eta}",
            None => "{prefix:>10} {spinner} {pos}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name.to_owned());
        self.bar = Some(bar);
    }

    fn advance(&mut self, count: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(count);
        }
    }

    fn note(&mut self, message: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.printer.note(message)),
            None => self.printer.note(message),
        }
    }
}

impl Progress {
    /// Clears the bar.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
