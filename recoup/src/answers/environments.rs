//! What `env` says of environments and of tasks that are played by hand.

use serde::Serialize;

use crate::environments::{Identity, Score};

/// An environment that comes with the program (`env list`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Listed<'a> {
    /// Its name.
    pub name: &'a str,
    /// The version that runs record.
    pub version: String,
    /// One line about it.
    pub description: &'a str,
    /// What kind of tools it offers.
    pub interface: &'a str,
    /// Kinds of task.
    pub families: &'a [String],
    /// Licence of its text.
    pub licence: &'a str,
    /// Hash of everything that decides its behavior.
    pub hash: String,
}

impl<'a> From<&'a Identity> for Listed<'a> {
    fn from(identity: &'a Identity) -> Self {
        let manifest = &identity.manifest;
        Self {
            name: &manifest.name,
            version: identity.version(),
            description: &manifest.description,
            interface: &manifest.interface,
            families: &manifest.families,
            licence: &manifest.licence,
            hash: identity.hash.to_string(),
        }
    }
}

/// An environment with its version.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Versioned<'a> {
    /// Its name.
    pub name: &'a str,
    /// The version that runs record.
    pub version: String,
}

impl<'a> From<&'a Identity> for Versioned<'a> {
    fn from(identity: &'a Identity) -> Self {
        Self { name: &identity.manifest.name, version: identity.version() }
    }
}

/// How a task that was played by hand ended: the last line of `env play`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Played<'a> {
    /// Where.
    pub environment: Versioned<'a>,
    /// Seed of the task.
    pub seed: u64,
    /// Its difficulty.
    pub difficulty: u8,
    /// Its family.
    pub family: &'a str,
    /// Steps taken.
    pub steps: u64,
    /// What the verifier says.
    #[serde(flatten)]
    pub score: &'a Score,
}

/// What is served, and where (`env serve`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Serving<'a> {
    /// Name and version of the environment.
    pub environment: &'a str,
    /// Where to.
    pub url: &'a str,
}
