//! Siblings: the successful runs of a task, which its failures are compared with.

use crate::diagnosis::DiagnosisConfig;
use crate::id::TaskKey;
use crate::store::{Filter, Page, Store, StoreError};
use crate::trajectory::{Status, Trajectory};

/// Successful runs of a task, in import order: one more than a run is compared with, since it may be
/// among them.
pub(super) fn successes(store: &Store, task: &TaskKey) -> Result<Vec<Trajectory>, StoreError> {
    let filter = Filter {
        task: Some(task.0.clone()),
        outcome: Some(Status::Success.as_str().to_owned()),
        ..Filter::default()
    };
    let page = Page { offset: 0, limit: DiagnosisConfig::default().siblings_max as u64 + 1 };
    store.list(&filter, page)?.into_iter().map(|row| store.effective(row.id)).collect()
}
