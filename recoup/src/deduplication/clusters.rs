//! Clusters: near-duplicates among many runs, found by locality-sensitive hashing.
//!
//! The bins of a sketch are cut into bands; runs that agree in a whole band share a bucket and are
//! compared. At the least similarity that counts, a pair misses every band once in some thousands of
//! times. A bucket compares a run with its first few members that are not alike, so that many different
//! runs in one bucket take no time square in their number.

use super::shingles::mix;
use super::sketch::{BINS, SETS, Sketch};

/// Runs of a bucket that later ones are compared with.
const LEADERS_MAX: usize = 32;

/// Near-duplicates among runs, as pairs of positions, the earlier first: enough of them that alike runs are
/// connected, and no more.
pub fn near_pairs(sketches: &[Sketch]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut forest = Forest::new(sketches.len());
    let mut keys: Vec<(u64, usize)> = Vec::with_capacity(sketches.len());
    for band in 0..BANDS_MAX {
        keys.clear();
        let keyed = sketches.iter().enumerate().filter_map(|(at, sketch)| Some((key(sketch, band)?, at)));
        keys.extend(keyed);
        keys.sort_unstable();
        for bucket in keys.chunk_by(|left, right| left.0 == right.0) {
            let mut leaders: Vec<usize> = Vec::new();
            for (_, at) in bucket {
                let mut is_led = false;
                for leader in &leaders {
                    if forest.root(*leader) == forest.root(*at) {
                        is_led = true;
                    } else if sketches[*leader].is_near(&sketches[*at]) {
                        forest.join(*leader, *at);
                        pairs.push((*leader, *at));
                        is_led = true;
                    }
                }
                if !is_led && leaders.len() < LEADERS_MAX {
                    leaders.push(*at);
                }
            }
        }
    }
    pairs
}

/// For each run, the first that a chain of near-duplicates leads to; itself where there is none before it.
pub fn first_of_cluster(sketches: &[Sketch]) -> Vec<usize> {
    let mut forest = Forest::new(sketches.len());
    for (left, right) in near_pairs(sketches) {
        forest.join(left, right);
    }
    (0..sketches.len()).map(|at| forest.root(at)).collect()
}

/// Bands of a run with one set; with more sets a band takes rows of each, and there are as many bands as
/// the bins are enough for.
const fn rows(sets: usize) -> usize {
    match sets {
        1 => 6,
        2 => 4,
        _ => 3,
    }
}

const BANDS_MAX: usize = BINS / rows(SETS);

/// What a run has in a band; `None` beyond its last one.
fn key(sketch: &Sketch, band: usize) -> Option<u64> {
    let mask = sketch.mask();
    let rows = rows(mask.count_ones() as usize);
    let mut key = mix(u64::from(mask));
    for set in sketch.sets.iter().flatten() {
        for bin in set.get(band * rows..(band + 1) * rows)? {
            key = mix(key.rotate_left(9) ^ u64::from(*bin));
        }
    }
    Some(key)
}

/// A union-find forest whose roots are the least of their trees.
struct Forest(Vec<usize>);

impl Forest {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, left: usize, right: usize) {
        let (left, right) = (self.root(left), self.root(right));
        self.0[left.max(right)] = left.min(right);
    }
}

#[cfg(test)]
mod tests {
    use super::{first_of_cluster, near_pairs};
    use crate::deduplication::shingles::mix;
    use crate::deduplication::{SIMILARITY_MIN, Shingles, Sketch};

    /// Runs of 40 to 200 shingles a set, some of them copies of an earlier one with a share changed.
    fn runs(count: u64) -> Vec<Shingles> {
        let mut runs: Vec<Shingles> = Vec::new();
        for number in 0..count {
            let draw = |of: u64| mix(mix(number) ^ of);
            let changed = draw(1) % 40;
            let copied = (draw(2) % 3 > 0 && number > 0).then(|| (draw(3) % number) as usize);
            let set = |kind: u64, of: fn(&Shingles) -> &Vec<u64>| -> Vec<u64> {
                let size = 40 + draw(kind) % 60;
                match copied.and_then(|at| runs.get(at)) {
                    None => (0..size).map(|at| draw(kind << 32 | at)).collect(),
                    Some(run) => {
                        let fresh = |at: usize| draw(kind << 32 | at as u64);
                        let is_kept = |at: usize| fresh(at) % 200 >= changed;
                        let old = of(run).iter().enumerate();
                        old.map(|(at, hash)| if is_kept(at) { *hash } else { fresh(at) }).collect()
                    }
                }
            };
            let run = Shingles {
                shown: set(10, |run| &run.shown),
                said: set(11, |run| &run.said),
                did: set(12, |run| &run.did),
            };
            runs.push(run);
        }
        runs
    }

    #[test]
    fn clusters_are_those_of_exact_comparison_but_for_pairs_at_the_limit() {
        let runs = runs(250);
        let sketches: Vec<Sketch> = runs.iter().map(|run| Sketch::of_shingles(run).unwrap()).collect();
        let first = first_of_cluster(&sketches);
        let (mut near, mut found, mut clearly_near, mut clearly_found) = (0, 0, 0, 0);
        for left in 0..runs.len() {
            for right in left + 1..runs.len() {
                let similarity = runs[left].similarities(&runs[right]).into_iter().fold(1.0, f64::min);
                let is_found = first[left] == first[right];
                near += u32::from(similarity >= SIMILARITY_MIN);
                found += u32::from(similarity >= SIMILARITY_MIN && is_found);
                clearly_near += u32::from(similarity >= SIMILARITY_MIN + 0.08);
                clearly_found += u32::from(similarity >= SIMILARITY_MIN + 0.08 && is_found);
            }
        }
        assert!(clearly_near > 20 && near > 50, "{clearly_near}, {near}");
        assert_eq!(clearly_found, clearly_near);
        assert!(f64::from(found) >= 0.8 * f64::from(near), "recall {found} of {near}");
        let pairs = near_pairs(&sketches);
        let similarity = |(left, right): &(usize, usize)| {
            runs[*left].similarities(&runs[*right]).into_iter().fold(1.0, f64::min)
        };
        let close = pairs.iter().filter(|pair| similarity(pair) >= SIMILARITY_MIN - 0.08).count();
        assert!(close as f64 >= 0.98 * pairs.len() as f64, "precision {close} of {}", pairs.len());
    }

    #[test]
    fn equal_runs_are_one_cluster() {
        let same = Sketch::of_shingles(&Shingles { said: (0..20).collect(), ..Shingles::default() }).unwrap();
        assert_eq!(first_of_cluster(&vec![same; 4]), [0; 4]);
    }

    #[test]
    fn many_alike_but_not_near_runs_take_no_square_time() {
        // All agree in what they were shown and in nothing else.
        let sketches: Vec<Sketch> = (0..20_000_u64)
            .map(|number| {
                let said = (0..30).map(|at| mix(number << 8 | at)).collect();
                Sketch::of_shingles(&Shingles { shown: (0..50).collect(), said, did: vec![1] }).unwrap()
            })
            .collect();
        assert_eq!(near_pairs(&sketches), []);
    }
}
