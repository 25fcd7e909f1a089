//! Coins: who acts at a turn, as a hash of where the coin is tossed.
//!
//! A toss is hash(seed, task, episode, round, turn) and nothing else: the same whatever the concurrency, the order of
//! requests or the day they are made.

use serde::{Deserialize, Serialize};

use crate::id::Hash;
use crate::verdict::Actor;

/// How turns are shared in a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mixing {
    /// Each turn is the teacher's with this probability; 0 where it only labels.
    Turns {
        /// The probability, from 0 to 1.
        beta: f64,
    },
    /// The student acts for a number of turns drawn evenly from 0 to `most`, then the teacher.
    Prefix {
        /// The most turns.
        most: u64,
    },
}

/// Where coins are tossed: the place of a run among all.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    /// Seed of the collection.
    pub seed: u64,
    /// The task, or what stands for it.
    pub task: &'a str,
    /// Which run of the task: a trial's number, or a conversation's.
    pub episode: u64,
    /// Round, from 1.
    pub round: u32,
}

impl Seat<'_> {
    /// A number from 0 up to, not including, 1 for a turn.
    pub fn toss(&self, turn: u64) -> f64 {
        // 53 bits: what a double holds.
        (self.draw(b"turn", turn) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// κ: a number of turns, drawn evenly from 0 to `most`.
    pub fn prefix(&self, most: u64) -> u64 {
        let draw = u128::from(self.draw(b"prefix", 0));
        // Multiplying spreads 2⁶⁴ draws over `most` + 1 places; the places differ by one draw at most.
        ((draw * (u128::from(most) + 1)) >> 64) as u64
    }

    fn draw(&self, what: &[u8], turn: u64) -> u64 {
        let [seed, episode, turn] = [self.seed, self.episode, turn].map(u64::to_le_bytes);
        Hash::of_all(&[
            b"coin-1",
            what,
            &seed,
            self.task.as_bytes(),
            &episode,
            &self.round.to_le_bytes(),
            &turn,
        ])
        .to_seed()
    }
}

impl Mixing {
    /// Who acts at a turn, from 0.
    pub fn actor(self, seat: &Seat<'_>, turn: u64) -> Actor {
        let is_teachers = match self {
            Self::Turns { beta } => seat.toss(turn) < beta,
            Self::Prefix { most } => turn >= seat.prefix(most),
        };
        if is_teachers { Actor::Teacher } else { Actor::Student }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mixing, Seat};
    use crate::verdict::Actor;

    fn seat(task: &str) -> Seat<'_> {
        Seat { seed: 7, task, episode: 0, round: 2 }
    }

    #[test]
    fn a_toss_follows_from_its_place_alone() {
        let first = seat("a").toss(3);
        assert_eq!(first.to_bits(), seat("a").toss(3).to_bits());
        let others = [
            seat("b").toss(3),
            seat("a").toss(4),
            Seat { seed: 8, ..seat("a") }.toss(3),
            Seat { episode: 1, ..seat("a") }.toss(3),
            Seat { round: 3, ..seat("a") }.toss(3),
        ];
        assert!(others.iter().all(|other| other.to_bits() != first.to_bits()));
    }

    #[test]
    fn the_teacher_acts_as_often_as_beta_says() {
        let share = |beta| {
            let mixing = Mixing::Turns { beta };
            (0..20_000).filter(|turn| mixing.actor(&seat("a"), *turn) == Actor::Teacher).count()
        };
        // Three standard deviations of 20,000 tosses are 1.1 %.
        assert!(share(0.6).abs_diff(12_000) < 220, "{}", share(0.6));
        assert_eq!((share(0.0), share(1.0)), (0, 20_000));
    }

    #[test]
    fn prefixes_are_even_and_the_teacher_ends_the_run() {
        let mut counts = [0_usize; 5];
        for episode in 0..10_000 {
            let seat = Seat { episode, ..seat("a") };
            let length = seat.prefix(4);
            counts[length as usize] += 1;
            let mixing = Mixing::Prefix { most: 4 };
            let students = (0..9).take_while(|turn| mixing.actor(&seat, *turn) == Actor::Student).count();
            assert_eq!(students as u64, length);
            assert_eq!(mixing.actor(&seat, 8), Actor::Teacher);
        }
        assert!(counts.iter().all(|count| count.abs_diff(2000) < 140), "{counts:?}");
    }
}
