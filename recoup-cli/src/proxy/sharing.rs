//! Sharing: who acts in a turn, and whom the teacher teaches.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

use recoup::importers::recoup_proxy;
use recoup::interleaving::{Mixing, Seat};
use recoup::verdict::Actor;

use recoup::store::Store;
use recoup::task::Task;
use recoup::verdict::Side;
use serde_json::value::RawValue;

use super::conversations::Place;

/// How a student and a teacher share conversations.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    pub mixing: Mixing,
    /// Round of collection, from 1.
    pub round: u32,
    /// Seed of the coins.
    pub seed: u64,
    /// Tokens that the student's context holds, where that is known.
    pub context: Option<u64>,
}

impl Sharing {
    /// Who acts in a turn. The same turn of the same episode has the same coin, whatever else goes on; a
    /// client that names no task has its session or else its first history. Where it counts no episodes of
    /// a task, sessions are told apart, or the conversations that began alike counted.
    pub(super) fn actor(
        &self,
        place: &Place,
        task: Option<&str>,
        session: Option<&str>,
        episode: Option<u64>,
    ) -> Actor {
        let name = match (task, session, episode) {
            (Some(task), Some(session), None) => format!("{task} {session}"),
            (Some(name), _, _) | (None, Some(name), _) => name.to_owned(),
            (None, None, _) => format!("{:032x}", place.told.0),
        };
        let seat = Seat {
            seed: self.seed,
            task: &name,
            episode: episode.unwrap_or(place.ordinal),
            round: self.round,
        };
        self.mixing.actor(&seat, place.turn.into())
    }

    /// Whether a conversation is about a task that is held out of training: nobody but the student acts in
    /// it, and nothing of it is taught. Which tasks those are follows from their names, or from the goal
    /// where the client names none.
    ///
    /// `None` where the request says neither; what the project holds already stays on its side there.
    pub(super) fn holds_out(
        project: &Path,
        task: Option<&str>,
        messages: &[Cow<'_, RawValue>],
    ) -> Option<bool> {
        let goal = messages.iter().find_map(|raw| asked(raw));
        let task = match (task, goal) {
            (Some(name), goal) => Task::named(name, goal.unwrap_or_default()),
            (None, goal) => Task::from_goal(goal?),
        };
        // A project that cannot be read is no reason to teach what may be held out.
        Some(side(project, &task).is_none_or(|side| side != Side::Train))
    }

    /// What the record says of it.
    pub(super) fn recorded<'a>(&self, teacher: &'a str) -> recoup_proxy::Sharing<'a> {
        let Self { mixing, round, context, .. } = *self;
        recoup_proxy::Sharing { teacher: Cow::Borrowed(teacher), round, mixing, context }
    }
}

thread_local! {
    /// The project of this thread: many threads ask, and a store is one's own.
    static STORE: RefCell<Option<(PathBuf, Store)>> = const { RefCell::new(None) };
}

/// The side of a task in a project; `None` where it cannot be read.
fn side(project: &Path, task: &Task) -> Option<Side> {
    STORE.with_borrow_mut(|known| {
        if known.as_ref().is_none_or(|(path, _)| path != project) {
            *known = Some((project.to_owned(), Store::open(project).ok()?));
        }
        known.as_ref()?.1.side_of_task(task).ok()
    })
}

/// The words of a message of the user.
fn asked(raw: &RawValue) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(raw.get()).ok()?;
    if message.get("role").and_then(|role| role.as_str()) != Some("user") {
        return None;
    }
    let content = message.get("content")?;
    let text = match (content.as_str(), content.as_array()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(parts)) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join("\n")
        }
        (None, None) => String::new(),
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{Sharing, Side, Store, Task};

    #[test]
    fn held_out_tasks_are_known_by_name_or_goal() {
        let side = |task: Task| Store::side_of_new(&task);
        let goals = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"];
        let mut seen = [false; 2];
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path();
        Store::create_or_open(store).unwrap();
        assert_eq!(Sharing::holds_out(store, None, &[]), None);
        for goal in goals {
            let text = format!(r#"{{"role":"user","content":[{{"type":"text","text":"{goal}"}}]}}"#);
            let raw: &serde_json::value::RawValue = serde_json::from_str(&text).unwrap();
            let out = Sharing::holds_out(store, None, &[Cow::Borrowed(raw)]);
            assert_eq!(out, Some(side(Task::from_goal(goal)) != Side::Train), "{goal}");
            let named = Sharing::holds_out(store, Some(goal), &[]);
            assert_eq!(named, Some(side(Task::named(goal, "")) != Side::Train));
            seen[usize::from(out == Some(true))] = true;
        }
        assert_eq!(seen, [true; 2]);
    }
}
