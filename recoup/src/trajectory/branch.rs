//! A branch: one path from a root to a node, the linear run that most stages read.

use super::{Node, Trajectory};

/// One root-to-leaf path.
///
/// A *node index* counts its nodes from 0; a *step* counts its sampled nodes from 0. Records store a
/// node's position in the trajectory; both numbers are derived here.
#[derive(Clone, Debug)]
pub struct Branch<'a> {
    trajectory: &'a Trajectory,
    positions: Vec<usize>,
}

impl<'a> Branch<'a> {
    /// The path that ends at `end`; empty for `None`.
    pub fn to(trajectory: &'a Trajectory, end: Option<usize>) -> Self {
        let mut positions = Vec::new();
        let mut next = end;
        while let Some(position) = next {
            positions.push(position);
            next = trajectory.nodes[position].parent;
        }
        positions.reverse();
        Self { trajectory, positions }
    }

    /// The trajectory it is a path of.
    pub fn trajectory(&self) -> &'a Trajectory {
        self.trajectory
    }

    /// Positions in the trajectory, root first.
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// True without nodes.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Its nodes, root first, each with its position in the trajectory.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (usize, &'a Node)> + '_ {
        self.positions.iter().map(|position| (*position, &self.trajectory.nodes[*position]))
    }

    /// Positions of its sampled nodes: the steps, in order.
    pub fn steps(&self) -> Vec<usize> {
        self.nodes().filter(|(_, node)| node.occurrence.sampled).map(|(position, _)| position).collect()
    }

    /// 0-based position of a node on the branch.
    pub fn node_index(&self, position: usize) -> Option<usize> {
        self.positions.binary_search(&position).ok()
    }

    /// 0-based step of a sampled node.
    pub fn step(&self, position: usize) -> Option<usize> {
        self.steps().binary_search(&position).ok()
    }
}
