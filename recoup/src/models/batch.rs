//! A batch: many blocking questions at once, their answers in the order of the items.
//!
//! A question mostly waits, so each in flight has a thread with a small stack, which costs a few pages; a
//! function that asks several questions one after the other stays a plain function.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Stack of an asking thread: address space, of which only what is touched takes memory.
pub(super) const STACK_BYTES: usize = 1 << 20;

/// Calls `f` on every item, at most `limit` at once, and hands the results to `done` with their positions,
/// in order and as soon as that allows, on the calling thread: what is finished can be written while others
/// still ask.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    limit: usize,
    f: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(usize, R),
) {
    let threads = limit.min(items.len());
    if threads < 2 {
        for (index, item) in items.iter().enumerate() {
            done(index, f(item));
        }
        return;
    }
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let work = |sender: mpsc::Sender<(usize, R)>| {
            let (next, f) = (&next, &f);
            move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    if sender.send((index, f(item))).is_err() {
                        return;
                    }
                }
            }
        };
        let mut started = 0;
        for _ in 0..threads {
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            // Where the system gives no more threads, those that run do the work.
            if builder.spawn_scoped(scope, work(sender.clone())).is_err() {
                break;
            }
            started += 1;
        }
        if started == 0 {
            work(sender.clone())();
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut expected = 0;
        for (index, result) in receiver {
            early.insert(index, result);
            while let Some(result) = early.remove(&expected) {
                done(expected, result);
                expected += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::each;

    fn map<T: Sync, R: Send>(items: &[T], limit: usize, f: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let mut done = Vec::new();
        each(items, limit, f, |_, result| done.push(result));
        done
    }

    #[test]
    fn answers_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..200).collect();
        let slow = |item: &u64| {
            std::thread::sleep(Duration::from_micros((item * 7919) % 400));
            item * 2
        };
        let expected: Vec<u64> = items.iter().map(|item| item * 2).collect();
        assert_eq!(map(&items, 16, slow), expected);
        let mut positions = Vec::new();
        each(&items, 16, slow, |index, _| positions.push(index));
        assert!(positions.is_sorted() && positions.len() == 200);
        assert_eq!(map(&items, 0, slow), expected);
    }

    #[test]
    fn no_more_than_the_limit_at_once() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        map(&[0; 100], 8, |_| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
            now.fetch_sub(1, Ordering::SeqCst);
        });
        assert!((2..=8).contains(&most.into_inner()));
    }
}
