//! Siblings: what a successful run of the same task did where a failed one took its decisive turn.
//!
//! The failed run is aligned, up to that turn, with each success by equal actions. Where both have acted
//! alike so far, the success took its next action in the very same state. Elsewhere that action is a
//! guess, as every candidate is before its arm has run.

use std::collections::BTreeSet;

use super::recorded::Recorded;
use crate::canonical::canonicalize;
use crate::environments::Action;
use crate::task::EnvironmentRef;
use crate::trajectory::Trajectory;

/// Actions of a run that are aligned; later ones are past any turn worth comparing.
const ALIGNED_MAX: usize = 256;

/// The next action of the success that shares most with a run before a turn. `None` without a success
/// that shares anything, or where it has nothing left that the run has not done.
pub(super) fn action(run: &Recorded, turn: usize, successes: &[Recorded]) -> Option<Action> {
    let own = keys(run.turns.iter().take(turn).flat_map(|turn| &turn.actions));
    let mut best: Option<(usize, Action)> = None;
    for success in successes {
        let actions: Vec<&Action> = success.turns.iter().flat_map(|turn| &turn.actions).collect();
        let other = keys(actions.iter().copied());
        let (shared, next) = align(&own, &other);
        if (shared == 0 && !own.is_empty()) || best.as_ref().is_some_and(|(most, _)| shared <= *most) {
            continue;
        }
        let is_alike = shared == own.len() && shared == next;
        let done: BTreeSet<&String> = own.iter().collect();
        let ahead = other.iter().zip(&actions).skip(next);
        let found =
            ahead.map(|(key, action)| (key, *action)).find(|(key, _)| is_alike || !done.contains(key));
        best = found.map(|(_, action)| (shared, action.clone())).or(best);
    }
    best.map(|(_, action)| action)
}

/// The successes of the same task in the same environment, read as episodes.
pub(super) fn successes(siblings: &[Trajectory], environment: Option<&EnvironmentRef>) -> Vec<Recorded> {
    let same = siblings.iter().filter(|sibling| sibling.environment.as_ref() == environment);
    same.filter_map(|sibling| Recorded::read(sibling).ok()).collect()
}

/// Equal for equal actions, whatever the order in which their arguments were written.
fn keys<'a>(actions: impl Iterator<Item = &'a Action>) -> Vec<String> {
    let key = |action: &Action| {
        let json = action.to_json();
        canonicalize(&json).unwrap_or(json)
    };
    actions.take(ALIGNED_MAX).map(key).collect()
}

/// Length of the longest common subsequence, and the first index of `other` by which it is complete.
fn align(own: &[String], other: &[String]) -> (usize, usize) {
    let mut row = vec![0_usize; other.len() + 1];
    for one in own {
        let mut diagonal = 0;
        for (column, key) in other.iter().enumerate() {
            let above = row[column + 1];
            row[column + 1] = if one == key { diagonal + 1 } else { above.max(row[column]) };
            diagonal = above;
        }
    }
    let shared = row[other.len()];
    (shared, row.iter().position(|length| *length == shared).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{action, align};
    use crate::environments::Action;
    use crate::json::Json;
    use crate::replay::{Recorded, RecordedTurn, Seen};
    use crate::rollout::Spent;

    fn keys(text: &str) -> Vec<String> {
        text.chars().map(String::from).collect()
    }

    /// A run of one-letter actions.
    fn run(text: &str) -> Recorded {
        let seen = || Seen { node: 0, observation: String::new(), is_error: None, state_hash: None };
        let turn = |letter: char| RecordedTurn {
            node: 0,
            thought: None,
            said: None,
            spent: Spent::default(),
            actions: vec![Action::call(letter.to_string(), Json::parse("{}").unwrap())],
            seen: vec![seen()],
        };
        Recorded { start: seen(), turns: text.chars().map(turn).collect() }
    }

    fn proposed(own: &str, turn: usize, successes: &[&str]) -> Option<String> {
        let successes: Vec<Recorded> = successes.iter().map(|text| run(text)).collect();
        match action(&run(own), turn, &successes)? {
            Action::Call { tool, .. } => Some(tool.to_string()),
            Action::Say(_) => None,
        }
    }

    #[test]
    fn an_alignment_ends_with_the_last_shared_action() {
        assert_eq!(align(&keys("ab"), &keys("axb")), (2, 3));
        assert_eq!(align(&keys("ab"), &keys("ba")), (1, 1));
        assert_eq!(align(&keys(""), &keys("ab")), (0, 0));
        assert_eq!(align(&keys("z"), &keys("ab")), (0, 0));
    }

    #[test]
    fn the_success_that_shares_most_goes_on() {
        assert_eq!(proposed("abx", 2, &["ay", "abc", "zbd"]).as_deref(), Some("c"));
        assert_eq!(proposed("x", 0, &["abc"]).as_deref(), Some("a"));
        // The same action again, where the success took it twice in a row.
        assert_eq!(proposed("aax", 2, &["aaab"]).as_deref(), Some("a"));
        // What the run has done already in another order is passed over.
        assert_eq!(proposed("bax", 2, &["abc"]).as_deref(), Some("c"));
    }

    #[test]
    fn without_anything_in_common_nothing_is_proposed() {
        assert_eq!(proposed("zx", 1, &["abc"]), None);
        assert_eq!(proposed("abx", 2, &[]), None);
        assert_eq!(proposed("abx", 2, &["ab"]), None);
    }
}
