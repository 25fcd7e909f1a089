//! The library's integration tests: one binary, one module an area.

#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub)]

/// Killing the process, two of them at once.
mod crash;

/// What tests share: importing in memory, the shared traces, rendering for snapshots.
mod harness;

/// Fixture folders: `fixtures/importers/<format>/<case>/input.*` against the snapshot beside it.
mod importer_fixtures;

/// Real traces that nobody here wrote: the counts an importer must reproduce.
mod real_data;

/// The project folder: importing, listing, verdicts, split, forgetting.
mod store;
