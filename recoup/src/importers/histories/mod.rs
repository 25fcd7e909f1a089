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

use serde_json::value::RawValue;

use self::batch::Requests;
pub(super) use self::exchange::Exchange;
use self::exchange::exchange;
use self::links::{Links, Staged};
use self::tree::Tree;
use super::dialect::Dialect;
use super::object::{Object, missing};
use super::slice::{Again, Joined, Keeper, RawRecord, Records};
use super::value::{is_array, is_object};
use super::{Event, ImportError, Layout, Probe, RecordError, Sink, Source};
use crate::warning::Loss;

/// Reads one record.
pub(super) type Reader<'r> = &'r dyn for<'a> Fn(&'a RawRecord) -> Result<Exchange<'a>, RecordError>;

/// Reads a provider's log, whose records are requests with their responses, or lists of messages.
///
/// # Errors
/// When the file cannot be read or the sink fails.
pub(super) fn import_log(
    source: &Source,
    probe: &Probe,
    layout: Layout<'_>,
    dialect: Dialect,
    format: &str,
    sink: &mut dyn Sink,
) -> Result<(), ImportError> {
    if Requests::are_answered(source, probe) {
        return Ok(());
    }
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
        return filled(Exchange::of_messages(raw, dialect, Object::default())?);
    }
    let mut row = Object::parse(raw, "record")?;
    for key in ["items", "data"] {
        if let Some(list) = row.take_if(key, is_array) {
            return filled(Exchange::of_messages(list, dialect, row)?);
        }
    }
    if row.has("role") {
        return Exchange::of_answer(raw, dialect, row.text("id"));
    }
    let sent = requests.and_then(|requests| requests.of(&row));
    let sent = sent.as_ref().map(RawRecord::parse::<&RawValue>).transpose()?;
    exchange(row, sent.filter(|raw| is_object(raw)), dialect)
}

