//! Opening the project folder.

use recoup::artifact::{Artifact, Body, Provenance, config_hash};
use recoup::id::TrajectoryId;
use recoup::pipeline::ContentSettings;
use recoup::store::{Store, StoreError};
use serde::Serialize;

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

/// Who answers, from what.
pub(super) fn provenance(store: &Store, settings: &ContentSettings) -> Provenance {
    Provenance::new(settings.hash(), inputs_hash(store))
}

/// Hash of the project's content; empty where it is damaged.
fn inputs_hash(store: &Store) -> String {
    store.fingerprint().map_or_else(|_| String::new(), |hash| hash.to_string())
}

/// Who answers a command whose own flags decide content, from what.
pub(super) fn provenance_as(store: &Store, flags: &impl Serialize) -> Provenance {
    Provenance::new(config_hash(flags), inputs_hash(store))
}

/// Puts the head before what a command answers, where no flags of its own decide content.
pub(super) fn answer<T: Body>(store: &Store, settings: &Settings, body: T) -> Artifact<T> {
    Artifact::new(provenance(store, &settings.content()), body)
}

/// Puts the head before what a command answers whose own flags decide content.
pub(super) fn answer_as<T: Body>(store: &Store, flags: &impl Serialize, body: T) -> Artifact<T> {
    Artifact::new(provenance_as(store, flags), body)
}

/// The runs whose ids start as given, in that order.
pub(super) fn resolve(store: &Store, ids: &[String]) -> Result<Vec<TrajectoryId>, Failure> {
    ids.iter().map(|id| Ok(store.resolve(id)?)).collect()
}
