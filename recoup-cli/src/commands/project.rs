//! Opening the project folder.

use recoup::artifact::{Artifact, Body, Provenance};
use recoup::id::TrajectoryId;
use recoup::pipeline::ContentSettings;
use recoup::store::{Store, StoreError};

use crate::failure::Failure;
use crate::settings::Settings;

/// Opens the project, or makes one.
pub(super) fn create_or_open(settings: &Settings) -> Result<Store, Failure> {
    Store::create_or_open(&settings.project).map_err(|error| within(settings, error))
}

/// Opens the project that must exist.
pub(super) fn open(settings: &Settings) -> Result<Store, Failure> {
    Store::open(&settings.project).map_err(|error| within(settings, error))
}

/// Names the project in a failure that does not.
fn within(settings: &Settings, error: StoreError) -> Failure {
    let place = settings.project.join("store.sqlite");
    match error {
        StoreError::Corrupt(_) | StoreError::Database(_) | StoreError::ReadOnly => {
            Failure::from(error).within(&place)
        }
        error => error.into(),
    }
}

/// Who answers, from what; without the inputs' hash where the project is damaged.
pub(super) fn provenance(store: &Store, settings: &ContentSettings) -> Provenance {
    let inputs = store.fingerprint().map_or_else(|_| String::new(), |hash| hash.to_string());
    Provenance::new(settings.hash(), inputs)
}

/// Puts the head before what a command answers, where no flags of its own decide content.
pub(super) fn answer<T: Body>(store: &Store, settings: &Settings, body: T) -> Artifact<T> {
    Artifact::new(provenance(store, &settings.content()), body)
}

/// The runs whose ids start as given, in that order.
pub(super) fn resolve(store: &Store, ids: &[String]) -> Result<Vec<TrajectoryId>, Failure> {
    ids.iter().map(|id| Ok(store.resolve(id)?)).collect()
}
