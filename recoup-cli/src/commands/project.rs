//! Opening the project folder.

use recoup::id::TrajectoryId;
use recoup::store::Store;

use crate::failure::Failure;
use crate::settings::Settings;

/// Opens the project, or makes one.
pub(super) fn create_or_open(settings: &Settings) -> Result<Store, Failure> {
    Ok(Store::create_or_open(&settings.project)?)
}

/// Opens the project that must exist.
pub(super) fn open(settings: &Settings) -> Result<Store, Failure> {
    Ok(Store::open(&settings.project)?)
}

/// The runs whose ids start as given, in that order.
pub(super) fn resolve(store: &Store, ids: &[String]) -> Result<Vec<TrajectoryId>, Failure> {
    ids.iter().map(|id| Ok(store.resolve(id)?)).collect()
}
