//! Bridges: simulators that are programs of their own.
//!
//! A bridge is a folder whose `environment.toml` has a `[bridge]` table instead of an `environment.star`
//! beside it; `environments/README.md` says how its program talks. A checkpoint is the list of the actions
//! that led there: to go back, the program is reset and takes them again, and must show the same. A program
//! with snapshots is spared most of that, and the state stays the list.

mod instance;
mod protocol;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;

use self::instance::BridgeInstance;
use self::protocol::{Hello, ResetBy, START, Talk};
use super::child::ChildCommand;
use super::opening::Opening;
use super::package::{parse_manifest, read_policy, read_text};
use super::{CheckpointKind, Environment, EnvironmentError, Fault, Identity, Instance, TaskSpec};
use crate::id::Hash;

/// The table `[bridge]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Program and arguments; `{folder}` stands for the bridge's folder.
    command: Vec<String>,
    /// Time for the first answer.
    #[serde(default = "start_seconds")]
    start_seconds: u64,
    /// Time for any other answer.
    #[serde(default = "call_seconds")]
    call_seconds: u64,
}

fn start_seconds() -> u64 {
    120
}

fn call_seconds() -> u64 {
    60
}

/// An environment behind a bridge.
pub struct BridgeEnvironment {
    shared: Arc<Shared>,
}

struct Shared {
    name: Arc<str>,
    identity: Identity,
    hello: Hello,
    command: ChildCommand,
    start: Duration,
    call: Duration,
    volatile: Vec<Regex>,
    /// Programs that run and play nothing now.
    idle: Mutex<Vec<Talk>>,
}

impl BridgeEnvironment {
    /// Starts the program of a bridge's folder.
    ///
    /// # Errors
    /// A [`Fault::Load`] where the folder is no bridge, a [`Fault::Unsupported`] without trust, and what
    /// starting the program reports.
    pub fn open(folder: &Path, opening: &Opening) -> Result<Self, EnvironmentError> {
        let shown = folder.display().to_string();
        let load = |message: String| EnvironmentError::new(&shown, Fault::Load, message);
        let text = read_text(folder, "environment.toml")?;
        let wrong = |error: toml::de::Error| load(format!("environment.toml: {error}"));
        let mut manifest: toml::Table = toml::from_str(&text).map_err(wrong)?;
        let table = manifest
            .remove("bridge")
            .ok_or_else(|| load("it has neither an environment.star nor a table [bridge]".to_owned()))?;
        let table: Table = table.try_into().map_err(wrong)?;
        let manifest = parse_manifest(&shown, &manifest.to_string())?;
        let folder = folder.canonicalize().map_err(|error| load(error.to_string()))?;
        let mut words = table.command.iter().map(|word| word.replace("{folder}", &folder.to_string_lossy()));
        let program = words.next().ok_or_else(|| load("the bridge's command is empty".to_owned()))?;
        let arguments: Vec<String> = words.collect();
        let name: Arc<str> = manifest.name.as_str().into();
        if !opening.trust {
            let message =
                format!("it runs a program of its own, which was not trusted: `{}`", table.command.join(" "));
            return Err(EnvironmentError::new(&name, Fault::Unsupported, message));
        }
        let files: Vec<Vec<u8>> =
            arguments.iter().filter_map(|argument| std::fs::read(argument).ok()).collect();
        let command = ChildCommand {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            variables: opening.variables.clone(),
        };
        let start = Duration::from_secs(table.start_seconds);
        let call = Duration::from_secs(table.call_seconds);
        let (talk, hello) = Talk::start(&name, &command, start, call)?;
        let mut decisive: Vec<&[u8]> = vec![text.as_bytes(), hello.version.as_bytes()];
        decisive.extend(files.iter().map(Vec::as_slice));
        let identity = Identity {
            hash: Hash::of_all(&decisive),
            policy: read_policy(&folder, &manifest)?,
            checkpoint: CheckpointKind::Prefix,
            manifest,
        };
        let volatile =
            identity.manifest.volatile.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect();
        let idle = Mutex::new(vec![talk]);
        Ok(Self { shared: Arc::new(Shared { name, identity, hello, command, start, call, volatile, idle }) })
    }
}

impl Shared {
    /// A program: one that stands at the start of the task where there is one, else any, else a new one.
    fn take(&self, key: Hash) -> Result<Talk, EnvironmentError> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |talk: &Talk| talk.at.as_ref().is_some_and(|(at, prefix)| *at == key && prefix == START);
        let found = idle.iter().position(fits);
        if let Some(talk) = found.map(|at| idle.swap_remove(at)).or_else(|| idle.pop()) {
            return Ok(talk);
        }
        drop(idle);
        let (talk, hello) = Talk::start(&self.name, &self.command, self.start, self.call)?;
        if hello.version == self.hello.version {
            return Ok(talk);
        }
        let message =
            format!("started again it is version {:?}, not {:?}", hello.version, self.hello.version);
        Err(EnvironmentError::new(&self.name, Fault::Contract, message))
    }

    fn give_back(&self, talk: Talk) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(talk);
    }

    /// Whether two observations are the same but for what the manifest declares volatile.
    fn alike(&self, one: &str, other: &str) -> bool {
        if one == other {
            return true;
        }
        let without = |text: &str| {
            self.volatile
                .iter()
                .fold(text.to_owned(), |text, pattern| pattern.replace_all(&text, "").into_owned())
        };
        without(one) == without(other)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for talk in self.idle.get_mut().unwrap_or_else(PoisonError::into_inner) {
            talk.close();
        }
    }
}

impl Environment for BridgeEnvironment {
    fn identity(&self) -> &Identity {
        &self.shared.identity
    }

    fn generate(&self, seed: u64, difficulty: u8) -> Result<TaskSpec, EnvironmentError> {
        let shared = &*self.shared;
        let family = shared.identity.manifest.family_of(seed).unwrap_or_default();
        let mut talk = shared.take(Hash::of(&[]))?;
        let first = talk.reset(ResetBy { seed, difficulty, family }, None)?;
        let task = TaskSpec::new(&shared.name, seed, difficulty, first.task.to_string());
        shared.give_back(talk);
        let task = task?;
        if task.family != family {
            let message = format!("seed {seed} gave a task of family {:?}; families take turns", task.family);
            return Err(EnvironmentError::new(&shared.name, Fault::Contract, message));
        }
        Ok(task)
    }

    fn open(&self, task: &TaskSpec) -> Result<Box<dyn Instance>, EnvironmentError> {
        Ok(Box::new(BridgeInstance::open(&self.shared, task)?))
    }
}
