//! The selection: which runs nothing is learned from, whatever a view would make of them.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::deduplication::Contamination;
use crate::exporters::Built;
use crate::id::TrajectoryId;
use crate::store::{Store, StoreError};
use crate::trajectory::Trajectory;
use crate::views::Exclusion;

/// What a project chooses to leave out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Selection {
    /// Environments and harnesses that are kept for measuring.
    pub leave_out: Vec<LeftOut>,
    /// What counts as the same run twice.
    pub deduplicate: Deduplicate,
    /// Benchmarks that nothing may be learned from, as the hashes of their lists.
    #[serde(serialize_with = "hashes")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub contaminated: Arc<Contamination>,
}

/// What is left out as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LeftOut {
    /// Every run in this environment.
    Environment(String),
    /// Every run by this harness.
    Harness(String),
}

impl LeftOut {
    /// Reads `environment=NAME` or `harness=NAME`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once('=')? {
            (_, "") => None,
            ("environment", name) => Some(Self::Environment(name.to_owned())),
            ("harness", name) => Some(Self::Harness(name.to_owned())),
            _ => None,
        }
    }

    fn is_of(&self, run: &Trajectory) -> bool {
        match self {
            Self::Environment(name) => run.environment.as_ref().is_some_and(|of| of.name == *name),
            Self::Harness(name) => run.harness.as_ref().is_some_and(|of| of.name == *name),
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(name) => write!(f, "environment={name}"),
            Self::Harness(name) => write!(f, "harness={name}"),
        }
    }
}

/// What counts as the same twice. Equal examples are always dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Deduplicate {
    /// Only examples that are equal byte for byte.
    #[default]
    Exact,
    /// Also runs that nearly equal an earlier one of the same view.
    Near,
}

impl Selection {
    /// Word by which manifests count runs that are left out for measuring.
    pub const LEFT_OUT: &'static str = "left-out";

    /// Whether everything is taken.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A selection at work on one project, for a number of views.
pub(super) struct Selector<'a> {
    selection: &'a Selection,
    /// Runs that nearly equal an earlier one, with the first of those.
    near: BTreeMap<TrajectoryId, TrajectoryId>,
    /// Views, by their place, and clusters that have given them rows. Only asked for membership.
    given: HashSet<(usize, TrajectoryId)>,
}

impl<'a> Selector<'a> {
    pub(super) fn new(selection: &'a Selection, store: &Store) -> Result<Self, StoreError> {
        let near = match selection.deduplicate {
            Deduplicate::Exact => BTreeMap::new(),
            Deduplicate::Near => store.near_duplicates()?,
        };
        Ok(Self { selection, near, given: HashSet::new() })
    }

    /// # Errors
    /// Why nothing may be learned from a run, given as it was imported: what was redacted in it may be
    /// what a benchmark says.
    pub(super) fn check(&self, run: &Trajectory, native_id: Option<&str>) -> Result<(), Exclusion> {
        let Selection { leave_out, contaminated, .. } = self.selection;
        if let Some(reason) = contaminated.reason(run, native_id) {
            return Err(Exclusion { reason });
        }
        if leave_out.iter().any(|left_out| left_out.is_of(run)) {
            return Err(Exclusion { reason: Selection::LEFT_OUT });
        }
        Ok(())
    }

    /// What a run gives to a view, or why not, where an earlier one has given nearly the same. To be
    /// asked in import order.
    pub(super) fn once(
        &mut self,
        view: usize,
        run: TrajectoryId,
        built: Result<Vec<Built>, Exclusion>,
    ) -> Result<Vec<Built>, Exclusion> {
        let built = built?;
        if self.selection.deduplicate == Deduplicate::Near && built.iter().any(|built| built.row.is_ok()) {
            let cluster = self.near.get(&run).copied().unwrap_or(run);
            if !self.given.insert((view, cluster)) {
                return Err(Exclusion { reason: "near-duplicate" });
            }
        }
        Ok(built)
    }
}

fn hashes<S: Serializer>(lists: &Arc<Contamination>, serializer: S) -> Result<S::Ok, S::Error> {
    lists.hashes().serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::LeftOut;

    #[test]
    fn what_is_left_out_is_read_back() {
        for text in ["environment=shop", "harness=swe-agent", "harness=a=b"] {
            assert_eq!(LeftOut::parse(text).unwrap().to_string(), text);
        }
        for text in ["shop", "environment=", "tool=x", ""] {
            assert_eq!(LeftOut::parse(text), None);
        }
    }
}
