//! The release: every run with what was decided about it, accepted and rejected, as linked Parquet tables.
//!
//! Five tables hang together by ids: `traces` (runs, and what replays continued from them), `diagnoses`,
//! `candidates` (proposed repairs), `reviews` (gates' and people's words) and `replays` (one row a
//! continuation). Beside them stand a card for people and `release.json` for programs.
//!
//! Everything passes redaction, `hidden` goes nowhere, and a run of which something is left that should
//! have been replaced stays out with all that hangs on it, counted. That a run is in a release says nothing
//! of whether it may be trained on.

mod card;
mod rows;
mod summary;
mod tables;
mod writer;

pub(crate) use self::card::is_own_card;
pub use self::rows::{Case, CaseRows, case_rows};
pub use self::summary::{GateYield, Release};
pub use self::tables::Table;
pub(crate) use self::writer::CARD;
pub use self::writer::ReleaseWriter;
