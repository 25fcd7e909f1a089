//! Spans: traces in which a run is a tree of timed operations, as observability tools record them.
//!
//! * Pieces of many runs interleave, in a file and across files. [`staging`] sorts them, so that one
//!   run at a time is in memory.
//! * Each format is one file that maps its rows to [`span::Span`]; what becomes of them is the same for
//!   all: [`forest`] finds the parents, [`conversation`] lays the messages of every model call over
//!   each other, [`assemble`] makes the run.
//! * A trace is a run. Model calls that stand alone in traces of their own are joined by their
//!   conversation, where they name one.

mod answers;
mod assemble;
mod attributes;
mod conversation;
mod cut_off;
mod forest;
mod genai;
mod langfuse;
mod langsmith;
mod mlflow;
mod openai_agents;
mod openinference;
mod otlp;
mod otlp_value;
mod protobuf;
mod recognized;
mod record;
mod repeated;
mod request;
mod sameness;
mod scores;
mod span;
mod staging;
mod time;
mod tools;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::value::RawValue;

pub(crate) use self::assemble::message_of_span;
pub(super) use self::langfuse::Langfuse;
pub(super) use self::langsmith::LangSmith;
pub(super) use self::mlflow::MlFlow;
pub(super) use self::openai_agents::OpenAiAgents;
pub(super) use self::otlp::{OpenInference, OtelGenAi};
use self::span::Trace;
use self::staging::{Fragment, Staging, take_name};
use super::object::{Object, missing};
use super::slice::{RawRecord, RecordError, Records, in_order};
use super::{Event, ImportError, Importer, Layout, Probe, Scoring, Sink, Source, each_file};
use crate::trajectory::Trajectory;
use crate::verdict::ReferenceLabel;
use crate::warning::{ByteSpan, Loss, Quarantine};

/// A format whose records hold pieces of runs. It is an importer by that.
trait Spans: Sync {
    /// The importer's name.
    fn name(&self) -> &'static str;

    /// See [`Importer::family`].
    fn kin(&self) -> &'static str {
        self.name()
    }

    /// See [`Importer::recognizes`].
    fn phrase(&self) -> &'static str;

    /// Whether a file is of this format, from its first bytes.
    fn detects(&self, probe: &Probe) -> bool;

    /// How the pieces lie in a file: as its records, unless the format says otherwise. What of the file
    /// cannot be made records is quarantined.
    ///
    /// # Errors
    /// When the file cannot be read or the sink fails.
    fn part(&self, source: &Source, _sink: &mut dyn Sink) -> Result<Part, ImportError> {
        let layouts = vec![Probe::read(source)?.layout()];
        Ok(Part { source: source.clone(), layouts, translated: None })
    }

    /// Finds the pieces of a record: objects.
    ///
    /// # Errors
    /// When the record is not of the format.
    fn pieces<'r>(&self, record: &'r RawRecord, pieces: &mut Pieces<'r>) -> Result<(), RecordError>;

    /// Reads a piece that [`Spans::pieces`] found. Pieces come in file order, each after its context.
    ///
    /// # Errors
    /// When the piece is not of the format.
    fn read<'r>(&self, piece: Object<'r>, trace: &mut Trace<'r>) -> Result<(), RecordError>;
}

impl<T: Spans> Importer for T {
    fn format(&self) -> &'static str {
        self.name()
    }

    fn recognizes(&self) -> &'static str {
        self.phrase()
    }

    fn detect(&self, probe: &Probe) -> bool {
        self.detects(probe)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        import(self, &[source], sink)
    }

    fn family(&self) -> Option<&str> {
        Some(self.kin())
    }

    fn import_together(&self, sources: &[&Source], sink: &mut dyn Sink) -> Result<(), ImportError> {
        import(self, sources, sink)
    }
}

/// What a record holds.
#[derive(Default)]
struct Pieces<'r> {
    pieces: Vec<Piece<'r>>,
    /// Fields that are not carried, with the reason.
    lost: Vec<(String, &'static str)>,
}

/// A piece of a run within a record.
struct Piece<'r> {
    run: String,
    /// Bytes of the record: an object.
    body: &'r str,
    /// What the record says of it and others together, as JSON.
    context: Option<Arc<str>>,
}

/// A file, and how the pieces lie in it.
struct Part {
    source: Source,
    layouts: Vec<Layout<'static>>,
    /// Size of the file where the records are a translation, whose places are not its own.
    translated: Option<u64>,
}

/// What the first pass gives.
enum Found {
    Piece(Fragment),
    Other(Event),
}

/// Reads files of one format together: first where each run's pieces stand, then the runs. Of several
/// files one that cannot be read costs only itself.
fn import(format: &dyn Spans, sources: &[&Source], sink: &mut dyn Sink) -> Result<(), ImportError> {
    let Some(options) = sources.first().map(|source| source.options().clone()) else { return Ok(()) };
    let mut staging = Staging::new()?;
    each_file(sources, sink, |source, sink| find(format, source, &mut staging, sink))?;
    let mut runs = staging.finish();
    let read = |item: Result<RawRecord, Quarantine>, events: &mut Vec<Event>| match item {
        Err(quarantine) => events.push(Event::Quarantine(quarantine)),
        Ok(record) => read_run(format, record, &options.scoring, events),
    };
    in_order(options.threads, move || runs.next(), read, |event| Ok(sink.event(event)?))
}

