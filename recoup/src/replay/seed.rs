//! Common random numbers: every arm of a continuation draws from one seed.

use crate::id::{Hash, TrajectoryId};

/// The seed of a continuation: of the project's seed, the checkpoint (a run and the turn forked at) and
/// the continuation's number. The arm is not hashed, so arms share their luck until they differ.
pub fn continuation_seed(project: u64, run: TrajectoryId, turn: usize, continuation: u32) -> u64 {
    let fields: [&[u8]; 5] = [
        b"continuation",
        &project.to_le_bytes(),
        &run.0.0,
        &(turn as u64).to_le_bytes(),
        &continuation.to_le_bytes(),
    ];
    Hash::of_all(&fields).to_seed()
}

#[cfg(test)]
mod tests {
    use super::continuation_seed;
    use crate::id::{Hash, TrajectoryId};

    #[test]
    fn every_field_counts() {
        let run = TrajectoryId(Hash::of(b"run"));
        let base = continuation_seed(7, run, 2, 0);
        assert_eq!(base, continuation_seed(7, run, 2, 0));
        for other in [
            continuation_seed(8, run, 2, 0),
            continuation_seed(7, TrajectoryId(Hash::of(b"other")), 2, 0),
            continuation_seed(7, run, 3, 0),
            continuation_seed(7, run, 2, 1),
        ] {
            assert_ne!(base, other);
        }
    }
}
