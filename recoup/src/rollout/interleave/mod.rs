//! Interleaving: a student and a teacher share a run, and every visited state gets the teacher's label (DAgger).
//!
//! [`crate::interleaving`] has the words of it.

mod accepting;
mod labels;
mod play;
mod recorded;
mod report;
mod round;
mod shared;
mod shift;
mod wording;

pub use self::accepting::{Aggregate, LabelSettings, marks};
pub use self::recorded::recorded_label;
pub use self::report::{Arm, Gathering, LabelCounts, Rate, Report, RoundReport, Shift, labels_of, report};
pub use self::round::{Collecting, Collection, Round, collect_round, openings, pending_round};
pub use self::shared::Pairing;
pub use self::shift::token_shift;
pub use self::wording::{Line, lines};
