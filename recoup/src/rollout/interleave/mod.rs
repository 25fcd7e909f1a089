//! Interleaving: a student and a teacher share a run, and every visited state gets the teacher's label (DAgger).
//!
//! [`crate::interleaving`] has the words of it.

mod accepting;
mod labels;
mod play;
mod report;
mod round;
mod shared;
mod shift;

pub use self::accepting::{Aggregate, LabelSettings};
pub use self::report::{Arm, LabelCounts, Rate, Report, RoundReport, Shift, report};
pub use self::round::{Collecting, Collection, Round, collect_round, openings, pending_round};
pub use self::shared::Pairing;
pub use self::shift::token_shift;
