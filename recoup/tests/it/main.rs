//! The library's integration tests: one binary, one module an area.

#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub)]

/// What tests share: importing in memory, the shared traces, rendering for snapshots.
mod harness;

/// Fixture folders: `fixtures/importers/<format>/<case>/input.*` against the snapshot beside it.
mod importer_fixtures;

/// Damaged files: fixtures cut short, with bytes changed, and read as every format.
mod damaged_files;

/// Real traces that nobody here wrote: the counts an importer must reproduce.
mod real_data;
