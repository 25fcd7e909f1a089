//! The program's tests: through the door the user uses. One module a command or a theme; each test is
//! a folder, a command line and a literal answer.

#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub)]

/// A folder to work in, and commands whose exit code and output are snapshots.
mod bench;

/// What files and answers start with.
mod artifacts;

/// Collecting: policies in the bundled environments.
mod collect;
/// Collecting with a teacher that labels every state.
mod collect_round;

/// Environments: listed, checked, played, exported.
mod env;
/// Environments, served to other programs.
mod serve;

/// Attribution, measured.
mod eval;

/// Training rows, in every format.
mod exports;

/// Who would take a file, and why.
mod explain;
/// Importing: formats of input, outcomes from elsewhere, resuming.
mod import;
/// Logs of one's own, read as a mapping says.
mod map;

/// Runs re-executed in environments that are folders.
#[cfg(unix)]
mod folders;

/// A model's server that breaks its promises.
mod fault_server;
/// Listing, showing, labelling, forgetting.
mod look;

/// A provider's batch API.
mod model_batches;
/// `[models]` of the settings file.
mod model_settings;
/// Asking models: what they answer, what they cost, and what goes wrong.
mod models;

/// A proxy between clients and models.
mod proxy;

/// Judges, panels, and people who measure them.
mod judges;

/// Failed runs re-executed, and repairs proved by matched arms.
mod replay;

/// Goals that failed runs did achieve.
mod relabel;
/// Runs and verdicts, published.
mod release;

/// What nothing is learned from.
mod selection;

/// The main job on the bundled examples and on the shared traces.
mod run;

/// Folders that are followed while they grow.
mod watch;

/// Files that are broken, hostile, or not there.
mod bad_input;

/// Files that hold one bad byte or key, and files of which nothing can be read.
mod damaged;

/// Stopped at every commit and rename, and started again.
mod failpoints;

/// Rows of tokens: masks, windows, and models that cannot be used.
mod tokenized;

/// Nothing that was planted in a trace stands in any file that the program writes.
mod redaction;

/// Playing a broken environment until it errs.
#[path = "../../../recoup/tests/it/broken.rs"]
mod broken;
/// Packages in a process of their own.
#[cfg(unix)]
mod workers;
