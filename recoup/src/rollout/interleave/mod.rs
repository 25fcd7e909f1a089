//! Interleaving: a student and a teacher share a run, and every visited state gets the teacher's label (DAgger).
//!
//! This is the vocabulary of it, the same for `collect` and for the proxy: [`schedule`](Schedule) says how often the
//! teacher acts in a round, [`Mixing`] who acts at a turn, by coins that are a hash of the place they are tossed at
//! ([`Seat`]), [`RequestOutcome`] what became of a request, [`Interleaving`] what a run's record says of it all.

mod accepting;
mod coin;
mod labels;
mod outcome;
mod play;
mod recorded;
mod report;
mod round;
mod schedule;
mod shared;
mod shift;

pub use self::accepting::{Aggregate, LabelSettings};
pub use self::coin::{Mixing, Seat};
pub use self::labels::label_of;
pub use self::outcome::{Delivered, RequestOutcome};
pub use self::recorded::{Interleaving, Readings};
pub use self::report::{Arm, LabelCounts, Rate, Report, RoundReport, Shift, report};
pub use self::round::{Collecting, Collection, Round, collect_round, openings, pending_round};
pub use self::schedule::{Prefixes, Schedule, ScheduleError};
pub use self::shared::Pairing;
pub use self::shift::token_shift;
