//! Words: the pieces that a byte-level tokenizer cuts a text into before it looks for tokens, each with its
//! tokens, which are found once and remembered.
//!
//! The same ids as the library's in a fraction of its time, for the tokenizers whose way of cutting is known
//! here: one split at a pattern without looks to the side but the usual last one, then bytes. Whatever else
//! a tokenizer does, the library does it. The golden run compares the two on every text.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value as Json;
use tokenizers::{Model as _, Tokenizer as Inner};

use super::tokenizer::Encoded;

/// How the patterns of this kind end: a run of white space leaves its last character to the word behind it.
const LOOKING_TAIL: &str = r"|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The same without looking.
const BLIND_TAIL: &str = r"|\s*[\r\n]+|\s+";
/// Words that are remembered at most.
const WORDS_MAX: usize = 1 << 17;
/// Bytes of a word that is remembered.
const WORD_BYTES_MAX: usize = 48;

/// A token of a word.
#[derive(Clone, Copy, Debug)]
struct Piece {
    id: u32,
    /// Bytes of the word that it stands for.
    start: u32,
    end: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Words {
    pattern: Regex,
    /// Whether text is composed (NFC) before it is cut.
    composes: bool,
    known: RwLock<HashMap<Box<str>, Box<[Piece]>>>,
}

/// What of `tokenizer.json` says how text is cut.
#[derive(Deserialize)]
struct Stated {
    #[serde(default)]
    normalizer: Json,
    #[serde(default)]
    pre_tokenizer: Json,
    #[serde(default)]
    added_tokens: Vec<AddedStated>,
    #[serde(default)]
    model: ModelStated,
}

#[derive(Deserialize)]
struct AddedStated {
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    normalized: bool,
}

#[derive(Default, Deserialize)]
struct ModelStated {
    #[serde(rename = "type", default)]
    kind: Json,
    #[serde(default)]
    dropout: Json,
    #[serde(default)]
    unk_token: Json,
    #[serde(default)]
    byte_fallback: bool,
}

impl Words {
    /// The words of a tokenizer, where its way of cutting is known here.
    pub(super) fn new(tokenizer: &[u8]) -> Option<Self> {
        let stated: Stated = serde_json::from_slice(tokenizer).ok()?;
        let model = &stated.model;
        let is_plain_bpe = model.kind == "BPE"
            && model.dropout.is_null()
            && model.unk_token.is_null()
            && !model.byte_fallback;
        let is_plain = |token: &AddedStated| {
            let AddedStated { content, single_word, lstrip, rstrip, normalized } = token;
            !(*single_word || *lstrip || *rstrip || *normalized) && !content.trim().is_empty()
        };
        if !is_plain_bpe || !stated.added_tokens.iter().all(is_plain) {
            return None;
        }
        let composes = match (&stated.normalizer, stated.normalizer["type"].as_str()) {
            (Json::Null, _) => false,
            (_, Some("NFC")) => true,
            _ => return None,
        };
        let steps = stated.pre_tokenizer["pretokenizers"].as_array()?;
        let [split, bytes] = steps.as_slice() else { return None };
        let is_split =
            split["type"] == "Split" && split["behavior"] == "Isolated" && split["invert"] == false;
        let is_bytes =
            bytes["type"] == "ByteLevel" && bytes["add_prefix_space"] == false && bytes["use_regex"] == false;
        if !is_split || !is_bytes {
            return None;
        }
        let head = split["pattern"]["Regex"].as_str()?.strip_suffix(LOOKING_TAIL)?;
        // A look to the side does not compile.
        let pattern = Regex::new(&format!("{head}{BLIND_TAIL}")).ok()?;
        Some(Self { pattern, composes, known: RwLock::default() })
    }

