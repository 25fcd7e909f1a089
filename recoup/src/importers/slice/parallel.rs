//! Reads records on several threads and hands the results on in input order.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::{Layout, RawRecord, Records, Stop};
use crate::importers::{Event, ImportError, Sink, Source};
use crate::warning::Quarantine;

/// Records of one batch together hold about this many bytes.
const BATCH_BYTES: usize = 256 << 10;
/// Bytes of records between the slicer and the sink, so that readers have work while the sink commits; one larger record
/// goes through alone.
const FLIGHT_BYTES: usize = 32 << 20;
/// Files below this size are read on the calling thread.
const SEQUENTIAL_BYTES: usize = 128 << 10;

/// A record, or what could not become one.
type Item = Result<RawRecord, Quarantine>;

/// Cuts a file into records, reads each with `read` and passes what it emits to `sink`, in the order
/// of the file whatever the thread count. A record that `read` refuses is quarantined.
///
/// # Errors
/// When the file cannot be read or the sink fails.
pub fn each<F>(source: &Source, layout: Layout<'_>, sink: &mut dyn Sink, read: F) -> Result<(), ImportError>
where
    F: Fn(&RawRecord, &mut dyn Sink) -> Result<(), Stop> + Sync,
{
    let mut records = Records::new(source, layout)?;
    let read = |item: Item, events: &mut Vec<Event>| match item {
        Err(quarantine) => events.push(Event::Quarantine(quarantine)),
        Ok(mut record) => {
            record.prepare();
            // A `Vec` never fails to take an event.
            let _ = record.attempt(events, &read);
        }
    };
    in_order(source.options().threads, move || records.next_raw(), read, |event| Ok(sink.event(event)?))
}

/// Draws records from `next`, shows each to `read` on one of `threads` threads and gives what that
/// emits to `deliver`, on the calling thread and in the order of the records.
///
/// # Errors
/// The first one of `next` or `deliver`; what stands before it is delivered.
pub(in crate::importers) fn in_order<T: Send>(
    threads: usize,
    mut next: impl FnMut() -> Option<Result<Item, ImportError>> + Send,
    read: impl Fn(Item, &mut Vec<T>) + Sync,
    mut deliver: impl FnMut(T) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut batch = Batch::default();
    // The first batch is read here: most files end with it, and threads cost more than it does.
    while batch.bytes < SEQUENTIAL_BYTES || threads < 2 {
        match next() {
            None => return batch.read(&read).into_iter().try_for_each(deliver),
            Some(Ok(item)) => batch.push(item),
            Some(Err(error)) => {
                batch.read(&read).into_iter().try_for_each(deliver)?;
                return Err(error);
            }
        }
        if threads < 2 {
            std::mem::take(&mut batch).read(&read).into_iter().try_for_each(&mut deliver)?;
        }
    }
    let flight = Flight::default();
    std::thread::scope(|scope| {
        let (to_workers, from_slicer) = sync_channel::<(u64, Batch)>(threads);
        let (to_collector, from_workers) = sync_channel::<(u64, usize, Vec<T>)>(threads * 2);
        // The workers own the receiver: when the last one ends, the slicer's next send fails.
        let from_slicer = Arc::new(Mutex::new(from_slicer));
        for _ in 0..threads {
            let (from_slicer, to_collector) = (from_slicer.clone(), to_collector.clone());
            let read = &read;
            scope.spawn(move || work(&from_slicer, &to_collector, read));
        }
        drop((from_slicer, to_collector));
        let flight = &flight;
        let slicer = scope.spawn(move || slice(next, batch, &to_workers, flight));
        let collected = collect(&from_workers, deliver, flight);
        // A failed sink closes the channels, so slicer and workers end.
        drop(from_workers);
        flight.close();
        let sliced = slicer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        collected?;
        sliced
    })
}

/// Records, and quarantined ranges, in order.
#[derive(Default)]
struct Batch {
    items: Vec<Item>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, item: Item) {
        self.bytes += item.as_ref().map_or(64, |record| record.bytes.len());
        self.items.push(item);
    }

    fn read<T>(self, read: &impl Fn(Item, &mut Vec<T>)) -> Vec<T> {
        let mut out = Vec::new();
        for item in self.items {
            read(item, &mut out);
        }
        out
    }
}

fn slice(
    mut next: impl FnMut() -> Option<Result<Item, ImportError>>,
    mut batch: Batch,
    to_workers: &SyncSender<(u64, Batch)>,
    flight: &Flight,
) -> Result<(), ImportError> {
    let mut number = 0;
    loop {
        let item = next();
        let ended = item.is_none();
        let mut failed = None;
        match item {
            Some(Ok(item)) => {
                let large = item.as_ref().is_ok_and(|record| record.bytes.len() > BATCH_BYTES);
                if large && !batch.items.is_empty() && !send(&mut number, &mut batch, to_workers, flight) {
                    return Ok(());
                }
                batch.push(item);
            }
            Some(Err(error)) => failed = Some(error),
            None => {}
        }
        let full = batch.bytes >= BATCH_BYTES || ended || failed.is_some();
        if full && !send(&mut number, &mut batch, to_workers, flight) {
            return Ok(());
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if ended {
            return Ok(());
        }
    }
}

/// Sends a batch to the workers; false when nobody listens any more.
fn send(number: &mut u64, batch: &mut Batch, to_workers: &SyncSender<(u64, Batch)>, flight: &Flight) -> bool {
    let batch = std::mem::take(batch);
    *number += 1;
    flight.take_off(batch.bytes) && to_workers.send((*number - 1, batch)).is_ok()
}

fn work<T>(
    from_slicer: &Mutex<Receiver<(u64, Batch)>>,
    to_collector: &SyncSender<(u64, usize, Vec<T>)>,
    read: &impl Fn(Item, &mut Vec<T>),
) {
    loop {
        let received = from_slicer.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, batch)) = received else { return };
        let bytes = batch.bytes;
        if to_collector.send((number, bytes, batch.read(read))).is_err() {
            return;
        }
    }
}

