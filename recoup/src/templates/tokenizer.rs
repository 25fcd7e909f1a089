//! A tokenizer: `tokenizer.json`, read as the library that trained with it reads it.
//!
//! Text is encoded without anything added: a chat template writes every special token itself.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::ops::Range;

use regex::Regex;
use serde_json::Value as Json;
use tokenizers::{
    AddedToken, DecoderWrapper, NormalizedString, Normalizer as _, PostProcessorWrapper, Tokenizer as Inner,
};

use super::words::{Words, byte_character};

/// Limits at least this large say "none" (`1e30`).
const UNLIMITED: f64 = 1e9;

/// Why a tokenizer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The file is no tokenizer.
    #[error("tokenizer.json cannot be read: {0}")]
    Unreadable(String),
    /// Two tokens have one id, so that what is learned could stand for either.
    #[error("tokenizer.json gives the tokens `{first}` and `{second}` the same id {id}")]
    SharedId {
        /// One token.
        first: String,
        /// The other, behind it in order of text.
        second: String,
        /// Their id.
        id: u32,
    },
    /// Its settings are no JSON object.
    #[error("tokenizer_config.json is no JSON object")]
    Config,
}

/// A tokenizer, with what its settings say.
#[derive(Debug)]
pub struct Tokenizer {
    inner: Inner,
    /// Special tokens by text.
    special: BTreeMap<String, u32>,
    /// Finds them, the longest of those that start together.
    special_pattern: Option<Regex>,
    /// Tokens that are cut out before the text is tokenized, by text.
    added: HashMap<String, u32>,
    /// Finds every token that is cut out before the text is tokenized, special or not.
    added_pattern: Option<Regex>,
    /// Named tokens: what `bos_token` and its like stand for in a template.
    named: Vec<(String, Json)>,
    bytes: Option<ByteTable>,
    words: Option<Words>,
    tokens_max: Option<usize>,
}

/// A text as tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Bytes of the text that each token stands for; a token inside of one character stands for all of it.
    pub ranges: Vec<Range<usize>>,
}

