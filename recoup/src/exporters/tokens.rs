//! Token counts of a file of rows that are made, or proved, for a model.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What is counted beside rows where a model is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TokenCounts {
    /// Tokens of the rows.
    pub tokens: u64,
    /// Tokens that are learned.
    pub trained_tokens: u64,
    /// Learned messages in the very tokens that the run recorded.
    pub recorded: u64,
    /// Of those, messages whose text is cut into other tokens today.
    pub recorded_otherwise: u64,
    /// Learned messages whose tokens were not recorded, or went with what was redacted, and were made again
    /// from the text.
    pub retokenized: u64,
    /// Tokens that reach over the edge of what is learned.
    pub straddling: u64,
    /// Rows that are a window of a longer example.
    pub windows: u64,
}

impl AddAssign for TokenCounts {
    fn add_assign(&mut self, other: Self) {
        let Self { tokens, trained_tokens, recorded, recorded_otherwise, retokenized, straddling, windows } =
            other;
        self.tokens += tokens;
        self.trained_tokens += trained_tokens;
        self.recorded += recorded;
        self.recorded_otherwise += recorded_otherwise;
        self.retokenized += retokenized;
        self.straddling += straddling;
        self.windows += windows;
    }
}
