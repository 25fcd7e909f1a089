//! Folding: conversations that rest are put into the project, as runs like any other.
//!
//! A conversation is read back from the journal and imported. One that goes on later is put in again and
//! is a longer revision of the same run; one that has rested long is let go of.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use recoup::importers::{Event, ImportOptions, Sink, SinkError, Source, recoup_proxy};
use recoup::rollout::interleave::recorded_label;
use recoup::store::Store;
use recoup::verdict::{Content, Producer, Verdict};
use tokio::sync::oneshot;

use super::Proxy;
use super::conversations::ConversationId;
use crate::clock::now;
use crate::failure::Failure;

/// How often conversations are looked at.
const TICK: Duration = Duration::from_millis(500);
/// How long the project is left alone after an import, in times of what that took: an import looks for near-duplicates
/// in the whole project, however few runs are new.
const LEFT_ALONE: u32 = 4;
/// Messages whose conversations can be gone on with: some hundred bytes each.
const MESSAGES_MAX: usize = 400_000;
/// Requests under way from which on the project waits, and how long it waits at most.
const BUSY: usize = 16;
const BUSY_REST: Duration = Duration::from_secs(30);
/// Version of what the proxy makes of a teacher's answer.
const LABELS_VERSION: u32 = 2;

/// What the folding thread is told.
pub(super) enum Order {
    /// Put a conversation in now, and say so.
    Fold(ConversationId, oneshot::Sender<Result<(), String>>),
    /// Put everything in and end.
    Finish,
}

/// The way to the folding thread.
pub(super) struct Folding(Mutex<Sender<Order>>);

impl Folding {
    pub(super) fn new(orders: Sender<Order>) -> Self {
        Self(Mutex::new(orders))
    }

    /// Sends an order; the thread lives as long as the proxy.
    pub(super) fn send(&self, order: Order) {
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).send(order);
    }
}

/// What was put in.
#[derive(Default)]
struct Folded {
    /// How many lines of each.
    lines: HashMap<ConversationId, usize>,
    /// How many lines of each could not be read.
    damaged: HashMap<ConversationId, usize>,
}

impl Folded {
    /// Whether the project holds everything that the journal does of a conversation.
    fn is_whole(&self, proxy: &Proxy, id: ConversationId) -> bool {
        !self.damaged.contains_key(&id) && self.lines.get(&id) == Some(&proxy.journal.line_count(id))
    }
}

/// A sink that keeps what was said of entries that cannot be read.
struct Watched<'a, S> {
    sink: &'a mut S,
    refused: Vec<String>,
}

impl<S: Sink> Sink for Watched<'_, S> {
    fn event(&mut self, event: Event) -> Result<(), SinkError> {
        if let Event::Quarantine(quarantine) = &event {
            self.refused.push(quarantine.reason.clone());
        }
        self.sink.event(event)
    }
}

/// Puts conversations into the project until it is told to end.
pub(super) fn run(proxy: &Arc<Proxy>, orders: &Receiver<Order>) -> Result<(), Failure> {
    let mut store = Store::create_or_open(&proxy.project)?;
    let mut folded = Folded::default();
    let mut next = Instant::now();
    loop {
        match orders.recv_timeout(TICK) {
            Ok(Order::Fold(id, done)) => {
                let result = fold(proxy, &mut store, &[id], &mut folded);
                let _ = done.send(result.map_err(|failure| failure.to_string()));
            }
            Ok(Order::Finish) | Err(RecvTimeoutError::Disconnected) => {
                let all = proxy.conversations().idle(u64::MAX);
                let result = fold_each(proxy, &mut store, &all, &mut folded);
                for id in all.into_iter().filter(|id| folded.is_whole(proxy, *id)) {
                    release(proxy, id);
                }
                proxy.journal.clear();
                return result;
            }
            Err(RecvTimeoutError::Timeout) => {
                if Instant::now() >= next {
                    let began = Instant::now();
                    let busy = proxy.in_flight() >= BUSY;
                    let rest = proxy.timing.fold_after;
                    let resting = idle(proxy, if busy { rest.max(BUSY_REST) } else { rest });
                    if let Err(failure) = fold_each(proxy, &mut store, &resting, &mut folded) {
                        // The journal keeps them; the next tick tries again.
                        proxy.printer.warn(format_args!("conversations wait in the journal: {failure}"));
                    }
                    next = Instant::now() + began.elapsed() * LEFT_ALONE;
                }
                forget(proxy, &mut folded);
            }
        }
    }
}