    /// Appends the tokens of a text without added tokens; `None` where the library must do it.
    pub(super) fn encode(&self, inner: &Inner, text: &str, offset: usize, out: &mut Encoded) -> Option<()> {
        if self.composes && !unicode_normalization::is_nfc(text) {
            return None;
        }
        let mut found = Vec::new();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut at = 0;
        while at < text.len() {
            let end = self.word_end(text, at);
            let word = text.get(at..end)?;
            let mut push = |pieces: &[Piece]| {
                out.ids.extend(pieces.iter().map(|piece| piece.id));
                let start = offset + at;
                let range = |piece: &Piece| start + piece.start as usize..start + piece.end as usize;
                out.ranges.extend(pieces.iter().map(range));
            };
            if let Some(pieces) = known.get(word) {
                push(pieces);
            } else {
                let pieces = pieces(inner, word)?;
                push(&pieces);
                if word.len() <= WORD_BYTES_MAX {
                    found.push((word, pieces));
                }
            }
            at = end;
        }
        drop(known);
        if !found.is_empty() {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            let room = WORDS_MAX.saturating_sub(known.len());
            known.extend(found.into_iter().take(room).map(|(word, pieces)| (word.into(), pieces)));
        }
        Some(())
    }

    /// Where the word ends that begins at a byte.
    fn word_end(&self, text: &str, at: usize) -> usize {
        let Some(found) = self.pattern.find_at(text, at) else { return text.len() };
        // What no alternative matches is a word of its own.
        if found.start() > at {
            return found.start();
        }
        let is_blank = found.as_str().chars().all(char::is_whitespace);
        let last = found.as_str().chars().next_back().filter(|last| !matches!(last, '\r' | '\n'));
        match last {
            Some(last) if is_blank && found.end() < text.len() && found.len() > last.len_utf8() => {
                found.end() - last.len_utf8()
            }
            _ => found.end(),
        }
    }
}

/// The tokens of a word, as the model finds them.
fn pieces(inner: &Inner, word: &str) -> Option<Box<[Piece]>> {
    let mapped: String = word.bytes().map(byte_character).collect();
    let tokens = inner.get_model().tokenize(&mapped).ok()?;
    let mut start = 0;
    let pieces: Vec<Piece> = tokens
        .iter()
        .map(|token| {
            let end = start + token.value.chars().count();
            let floor = (0..=start).rev().find(|at| word.is_char_boundary(*at)).unwrap_or(0);
            let ceiling = (end..=word.len()).find(|at| word.is_char_boundary(*at)).unwrap_or(word.len());
            start = end;
            Some(Piece { id: token.id, start: u32::try_from(floor).ok()?, end: u32::try_from(ceiling).ok()? })
        })
        .collect::<Option<_>>()?;
    (start == word.len()).then(|| pieces.into())
}

/// The character that byte-level vocabularies write a byte as (GPT-2's `bytes_to_unicode`).
pub(super) fn byte_character(byte: u8) -> char {
    let code = u32::from(byte);
    let code = match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => code,
        0x00..=0x20 => 0x100 + code,
        0x7F..=0xA0 => 0x121 + code - 0x7F,
        _ => 0x143,
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::{Words, byte_character};
    use crate::templates::fixture;

    fn words(pattern: &str) -> Option<Words> {
        Words::new(&fixture::tokenizer_that_splits(pattern))
    }

    #[test]
    fn each_byte_has_its_character() {
        let characters: String =
            [0x00, 0x20, b'a', 0x7F, 0xA0, 0xAD, 0xFF].map(byte_character).iter().collect();
        assert_eq!(characters, "\u{100}Ġa\u{121}\u{142}\u{143}ÿ");
    }

    #[test]
    fn white_space_leaves_its_last_character_to_the_word_behind_it() {
        let words = words(fixture::SPLIT).unwrap();
        let cut = |text: &str| {
            let mut out = Vec::new();
            let mut at = 0;
            while at < text.len() {
                let end = words.word_end(text, at);
                out.push(text[at..end].to_owned());
                at = end;
            }
            out
        };
        assert_eq!(cut("hi  you \n\n  x \t"), ["hi", " ", " you", " \n\n", " ", " x", " \t"]);
        assert_eq!(cut("a \u{301}\u{3000}\u{3000}é"), ["a", " \u{301}", "\u{3000}", "\u{3000}é"]);
    }

    #[test]
    fn only_known_ways_of_cutting_are_taken() {
        assert!(words(r"\p{L}+|\s+").is_none());
        assert!(words(&format!(r"\p{{L}}+(?=x){}", super::LOOKING_TAIL)).is_none());
        assert!(Words::new(&fixture::tokenizer()).is_none());
        assert!(Words::new(b"{}").is_none() && Words::new(b"").is_none());
    }
}