impl Tokenizer {
    /// Reads a tokenizer and, where there is one, the `tokenizer_config.json` beside it.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn new(tokenizer: &[u8], config: Option<&[u8]>) -> Result<Self, TokenizerError> {
        let unreadable = |error: tokenizers::Error| TokenizerError::Unreadable(error.to_string());
        let mut inner = Inner::from_bytes(tokenizer).map_err(unreadable)?;
        inner.with_truncation(None).map_err(unreadable)?;
        inner.with_padding(None);
        // It adds nothing here, and would cut the white space off what a token stands for.
        inner.with_post_processor(None::<PostProcessorWrapper>);
        let config: Json = match config {
            Some(config) => serde_json::from_slice(config).map_err(|_| TokenizerError::Config)?,
            None => Json::Object(serde_json::Map::new()),
        };
        let config = config.as_object().ok_or(TokenizerError::Config)?;
        let named = config.iter().filter(|(name, _)| name.ends_with("_token"));
        let named = named.filter_map(|(name, value)| {
            let text = value.as_str().or_else(|| value.get("content")?.as_str())?;
            Some((name.clone(), Json::String(text.to_owned())))
        });
        let named: Vec<(String, Json)> = named.collect();
        let last = shares_no_id(&inner)?;
        let added = inner.get_added_tokens_decoder();
        let special = added.iter().filter(|(_, token)| token.special);
        let mut special: BTreeMap<String, u32> =
            special.map(|(id, token)| (token.content.clone(), *id)).collect();
        for text in named.iter().filter_map(|(_, value)| value.as_str()) {
            if let Some(id) = inner.token_to_id(text) {
                special.insert(text.to_owned(), id);
            }
        }
        let tokens_max = config.get("model_max_length").and_then(Json::as_f64);
        Ok(Self {
            bytes: matches!(inner.get_decoder(), Some(DecoderWrapper::ByteLevel(_)))
                .then(|| ByteTable::new(&inner, &added, last))
                .transpose()?,
            words: Words::new(tokenizer),
            added: added.iter().map(|(id, token)| (token.content.clone(), *id)).collect(),
            special_pattern: pattern(special.keys().map(String::as_str)),
            added_pattern: pattern(added.values().map(|token| token.content.as_str())),
            special,
            named,
            tokens_max: tokens_max
                .filter(|limit| (1.0..UNLIMITED).contains(limit))
                .map(|limit| limit as usize),
            inner,
        })
    }

    /// What a template's variables `bos_token`, `eos_token` and their like stand for.
    pub fn named_tokens(&self) -> &[(String, Json)] {
        &self.named
    }

    /// Most tokens of a row that the settings allow.
    pub fn tokens_max(&self) -> Option<usize> {
        self.tokens_max
    }

    /// The id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The special tokens inside a range of the text, in order: the range and id of each. Of several that
    /// start together the longest counts.
    pub(super) fn specials(
        &self,
        text: &str,
        range: Range<usize>,
    ) -> impl Iterator<Item = (Range<usize>, u32)> {
        let pieces = self.special_pattern.as_ref().zip(text.get(range.clone()));
        let found = pieces.into_iter().flat_map(|(pattern, piece)| pattern.find_iter(piece));
        found.filter_map(move |found| {
            let id = self.special.get(found.as_str())?;
            Some((range.start + found.start()..range.start + found.end(), *id))
        })
    }

    /// Where the first token ends that the vocabulary was given by hand, special or not.
    pub(super) fn first_added_end(&self, text: &str) -> Option<usize> {
        self.added_pattern.as_ref()?.find(text).map(|found| found.end())
    }

    /// A text as tokens, nothing added.
    ///
    /// # Errors
    /// When the model has no token for something in it.
    pub fn encode(&self, text: &str) -> Result<Encoded, TokenizerError> {
        let Some(words) = &self.words else { return self.encode_by_library(text) };
        let mut out = Encoded::default();
        let mut at = 0;
        while at < text.len() {
            let found = self.added_pattern.as_ref().and_then(|added| added.find_at(text, at));
            let (end, next) = found.map_or((text.len(), text.len()), |found| (found.start(), found.end()));
            let plain = text.get(at..end).unwrap_or_default();
            let written = out.ids.len();
            if words.encode(&self.inner, plain, at, &mut out).is_none() {
                out.ids.truncate(written);
                out.ranges.truncate(written);
                let encoded = self.encode_by_library(plain)?;
                out.ids.extend(encoded.ids);
                out.ranges.extend(encoded.ranges.into_iter().map(|range| at + range.start..at + range.end));
            }
            if let Some(id) = found.and_then(|found| self.added.get(found.as_str())) {
                out.ids.push(*id);
                out.ranges.push(end..next);
            }
            at = next;
        }
        Ok(out)
    }

    /// The same by the library alone, for comparison.
    ///
    /// # Errors
    /// When the model has no token for something in it.
    pub fn encode_by_library(&self, text: &str) -> Result<Encoded, TokenizerError> {
        let encoding =
            self.inner.encode(text, false).map_err(|error| TokenizerError::Unreadable(error.to_string()))?;
        Ok(Encoded {
            ids: encoding.get_ids().to_vec(),
            ranges: encoding.get_offsets().iter().map(|(start, end)| *start..*end).collect(),
        })
    }

    /// The bytes that tokens stand for.
    pub fn decode(&self, ids: &[u32]) -> Option<Vec<u8>> {
        match &self.bytes {
            Some(table) => table.decode(ids),
            None => self.inner.decode(ids, false).ok().map(String::into_bytes),
        }
    }

    /// The text as the tokenizer's own normalization leaves it: what decoding can give back at best.
    pub(super) fn normalized(&self, text: &str) -> Option<String> {
        let normalizer = self.inner.get_normalizer()?;
        let mut normalized = NormalizedString::from(text);
        normalizer.normalize(&mut normalized).ok()?;
        Some(normalized.get().to_owned())
    }
}

/// The largest id, where no two tokens share theirs.
fn shares_no_id(inner: &Inner) -> Result<Option<u32>, TokenizerError> {
    let mut tokens: Vec<(u32, String)> =
        inner.get_vocab(true).into_iter().map(|(token, id)| (id, token)).collect();
    tokens.sort_unstable();
    match tokens.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some([(id, first), (_, second)]) => {
            Err(TokenizerError::SharedId { first: first.clone(), second: second.clone(), id: *id })
        }
        _ => Ok(tokens.last().map(|(id, _)| *id)),
    }
}

/// A pattern that finds the longest of some tokens; `None` without any.
fn pattern<'a>(tokens: impl Iterator<Item = &'a str>) -> Option<Regex> {
    let mut texts: Vec<&str> = tokens.filter(|text| !text.trim().is_empty()).collect();
    if texts.is_empty() {
        return None;
    }
    texts.sort_by_key(|text| (std::cmp::Reverse(text.len()), *text));
    let alternatives: Vec<String> = texts.into_iter().map(regex::escape).collect();
    Regex::new(&alternatives.join("|")).ok()
}

/// Ids of a byte-level vocabulary, at most: the table has a place for each up to the last.
const IDS_MAX: u32 = 1 << 24;

/// The bytes of every token of a byte-level vocabulary.
#[derive(Debug)]
struct ByteTable {
    bytes: Vec<u8>,
    /// Where each token's bytes begin; one more for the end.
    starts: Vec<usize>,
}

