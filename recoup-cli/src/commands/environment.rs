//! Opening an environment by what the user typed: the name of a bundled one, or a folder.

use std::collections::BTreeMap;
use std::path::PathBuf;

use recoup::artifact::{Artifact, Body, Provenance, config_hash};
use recoup::environments::child::{ALLOWED_VARIABLES, ChildCommand};
use recoup::environments::package::PackageFiles;
use recoup::environments::{self, Environment, EnvironmentError, Fault, Opening, bundled};
use serde::Serialize;

use crate::args::WorldArgs;
use crate::failure::Failure;
use crate::settings::Settings;

/// What to do about a bridge that was not started.
pub(super) const TRUST_HINT: &str = "read that program first, then `--trust` runs it";

/// What opening needs. `trust` lets a bridge's program run, and a package without walls where the system
/// has none.
fn opening(trust: bool) -> Result<Opening, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::machine("cannot find this program", &error))?;
    let inherited =
        ALLOWED_VARIABLES.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
    Ok(Opening { worker: ChildCommand::worker(program, trust), variables: inherited.collect(), trust })
}

/// The environment of that name.
pub(super) fn open(name: &str, trust: bool) -> Result<Box<dyn Environment>, Failure> {
    environments::open(name, &opening(trust)?).map_err(|error| match error.fault {
        Fault::Unsupported => Failure::from(error).hint(TRUST_HINT),
        Fault::Load if !std::path::Path::new(name).exists() => {
            let known: Vec<&str> = bundled::names().collect();
            Failure::user(format!("there is no environment `{name}`"))
                .code("no-environment")
                .hint(format!("environments are {}, or a folder with an environment.toml", known.join(", ")))
        }
        _ => error.into(),
    })
}

/// Environments by the names that runs record: in folders that the user named, else bundled.
pub(super) struct Known {
    folders: BTreeMap<String, PathBuf>,
    opening: Opening,
}

impl Known {
    /// Those of the settings, with those of the command line in front.
    pub(super) fn of(flags: &WorldArgs, settings: &Settings) -> Result<Self, Failure> {
        let mut folders = settings.environments.clone();
        folders.extend(flags.environments.iter().cloned());
        for (name, folder) in &folders {
            if !folder.join("environment.toml").is_file() {
                let folder = folder.display();
                return Err(Failure::user(format!("`{folder}` is no folder of the environment `{name}`"))
                    .code("no-environment")
                    .hint("it takes the folder of a package or a bridge, which has an environment.toml"));
            }
        }
        Ok(Self { folders, opening: opening(flags.trust)? })
    }

    /// Opens the environment of that name, where there is one.
    pub(super) fn open(&self, name: &str) -> Option<Result<Box<dyn Environment>, EnvironmentError>> {
        let Some(folder) = self.folders.get(name) else { return bundled::open(name) };
        let opened = environments::open_folder(folder, &self.opening).and_then(|environment| {
            let found = &environment.identity().manifest.name;
            if found == name {
                return Ok(environment);
            }
            let message = format!("{} holds the environment `{found}`", folder.display());
            Err(EnvironmentError::new(name, Fault::Load, message))
        });
        Some(opened)
    }
}

/// Puts the head before what a command answers that was made from an environment alone.
pub(super) fn answer<T: Body>(environment: &dyn Environment, flags: &impl Serialize, body: T) -> Artifact<T> {
    let inputs = environment.identity().hash.to_string();
    Artifact::new(Provenance::new(config_hash(flags), inputs), body)
}

/// The files of the package of that name.
pub(super) fn files(name: &str) -> Result<PackageFiles, Failure> {
    Ok(match bundled::files(name) {
        Some(files) => files,
        None => PackageFiles::read(std::path::Path::new(name))?,
    })
}
