//! Packages: environments as data, run by the Starlark interpreter.
//!
//! `environments/README.md` is the contract. A package is deterministic because nothing else can be
//! written: there is no clock, file, network or randomness. Its limits are a net, not a wall (the
//! interpreter's own words): a package runs in this process only when its hash is compiled in
//! ([`super::bundled`]) or in a worker that has shut itself in.

mod host;
mod program;
mod screen;
mod session;
mod tree;

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
    pub fn read(folder: &std::path::Path) -> Result<Self, EnvironmentError> {
        let shown = folder.display().to_string();
        let load = |message: String| EnvironmentError::new(&shown, Fault::Load, message);
        let read = |name: &str| {
            let path = folder.join(name);
            let length = path.metadata().map_err(|error| load(format!("{name}: {error}")))?.len();
            if length > screen::SOURCE_MAX {
                return Err(load(format!(
                    "{name} has {length} bytes; at most {} are read",
                    screen::SOURCE_MAX
                )));
            }
            std::fs::read_to_string(&path).map_err(|error| load(format!("{name}: {error}")))
        };
        let manifest = read("environment.toml")?;
        let policy = match parse_manifest(&shown, &manifest)?.policy {
            None => None,
            Some(name) if name.contains(['/', '\\']) || name.starts_with('.') => {
                return Err(load(format!("policy {name:?} is not a file beside environment.toml")));
            }
            Some(name) => Some(read(&name)?),
        };
        Ok(Self { manifest, program: read("environment.star")?, policy })
    }

    /// Hash of everything that decides the package's behavior.
    pub fn hash(&self) -> Hash {
        let policy = self.policy.as_deref().unwrap_or_default();
        Hash::of_all(&[self.manifest.as_bytes(), self.program.as_bytes(), policy.as_bytes()])
    }
}

fn parse_manifest(environment: &str, text: &str) -> Result<Manifest, EnvironmentError> {
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
        let manifest = parse_manifest("environment.toml", &files.manifest)?;
        let program = Program::load(&manifest.name, &files.program, manifest.limits)?;
        let identity = Identity {
            hash: files.hash(),
            manifest,
            policy: files.policy.clone(),
            checkpoint: CheckpointKind::Snapshot,
        };
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
        Ok(Box::new(PackageInstance::new(self.program.clone(), opened, tools)))
    }
}