impl ByteTable {
    fn new<S: BuildHasher>(
        tokenizer: &Inner,
        added: &HashMap<u32, AddedToken, S>,
        last: Option<u32>,
    ) -> Result<Self, TokenizerError> {
        if let Some(id) = last.filter(|id| *id >= IDS_MAX) {
            return Err(TokenizerError::Unreadable(format!("a token has the id {id}")));
        }
        let (mut bytes, mut starts, characters) = (Vec::new(), vec![0], Characters::new());
        for id in 0..last.map_or(0, |last| last + 1) {
            match (added.get(&id), tokenizer.id_to_token(id)) {
                (Some(token), _) => bytes.extend_from_slice(token.content.as_bytes()),
                (None, Some(token)) => token.chars().for_each(|c| characters.push(&mut bytes, c)),
                (None, None) => {}
            }
            starts.push(bytes.len());
        }
        Ok(Self { bytes, starts })
    }

    fn decode(&self, ids: &[u32]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(ids.len() * 4);
        for id in ids {
            let id = *id as usize;
            let (start, end) = (self.starts.get(id)?, self.starts.get(id + 1)?);
            out.extend_from_slice(self.bytes.get(*start..*end)?);
        }
        Some(out)
    }
}

/// Which byte each character of a byte-level vocabulary stands for.
struct Characters(HashMap<char, u8>);

impl Characters {
    fn new() -> Self {
        Self((0..=u8::MAX).map(|byte| (byte_character(byte), byte)).collect())
    }

    /// Adds the byte that a character stands for; one that stands for none as itself.
    fn push(&self, out: &mut Vec<u8>, c: char) {
        match self.0.get(&c) {
            Some(byte) => out.push(*byte),
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Characters, IDS_MAX, Tokenizer, TokenizerError};
    use crate::templates::fixture;

    /// The fixture with one more added token of an id.
    fn with_token(id: u64) -> Vec<u8> {
        let mut stated: Value = serde_json::from_slice(&fixture::tokenizer()).unwrap();
        let mut token = stated["added_tokens"][0].clone();
        (token["id"], token["content"]) = (json!(id), json!("<|far|>"));
        stated["added_tokens"].as_array_mut().unwrap().push(token);
        // An added token takes its id from the vocabulary where that has it.
        stated["model"]["vocab"]["<|far|>"] = json!(id);
        stated.to_string().into_bytes()
    }

    #[test]
    fn an_id_beyond_all_vocabularies_is_refused_before_a_table_is_made() {
        for id in [u64::from(IDS_MAX), u64::from(u32::MAX)] {
            let refused = Tokenizer::new(&with_token(id), None).err();
            assert_eq!(refused, Some(TokenizerError::Unreadable(format!("a token has the id {id}"))));
        }
        let far = IDS_MAX - 1;
        let tokenizer = Tokenizer::new(&with_token(far.into()), None).unwrap();
        assert_eq!(tokenizer.decode(&[far]), Some(b"<|far|>".to_vec()));
        assert_eq!((tokenizer.decode(&[IDS_MAX]), tokenizer.decode(&[u32::MAX])), (None, None));
    }

    #[test]
    fn colliding_ids_are_refused() {
        let mut stated: Value = serde_json::from_slice(&fixture::tokenizer()).unwrap();
        stated["model"]["vocab"]["hi"] = stated["model"]["vocab"]["h"].clone();
        let refused = Tokenizer::new(stated.to_string().as_bytes(), None).err();
        let shared = TokenizerError::SharedId { first: "h".to_owned(), second: "hi".to_owned(), id: 104 };
        assert_eq!(refused, Some(shared));
    }

    #[test]
    fn words_give_the_ids_of_the_library() {
        let tokenizer = Tokenizer::new(&fixture::tokenizer_that_splits(fixture::SPLIT), None).unwrap();
        assert!(tokenizer.words.is_some());
        for text in [
            "",
            "hi",
            "<|im_start|>user\nhi  there<|im_end|>\n<|im_end|>",
            "e\u{301} \u{1F469}\u{200d}\u{1F469} \u{3000}\u{3000}x \n\n y\t\t\r\n 12 it's",
            "<|im_start|<|im_end|>é<|im_end|",
        ] {
            for _ in 0..2 {
                assert_eq!(tokenizer.encode(text), tokenizer.encode_by_library(text), "{text:?}");
            }
        }
    }

    #[test]
    fn each_byte_has_a_character() {
        let (mut out, characters) = (Vec::new(), Characters::new());
        for c in "ĠĊĀ!~¡ÿĢł\u{143}".chars() {
            characters.push(&mut out, c);
        }
        assert_eq!(out, [0x20, 0x0A, 0x00, b'!', b'~', 0xA1, 0xFF, 0x80, 0xA0, 0xAD]);
    }
}