fn collect<T>(
    from_workers: &Receiver<(u64, usize, Vec<T>)>,
    mut deliver: impl FnMut(T) -> Result<(), ImportError>,
    flight: &Flight,
) -> Result<(), ImportError> {
    let mut early = BTreeMap::new();
    let mut next = 0;
    for (number, bytes, events) in from_workers {
        early.insert(number, (bytes, events));
        while let Some((bytes, events)) = early.remove(&next) {
            events.into_iter().try_for_each(&mut deliver)?;
            flight.land(bytes);
            next += 1;
        }
    }
    Ok(())
}

/// Bytes of records between slicer and sink.
#[derive(Default)]
struct Flight {
    state: Mutex<(usize, bool)>,
    landed: Condvar,
}

impl Flight {
    /// Waits until there is room; false once closed.
    fn take_off(&self, bytes: usize) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self
            .landed
            .wait_while(state, |(flying, closed)| !*closed && *flying > 0 && *flying + bytes > FLIGHT_BYTES)
            .unwrap_or_else(PoisonError::into_inner);
        state.0 += bytes;
        !state.1
    }

    fn land(&self, bytes: usize) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 -= bytes;
        self.landed.notify_all();
    }

    fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.landed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::{Read as _, Write as _};
    use std::sync::Arc;

    use super::super::header;
    use crate::importers::{Event, ImportError, ImportOptions, Source, detect};

    /// Chats that hardly compress.
    fn chats(count: u64) -> String {
        let mut state = 1_u64;
        let mut text = String::new();
        for number in 0..count {
            let mut answer = String::new();
            for _ in 0..400 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                answer.push(char::from(b'A' + (state >> 59) as u8 % 26));
            }
            let user = r#"{"role":"user","content":"q"}"#;
            let assistant = format!(r#"{{"role":"assistant","content":"{answer}"}}"#);
            let _ = writeln!(text, r#"{{"id":"{number}","messages":[{user},{assistant}]}}"#);
        }
        text
    }

    /// Runs read, and the codes and reasons of what was quarantined.
    fn read(packed: &[u8], threads: usize) -> (u64, Vec<(String, String)>) {
        let options = Arc::new(ImportOptions { threads, ..ImportOptions::default() });
        let source = Source::from_reader("-", packed, options).unwrap();
        let mut events: Vec<Event> = Vec::new();
        detect(&source).unwrap().unwrap().import(&source, &mut events).unwrap();
        let (mut runs, mut quarantined) = (0, Vec::new());
        for event in events {
            match event {
                Event::Trajectory(_) => runs += 1,
                Event::Quarantine(entry) => quarantined.push((entry.code, entry.reason)),
                _ => {}
            }
        }
        (runs, quarantined)
    }

    #[test]
    fn the_runs_before_a_cut_come_in_and_the_cut_is_said() {
        // Below and above what the calling thread reads alone.
        for count in [200, 2000] {
            let text = chats(count);
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(text.as_bytes()).unwrap();
            let mut files = vec![gz.finish().unwrap()];
            if count == 2000 {
                // zstd gives whole blocks only, and a small file is one.
                files.push(zstd::encode_all(text.as_bytes(), 1).unwrap());
            }
            for packed in files {
                for threads in [1, 2] {
                    let (runs, quarantined) = read(&packed[..packed.len() / 10 * 9], threads);
                    assert!((1..count).contains(&runs), "{runs} of {count}");
                    let last = quarantined.last().unwrap();
                    assert_eq!((last.0.as_str(), quarantined.len()), ("unreadable", 1));
                }
            }
        }
    }

    #[test]
    fn the_good_records_of_a_bomb_come_in() {
        let text = chats(50);
        let bomb = text.as_bytes().chain(std::io::repeat(b'x').take(100 << 20));
        let (runs, quarantined) = read(&zstd::encode_all(bomb, 1).unwrap(), 2);
        assert_eq!(runs, 50);
        assert!(quarantined[0].1.contains("unpacks to more than"), "{quarantined:?}");
    }

    #[test]
    fn a_header_whose_records_are_cut_off_is_truncated() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        write!(gz, r#"{{"samples":[{}"#, chats(500).replace('\n', ",")).unwrap();
        let packed = gz.finish().unwrap();
        let source = Source::from_reader("-", &packed[..packed.len() / 2], Arc::default()).unwrap();
        let error = header(&source, &["samples"]).unwrap_err();
        assert!(matches!(error, ImportError::Unreadable { code: "truncated", .. }), "{error}");
    }
}
