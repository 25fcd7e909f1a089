//! Triage: whose failure a run was, and what kind of failure, before anything is learned from it.
//!
//! Rules read structured evidence: the harness's own words, `is_error` and exit codes, the exact
//! forms in which tools report an error. They never look for keywords in the agent's thoughts.

mod blame;
mod class;
pub(crate) mod failure_text;
mod transport;

pub use self::blame::blame;
pub(crate) use self::blame::has_agent_turn;
pub(crate) use self::class::is_class_explicit;
#[cfg(test)]
pub(crate) use self::class::knows_detector;
pub use self::class::{SEVERITY_MAX_TRAINED, failure_class, loss_weight};
