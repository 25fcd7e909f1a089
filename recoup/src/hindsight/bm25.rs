//! Okapi BM25 over what runs showed: which run does a goal describe?
//!
//! Terms are words and pairs of neighboring words, so that `red lamp` tells more than `red` and `lamp`. Words of
//! asking and of grammar are no terms: how a goal is put says nothing about a run.
//! `score(q, d) = Σ idf(t) · tf · (k₁ + 1) / (tf + k₁ · (1 − b + b · |d|/avg))` with
//! `idf(t) = ln(1 + (n − df + ½)/(df + ½))` (Robertson and Zaragoza 2009).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::tokens::is_plain;

/// Saturation of a term's frequency.
const K1: f64 = 1.2;
/// How far a document's length counts.
const B: f64 = 0.75;
/// Bytes of a document that are read.
const DOCUMENT_MAX: usize = 24 << 10;

/// Documents, by term.
#[derive(Default)]
pub(super) struct Index {
    postings: HashMap<u64, Vec<(u32, u32)>>,
    lengths: Vec<f64>,
    total: f64,
}

/// A term's frequencies in one document.
fn frequencies(text: &str) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    let mut last: Option<u64> = None;
    for word in terms(text) {
        let hash = hash(word.as_bytes(), 0xcbf2_9ce4_8422_2325);
        *counts.entry(hash).or_insert(0) += 1;
        if let Some(last) = last {
            *counts.entry(pair(last, hash)).or_insert(0) += 1;
        }
        last = Some(hash);
    }
    counts
}

/// Words as they are compared: runs of letters, digits and what joins identifiers, in lower case.
fn terms(text: &str) -> impl Iterator<Item = String> + '_ {
    let text = &text[..text.floor_char_boundary(DOCUMENT_MAX)];
    text.split(|c: char| !(c.is_alphanumeric() || "_@.#-".contains(c)))
        .map(|word| word.trim_matches(['.', '-']).to_lowercase())
        .filter(|word| !word.is_empty() && !is_plain(word))
}

fn hash(bytes: &[u8], seed: u64) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn pair(first: u64, second: u64) -> u64 {
    hash(&second.to_le_bytes(), first.rotate_left(17) ^ 0x9e37_79b9_7f4a_7c15)
}

impl Index {
    /// Adds a document; its number is how many there were before.
    pub(super) fn add(&mut self, text: &str) {
        let number = self.lengths.len() as u32;
        let mut length = 0.0;
        for (term, count) in frequencies(text) {
            length += f64::from(count);
            self.postings.entry(term).or_default().push((number, count));
        }
        self.lengths.push(length);
        self.total += length;
    }

    /// How much a word tells: its inverse document frequency.
    pub(super) fn idf(&self, word: &str) -> f64 {
        let word = word.to_lowercase();
        self.weight(self.postings.get(&hash(word.as_bytes(), 0xcbf2_9ce4_8422_2325)).map_or(0, Vec::len))
    }

    fn weight(&self, documents: usize) -> f64 {
        let (n, df) = (self.lengths.len() as f64, documents as f64);
        (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
    }

    /// The documents that hold every word of all phrases, and the words of each phrase side by side.
    pub(super) fn holding(&self, phrases: &[&str]) -> Vec<u32> {
        let mut held: Option<BTreeSet<u32>> = None;
        for term in phrases.iter().flat_map(|phrase| frequencies(phrase).into_keys()) {
            let postings = self.postings.get(&term).map_or(&[][..], Vec::as_slice).iter();
            let numbers: BTreeSet<u32> = postings.map(|(number, _)| *number).collect();
            held = Some(held.map_or(numbers.clone(), |held| &held & &numbers));
        }
        held.into_iter().flatten().collect()
    }

    /// The score of every document that holds a term of the query.
    pub(super) fn scores(&self, query: &str) -> BTreeMap<u32, f64> {
        let mut scores = BTreeMap::new();
        let average = self.total / (self.lengths.len().max(1) as f64);
        for term in frequencies(query).into_keys() {
            let Some(postings) = self.postings.get(&term) else { continue };
            let idf = self.weight(postings.len());
            for (number, count) in postings {
                let length = self.lengths.get(*number as usize).copied().unwrap_or(average);
                let tf = f64::from(*count);
                let norm = K1 * (1.0 - B + B * length / average.max(1.0));
                *scores.entry(*number).or_insert(0.0) += idf * tf * (K1 + 1.0) / (tf + norm);
            }
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::Index;

    #[test]
    fn what_a_query_describes_comes_first() {
        let mut index = Index::default();
        for text in ["the red lamp on the oak table", "a red table, an oak lamp", "nothing of the kind"] {
            index.add(text);
        }
        let scores = index.scores("bring the red lamp");
        assert!(scores[&0] > scores[&1]);
        // It shares words of grammar alone, and those are no terms.
        assert!(!scores.contains_key(&2));
        assert!(index.idf("kind") > index.idf("red"));
        assert!(index.scores("xyzzy").is_empty());
        assert_eq!(index.holding(&["oak", "lamp"]), [0, 1]);
        assert_eq!(index.holding(&["red lamp", "oak"]), [0]);
        assert!(index.holding(&[]).is_empty());
    }
}
