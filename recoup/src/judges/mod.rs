//! Judges: models that say where a run went wrong, and what may be believed of it.
//!
//! ```text
//! run ── Case (redacted, marked) ── show ──▶ record ── Judge::propose ──▶ Proposal ── cite ──▶ exact bytes
//!                                               └───── Judge::review  ──▶ Opinion on M1 to M4
//! ```
//!
//! * A judge is shown a redacted record between lines that no text of the record can forge, in a window
//!   of bounded size that always holds the task, the tools and what is cited.
//! * It cites first. A quote counts where it stands exactly once in what was shown of the node it names,
//!   and is kept as a byte range of the run itself.
//! * It never sees gold answers, verifier output or what a replay found, nor the rules' own diagnosis.
//! * What it says is a proposal. [`crate::diagnosis`] puts it through the gates and asks the panel.
//!
//! [`quality`] measures judges on the labels that people give.

pub(crate) mod answer;
mod case;
mod excerpt;
mod model_judge;
mod prompts;
pub mod quality;
mod seat;
mod shown;
mod visible_text;
mod window;

pub use self::answer::{
    Blamed, CITATIONS_MAX, Cited, Classed, Opinion, Proposal, Proposed, QUOTE_CHARS_MAX, Word,
};
pub use self::case::Case;
pub use self::model_judge::ModelJudge;
pub use self::prompts::{DIAGNOSE, Prompt, REVIEW};
pub use self::seat::{JudgeConfig, Room, Seat, WINDOW_TOKENS_MIN};
pub use self::shown::{Misquote, Shown};
use crate::models::{ModelError, ModelIdentity, Usage};
use crate::trajectory::Citation;

/// Says where runs went wrong, and whether others are right about it.
pub trait Judge: Send + Sync {
    /// Which model it is.
    fn identity(&self) -> &ModelIdentity;

    /// Says where a run went wrong. `refused` are its earlier answers, none of which was admitted.
    ///
    /// # Errors
    /// When no answer came. A bad answer is an answer.
    fn propose(&self, case: &Case<'_>, refused: &[Refused]) -> Result<Answer<Proposal>, ModelError>;

    /// Says whether a proposal holds. `cited` are the bytes of the run that it rests on. An answer that cannot be read
    /// is asked for once more, with what is wrong with it.
    ///
    /// # Errors
    /// When no answer came.
    fn review(
        &self,
        case: &Case<'_>,
        proposal: &Proposal,
        cited: &[Citation],
    ) -> Result<Answer<Opinion>, ModelError>;
}

/// What a judge answered.
#[derive(Debug)]
pub struct Answer<T> {
    /// What it says, or why it says nothing that counts.
    pub read: Result<T, String>,
    /// Its words.
    pub text: String,
    /// What it was shown.
    pub shown: Shown,
    /// What asking took.
    pub spent: Spent,
    /// The name under which another model than the one asked for answered.
    pub answered_by: Option<String>,
}

/// What asking took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// Questions that were answered.
    pub calls: u64,
    /// Tokens, as far as the provider says.
    pub usage: Usage,
    /// Cost in US dollars; `None` where a model has no price.
    pub cost_usd: Option<f64>,
}

impl Default for Spent {
    /// Nothing, which costs nothing.
    fn default() -> Self {
        Self { calls: 0, usage: Usage::default(), cost_usd: Some(0.0) }
    }
}

impl Spent {
    /// Adds what another question took.
    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.usage.prompt += other.usage.prompt;
        self.usage.cached_prompt += other.usage.cached_prompt;
        self.usage.completion += other.usage.completion;
        self.cost_usd = self.cost_usd.zip(other.cost_usd).map(|(one, other)| one + other);
    }
}

/// An answer that was not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The answer, as the judge wrote it.
    pub answer: String,
    /// The gate that refused it (`S4`).
    pub gate: String,
    /// Why, redacted.
    pub reason: String,
    /// What it cited, so that it is shown that again.
    pub cited: Vec<Citation>,
}
