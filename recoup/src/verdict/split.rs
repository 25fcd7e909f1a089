//! The split: the side that a run is on.

use serde::{Deserialize, Serialize};

/// Sides of the split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// For training.
    Train,
    /// For choosing.
    Validation,
    /// For the final figure.
    Test,
    /// In no set: the run would join two sides.
    Excluded,
}

impl Side {
    /// Every side, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Train, Self::Validation, Self::Test, Self::Excluded];

    /// The side that a word in records means.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.as_str() == word)
    }

    /// The side's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
            Self::Excluded => "excluded",
        }
    }
}

/// The side a run is on, decided at import and sticky.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Split {
    /// The side.
    pub side: Side,
    /// Smallest task key of the component that it follows.
    pub component: String,
}
