//! The prompts: files beside this one, each known by its hash.
//!
//! A verdict names the hash of the prompt that it answers, so answers to different wordings are never
//! taken for each other.

use std::sync::LazyLock;

use crate::id::Hash;

/// A question's fixed part.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The text.
    pub text: &'static str,
    /// Its BLAKE3, in hexadecimal digits.
    pub hash: String,
}

impl Prompt {
    pub(crate) fn of(text: &'static str) -> Self {
        Self { text, hash: Hash::of(text.as_bytes()).to_string() }
    }
}

/// Where did it go wrong?
pub static DIAGNOSE: LazyLock<Prompt> = LazyLock::new(|| Prompt::of(include_str!("prompts/diagnose.md")));

/// Does a diagnosis hold?
pub static REVIEW: LazyLock<Prompt> = LazyLock::new(|| Prompt::of(include_str!("prompts/review.md")));
