//! Shingles: the small overlapping pieces of a run by which it is compared with others.

use std::collections::HashSet;

use crate::trajectory::{Node, Part, Role};

/// Words of a shingle of prose.
const WORDS: usize = 5;
/// Actions of a shingle of actions.
const ACTIONS: usize = 2;

/// What a run consists of, as three sets of 64-bit hashes. Hashes may repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shingles {
    /// What the agent was shown: each five words of its users, and the pieces of results between
    /// line ends, commas and periods.
    pub shown: Vec<u64>,
    /// What it said: each five words.
    pub said: Vec<u64>,
    /// What it did: each two calls, name and arguments.
    pub did: Vec<u64>,
}

impl Shingles {
    /// Of the messages of a run.
    pub fn of(nodes: &[Node]) -> Self {
        let mut shingles = Self::default();
        let mut actions = Window::<ACTIONS>::default();
        for node in nodes.iter().filter(|node| !node.occurrence.copied_context) {
            match node.role {
                Role::System => {}
                Role::User => prose(&node.parts, &mut shingles.shown),
                Role::Tool => results(&node.parts, &mut shingles.shown),
                Role::Assistant => prose(&node.parts, &mut shingles.said),
            }
            for (_, call) in node.tool_calls() {
                let mut hash = hash_bytes(call.name.as_bytes());
                for word in words(&call.arguments_raw) {
                    hash = mix(hash ^ word);
                }
                actions.push(hash, &mut shingles.did);
            }
        }
        actions.finish(&mut shingles.did);
        shingles
    }

    /// The exact similarity of each set (Jaccard's: shared over all); 1 where both are empty.
    pub fn similarities(&self, other: &Self) -> [f64; 3] {
        [(&self.shown, &other.shown), (&self.said, &other.said), (&self.did, &other.did)].map(
            |(left, right)| {
                let left: HashSet<u64> = left.iter().copied().collect();
                let right: HashSet<u64> = right.iter().copied().collect();
                let shared = left.intersection(&right).count();
                let all = left.len() + right.len() - shared;
                if all == 0 { 1.0 } else { shared as f64 / all as f64 }
            },
        )
    }
}

fn prose(parts: &[Part], out: &mut Vec<u64>) {
    for part in parts {
        match part {
            Part::Text(text) => {
                let mut window = Window::<WORDS>::default();
                words(&text.text).for_each(|word| window.push(word, out));
                window.finish(out);
            }
            // Some harnesses give results as messages of the user.
            Part::ToolResult(result) => results(&result.parts, out),
            _ => {}
        }
    }
}

/// Results are long and full of numbers; their pieces are hashed as they are.
fn results(parts: &[Part], out: &mut Vec<u64>) {
    for part in parts {
        match part {
            Part::Text(text) => {
                let bytes = text.text.as_bytes();
                let mut start = 0;
                for end in memchr::memchr3_iter(b'\n', b',', b'.', bytes).chain([bytes.len()]) {
                    let piece = bytes[start..end].trim_ascii();
                    if !piece.is_empty() {
                        out.push(hash_bytes(piece));
                    }
                    start = end + 1;
                }
            }
            Part::ToolResult(result) => results(&result.parts, out),
            _ => {}
        }
    }
}

/// The words of a text as hashes: letters and digits, ASCII folded to lower case. Scripts without
/// spaces give a word a character.
pub(super) fn words(text: &str) -> impl Iterator<Item = u64> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += bytes.get(at..)?.iter().position(|byte| FOLDED[usize::from(*byte)] != 0)?;
        let (word, end) = ascii_word(bytes, at).or_else(|| any_word(text, at))?;
        at = end;
        Some(word)
    })
}

/// The hash of a word of ASCII, and its end, eight bytes at a time; `None` where a letter beyond ASCII
/// stands in it. All imported text passes here, and words are too short to foresee their ends.
fn ascii_word(bytes: &[u8], start: usize) -> Option<(u64, usize)> {
    let (mut hash, mut last, mut at) = (SEED, 0, start);
    loop {
        let (folded, count) = leading_letters(eight(bytes.get(at..)?))?;
        if count == 0 {
            break;
        }
        if at > start {
            hash = mix(hash ^ last);
        }
        last = folded;
        at += count;
        if count < 8 {
            break;
        }
    }
    Some((mix(hash ^ last), at))
}

/// How many of eight bytes, from the lowest on, are ASCII letters or digits, and those in lower case, the
/// first one highest; `None` where a byte beyond ASCII follows them. Each test sets the highest bit of its
/// bytes.
fn leading_letters(bytes: u64) -> Option<(u64, usize)> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // Below 0x80 a sum with at most 0x80 stays in its byte.
    let at_least = |seven: u64, least: u8| seven + ONES * u64::from(0x80 - least);
    let seven = bytes & !HIGH;
    let lower = seven | (ONES * 0x20);
    let letter = at_least(lower, b'a') & !at_least(lower, b'z' + 1);
    let digit = at_least(seven, b'0') & !at_least(seven, b'9' + 1);
    let other = (!(letter | digit) | bytes) & HIGH;
    let count = (other.trailing_zeros() / 8) as usize;
    if count < 8 && bytes >> (8 * count) & 0x80 != 0 {
        return None;
    }
    // A digit has the bit 0x20 that folds letters.
    let folded = lower.swap_bytes().checked_shr(64 - 8 * count as u32).unwrap_or(0);
    Some((folded, count))
}

