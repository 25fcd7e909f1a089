//! The order in which a session's lines can be told: parents before children.

use std::collections::BTreeMap;

use super::line::Line;
use crate::warning::Loss;

/// What a line hangs on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Parent {
    Root,
    /// The line before it, of the same chain.
    Previous,
    Line(usize),
}

/// The lines, parents before children, else in file order; each with what it hangs on.
pub(super) fn in_order(lines: &[Line], losses: &mut Vec<Loss>) -> Vec<(usize, Parent)> {
    if lines.iter().all(|line| line.parent.is_none()) {
        return (0..lines.len()).map(|index| (index, Parent::Previous)).collect();
    }
    let mut by_uuid: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, line) in lines.iter().enumerate() {
        if let Some(uuid) = &line.uuid {
            by_uuid.entry(uuid).or_insert(index);
        }
    }
    let mut order = Vec::with_capacity(lines.len());
    let mut placed = vec![false; lines.len()];
    // Children that stand before their parent in the file, by the parent's index.
    let mut waiting: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, line) in lines.iter().enumerate() {
        let parent = match &line.parent {
            None => Parent::Root,
            Some(uuid) => match by_uuid.get(uuid.as_str()) {
                Some(parent) if placed[*parent] => Parent::Line(*parent),
                Some(parent) => {
                    waiting.entry(*parent).or_default().push(index);
                    continue;
                }
                None => {
                    let reason = "the parent stands in another session or file";
                    losses.push(Loss::new("claude-code", "parentUuid", reason));
                    Parent::Root
                }
            },
        };
        let mut next = vec![(index, parent)];
        while let Some((index, parent)) = next.pop() {
            placed[index] = true;
            order.push((index, parent));
            let children = waiting.remove(&index).unwrap_or_default();
            next.extend(children.into_iter().rev().map(|child| (child, Parent::Line(index))));
        }
    }
    for index in (0..lines.len()).filter(|index| !placed[*index]) {
        losses.push(Loss::new("claude-code", "parentUuid", "the line is its own ancestor"));
        order.push((index, Parent::Root));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::{Parent, in_order};
    use crate::importers::claude_code::line::Line;

    fn order(links: &[(&str, Option<&str>)]) -> (Vec<(usize, Parent)>, usize) {
        let line = |(uuid, parent): &(&str, Option<&str>)| {
            let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
            let text = format!(r#"{{"type":"system","uuid":"{uuid}","parentUuid":{parent}}}"#);
            Line::read(text.as_bytes()).unwrap()
        };
        let lines: Vec<Line> = links.iter().map(line).collect();
        let mut losses = Vec::new();
        (in_order(&lines, &mut losses), losses.len())
    }

    #[test]
    fn a_child_may_stand_before_its_parent() {
        let (order, losses) = order(&[("c", Some("b")), ("a", None), ("b", Some("a"))]);
        assert_eq!(order, [(1, Parent::Root), (2, Parent::Line(1)), (0, Parent::Line(2))]);
        assert_eq!(losses, 0);
    }

    #[test]
    fn lost_parents_and_circles_become_roots() {
        let (order, losses) = order(&[("a", Some("elsewhere")), ("b", Some("c")), ("c", Some("b"))]);
        assert_eq!(order, [(0, Parent::Root), (1, Parent::Root), (2, Parent::Root)]);
        assert_eq!(losses, 3);
    }

    #[test]
    fn lines_without_parents_follow_each_other() {
        let (order, _) = order(&[("a", None), ("b", None)]);
        assert_eq!(order, [(0, Parent::Previous), (1, Parent::Previous)]);
    }
}
