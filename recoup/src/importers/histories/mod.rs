//! Histories: logs whose every record repeats the conversation so far, as the requests to a model do.
//!
//! Requests of one conversation become one run. A record continues another where the other's messages,
//! its answer included, are the beginning of its own, or where it names the other's response
//! (`previous_response_id`). Messages are compared by what they say and call ([`fingerprint`]): clients
//! often send a turn again without its reasoning, and then the first form is kept and the difference is a
//! loss. Of several records that the same one continues the run is a tree; records that only share how
//! they begin (the same prompt asked again) stay runs of their own.
//!
//! The file is read twice: once for what continues what, which holds one hash a distinct message, and
//! once a run, so that memory is bounded by the largest run.

mod batch;
mod exchange;
mod fingerprint;
mod links;
mod tree;

use std::io::SeekFrom;

use serde_json::value::RawValue;

use self::batch::Requests;
pub(super) use self::exchange::Exchange;
use self::exchange::exchange;
use self::links::{Links, Staged};
use self::tree::Tree;
use super::dialect::Dialect;
use super::object::Object;
use super::slice::{Joined, RawRecord, Records};
use super::source::ReadSeek;
use super::value::{is_array, is_object};
use super::{Event, ImportError, Layout, Probe, RecordError, Sink, Source};
use crate::warning::ByteSpan;

/// Reads one record.
pub(super) type Reader<'r> = &'r dyn for<'a> Fn(&'a RawRecord) -> Result<Exchange<'a>, RecordError>;

/// Reads a provider's log, whose records are requests with their responses, or lists of messages.
/// `bare` says that the file is one such list.
///
/// # Errors
/// When the file cannot be read or the sink fails.
pub(super) fn import_log(
    source: &Source,
    dialect: Dialect,
    bare: bool,
    format: &str,
    sink: &mut dyn Sink,
) -> Result<(), ImportError> {
    if Requests::are_answered(source) {
        return Ok(());
    }
    let layout = if bare { Layout::Document } else { Probe::read(source)?.layout() };
    let requests = Requests::beside(source);
    import(source, layout, format, sink, &|record| logged(record, dialect, requests.as_ref()))
}

fn logged<'a>(
    record: &'a RawRecord,
    dialect: Dialect,
    requests: Option<&Requests>,
) -> Result<Exchange<'a>, RecordError> {
    let raw: &RawValue = record.parse()?;
    if is_array(raw) {
        return Exchange::of_messages(raw, dialect, Object::default());
    }
    let mut row = Object::parse(raw, "record")?;
    for key in ["items", "data"] {
        if let Some(list) = row.take_if(key, is_array) {
            return Exchange::of_messages(list, dialect, row);
        }
    }
    if row.has("role") {
        return Exchange::of_answer(raw, dialect, row.text("id"));
    }
    let sent = requests.and_then(|requests| requests.of(&row));
    let sent = sent.as_ref().map(RawRecord::parse::<&RawValue>).transpose()?;
    exchange(row, sent.filter(|raw| is_object(raw)), dialect)
}

/// Reads every run of a file of histories. A record that `read` refuses is quarantined.
///
/// # Errors
/// When the file cannot be read or the sink fails.
pub(super) fn import(
    source: &Source,
    layout: Layout,
    format: &str,
    sink: &mut dyn Sink,
    read: Reader<'_>,
) -> Result<(), ImportError> {
    let mut links = Links::default();
    let mut records = Records::new(source, layout)?;
    while let Some(item) = records.next_raw() {
        match item? {
            Ok(mut record) => {
                let span = (record.span, record.line, record.ordinal);
                record.rewrite();
                record.attempt(sink, |record, _| {
                    links.add(span, &read(record)?);
                    Ok(())
                })?;
            }
            Err(quarantine) => sink.event(Event::Quarantine(quarantine))?,
        }
    }
    let mut file = source.open_seekable()?;
    for group in links.groups() {
        run(source, &mut *file, &group, format, sink, read)?;
    }
    Ok(())
}

/// Reads the records of one run again and hands it on.
fn run(
    source: &Source,
    file: &mut dyn ReadSeek,
    group: &[Staged],
    format: &str,
    sink: &mut dyn Sink,
    read: Reader<'_>,
) -> Result<(), ImportError> {
    let mut tree = Tree::new(format);
    let mut joined: Option<Joined> = None;
    let mut native = None;
    for (number, staged) in group.iter().enumerate() {
        let bytes = bytes(file, staged.span).map_err(|error| ImportError::io(source, error))?;
        let mut record = RawRecord::at(source, bytes, staged.span.start, staged.line);
        record.ordinal = staged.ordinal;
        record.hash();
        record.rewrite();
        let is_last = number + 1 == group.len();
        record.attempt(sink, |record, _| {
            let exchange = read(record)?;
            // A log grows: its runs keep the name that their first record gives them.
            let name = exchange.id.clone().unwrap_or_else(|| match record.ordinal {
                0 => record.sha256.clone(),
                ordinal => format!("{}#{ordinal}", record.sha256),
            });
            native.get_or_insert(name);
            tree.add(exchange, is_last, &source.options().scoring);
            Ok(())
        })?;
        joined.get_or_insert_with(|| Joined::new(&record)).add(&record);
    }
    let Some(joined) = joined else { return Ok(()) };
    let (run, losses) = tree.finish();
    for loss in losses {
        sink.loss(loss)?;
    }
    Ok(joined.finish().emit(sink, run, native, Vec::new(), 0)?)
}

fn bytes(file: &mut dyn ReadSeek, span: ByteSpan) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(span.start))?;
    let mut bytes = vec![0; usize::try_from(span.end - span.start).map_err(std::io::Error::other)?];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
