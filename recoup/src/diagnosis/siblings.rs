//! Sibling contrast: what the successful runs of the same task did that this one did not.

use std::collections::BTreeSet;

use super::actions::Action;
use super::effects::Effect;
use super::run::Run;
use crate::id::Hash;

/// Actions of a run that are aligned; later ones are past any first divergence worth naming.
const ALIGNED_MAX: usize = 256;

/// Where a run leaves the path of a successful one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Index into the run's actions of the first that the successful run does not share.
    pub action: usize,
    /// 0-based position of its node on the branch.
    pub index: usize,
}

/// Aligns a run with each success by equal actions, keeps the success that shares most, and returns
/// the first action outside their longest common subsequence. `None` without a success that shares
/// anything, or where all actions are shared.
pub(crate) fn divergence(run: &Run<'_>) -> Option<Divergence> {
    let own: Vec<Hash> = keys(&run.actions);
    let mut best: Option<(usize, Option<usize>)> = None;
    for success in &run.successes {
        let (shared, first) = align(&own, &keys(success));
        if shared > 0 && best.is_none_or(|(most, _)| shared > most) {
            best = Some((shared, first));
        }
    }
    let action = best?.1?;
    Some(Divergence { action, index: run.actions.get(action)?.index })
}

fn keys(actions: &[Action<'_>]) -> Vec<Hash> {
    actions.iter().take(ALIGNED_MAX).map(|action| action.key).collect()
}

/// Length of the longest common subsequence and the first own action outside it.
fn align(own: &[Hash], other: &[Hash]) -> (usize, Option<usize>) {
    let width = other.len() + 1;
    let mut length = vec![0_u16; (own.len() + 1) * width];
    for row in (0..own.len()).rev() {
        for column in (0..other.len()).rev() {
            length[row * width + column] = if own[row] == other[column] {
                length[(row + 1) * width + column + 1] + 1
            } else {
                length[(row + 1) * width + column].max(length[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < own.len() && column < other.len() {
        if own[row] == other[column] {
            (row, column) = (row + 1, column + 1);
        } else if length[row * width + column + 1] >= length[(row + 1) * width + column] {
            column += 1;
        } else {
            break;
        }
    }
    (usize::from(length[0]), (row < own.len()).then_some(row))
}

/// Names of the tools by which an action sequence changed something.
pub(crate) fn mutating_tools<'a>(actions: &[Action<'a>]) -> BTreeSet<&'a str> {
    actions
        .iter()
        .filter(|action| action.effect == Effect::Mutate && !action.failed())
        .map(|action| action.name)
        .collect()
}

/// A call by which something stays changed, small enough to be compared (an edit of a file is not: two
/// right ones seldom agree).
pub(crate) fn is_change(action: &Action<'_>) -> bool {
    action.is_call
        && action.succeeded()
        && action.raw.len() <= 2_000
        && !action.raw.contains("\\n")
        && action.effect == Effect::Mutate
}

/// Every change that some success makes; `None` where there is no success, or where successes disagree
/// and so show that the task can be solved in several ways.
pub(crate) fn agreed_changes(run: &Run<'_>) -> Option<BTreeSet<Hash>> {
    let mut agreed: Option<BTreeSet<Hash>> = None;
    for success in &run.successes {
        let changes: BTreeSet<_> =
            success.iter().filter(|action| is_change(action)).map(|action| action.key).collect();
        match &agreed {
            Some(known) if *known != changes => return None,
            _ => agreed = Some(changes),
        }
    }
    agreed
}

/// Position of the first action of a name.
pub(crate) fn first_of(actions: &[Action<'_>], name: &str) -> Option<usize> {
    actions.iter().position(|action| action.name == name)
}

#[cfg(test)]
mod tests {
    use super::{Divergence, align};
    use crate::diagnosis::fixture::{call, chat, result, succeeded, user};
    use crate::diagnosis::{DiagnosisConfig, Run};
    use crate::id::Hash;

    fn hashes(text: &str) -> Vec<Hash> {
        text.bytes().map(|byte| Hash::of(&[byte])).collect()
    }

    #[test]
    fn alignment_skips_what_only_the_other_did() {
        assert_eq!(align(&hashes("abd"), &hashes("axbcd")), (3, None));
        assert_eq!(align(&hashes("abxd"), &hashes("abcd")), (3, Some(2)));
        assert_eq!(align(&hashes(""), &hashes("a")), (0, None));
    }

    #[test]
    fn the_first_divergence_is_against_the_nearest_success() {
        let run = |second: &str| {
            chat(vec![user("go"), call("get_a", "{}"), result("1"), call(second, "{}"), result("2")])
        };
        let failed = run("set_b");
        let success = succeeded(run("set_c"));
        let index = Run::new(&failed, &[&success], &DiagnosisConfig::default());
        assert_eq!(index.divergence(), Some(Divergence { action: 1, index: 3 }));
        assert_eq!(Run::new(&failed, &[], &DiagnosisConfig::default()).divergence(), None);
    }
}
