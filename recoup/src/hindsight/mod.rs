//! Hindsight: the goal that a failed run did achieve (`AgentHER`, corrected).
//!
//! ```text
//! failed run ─ Episode ─ Facts ─┬─ environment's own goals ─┐
//!                               ├─ templates ───────────────┼─ GATES ─ environment or judges ─▶ Relabel
//!                               └─ a model's proposals ─────┘
//! ```
//!
//! * A fact cites an observation, never a thought; a goal's claims cite facts.
//! * The gates are deterministic and come before any judge. Where the environment can check a goal it does, and
//!   a failed check is final. What a model proposes needs two judges of two families ([`judging`]).
//! * Everything refused is kept with its reason, and no goal that was refused is looked at again.
//! * Blind, the environment is withheld from whoever proposes and from the gates, and only scores.

pub mod answer;
mod bm25;
mod check;
pub mod corpus;
mod echo;
pub mod episode;
mod extractor;
pub mod facts;
pub mod gates;
pub mod judging;
pub mod proposal;
mod relabel;
pub mod relabeler;
mod spans;
pub mod templates;
mod tokens;

pub use self::check::World;
pub use self::echo::echoes;
pub use self::extractor::Quotes;
pub use self::relabel::{HINDSIGHT_VERSION, RelabelConfig, Relabeled, Subject, is_candidate, relabel};
