//! Sharing: who acts in a turn, and whom the teacher teaches.

use std::borrow::Cow;

use recoup::importers::recoup_proxy;
use recoup::rollout::interleave::{Mixing, Seat};
use recoup::verdict::Actor;

use super::conversations::Place;

/// How a student and a teacher share conversations.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    pub mixing: Mixing,
    /// Round of collection, from 1.
    pub round: u32,
    /// Seed of the coins.
    pub seed: u64,
}

impl Sharing {
    /// Who acts in a turn. The same turn of the same episode has the same coin, whatever else goes on; a
    /// client that names no task has its session or else its first history; where it counts no episodes,
    /// the conversations that began alike are counted.
    pub(super) fn actor(
        &self,
        place: &Place,
        task: Option<&str>,
        session: Option<&str>,
        episode: Option<u64>,
    ) -> Actor {
        let told = format!("{:032x}", place.told.0);
        let seat = Seat {
            seed: self.seed,
            task: task.or(session).unwrap_or(&told),
            episode: episode.unwrap_or(place.ordinal),
            round: self.round,
        };
        self.mixing.actor(&seat, place.turn.into())
    }

    /// What the record says of it.
    pub(super) fn recorded<'a>(&self, teacher: &'a str) -> recoup_proxy::Sharing<'a> {
        recoup_proxy::Sharing { teacher: Cow::Borrowed(teacher), round: self.round, mixing: self.mixing }
    }
}
