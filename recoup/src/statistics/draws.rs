//! Random words by position: word n of a stream is a function of the seed, the stream and n alone.
//!
//! `SplitMix64` (Steele, Lea and Flood 2014) is such a function already: its state only counts, and a
//! mixer makes the word. So a resample may be computed anywhere, in any order and on any thread. The
//! seed goes through the mixer first; otherwise the words of two neighboring seeds would be one series
//! shifted against the other.

/// The golden ratio in 64 bits, the step of the counter.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What the words are for. One seed serves several purposes without their sharing a word.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    /// Which clusters are in a bootstrap resample.
    Bootstrap = 1,
    /// Which clusters change sign.
    SignFlip = 2,
    /// Which items of two samples are in a resample of both.
    TwoSamples = 3,
}

/// A stream of random words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    key: u64,
}

impl Draws {
    pub(super) fn new(seed: u64, stream: Stream) -> Self {
        Self { key: mix(mix(seed).wrapping_add(stream as u64)) }
    }

    /// The word at a position.
    #[inline]
    pub(super) fn word(self, position: u64) -> u64 {
        mix(self.key.wrapping_add(position.wrapping_add(1).wrapping_mul(STEP)))
    }
}

/// An index below `length` from 32 random bits, by multiplication (Lemire 2019, without rejection: no
/// index is favored by more than `length` in 2³²).
#[inline]
pub(super) fn index(bits: u32, length: usize) -> usize {
    ((u64::from(bits) * length as u64) >> 32) as usize
}

/// The item, of `length`, that is drawn at a position of a resample of two samples. 0 of none.
pub(crate) fn draw_index(seed: u64, position: u64, length: usize) -> usize {
    index(Draws::new(seed, Stream::TwoSamples).word(position) as u32, length)
}

#[inline]
fn mix(counter: u64) -> u64 {
    let mut word = counter;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::{Draws, Stream, index};

    #[test]
    fn the_words_are_splitmix64() {
        // The published outputs for the state 1234567.
        let draws = Draws { key: 1_234_567 };
        let words: Vec<u64> = (0..3).map(|position| draws.word(position)).collect();
        assert_eq!(words, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn seeds_and_streams_do_not_overlap() {
        let first = |seed, stream| Draws::new(seed, stream).word(0);
        assert_ne!(first(1, Stream::Bootstrap), first(1, Stream::SignFlip));
        assert_ne!(first(2, Stream::Bootstrap), Draws::new(1, Stream::Bootstrap).word(1));
    }

    #[test]
    fn every_index_is_drawn_alike() {
        let draws = Draws::new(3, Stream::Bootstrap);
        let mut hits = [0_u32; 7];
        for position in 0..70_000 {
            hits[index(draws.word(position) as u32, 7)] += 1;
        }
        // Six standard deviations of a count with mean 10,000.
        assert!(hits.iter().all(|&count| count.abs_diff(10_000) < 556), "{hits:?}");
        assert_eq!((index(0, 7), index(u32::MAX, 7)), (0, 6));
    }
}
