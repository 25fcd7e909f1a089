//! An importer of one's own: for a format that no mapping file describes, here a text protocol.
//!
//! ```text
//! == run 7 | task parking | solved
//! USER Where can I park?
//! CALL find_parking {"near": "station"}
//! RESULT deck B, 2nd floor
//! AGENT Deck B has room.
//! ```
//!
//! `cargo run --example custom_importer -- PROTOCOL.log PROJECT` reads it into a project, beside every format that
//! recoup knows. What an importer must not do is drop something in silence: a line that it does not know is
//! quarantined with its place, and what the records cannot carry is a loss.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use recoup::importers::{
    IMPORTERS, ImportError, Importer, Probe, Sink, SinkError, Source, sources_from_paths,
};
use recoup::pipeline::{self, ContentSettings, Imported, PipelineConfig};
use recoup::store::Store;
use recoup::task::Task;
use recoup::trajectory::{ArgumentsForm, NativeId, Node, Outcome, Part, Role, ToolCall, Trajectory};
use recoup::views::ViewSettings;
use recoup::warning::{ByteSpan, Quarantine};

const FORMAT: &str = "protocol";
/// How a run begins.
const HEAD: &str = "== run ";

/// Reads protocols.
pub struct Protocol;

impl Importer for Protocol {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "a text whose first line begins with == run"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.head.starts_with(HEAD.as_bytes())
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        // A format whose files may be large reads line by line from `source.open()`.
        let bytes = source.read_all(source.options().record_bytes_max)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut run: Option<Run> = None;
        let mut start = 0;
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            let span = ByteSpan { start, end: start + line.len() as u64 };
            start = span.end;
            let line = line.trim_end();
            if let Some(head) = line.strip_prefix(HEAD) {
                if let Some(finished) = run.replace(Run::new(head, source)) {
                    finished.close(sink)?;
                }
            } else if !line.is_empty() && !run.as_mut().is_some_and(|run| run.line(line)) {
                let reason = "begins with none of USER, AGENT, CALL and RESULT".to_owned();
                let (uri, code) = (source.uri().to_owned(), "unknown-line".to_owned());
                let entry = Quarantine { uri, line: Some(number), span: Some(span), code, reason };
                sink.event(recoup::importers::Event::Quarantine(entry))?;
            }
        }
        if let Some(last) = run {
            last.close(sink)?;
        }
        Ok(())
    }
}

/// A run while its lines are read.
struct Run {
    draft: Trajectory,
    native: String,
    outcome: Outcome,
}

impl Run {
    /// `7 | task parking | solved`: the run's own id, its task, how it went.
    fn new(head: &str, source: &Source) -> Self {
        let mut parts = head.split('|').map(str::trim);
        let native = parts.next().unwrap_or_default().to_owned();
        let task = parts.next().and_then(|part| part.strip_prefix("task ")).unwrap_or_default();
        let outcome = match parts.next() {
            Some("solved") => Outcome::from_flag(true, "solved"),
            Some("failed") => Outcome::from_flag(false, "solved"),
            // Unknown is a third value, not a failure.
            _ => Outcome::unknown(),
        };
        let mut draft = Trajectory::new(FORMAT, Task::named(task, ""));
        source.uri().clone_into(&mut draft.source.uri);
        draft.licence.clone_from(&source.options().licence);
        Self { draft, native, outcome }
    }

    /// Takes a line; false where it is none of the protocol's.
    fn line(&mut self, line: &str) -> bool {
        let (word, text) = line.split_once(' ').unwrap_or((line, ""));
        let node = match word {
            "USER" => {
                if self.draft.task.goal.is_empty() {
                    text.clone_into(&mut self.draft.task.goal);
                }
                Node::new(Role::User, "user", vec![Part::text(text)])
            }
            // A turn that the policy sampled: these are the steps that diagnoses point at.
            "AGENT" => Node::new(Role::Assistant, "assistant", vec![Part::text(text)]).sampled(),
            "CALL" => {
                let (name, arguments) = text.split_once(' ').unwrap_or((text, "{}"));
                let call = ToolCall {
                    call_id: None,
                    name: name.to_owned(),
                    arguments_raw: arguments.to_owned(),
                    arguments_form: ArgumentsForm::String,
                };
                Node::new(Role::Assistant, "assistant", vec![Part::ToolCall(call)]).sampled()
            }
            "RESULT" => Node::new(Role::Tool, "tool", vec![Part::text_result(None, text)]),
            _ => return false,
        };
        self.draft.push(node);
        true
    }

    fn close(self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        let Self { mut draft, native, outcome } = self;
        draft.finish(outcome);
        // The run's own id makes a protocol that grew another revision of the same run.
        sink.trajectory(draft, &NativeId::Named(native), Vec::new())
    }
}

/// Imports paths into a project, protocols and everything that recoup knows.
pub fn import(paths: &[String], project: &Path, now: &str) -> Result<Imported, Box<dyn Error>> {
    let options = Arc::default();
    let (sources, problems) = sources_from_paths(paths, &options);
    // The first that recognizes a file reads it, so what is more particular comes first.
    let importers: Vec<&dyn Importer> =
        [&Protocol as &dyn Importer].into_iter().chain(IMPORTERS.iter().copied()).collect();
    for source in &sources {
        let told = pipeline::explain(source, &importers);
        if let Some(taken) = &told.taken {
            println!("{}: {}, because it is {}", told.uri, taken.format, taken.because);
        }
    }
    let config = PipelineConfig {
        now,
        threads: 1,
        importers: &importers,
        outcomes: &[],
        assume_failure: false,
        project: "",
        settings: ContentSettings::of(&options, ViewSettings::default()),
        out: Path::new(""),
        training: &[],
    };
    let mut store = Store::create_or_open(project)?;
    Ok(pipeline::import(&mut store, &sources, problems, &config, &mut ())?)
}

#[allow(dead_code, reason = "a test takes the functions above and runs them itself")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(project)) = (arguments.next(), arguments.next()) else {
        return Err("usage: custom_importer PATH PROJECT".into());
    };
    let imported = import(&[path], Path::new(&project), "2026-01-01T00:00:00Z")?;
    println!("{} runs, {} of them new", imported.stored.counts.trajectories, imported.stored.counts.new);
    Ok(())
}
