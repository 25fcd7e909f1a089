//! Deduplication: which runs are nearly the same, and which repeat a benchmark.
//!
//! Two runs are near-duplicates where three sets of shingles agree, each for itself: what the agent was
//! shown (words of users, pieces of results), what it said, and what it did. System prompts count for
//! nothing, since all runs of a harness share them; neither do messages copied in from elsewhere.
//!
//! A run keeps a [`Sketch`] of its sets, a few hundred bytes made once by MinHash, from which
//! [`near_pairs`] finds alike runs by locality-sensitive hashing, without comparing each with each.
//! [`Contamination`] lists the ids and texts of benchmarks that nothing may be learned from, [`HeldOut`] those
//! that no environment may train on.

mod clusters;
mod contamination;
mod shingles;
mod sketch;

pub use self::clusters::{NearIndex, first_of_cluster, near_pairs};
pub use self::contamination::{Contamination, ContaminationError, HeldOut, Listed};
pub use self::shingles::Shingles;
pub use self::sketch::{SIMILARITY_MIN, Sketch};
