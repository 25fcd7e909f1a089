//! Interleaving: what is said of a run that a student and a teacher share (DAgger).
//!
//! The words of it, the same for `collect`, for the proxy and for the log that the proxy writes: [`Schedule`] says how
//! often the teacher acts in a round, [`Mixing`] who acts at a turn, by coins that are a hash of the place they are tossed
//! at ([`Seat`]), [`RequestOutcome`] what became of a request, [`goes_in_circles`] where a run does, [`Interleaving`] what a
//! run's record says of it all.

mod circles;
mod coin;
mod outcome;
mod recorded;
mod schedule;

pub use self::circles::goes_in_circles;
pub use self::coin::{Mixing, Seat};
pub use self::outcome::{Delivered, RequestOutcome};
pub use self::recorded::{Interleaving, Reading, Readings};
pub use self::schedule::{Prefixes, Schedule, ScheduleError};