/// Lets go of conversations that have rested long, and of the longest unused where there are too many.
fn forget(proxy: &Proxy, folded: &mut Folded) {
    let mut drop = |id: ConversationId| {
        // Nobody may go on with it in between.
        let mut conversations = proxy.conversations();
        if folded.is_whole(proxy, id) && conversations.forget(id) {
            std::mem::drop(conversations);
            release(proxy, id);
            folded.lines.remove(&id);
        }
    };
    idle(proxy, proxy.timing.forget_after).into_iter().for_each(&mut drop);
    if proxy.conversations().message_count() > MESSAGES_MAX {
        for id in idle(proxy, proxy.timing.fold_after) {
            drop(id);
            if proxy.conversations().message_count() <= MESSAGES_MAX / 2 {
                break;
            }
        }
    }
}

fn release(proxy: &Proxy, id: ConversationId) {
    if let Err(error) = proxy.journal.release(id) {
        proxy.printer.warn(format_args!("a conversation cannot be taken out of the journal: {error}"));
    }
}

fn idle(proxy: &Proxy, rest: Duration) -> Vec<ConversationId> {
    let rest = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
    let Some(before) = proxy.now_millis().checked_sub(rest) else { return Vec::new() };
    proxy.conversations().idle(before)
}

/// Puts conversations in, fewer together where they cannot all be: one that the project does not take keeps no
/// other out.
fn fold_each(
    proxy: &Proxy,
    store: &mut Store,
    ids: &[ConversationId],
    folded: &mut Folded,
) -> Result<(), Failure> {
    let result = fold(proxy, store, ids, folded);
    if result.is_ok() || ids.len() < 2 {
        return result;
    }
    let (one, other) = ids.split_at(ids.len() / 2);
    let first = fold_each(proxy, store, one, folded);
    fold_each(proxy, store, other, folded).and(first)
}

/// Puts in those that have grown since they were, together.
fn fold(
    proxy: &Proxy,
    store: &mut Store,
    ids: &[ConversationId],
    folded: &mut Folded,
) -> Result<(), Failure> {
    let grown: Vec<(ConversationId, usize)> = ids
        .iter()
        .map(|id| (*id, proxy.journal.line_count(*id)))
        .filter(|(id, lines)| folded.lines.get(id).copied().unwrap_or(0) < *lines)
        .collect();
    if grown.is_empty() {
        return Ok(());
    }
    let options = Arc::new(ImportOptions { threads: 1, ..ImportOptions::default() });
    let now = now();
    let mut verdicts = Vec::new();
    let mut damaged = Vec::new();
    let mut sink = store.import(&now)?;
    for (id, _) in &grown {
        let bytes =
            proxy.journal.read(*id).map_err(|error| Failure::machine("cannot read the journal", &error))?;
        let source = Source::from_bytes("recoup-proxy", bytes, Arc::clone(&options));
        let mut watched = Watched { sink: &mut sink, refused: Vec::new() };
        let read = recoup_proxy::read(&source, &mut watched, recorded_label);
        if !watched.refused.is_empty() {
            damaged.push((*id, watched.refused));
        }
        for (run, labels) in read.map_err(|error| Failure::machine("cannot store a conversation", &error))? {
            let id = run.head.id;
            sink.event(Event::Trajectory(Box::new(run)))?;
            verdicts.extend(labels.into_iter().map(|label| {
                let producer = Producer::teacher(LABELS_VERSION, &label.teacher);
                Verdict::new(id, producer, Vec::new(), Content::StateLabel(label), &now)
            }));
        }
    }
    sink.finish()?;
    store.put_verdicts(&verdicts)?;
    proxy.metrics.stored.fetch_add(grown.len() as u64, Ordering::Relaxed);
    folded.lines.extend(grown);
    for (id, refused) in damaged {
        let before = folded.damaged.insert(id, refused.len()).unwrap_or(0);
        let new = refused.len().saturating_sub(before);
        if let (Some(why), true) = (refused.last(), new > 0) {
            proxy.metrics.damaged.fetch_add(new as u64, Ordering::Relaxed);
            proxy.printer.warn(format_args!(
                "{new} entries of a conversation cannot be read, the journal keeps it: {why}"
            ));
        }
    }
    Ok(())
}
