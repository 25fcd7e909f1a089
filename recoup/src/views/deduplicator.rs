//! The deduplicator: an example that shows and teaches the same bytes as an earlier one is dropped.

use std::collections::HashSet;

use super::Example;
use crate::id::Hash;

/// The examples seen so far, by [`Example::content_hash`]: 32 bytes each.
#[derive(Debug, Default)]
pub struct Deduplicator {
    // Only asked for membership, so its order is never seen.
    seen: HashSet<Hash>,
}

impl Deduplicator {
    /// Whether an example is the first of its content; it is remembered.
    pub fn is_new(&mut self, example: &Example) -> bool {
        self.seen.insert(example.content_hash())
    }
}
