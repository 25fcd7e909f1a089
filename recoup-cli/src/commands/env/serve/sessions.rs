//! Episodes that requests come back to, by name: so many, and the one left alone longest makes room.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::episode::Episode;

/// Most episodes at a time.
const SESSIONS_MAX: usize = 64;

/// An episode that one request at a time acts in.
pub(super) type Session = Arc<Mutex<Episode>>;

#[derive(Default)]
pub(super) struct Sessions(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// With the moment of its last use.
    by_name: BTreeMap<String, (u64, Session)>,
    /// Counts uses.
    moment: u64,
}

impl Sessions {
    /// Keeps an episode under a name, in the place of one that had it.
    pub(super) fn put(&self, name: &str, episode: Episode) {
        let mut kept = lock(&self.0);
        kept.moment += 1;
        let moment = kept.moment;
        kept.by_name.insert(name.to_owned(), (moment, Arc::new(Mutex::new(episode))));
        if kept.by_name.len() > SESSIONS_MAX {
            let oldest = kept.by_name.iter().min_by_key(|(_, (moment, _))| *moment);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                kept.by_name.remove(&oldest);
            }
        }
    }

    /// Keeps an episode under a name that nobody can guess.
    pub(super) fn put_new(&self, episode: Episode) -> String {
        // The keys of these hashers come from the system's randomness.
        let number = || RandomState::new().hash_one("session");
        let name = format!("{:016x}{:016x}", number(), number());
        self.put(&name, episode);
        name
    }

    pub(super) fn get(&self, name: &str) -> Option<Session> {
        let mut kept = lock(&self.0);
        kept.moment += 1;
        let moment = kept.moment;
        let (used, session) = kept.by_name.get_mut(name)?;
        *used = moment;
        Some(session.clone())
    }

    pub(super) fn remove(&self, name: &str) {
        lock(&self.0).by_name.remove(name);
    }
}

/// Locks; a thread that panicked with the lock has left whole values behind.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