/// The same, or an error where it holds no message.
fn filled(exchange: Exchange<'_>) -> Result<Exchange<'_>, RecordError> {
    if exchange.context.is_empty() { Err(missing("messages")) } else { Ok(exchange) }
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
    let mut keeper = Keeper::new(source, layout)?;
    while let Some(item) = records.next_raw() {
        match item? {
            Ok(mut record) => {
                let place = keeper.keep(&record)?;
                let ordinal = record.ordinal;
                for loss in std::mem::take(&mut record.losses) {
                    // Of a table's cells; the bytes that are read again no longer say it.
                    sink.loss(Loss::new(format, "row", loss))?;
                }
                record.rewrite();
                record.attempt(sink, |record, _| {
                    links.add(Staged { place, ordinal }, &read(record)?);
                    Ok(())
                })?;
            }
            Err(quarantine) => sink.event(Event::Quarantine(quarantine))?,
        }
    }
    let mut again = keeper.finish()?;
    for group in links.groups() {
        run(source, &mut again, &group, format, sink, read)?;
    }
    Ok(())
}

/// Reads the records of one run again and hands it on.
fn run(
    source: &Source,
    again: &mut Again<'_>,
    group: &[Staged],
    format: &str,
    sink: &mut dyn Sink,
    read: Reader<'_>,
) -> Result<(), ImportError> {
    let mut tree = Tree::new(format);
    let mut joined: Option<Joined> = None;
    let mut native = None;
    for (number, staged) in group.iter().enumerate() {
        let mut record = again.record(staged.place)?;
        record.ordinal = staged.ordinal;
        record.hash();
        record.rewrite();
        let is_last = number + 1 == group.len();
        record.attempt(sink, |record, _| {
            let exchange = read(record)?;
            // A log grows: its runs keep the name that their first record gives them.
            let known = exchange.conversation.clone().or_else(|| exchange.id.clone());
            let name = known.unwrap_or_else(|| match record.ordinal {
                0 => record.sha256.clone(),
                ordinal => format!("{}#{ordinal}", record.sha256),
            });
            native.get_or_insert(name);
            tree.add(exchange, is_last, &source.options().scoring);
            Ok(())
        })?;
        joined.get_or_insert_with(|| Joined::new(&record)).add(&record);
    }
    // A run none of whose records could be read again is none.
    let Some(joined) = joined.filter(|_| native.is_some()) else { return Ok(()) };
    let (run, losses) = tree.finish();
    for loss in losses {
        sink.loss(loss)?;
    }
    Ok(joined.finish().emit(sink, run, native, Vec::new(), 0)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::importers::{Event, Source, detect};
    use crate::trajectory::{Sealed, Status};

    const LOG: [&str; 3] = [
        r#"{"request":{"system":"S","messages":[{"role":"user","content":"a"}]},"response":{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"tool_use"}}"#,
        r#"{"request":{"system":"S","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}]},"response":{"type":"message","role":"assistant","content":[{"type":"text","text":"b"}],"stop_reason":"end_turn"}}"#,
        r#"{"request":{"system":"S","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]},{"role":"assistant","content":"b"},{"role":"user","content":"and?"}]},"response":{"type":"message","role":"assistant","content":[{"type":"text","text":"c"}],"stop_reason":"end_turn"},"success":true}"#,
    ];

    fn runs(lines: &[&str]) -> Vec<Sealed> {
        read("log.jsonl", lines.join("\n"))
    }

    fn read(name: &str, text: String) -> Vec<Sealed> {
        let source = Source::from_bytes(name, text.into_bytes(), Arc::default());
        let mut events: Vec<Event> = Vec::new();
        detect(&source).unwrap().unwrap().import(&source, &mut events).unwrap();
        let sealed = |event| match event {
            Event::Trajectory(sealed) => Some(*sealed),
            _ => None,
        };
        events.into_iter().filter_map(sealed).collect()
    }

    #[test]
    fn a_log_that_grew_is_the_same_run_in_a_new_revision() {
        let (short, whole) = (runs(&LOG[..2]), runs(&LOG));
        let ([short], [whole]) = (short.as_slice(), whole.as_slice()) else { panic!("{short:?} {whole:?}") };
        assert_eq!(short.head.key, whole.head.key);
        assert_ne!(short.head.revision, whole.head.revision);
        assert_eq!((short.bodies.len(), whole.bodies.len()), (5, 7));
        assert_eq!(whole.bodies[..5], short.bodies);
        assert_eq!((short.step_count, whole.step_count), (2, 3));
        assert_eq!(whole.head.outcome().status, Status::Success);
    }

    #[test]
    fn a_table_of_requests_holds_the_runs_that_lines_hold() {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let rows = LOG[..2].iter().map(|line| {
            let (request, response) = line.split_once(",\"response\":").unwrap();
            let request = request.strip_prefix("{\"request\":").unwrap();
            format!("{},{}\n", quoted(request), quoted(response.strip_suffix('}').unwrap()))
        });
        let table = format!("request,response\n{}", rows.collect::<String>());
        let (table, lines) = (read("log.csv", table), runs(&LOG[..2]));
        let ([table], [lines]) = (table.as_slice(), lines.as_slice()) else { panic!("{table:?} {lines:?}") };
        assert_eq!(table.bodies, lines.bodies);
        assert_eq!(table.head.source.span.map(|span| span.start), Some(17));
    }

    #[test]
    fn the_order_of_the_records_changes_no_message() {
        let mut hashes: Vec<_> = runs(&LOG)[0].bodies.iter().map(|body| body.hash).collect();
        hashes.sort_unstable();
        for order in [[2, 1, 0], [1, 0, 2], [0, 2, 1]] {
            let runs = runs(&order.map(|index| LOG[index]));
            assert_eq!(runs.len(), 1, "{order:?}");
            let mut found: Vec<_> = runs[0].bodies.iter().map(|body| body.hash).collect();
            found.sort_unstable();
            assert_eq!(found, hashes, "{order:?}");
        }
    }
}
