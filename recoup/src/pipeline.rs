//! The pipeline: the stages in order. This file is the picture of how data flows.
//!
//! ```text
//! sources ─ import ─▶ store ─ attach outcomes ─▶ diagnose ─▶ store ─ outlets ─▶ report, training files
//!                                                             │ ▲
//!                                environments ─▶ replay, relabel ┘
//! ```
//!
//! Each stage does only what is new: an import knows the runs it has, the diagnosis the tasks it has
//! finished, and the outlets are left as they are while nothing they were made from has changed.

mod attribution;
mod diagnose;
mod due;
mod explain;
mod export;
mod import;
mod inject;
mod judge;
mod labelled;
mod meter;
mod outcomes;
mod outlets;
mod patience;
mod relabel;
#[cfg(feature = "parquet")]
mod release;
mod replay;
mod replies;
mod review;
mod selection;
mod settings;
mod siblings;
mod summary;
mod worlds;

use std::path::Path;

pub use self::attribution::{AttributionConfig, FlipAgreement, Predictor, attribution, flip_agreement};
pub use self::diagnose::{Diagnosing, diagnose, diagnose_again};
pub use self::explain::{Explanation, Near, Recognized, Seen, explain};
pub use self::export::{AtifExport, LostField, RefusedRun, export_atif};
pub use self::import::{Imported, import};
pub use self::inject::{Injecting, inject};
pub use self::judge::{Judging, JudgingPlan, first_questions, judge_runs};
pub use self::labelled::judgements;
pub use self::meter::Meter;
pub use self::outcomes::{Attached, OutcomeLine, Unmatched, parse as parse_outcomes};
pub use self::outlets::{Outlets, export_rows, require_own, runs_of_views, training_files, write_outlets};
pub use self::relabel::{
    Asked, RelabelPlan, Relabeling, Verified, first_goal_questions, relabel_runs, relabelable,
};
#[cfg(feature = "parquet")]
pub use self::release::{ReleaseConfig, release};
pub use self::replay::{ReplayConfig, Replaying, replay, replayable};
pub use self::review::{Stratum, read_review, record_review, review_sample};
pub use self::selection::{Deduplicate, LeftOut, Selection};
pub use self::settings::ContentSettings;
pub use self::summary::{FormatSummary, Summary, summarize};
pub use self::worlds::Opener;
use crate::exporters::{ExportError, Training};
use crate::importers::{Importer, SinkError, Source, SourceProblem};
use crate::reporter::Reporter;
use crate::store::{Store, StoreError};

/// What the caller decides about a run of the pipeline.
#[derive(Clone)]
pub struct PipelineConfig<'a> {
    /// The caller's clock, in RFC 3339.
    pub now: &'a str,
    /// Threads to use.
    pub threads: usize,
    /// Who may read files, the first that recognizes one: [`IMPORTERS`](crate::importers::IMPORTERS), perhaps
    /// with importers of one's own before them.
    pub importers: &'a [&'a dyn Importer],
    /// Outcomes from elsewhere.
    pub outcomes: &'a [OutcomeLine],
    /// Whether runs without an outcome count as failures.
    pub assume_failure: bool,
    /// The project folder, as commands in the report should name it.
    pub project: &'a str,
    /// The settings that decide content.
    pub settings: ContentSettings,
    /// Folder for the report and the training files.
    pub out: &'a Path,
    /// The training files: [`training_files`], perhaps made for a model.
    pub training: &'a [Training<'a>],
}

/// Judges that the main job asks.
pub struct Consulted<'a, 'p> {
    /// Whom, about what.
    pub plan: &'a JudgingPlan<'p>,
    /// Whether they may be asked, now that the runs are known: what it costs is known then.
    pub consent: &'a mut dyn FnMut(&Store) -> bool,
}

/// Why the pipeline stopped. Whatever a stage finished is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// The project could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was read could not be stored.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// A training file could not be written.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A file would be overwritten that recoup did not write.
    #[error("{} is no report of recoup's and would be overwritten", path.display())]
    Foreign {
        /// The file.
        path: std::path::PathBuf,
    },
    /// A release would hold runs that nobody has said the licence of.
    #[error("{count} runs have an unknown licence, `{example}` for one")]
    UnknownLicence {
        /// How many.
        count: u64,
        /// The first of them.
        example: crate::id::TrajectoryId,
    },
    /// A release would hold no run.
    #[error("there is no run to release")]
    NothingLeft,
    /// A file or folder could not be written.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file or folder.
        path: std::path::PathBuf,
        /// Cause.
        source: std::io::Error,
    },
}

/// The main job: imports, attaches outcomes, diagnoses, asks a panel where there is one, replays what happened in an environment that is
/// known, writes the outlets.
///
/// # Errors
/// When the project or the output folder fails; files and records that cannot be read are in the
/// summary.
pub fn run(
    store: &mut Store,
    sources: &[Source],
    problems: Vec<SourceProblem>,
    config: &PipelineConfig<'_>,
    opener: Opener<'_>,
    judges: Option<Consulted<'_, '_>>,
    reporter: &mut dyn Reporter,
) -> Result<(Summary, Imported), PipelineError> {
    let imported = import(store, sources, problems, config, reporter)?;
    let diagnosing = diagnose(store, config.now, config.threads, reporter)?;
    let mut judged = None;
    if let Some(Consulted { plan, consent }) = judges
        && consent(store)
    {
        judged = Some(judge_runs(store, plan, config.now, reporter)?);
    }
    let replaying = replay::replay_known(store, opener, config, reporter)?;
    let relabeling = relabel::relabel_new(store, opener, config, reporter)?;
    // Nobody wants to hear what was read where nothing was to be.
    let heard = Some(&imported).filter(|_| !sources.is_empty() || !imported.problems.is_empty());
    let outlets = write_outlets(store, heard, config, reporter)?;
    let summary = summarize(store, &imported, Some(&diagnosing), Some(&outlets))?;
    Ok((
        Summary { replayed: replaying.new, relabeled: relabeling.accepted.values().sum(), judged, ..summary },
        imported,
    ))
}
