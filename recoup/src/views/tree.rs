//! Trees of attempts: where a search tried two messages in one state, and what came of each.

use super::turn::same_turn;
use super::{Evidence, Example, Lineage, Message, Objective, View, ViewInput};
use crate::trajectory::{Branch, Leaf, Status, TerminationKind, Trajectory};

/// What the attempts below a message came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Attempts {
    /// Finished by themselves, with success.
    solved: u64,
    /// Finished by themselves, without.
    failed: u64,
    /// Failed because they were cut.
    cut: u64,
    /// Without an outcome.
    unknown: u64,
}

impl Attempts {
    fn count(&mut self, leaf: &Leaf) {
        let is_finished = leaf.outcome.termination_kind() == Some(TerminationKind::Completed);
        match leaf.outcome.status {
            Status::Success if is_finished => self.solved += 1,
            Status::Failure if is_finished => self.failed += 1,
            Status::Failure => self.cut += 1,
            Status::Success | Status::Unknown => self.unknown += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.solved += other.solved;
        self.failed += other.failed;
        self.cut += other.cut;
        self.unknown += other.unknown;
    }

    fn is_good(self) -> bool {
        self.solved > 0
    }

    /// Every attempt failed, and one of them said itself that it was done.
    fn is_bad(self) -> bool {
        self.solved == 0 && self.unknown == 0 && self.failed > 0
    }
}

/// A pair for every two messages of one state of which one led to a finished success and the other to
/// finished failures alone.
pub(super) fn contrasts(view: &dyn View, input: &ViewInput<'_>) -> Vec<[Example; 2]> {
    let run = input.run;
    let below = attempts(run);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); run.nodes.len()];
    for (position, node) in run.nodes.iter().enumerate() {
        if let Some(siblings) = node.parent.and_then(|parent| children.get_mut(parent)) {
            siblings.push(position);
        }
    }
    let mut pairs = Vec::new();
    for siblings in children.iter().filter(|siblings| siblings.len() > 1) {
        let halves = |is_wanted: fn(Attempts) -> bool| -> Vec<Example> {
            let children = siblings.iter().filter(|child| is_wanted(below[**child]));
            children.filter_map(|child| half(view, input, *child)).collect()
        };
        let (good, bad) = (halves(Attempts::is_good), halves(Attempts::is_bad));
        for (chosen, rejected) in good.iter().flat_map(|good| bad.iter().map(move |bad| (good, bad))) {
            let turns = chosen.context.last().zip(rejected.context.last());
            if turns.is_some_and(|(left, right)| !same_turn(left, right)) {
                pairs.push(Example::paired(chosen.clone(), rejected.clone(), Objective::Preference));
            }
        }
    }
    pairs
}

/// A message behind those before it; `None` where it may not be learned from.
fn half(view: &dyn View, input: &ViewInput<'_>, end: usize) -> Option<Example> {
    let context = Message::of_branch(input.run, &Branch::to(input.run, Some(end)));
    let message = context.last().filter(|message| input.is_learnable(message))?;
    let segments = message.segments(context.len() - 1).collect();
    let lineage = Lineage { evidence: Evidence::Tree, ..input.lineage(view) };
    Some(Example { lineage, ..input.example(view, context, segments) })
}

/// What the attempts below each node came to, its own end included.
fn attempts(run: &Trajectory) -> Vec<Attempts> {
    let mut below = vec![Attempts::default(); run.nodes.len()];
    for leaf in &run.leaves {
        if let Some(own) = leaf.node.and_then(|node| below.get_mut(node)) {
            own.count(leaf);
        }
    }
    // Parents stand before their children.
    for position in (0..run.nodes.len()).rev() {
        let own = below[position];
        if let Some(above) = run.nodes[position].parent.and_then(|parent| below.get_mut(parent)) {
            above.add(own);
        }
    }
    below
}

#[cfg(test)]
mod tests {
    use crate::task::Task;
    use crate::trajectory::{Leaf, Node, Outcome, Part, Role, Status, TerminationKind, Trajectory};
    use crate::verdict::Side;
    use crate::views::{Evidence, Preference, View, ViewInput, ViewSettings};

    /// A search that tries two thoughts in one state.
    fn tree(first: Outcome, second: Outcome) -> Trajectory {
        let mut run = Trajectory::new("test", Task::from_goal("q"));
        let say = |text: &str, parent| {
            let mut node = Node::new(Role::Assistant, "assistant", vec![Part::text(text)]).sampled();
            node.parent = parent;
            node
        };
        run.push(Node::new(Role::User, "user", vec![Part::text("q")]));
        run.push_under(say("search", Some(0)));
        let left = run.push_under(say("guess", Some(1)));
        let right = run.push_under(say("look", Some(1)));
        run.leaves =
            vec![Leaf { node: Some(left), outcome: first }, Leaf { node: Some(right), outcome: second }];
        run.main_leaf = 1;
        run
    }

    fn ended(status: Status, kind: TerminationKind) -> Outcome {
        Outcome { status, ..Outcome::unknown() }.ended(kind, "")
    }

    #[test]
    fn attempts_that_finished_differently_are_a_pair() {
        let settings = ViewSettings::default();
        let (finished, cut) = (TerminationKind::Completed, TerminationKind::StepLimit);
        let won = || ended(Status::Success, finished);
        let run = tree(ended(Status::Failure, finished), won());
        let examples = Preference.build(&ViewInput::new(&run, Side::Train, &settings)).unwrap();
        let last = |half: usize| examples[half].context.last().unwrap().parts[0].cited_text();
        assert_eq!((last(0), last(1), examples.len()), (Some("look"), Some("guess"), 2));
        assert_eq!((examples[0].context.len(), examples[0].lineage.evidence), (3, Evidence::Tree));
        for other in [ended(Status::Failure, cut), ended(Status::Unknown, finished), won()] {
            let run = tree(other, won());
            let refused = Preference.build(&ViewInput::new(&run, Side::Train, &settings)).unwrap_err();
            assert_eq!(refused.reason, "no-contrasting-finished-attempts");
        }
        let held_out = ViewInput::new(&run, Side::Test, &settings);
        assert_eq!(Preference.build(&held_out).unwrap_err().reason, "held-out");
    }
}
