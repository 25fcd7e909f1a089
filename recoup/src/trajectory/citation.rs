//! A citation: bytes of a run that anyone can look up.

use serde::{Deserialize, Serialize};

use super::Trajectory;

/// A half-open range of UTF-8 bytes in the decoded, unredacted text of a part
/// ([`super::Part::cited_text`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Citation {
    /// Position of the node in the trajectory.
    pub node: usize,
    /// `[i]`: part of the node; `[i, j]`: part of a tool result.
    pub part_path: Vec<usize>,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Why a citation does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CitationError {
    /// No such node or part, or one without text.
    #[error("citation points at node {node}, part {part_path:?}, which holds no text")]
    NoText {
        /// Node cited.
        node: usize,
        /// Part cited.
        part_path: Vec<usize>,
    },
    /// The range is empty, reversed, past the end or splits a character.
    #[error("citation {start}..{end} is not a range of the part's {len} bytes on character boundaries")]
    Range {
        /// First byte cited.
        start: usize,
        /// One past the last byte cited.
        end: usize,
        /// Bytes of the part's text.
        len: usize,
    },
}

impl Citation {
    /// The cited text.
    ///
    /// # Errors
    /// When the citation is not an exact, non-empty range of a part's text.
    pub fn quote<'a>(&self, trajectory: &'a Trajectory) -> Result<&'a str, CitationError> {
        let text = trajectory
            .nodes
            .get(self.node)
            .and_then(|node| node.part(&self.part_path))
            .and_then(super::Part::cited_text)
            .ok_or_else(|| CitationError::NoText { node: self.node, part_path: self.part_path.clone() })?;
        let range = CitationError::Range { start: self.start, end: self.end, len: text.len() };
        if self.start >= self.end {
            return Err(range);
        }
        text.get(self.start..self.end).ok_or(range)
    }
}