/// Notes the place of every piece of a file.
fn find(
    format: &dyn Spans,
    source: &Source,
    staging: &mut Staging,
    sink: &mut dyn Sink,
) -> Result<(), ImportError> {
    let part = format.part(source, sink)?;
    staging.file(part.source.clone(), part.translated);
    let is_translated = part.translated.is_some();
    for layout in part.layouts {
        let mut records = Records::new(&part.source, layout)?;
        let is_table = layout == Layout::Table;
        in_order(
            source.options().threads,
            move || records.next_raw(),
            |item, found| stage(format, item, is_table, found),
            |found| match found {
                Found::Piece(fragment) => staging.add(&fragment),
                Found::Other(Event::Quarantine(entry)) if is_translated => {
                    // Its place would be one of the translation.
                    Ok(sink.event(Event::Quarantine(Quarantine { line: None, span: None, ..entry }))?)
                }
                Found::Other(event) => Ok(sink.event(event)?),
            },
        )?;
    }
    Ok(())
}

/// Finds the pieces of a record.
fn stage(format: &dyn Spans, item: Result<RawRecord, Quarantine>, is_table: bool, found: &mut Vec<Found>) {
    let mut record = match item {
        Ok(record) => record,
        Err(quarantine) => return found.push(Found::Other(Event::Quarantine(quarantine))),
    };
    let mut pieces = Pieces::default();
    if format.pieces(&record, &mut pieces).is_err() {
        // Perhaps JSON as only Python writes it. Then the text at a place of the file is none.
        record.rewrite();
        pieces = Pieces::default();
        if let Err(error) = format.pieces(&record, &mut pieces) {
            return found.push(Found::Other(record.quarantine(&error)));
        }
    }
    // A table's row is put together from its cells, and may have as many bytes as they have.
    let rewritten = is_table || !record.losses.is_empty();
    // The rewritten text is all that the run will see.
    let reasons = record.losses.iter().map(|reason| Loss::new(format.name(), "json", *reason));
    found.extend(reasons.map(|loss| Found::Other(Event::Loss(loss))));
    let losses = pieces.lost.into_iter().map(|(field, reason)| Loss::new(format.name(), field, reason));
    found.extend(losses.map(|loss| Found::Other(Event::Loss(loss))));
    found.extend(pieces.pieces.into_iter().map(|piece| {
        let text = piece.body;
        let start = (text.as_ptr() as usize).saturating_sub(record.bytes.as_ptr() as usize) as u64;
        let span =
            ByteSpan { start: record.span.start + start, end: record.span.start + start + text.len() as u64 };
        Found::Piece(Fragment {
            run: piece.run,
            context: piece.context,
            span: if rewritten { record.span } else { span },
            line: record.line,
            row: record.row,
            held: rewritten.then(|| text.to_owned()),
        })
    }));
}

/// Reads the pieces of a run and puts it together.
fn read_run(format: &dyn Spans, mut record: RawRecord, scoring: &Scoring, events: &mut Vec<Event>) {
    let name = take_name(&mut record);
    record.hash();
    let text = record.take_text();
    let mut trace = Trace::default();
    for piece in serde_json::Deserializer::from_str(&text).into_iter::<Object<'_>>() {
        // Behind what is no object nothing can be found.
        let is_last = piece.is_err();
        let read = piece.map_err(RecordError::from).and_then(|piece| format.read(piece, &mut trace));
        if let Err(error) = read {
            events.push(record.quarantine(&error));
        }
        if is_last {
            break;
        }
    }
    // A `Vec` never fails to take an event.
    let _ = record.attempt(events, |record, sink| {
        let mut losses = BTreeSet::new();
        let name_of_format = trace.format.unwrap_or(format.name());
        let assembled = assemble::assemble(name_of_format, trace, scoring, &mut losses);
        for loss in losses {
            sink.loss(loss)?;
        }
        if let Some((run, labels)) = assembled {
            record.emit(sink, run, Some(name), labels, 0)?;
        }
        Ok(())
    });
}

/// Puts a trace together that a record of another format holds: an object with `spans`, which may hold those
/// beneath them. `None` where no message is recorded.
///
/// # Errors
/// When it is no trace.
pub(super) fn held(
    trace: &RawValue,
    scoring: &Scoring,
    losses: &mut BTreeSet<Loss>,
) -> Result<Option<(Trajectory, Vec<ReferenceLabel>)>, RecordError> {
    let mut object = Object::parse(trace, "trace")?;
    let mut read = Trace::default();
    for raw in object.list("spans").ok_or_else(|| missing("trace.spans"))? {
        record::read(Object::parse(raw, "trace.spans[]")?, &mut read)?;
    }
    let format = read.format.unwrap_or(record::CONVENTIONS);
    Ok(assemble::assemble(format, read, scoring, losses))
}

#[cfg(test)]
mod tests;
