//! Packages: environments as data, run by the Starlark interpreter.
//!
//! `environments/README.md` is the contract. A package is deterministic because nothing else can be
//! written: there is no clock, file, network or randomness. Its limits are a net, not a wall (the
//! interpreter's own words): a package runs in this process only when its hash is compiled in
//! ([`super::bundled`]) or in a worker that has shut itself in.

mod heap_argument;
mod host;
mod program;
mod screen;
mod session;
mod tree;

use std::path::Path;
use std::sync::Arc;

use self::program::Program;
use self::session::PackageInstance;
use super::{
    CheckpointKind, Environment, EnvironmentError, Fault, Identity, Instance, Manifest, TaskSpec, ToolSpec,
};
use crate::id::Hash;

/// The files of a package, read.
#[derive(Clone, Debug)]
pub struct PackageFiles {
    /// `environment.toml`.
    pub manifest: String,
    /// `environment.star`.
    pub program: String,
    /// The written policy that the manifest names.
    pub policy: Option<String>,
}

impl PackageFiles {
    /// Reads a package's folder.
    ///
    /// # Errors
    /// A [`Fault::Load`] where a file is missing, not UTF-8, too long, or the policy's name is not a plain
    /// file name beside the manifest.
    pub fn read(folder: &Path) -> Result<Self, EnvironmentError> {
        let manifest = read_text(folder, "environment.toml")?;
        let policy = read_policy(folder, &parse_manifest(&folder.display().to_string(), &manifest)?)?;
        Ok(Self { manifest, program: read_text(folder, "environment.star")?, policy })
    }

    /// What the package says of itself; nothing of its program is looked at.
    ///
    /// # Errors
    /// A [`Fault::Load`] where the manifest is wrong.
    pub fn identity(&self) -> Result<Identity, EnvironmentError> {
        Ok(Identity {
            hash: self.hash(),
            manifest: parse_manifest("environment.toml", &self.manifest)?,
            policy: self.policy.clone(),
            checkpoint: CheckpointKind::Snapshot,
        })
    }

    /// Hash of everything that decides the package's behavior.
    pub fn hash(&self) -> Hash {
        let policy = self.policy.as_deref().unwrap_or_default();
        Hash::of_all(&[self.manifest.as_bytes(), self.program.as_bytes(), policy.as_bytes()])
    }
}

/// A text file of an environment's folder.
pub(super) fn read_text(folder: &Path, name: &str) -> Result<String, EnvironmentError> {
    let load = |message: String| {
        EnvironmentError::new(&folder.display().to_string(), Fault::Load, format!("{name}{message}"))
    };
    let path = folder.join(name);
    let length = path.metadata().map_err(|error| load(format!(": {error}")))?.len();
    if length > screen::SOURCE_MAX {
        return Err(load(format!(" has {length} bytes; at most {} are read", screen::SOURCE_MAX)));
    }
    std::fs::read_to_string(&path).map_err(|error| load(format!(": {error}")))
}

/// The written policy that a manifest names.
pub(super) fn read_policy(folder: &Path, manifest: &Manifest) -> Result<Option<String>, EnvironmentError> {
    match &manifest.policy {
        None => Ok(None),
        Some(name) if name.contains(['/', '\\']) || name.starts_with('.') => {
            let message = format!("policy {name:?} is not a file beside environment.toml");
            Err(EnvironmentError::new(&folder.display().to_string(), Fault::Load, message))
        }
        Some(name) => read_text(folder, name).map(Some),
    }
}

pub(super) fn parse_manifest(environment: &str, text: &str) -> Result<Manifest, EnvironmentError> {
    let load = |message: String| {
        EnvironmentError::new(environment, Fault::Load, format!("environment.toml: {message}"))
    };
    let manifest: Manifest = toml::from_str(text).map_err(|error| load(error.to_string()))?;
    manifest.check().map_err(load)?;
    Ok(manifest)
}

/// A package, loaded.
#[derive(Clone)]
pub struct Package {
    identity: Identity,
    program: Arc<Program>,
}

impl Package {
    /// Loads a package: parses and screens its program and runs its top level once.
    ///
    /// # Errors
    /// A [`Fault::Load`] with file and line.
    pub fn load(files: &PackageFiles) -> Result<Self, EnvironmentError> {
        let identity = files.identity()?;
        let manifest = &identity.manifest;
        let program = Program::load(&manifest.name, &files.program, manifest.limits)?;
        Ok(Self { identity, program: Arc::new(program) })
    }
}

impl Environment for Package {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn generate(&self, seed: u64, difficulty: u8) -> Result<TaskSpec, EnvironmentError> {
        let json = self.program.generate(seed, difficulty)?;
        let task = TaskSpec::new(&self.identity.manifest.name, seed, difficulty, json)?;
        if Some(task.family.as_str()) != self.identity.manifest.family_of(seed) {
            let message = format!("seed {seed} gave a task of family {:?}; families take turns", task.family);
            return Err(EnvironmentError::new(&self.identity.manifest.name, Fault::Contract, message));
        }
        Ok(task)
    }

    fn open(&self, task: &TaskSpec) -> Result<Box<dyn Instance>, EnvironmentError> {
        let opened = self.program.open(&task.json)?;
        let tools = ToolSpec::read_all(&self.identity.manifest.name, &self.program.tools(&opened)?)?;
        Ok(Box::new(PackageInstance::new(self.program.clone(), opened, tools.into())))
    }
}
