//! The window: which nodes of a long run a judge sees, and how much of each.
//!
//! What must be seen (the first and last nodes, the cited ones) goes before its neighbors, and those
//! before the rest. A run that fits is shown whole; else every node is shortened, what is near to
//! something cited the least; else nodes far from all of it are left out.

/// Shares of a node that lies far off, in bytes, from generous to bare.
const LEVELS: [usize; 9] = [32 << 10, 16 << 10, 8 << 10, 4 << 10, 2 << 10, 1 << 10, 500, 250, 120];
/// How much more a node may take that must be seen.
const MUST: usize = 8;
/// How much more its neighbors may take.
const NEAR: usize = 3;
/// How far neighbors stand.
const NEAR_DISTANCE: usize = 2;
/// Bytes of the line that says that nodes are left out.
const GAP: usize = 64;

/// A node as the window sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Bytes of its text.
    pub text: usize,
    /// Bytes of the lines that frame it.
    pub frame: usize,
}

/// Most bytes of each node's text; `None` for one that is left out. Together with their frames they take
/// about `budget` bytes at most, as far as what must be seen allows.
pub(super) fn window(sizes: &[Size], must: &[usize], budget: usize) -> Vec<Option<usize>> {
    if sizes.iter().map(|size| size.text + size.frame).sum::<usize>() <= budget {
        return sizes.iter().map(|size| Some(size.text)).collect();
    }
    let distances = distances(sizes.len(), must);
    for level in LEVELS {
        let caps: Vec<usize> = distances.iter().map(|distance| share(level, *distance)).collect();
        let cost = |(size, cap): (&Size, &usize)| size.frame + size.text.min(*cap);
        if sizes.iter().zip(&caps).map(cost).sum::<usize>() <= budget {
            return caps.into_iter().map(Some).collect();
        }
    }
    let barest = LEVELS[LEVELS.len() - 1];
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|index| (distances[*index], *index));
    let mut caps = vec![None; sizes.len()];
    let mut left = budget;
    for index in order {
        let cap = if distances[index] == 0 { barest * 2 } else { barest };
        let cost = sizes[index].frame + sizes[index].text.min(cap) + GAP;
        if distances[index] > 0 && cost > left {
            break;
        }
        left = left.saturating_sub(cost);
        caps[index] = Some(cap);
    }
    caps
}

fn share(level: usize, distance: usize) -> usize {
    match distance {
        0 => level * MUST,
        near if near <= NEAR_DISTANCE => level * NEAR,
        _ => level,
    }
}

/// Each node's distance to the nearest one that must be seen.
fn distances(nodes: usize, must: &[usize]) -> Vec<usize> {
    let mut distances = vec![nodes; nodes];
    for index in must {
        if let Some(distance) = distances.get_mut(*index) {
            *distance = 0;
        }
    }
    for index in 1..nodes {
        distances[index] = distances[index].min(distances[index - 1] + 1);
    }
    for index in (1..nodes).rev() {
        distances[index - 1] = distances[index - 1].min(distances[index] + 1);
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::{Size, window};

    fn sizes(nodes: usize, text: usize) -> Vec<Size> {
        vec![Size { text, frame: 60 }; nodes]
    }

    fn cost(sizes: &[Size], caps: &[Option<usize>]) -> usize {
        let shown =
            sizes.iter().zip(caps).filter_map(|(size, cap)| Some(size.frame + size.text.min((*cap)?)));
        shown.sum()
    }

    #[test]
    fn what_fits_is_shown_whole() {
        assert_eq!(window(&sizes(3, 100), &[0], 1_000), [Some(100); 3]);
    }

    #[test]
    fn one_huge_message_is_shortened_and_the_others_are_not() {
        let mut sizes = sizes(10, 300);
        sizes[5].text = 20 << 20;
        let caps = window(&sizes, &[0, 9], 60_000);
        assert!(cost(&sizes, &caps) <= 60_000);
        assert!(caps.iter().enumerate().all(|(at, cap)| at == 5 || *cap >= Some(300)), "{caps:?}");
    }

    #[test]
    fn many_nodes_keep_those_that_must_be_seen_with_their_neighbors() {
        let sizes = sizes(50_000, 400);
        let caps = window(&sizes, &[0, 25_000, 49_999], 40_000);
        assert!(cost(&sizes, &caps) <= 40_000);
        for index in [0, 1, 24_999, 25_000, 25_001, 49_998, 49_999] {
            assert!(caps[index].is_some(), "{index}");
        }
        assert!(caps[10_000].is_none());
    }
}
