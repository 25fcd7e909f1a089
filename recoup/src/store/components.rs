//! Components: links as a union-find forest; a root knows its side once one of its links has one.

use std::collections::HashMap;

use crate::id::Hash;
use crate::verdict::{Side, Split};

/// What the project knows of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing yet.
    Open,
    /// Its side.
    On(Split),
    /// Its runs stand on two sides since a time when it tied nothing.
    Torn,
}

impl Known {
    /// With what is known of another link that ties the same runs.
    pub(super) fn and(self, other: Option<Split>) -> Self {
        match (self, other) {
            (Self::On(one), Some(other)) if one.side != other.side => Self::Torn,
            (Self::On(one), Some(other)) if other.component < one.component => Self::On(other),
            (Self::Open, Some(other)) => Self::On(other),
            (known, _) => known,
        }
    }
}

/// Links and what they tie together.
#[derive(Default)]
pub(super) struct Components {
    index: HashMap<Hash, usize>,
    /// `None` for a tie of this import only.
    links: Vec<Option<Hash>>,
    parent: Vec<usize>,
    fixed: Vec<Option<Split>>,
    torn: Vec<bool>,
    smallest: Vec<Option<String>>,
    /// Names of components that are gone, in the order they went, each with the smaller one that was kept.
    renamed: Vec<(String, String)>,
    /// The same to look up. Another link may still be known by a name that is gone.
    kept: HashMap<String, String>,
}

impl Components {
    /// Whether a link is among them.
    pub(super) fn has(&self, link: Hash) -> bool {
        self.index.contains_key(&link)
    }

    /// Adds a link that is not among them, to be remembered or for the time being.
    pub(super) fn add(&mut self, link: Hash, known: Known, is_kept: bool) {
        self.index.insert(link, self.links.len());
        self.links.push(is_kept.then_some(link));
        self.parent.push(self.parent.len());
        self.torn.push(known == Known::Torn);
        self.fixed.push(match known {
            Known::On(split) => Some(split),
            Known::Open | Known::Torn => None,
        });
        self.smallest.push(None);
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    /// A split under the name that its component has now.
    fn current(&self, mut split: Split) -> Split {
        while let Some(kept) = self.kept.get(&split.component) {
            split.component.clone_from(kept);
        }
        split
    }

    /// Ties the links of a run of a task together unless they stand on two sides; false where they do.
    pub(super) fn join(&mut self, links: &[Hash], task: &str) -> bool {
        let mut roots: Vec<usize> = Vec::with_capacity(links.len());
        for link in links {
            if let Some(at) = self.index.get(link).copied() {
                if self.torn[at] {
                    return false;
                }
                let root = self.root(at);
                if !roots.contains(&root) {
                    roots.push(root);
                }
            }
        }
        let mut sides: Vec<Side> =
            roots.iter().filter_map(|root| self.fixed[*root].as_ref()).map(|split| split.side).collect();
        sides.dedup();
        if sides.len() > 1 {
            return false;
        }
        let Some((first, others)) = roots.split_first() else { return true };
        for other in others {
            self.parent[*other] = *first;
            let (fixed, smallest) = (self.fixed[*other].take(), self.smallest[*other].take());
            self.fixed[*first] = match (self.fixed[*first].take(), fixed) {
                (Some(left), Some(right)) => {
                    let (left, right) = (self.current(left), self.current(right));
                    let (kept, gone) =
                        if left.component <= right.component { (left, right) } else { (right, left) };
                    if kept.component != gone.component {
                        self.kept.insert(gone.component.clone(), kept.component.clone());
                        self.renamed.push((gone.component, kept.component.clone()));
                    }
                    Some(kept)
                }
                (left, right) => left.or(right),
            };
            self.smallest[*first] = match (self.smallest[*first].take(), smallest) {
                (Some(left), Some(right)) => Some(left.min(right)),
                (left, right) => left.or(right),
            };
        }
        if self.smallest[*first].as_deref().is_none_or(|smallest| task < smallest) {
            self.smallest[*first] = Some(task.to_owned());
        }
        true
    }

    /// Components that are one now, in the order they became so: the name that is gone and the one kept.
    pub(super) fn renamed(&self) -> &[(String, String)] {
        &self.renamed
    }

    /// Every link that is kept with the side of its component, in the order the links came; links of excluded
    /// runs only stay open. `side` is where a component of that smallest task key goes.
    pub(super) fn decided(mut self, side: fn(&str) -> Side) -> Vec<(Hash, Split)> {
        let mut decided = Vec::new();
        for at in 0..self.links.len() {
            let Some(link) = self.links[at].filter(|_| !self.torn[at]) else { continue };
            let root = self.root(at);
            let fixed = self.fixed[root].clone().map(|split| self.current(split));
            let split = fixed.or_else(|| {
                let component = self.smallest[root].clone()?;
                Some(Split { side: side(&component), component })
            });
            decided.extend(split.map(|split| (link, split)));
        }
        decided
    }
}

#[cfg(test)]
mod tests {
    use super::{Components, Known};
    use crate::id::Hash;
    use crate::verdict::{Side, Split};

    fn link(name: &str) -> Hash {
        Hash::of(name.as_bytes())
    }

    fn on(side: Side, component: &str) -> Known {
        Known::On(Split { side, component: component.to_owned() })
    }

    #[test]
    fn a_name_that_is_gone_is_gone_for_links_that_nothing_joined() {
        let mut components = Components::default();
        for (name, component) in [("1", "m"), ("2", "c"), ("3", "m"), ("4", "a")] {
            components.add(link(name), on(Side::Train, component), true);
        }
        components.add(link("goal"), Known::Open, true);
        assert!(components.join(&[link("1"), link("2")], "z"));
        assert!(components.join(&[link("3"), link("goal")], "z"));
        let names = |components: Components| -> Vec<String> {
            components.decided(|_| Side::Test).into_iter().map(|(_, split)| split.component).collect()
        };
        assert!(components.join(&[link("3"), link("4")], "z"));
        let renamed = [("m", "c"), ("c", "a")].map(|(gone, kept)| (gone.to_owned(), kept.to_owned()));
        assert_eq!(components.renamed(), renamed);
        assert_eq!(names(components), ["a"; 5]);
    }

    #[test]
    fn what_is_tied_has_one_side_and_one_name() {
        let mut components = Components::default();
        components.add(link("a"), on(Side::Train, "m"), true);
        components.add(link("b"), on(Side::Train, "c"), true);
        components.add(link("c"), on(Side::Test, "t"), true);
        components.add(link("d"), Known::Open, true);
        components.add(link("e"), Known::Torn, true);
        components.add(link("f"), Known::Open, false);
        assert!(components.join(&[link("a"), link("d"), link("f"), link("b")], "z"));
        assert!(!components.join(&[link("d"), link("c")], "z"), "two sides");
        assert!(!components.join(&[link("e")], "z"), "torn already");
        assert_eq!(components.renamed(), [("m".to_owned(), "c".to_owned())]);
        let decided = components.decided(|_| Side::Validation);
        let sides: Vec<(Side, &str)> =
            decided.iter().map(|(_, split)| (split.side, split.component.as_str())).collect();
        assert_eq!(sides, [(Side::Train, "c"), (Side::Train, "c"), (Side::Test, "t"), (Side::Train, "c")]);
    }
}
