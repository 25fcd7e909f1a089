//! Opening an environment by what the user calls it: the name of a bundled one, or a folder.

use std::path::Path;

use super::bridge::BridgeEnvironment;
use super::child::ChildCommand;
use super::package::{Package, PackageFiles};
use super::worker::WorkerPackage;
use super::{Environment, EnvironmentError, Fault, bundled};

/// What opening needs to know of the program and its user.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Starts a process that runs [`super::worker::serve_worker`].
    pub worker: ChildCommand,
    /// What programs of bridges inherit; see [`super::child::ALLOWED_VARIABLES`].
    pub variables: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// Whether the user trusts foreign programs: without, no bridge is started.
    pub trust: bool,
}

/// Opens a bundled environment by its name, or the one in a folder.
///
/// # Errors
/// A [`Fault::Load`] where there is none, and as [`open_folder`].
pub fn open(name: &str, opening: &Opening) -> Result<Box<dyn Environment>, EnvironmentError> {
    if let Some(bundled) = bundled::open(name) {
        return bundled;
    }
    if !Path::new(name).join("environment.toml").is_file() {
        let known: Vec<&str> = bundled::names().collect();
        let message = format!(
            "neither a bundled environment ({}) nor a folder with an environment.toml",
            known.join(", ")
        );
        return Err(EnvironmentError::new(name, Fault::Load, message));
    }
    open_folder(Path::new(name), opening)
}

/// Opens the environment in a folder: a package, which runs in this process where its bytes are those of
/// a bundled one and in a worker else, or a bridge.
///
/// # Errors
/// A [`Fault::Unsupported`] for a bridge without trust, and what loading reports.
pub fn open_folder(folder: &Path, opening: &Opening) -> Result<Box<dyn Environment>, EnvironmentError> {
    if !folder.join("environment.star").exists() {
        return Ok(Box::new(BridgeEnvironment::open(folder, opening)?));
    }
    let files = PackageFiles::read(folder)?;
    let is_bundled =
        bundled::names().filter_map(bundled::files).any(|bundled| bundled.hash() == files.hash());
    if is_bundled {
        return Ok(Box::new(Package::load(&files)?));
    }
    Ok(Box::new(WorkerPackage::load(&files, &opening.worker)?))
}
