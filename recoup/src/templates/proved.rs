//! The templates that the golden corpus has proved: text and generated spans equal to those of `transformers`
//! on every conversation of the corpus, and the mask equal to TRL's where there was one to compare.

use sha2::{Digest as _, Sha256};

use crate::id::hexadecimal;

/// SHA-256 of the source and the file's name inside the package `trl`, a template a line. Written by the
/// golden run, never by hand.
const PROVED: &str = include_str!("proved.txt");

/// Whether a source is one of those templates, byte for byte.
pub(super) fn is_proved(source: &str) -> bool {
    let hash = hexadecimal(&Sha256::digest(source.as_bytes()));
    PROVED.lines().filter_map(|line| line.split_once("  ")).any(|(proved, _)| proved == hash)
}

#[cfg(test)]
mod tests {
    use super::{PROVED, is_proved};

    #[test]
    fn only_what_was_compared_is_proved() {
        assert!(!is_proved("") && !is_proved(crate::templates::fixture::MARKED));
        let is_hash = |hash: &str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(PROVED.lines().all(|line| line.split_once("  ").is_some_and(|(hash, _)| is_hash(hash))));
    }
}