/// The hash of a word of any script, and its end.
fn any_word(text: &str, start: usize) -> Option<(u64, usize)> {
    let bytes = text.as_bytes();
    let (mut hash, mut eight, mut at) = (SEED, 0_u64, start);
    while let Some(byte) = bytes.get(at) {
        let folded = FOLDED[usize::from(*byte)];
        if folded == 0 {
            break;
        }
        if folded == BEYOND_ASCII {
            let letter = text.get(at..).and_then(|rest| rest.chars().next())?;
            if is_ideograph(letter) && at > start {
                break;
            }
            hash = mix(hash ^ eight ^ u64::from(u32::from(letter)));
            eight = 0;
            at += letter.len_utf8();
            if is_ideograph(letter) {
                break;
            }
            continue;
        }
        if eight >> 56 != 0 {
            hash = mix(hash ^ eight);
            eight = 0;
        }
        eight = eight << 8 | u64::from(folded);
        at += 1;
    }
    Some((mix(hash ^ eight), at))
}

/// Stands in [`FOLDED`] for bytes of letters beyond ASCII.
const BEYOND_ASCII: u8 = 0x80;

/// A byte of a word in lower case; 0 for one that is in no word.
const FOLDED: [u8; 256] = {
    let mut folded = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if byte >= 0x80 {
            folded[byte] = BEYOND_ASCII;
        } else if (byte as u8).is_ascii_alphanumeric() {
            folded[byte] = (byte as u8).to_ascii_lowercase();
        }
        byte += 1;
    }
    folded
};

/// Whether a letter is written without spaces: the scripts of Chinese and Japanese.
fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The last `N` hashes, which together make a shingle: `Σ hashᵢ · PRIMEⁱ`, kept up as they move on.
pub(super) struct Window<const N: usize> {
    last: [u64; N],
    /// Where the oldest stands.
    next: usize,
    count: usize,
    sum: u64,
}

impl<const N: usize> Default for Window<N> {
    fn default() -> Self {
        Self { last: [0; N], next: 0, count: 0, sum: 0 }
    }
}

impl<const N: usize> Window<N> {
    pub(super) fn push(&mut self, hash: u64, out: &mut Vec<u64>) {
        let oldest = std::mem::replace(&mut self.last[self.next], hash);
        self.next = (self.next + 1) % N;
        self.count += 1;
        self.sum =
            self.sum.wrapping_mul(PRIME).wrapping_add(hash).wrapping_sub(oldest.wrapping_mul(Self::GONE));
        if self.count >= N {
            out.push(self.sum);
        }
    }

    /// Fewer than a shingle's make one of their own.
    pub(super) fn finish(&self, out: &mut Vec<u64>) {
        if (1..N).contains(&self.count) {
            out.push(self.sum);
        }
    }

    /// `PRIMEᴺ`: what stands before a hash that leaves.
    const GONE: u64 = PRIME.wrapping_pow(N as u32);
}

// The basis and the prime of FNV-1a (Fowler, Noll, Vo): any odd numbers would do.
const SEED: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

fn hash_bytes(bytes: &[u8]) -> u64 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut hash = SEED ^ bytes.len() as u64;
    for whole in eights {
        hash = mix(hash ^ u64::from_le_bytes(*whole));
    }
    mix(hash ^ eight(rest))
}

/// The first eight bytes, the first one lowest; zeros stand for those that are not there.
fn eight(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        padded
    }))
}

/// Spreads a change of any bit over all (the finalizer of SplitMix64: Steele, Lea, Flood 2014).
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use super::{Shingles, any_word, ascii_word, words};
    use crate::trajectory::{Node, Part, Role};

    fn said(text: &str) -> Shingles {
        Shingles::of(&[Node::new(Role::Assistant, "assistant", vec![Part::text(text)])])
    }

    #[test]
    fn case_spaces_and_marks_are_no_difference() {
        assert_eq!(said("The order, number 5, is  on its way."), said("the ORDER number 5 is on\nits way"));
        assert_ne!(said("the order number 5 is"), said("the order number 6 is"));
    }

    proptest! {
        #[test]
        fn eight_bytes_at_a_time_are_the_same_words(text in "([a-zA-Z0-9]{0,20}[ @\\[`{/:é京\u{0}]{0,2}){0,6}") {
            for (start, _) in text.char_indices().filter(|(_, letter)| letter.is_ascii_alphanumeric()) {
                if let Some(word) = ascii_word(text.as_bytes(), start) {
                    assert_eq!(Some(word), any_word(&text, start), "{start}");
                }
            }
        }
    }

    #[test]
    fn scripts_without_spaces_have_words() {
        assert_eq!(words("ça va").count(), 2);
        assert_eq!(words("東京タワー").count(), 5);
        assert_eq!(words("日a1本").count(), 3);
        assert_eq!(words(" —!").count(), 1, "a dash beyond ASCII is taken as a letter");
    }

    #[test]
    fn what_all_runs_share_counts_for_nothing() {
        let mut copied = Node::new(Role::Assistant, "assistant", vec![Part::text("a demonstration")]);
        copied.occurrence.copied_context = true;
        let system = Node::new(Role::System, "system", vec![Part::text("you are an agent")]);
        assert_eq!(Shingles::of(&[system, copied]), Shingles::default());
    }

    #[test]
    fn similarity_is_shared_over_all() {
        let left = Shingles { said: vec![1, 2, 3, 3], ..Shingles::default() };
        let right = Shingles { said: vec![2, 3, 4], ..Shingles::default() };
        assert_eq!(left.similarities(&right).map(|share| (share * 100.0).round() as u32), [100, 50, 100]);
    }
}
