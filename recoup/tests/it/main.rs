//! The library's integration tests: one binary, one module an area.

#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub)]

/// What tests share: importing in memory, the shared traces, rendering for snapshots.
mod harness;

/// Fixture folders: `fixtures/importers/<format>/<case>/input.*` against the snapshot beside it.
mod importer_fixtures;

/// Real traces that nobody here wrote: the counts an importer must reproduce.
mod real_data;

/// Redaction over generated runs.
mod redaction;

/// What is learned from and what never is, and the rows that come of it.
mod views;
