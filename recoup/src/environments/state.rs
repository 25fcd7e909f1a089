//! A state: where an episode stands, as bytes.

use std::sync::Arc;

use crate::id::Hash;

/// The state of an episode. For a package it is the state's own JSON in insertion order; for an
/// environment that cannot be copied it is the JSON list of the actions that led to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State(Arc<str>);

impl State {
    /// A state from its JSON.
    pub fn new(json: impl Into<Arc<str>>) -> Self {
        Self(json.into())
    }

    /// The JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// BLAKE3 of the bytes. Order of keys counts, because a program can observe it.
    pub fn hash(&self) -> Hash {
        Hash::of(self.0.as_bytes())
    }
}

/// What a checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointKind {
    /// The state itself: restoring is a copy.
    Snapshot,
    /// The actions so far: restoring takes them again after a reset.
    Prefix,
}
