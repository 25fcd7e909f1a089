//! The library's integration tests: one binary, one module an area.

#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub)]

/// ATIF out and in again: the identity of what the format carries.
mod atif_round_trip;

/// What tests share: importing in memory, the shared traces, rendering for snapshots.
mod harness;

/// Damaged fixtures and files of odd sizes: no panic, no endless loop.
mod importer_damage;

/// Fixture folders: `fixtures/importers/<format>/<case>/input.*` against the snapshot beside it.
mod importer_fixtures;

/// Real traces that nobody here wrote: the counts an importer must reproduce.
mod real_data;
