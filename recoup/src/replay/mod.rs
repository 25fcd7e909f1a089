//! Replay: the only strong evidence that a diagnosis or a repair is right.
//!
//! A stored run is opened in its environment ([`Reopened`]), executed again with every observation
//! compared ([`Checkpoints`]), and continued from one of its turns in matched arms ([`Matched`]). A run
//! that cannot be executed strictly is *unsupported*, counted and never guessed around; nothing but the
//! environment itself is executed. Every continuation is a run of its own that says where it came from,
//! both outcomes kept.
//!
//! [`Subject::replay`] makes the pair of a run, [`sweep`] looks for the turn that decided it,
//! [`inject`] makes faults whose place is known, [`summarize`] says what pairs show together, and
//! [`claim`] how far a diagnosis is proved. A [`Repair`](crate::verdict::Repair) exists only where one
//! of these pairs passed.

mod candidates;
mod checkpoints;
mod claim;
mod error;
mod fork;
mod inject;
mod pair;
mod recorded;
mod regrade;
mod reopened;
mod seed;
mod siblings;
mod summary;
mod sweep;
mod volatile;

pub use self::candidates::{Proposed, Proposer, action_of, parse_candidates};
pub use self::checkpoints::Checkpoints;
pub use self::claim::{claim, is_reviewed, repair};
pub use self::error::ReplayError;
pub use self::fork::{Matched, Treatments};
pub use self::inject::{INJECTION, Injected, inject};
pub use self::pair::{ReplayPlan, Replayed, Subject};
pub use self::recorded::{Recorded, RecordedTurn, Seen};
pub use self::regrade::{Regraded, regrade};
pub use self::reopened::Reopened;
pub use self::seed::continuation_seed;
pub use self::summary::{ArmRate, Comparison, FAMILY, Group, ReplaySummary, summarize};
pub use self::sweep::{SweepPlan, sweep};
pub use self::volatile::Volatile;

/// Version of the procedure; raised when it would find otherwise on the same run.
pub const REPLAY_VERSION: u32 = 2;
