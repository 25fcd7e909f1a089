//! A sketch: a run's shingles, shrunk to a size that does not depend on the run's.
//!
//! One permutation hashing with optimal densification (Li, Owen, Zhang 2012; Shrivastava 2017): each
//! shingle falls into one of [`BINS`] bins, a bin keeps its least hash, an empty one borrows from
//! another. The share of bins in which two sketches agree estimates the similarity of their sets, with a
//! standard deviation of at most `0.5 / √BINS` = 0.05.

use super::shingles::{Shingles, mix};
use crate::trajectory::Node;

/// Bins of a set.
pub(super) const BINS: usize = 96;
/// Sets of a run: shown, said, did.
pub(super) const SETS: usize = 3;
/// Shingles below which a run is too short to be told from others of its kind.
const SHINGLES_MIN: usize = 8;
/// Least similarity of each set at which runs are near-duplicates.
pub const SIMILARITY_MIN: f64 = 0.85;

/// The same in bins, rounded down.
const AGREEING_MIN: usize = (SIMILARITY_MIN * BINS as f64) as usize;

/// The sketch of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    pub(super) sets: [Option<Box<[u16; BINS]>>; SETS],
}

impl Sketch {
    /// Of the messages of a run; `None` where it is too short.
    pub fn of(nodes: &[Node]) -> Option<Self> {
        Self::of_shingles(&Shingles::of(nodes))
    }

    /// Of a run's shingles.
    pub fn of_shingles(shingles: &Shingles) -> Option<Self> {
        let sets = [&shingles.shown, &shingles.said, &shingles.did];
        if sets.iter().map(|set| set.len()).sum::<usize>() < SHINGLES_MIN {
            return None;
        }
        Some(Self { sets: sets.map(|set| bins(set)) })
    }

    /// Whether two runs are near-duplicates, as far as their sketches tell.
    pub fn is_near(&self, other: &Self) -> bool {
        self.sets.iter().zip(&other.sets).all(|sets| match sets {
            (Some(left), Some(right)) => agreeing(left, right) >= AGREEING_MIN,
            (None, None) => true,
            _ => false,
        })
    }

    /// The bytes to store.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.mask()];
        for set in self.sets.iter().flatten() {
            bytes.extend(set.iter().flat_map(|bin| bin.to_le_bytes()));
        }
        bytes
    }

    /// Reads what [`Sketch::to_bytes`] wrote; `None` where it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (mask, rest) = bytes.split_first()?;
        let (pairs, odd) = rest.as_chunks::<2>();
        let count = mask.count_ones() as usize;
        if *mask >= 1 << SETS || !odd.is_empty() || pairs.len() != count * BINS {
            return None;
        }
        let mut bins = pairs.iter().map(|pair| u16::from_le_bytes(*pair));
        let sets = std::array::from_fn(|set| {
            (mask >> set & 1 == 1).then(|| Box::new(std::array::from_fn(|_| bins.next().unwrap_or_default())))
        });
        Some(Self { sets })
    }

    /// Which sets are there, a bit each.
    pub(super) fn mask(&self) -> u8 {
        self.sets.iter().enumerate().fold(0, |mask, (set, bins)| mask | u8::from(bins.is_some()) << set)
    }
}

fn agreeing(left: &[u16; BINS], right: &[u16; BINS]) -> usize {
    left.iter().zip(right).filter(|(left, right)| left == right).count()
}

fn bins(shingles: &[u64]) -> Option<Box<[u16; BINS]>> {
    if shingles.is_empty() {
        return None;
    }
    let mut least = [u64::MAX; BINS];
    for shingle in shingles {
        let hash = mix(*shingle);
        let bin = (((hash >> 32) * BINS as u64) >> 32) as usize;
        least[bin] = least[bin].min(hash << 32 | 1);
    }
    Some(Box::new(std::array::from_fn(|bin| (lender(&least, bin) >> 32) as u16)))
}

/// The least hash of a bin, or of the bin that it borrows from: some bin is not empty, so this ends.
fn lender(least: &[u64; BINS], bin: usize) -> u64 {
    let mut at = bin;
    let mut attempt = 0;
    while least[at] == u64::MAX {
        attempt += 1;
        at = (mix((bin as u64) << 32 | attempt) % BINS as u64) as usize;
    }
    least[at]
}

#[cfg(test)]
mod tests {
    use super::{BINS, Sketch, agreeing, bins};
    use crate::deduplication::Shingles;

    #[test]
    fn agreeing_bins_estimate_the_similarity() {
        for (size, shared) in [(2000_u64, 1000_u64), (300, 270), (40, 20), (12, 10)] {
            let exact = shared as f64 / (2 * size - shared) as f64;
            let trials = 200;
            let mean = (0..trials)
                .map(|trial| {
                    let set =
                        |from: u64| -> Vec<u64> { (from..from + size).map(|i| trial << 32 | i).collect() };
                    let (left, right) = (bins(&set(0)).unwrap(), bins(&set(size - shared)).unwrap());
                    agreeing(&left, &right) as f64 / BINS as f64
                })
                .sum::<f64>()
                / trials as f64;
            assert!((mean - exact).abs() < 0.03, "{size}, {shared}: {mean} for {exact}");
        }
    }

    #[test]
    fn a_sketch_is_read_back_and_nothing_else_is() {
        let shingles = Shingles { shown: (0..50).collect(), said: Vec::new(), did: vec![7] };
        let sketch = Sketch::of_shingles(&shingles).unwrap();
        let bytes = sketch.to_bytes();
        assert_eq!(Sketch::from_bytes(&bytes), Some(sketch));
        assert_eq!(Sketch::from_bytes(&bytes[1..]), None);
        assert_eq!(Sketch::from_bytes(&[]), None);
        assert_eq!(Sketch::from_bytes(&[255]), None);
    }

    #[test]
    fn a_run_of_few_words_has_no_sketch() {
        assert_eq!(Sketch::of_shingles(&Shingles { said: vec![1, 2], ..Shingles::default() }), None);
    }
}
