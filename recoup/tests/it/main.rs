//! The library's integration tests: one binary, one module an area.

#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub)]

/// The admission battery: what is admitted, and which gate stops what.
#[cfg(feature = "packages")]
mod admission;
/// ATIF out and in again: the identity of what the format carries.
mod atif_round_trip;
/// canonical-1 against its Python twin, case by case, and its properties.
mod canonical_golden;

/// The bundled example runs: what each must show.
mod examples;

/// Inputs a fuzzer found, run again.
mod fuzz_cases;

/// Packages that break their contract, each in one way.
#[cfg(feature = "packages")]
mod bad_packages;
/// Bridges: children that keep the protocol and children that do not.
#[cfg(all(feature = "packages", unix))]
mod bridges;
/// Playing a broken environment until it errs; shared with the program's tests.
#[cfg(feature = "packages")]
mod broken;
/// Killing the process, two of them at once.
mod crash;
/// The example of an importer of one's own.
mod custom_importer;
/// Triage and diagnosis: sealed runs, hostile runs, real runs.
mod diagnosis;
/// The bundled environments.
#[cfg(feature = "packages")]
mod environments;
/// What must hold for any bytes; shared with the fuzz targets.
mod fuzz_properties;

/// What the detectors see of each bad habit of the weak policies.
#[cfg(feature = "packages")]
mod habits;

/// Exporters: masks, weights and pairs in the words of each format.
mod exporters;

/// What tests share: importing in memory, the shared traces, rendering for snapshots.
mod harness;

/// Fixture folders: `fixtures/importers/<format>/<case>/input.*` against the snapshot beside it.
mod hindsight;
mod importer_fixtures;
/// Runs that a student and a teacher share.
#[cfg(feature = "packages")]
mod interleave;

/// Inspect archives, built here: packed members, hostile names, damage, limits.
mod inspect_archives;

/// Damaged files: every fixture cut, changed, doubled, and read by every importer.
mod damaged_files;
/// What is recognized as a trace, and what stands beside traces and is none.
mod detection;

/// Judges: windows, gates, panels, hostile traces.
mod judges;
/// The bundled environments under CPython, byte for byte.
#[cfg(feature = "packages")]
mod python_twin;
/// Real traces that nobody here wrote: the counts an importer must reproduce.
mod real_data;

/// Redaction over generated runs.
mod redaction;
/// Redaction measured on a drawn corpus and on real traces.
mod redaction_corpus;
/// Rows of a release.
#[cfg(feature = "parquet")]
mod release;

/// Stored runs executed again: strictness, matched arms, curves.
#[cfg(feature = "packages")]
mod replay;
/// What a replayed project teaches, view by view.
#[cfg(feature = "packages")]
mod replayed_views;
/// The failure report.
mod report;
/// Policies that act in the bundled environments, and the runs they leave.
#[cfg(feature = "packages")]
mod rollout;
/// The project folder: importing, listing, verdicts, split, forgetting.
mod store;
/// Stored runs are reproduced to the byte or not at all.
#[cfg(feature = "packages")]
mod strictness;

/// What is learned from and what never is, and the rows that come of it.
mod views;
