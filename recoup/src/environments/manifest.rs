//! `environment.toml`: what an environment says of itself.

use serde::{Deserialize, Serialize};

/// The manifest of an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name: `[a-z][a-z0-9_-]{0,63}`.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// One line about it.
    pub description: String,
    /// What kind of tools it offers.
    pub interface: String,
    /// Licence of its text.
    pub licence: String,
    /// The capability that it trains, for one made to train one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// Kinds of task.
    pub families: Vec<String>,
    /// File of the written policy, beside the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Regular expressions of text in observations that may differ in a replay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volatile: Vec<String>,
    /// Limits of each call.
    #[serde(default)]
    pub limits: Limits,
}

/// Limits of one call of a package's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Function calls and loop rounds.
    pub ticks: u64,
    /// Memory, in MiB.
    pub heap_mib: u64,
    /// Length of an observation, in bytes.
    pub observation_bytes: u64,
    /// Length of a state's JSON, in bytes.
    pub state_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { ticks: 1_000_000, heap_mib: 64, observation_bytes: 64 << 10, state_bytes: 1 << 20 }
    }
}

impl Limits {
    /// The most that a manifest may ask for.
    pub const MAX: Self =
        Self { ticks: 20_000_000, heap_mib: 512, observation_bytes: 1 << 20, state_bytes: 16 << 20 };
}

impl Manifest {
    /// The family of a seed: they take turns.
    pub fn family_of(&self, seed: u64) -> Option<&str> {
        let count = u64::try_from(self.families.len()).ok().filter(|count| *count > 0)?;
        self.families.get(usize::try_from(seed % count).ok()?).map(String::as_str)
    }

    /// The first seed of a family and the distance to its next.
    pub fn seeds_of(&self, family: &str) -> Option<(u64, u64)> {
        let first = self.families.iter().position(|known| known == family)?;
        Some((first as u64, self.families.len() as u64))
    }

    /// Checks names and limits.
    ///
    /// # Errors
    /// The first field that is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        let is_name = |name: &str| {
            let rest = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
            name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(rest)
        };
        if !is_name(&self.name) {
            return Err(format!("name {:?} is not of the form [a-z][a-z0-9_-]{{0,63}}", self.name));
        }
        if self.families.is_empty() {
            return Err("families is empty".to_owned());
        }
        if let Some(family) = self.families.iter().find(|family| !is_name(family)) {
            return Err(format!("family {family:?} is not of the form [a-z][a-z0-9_-]{{0,63}}"));
        }
        for pattern in &self.volatile {
            regex::Regex::new(pattern).map_err(|error| format!("volatile {pattern:?}: {error}"))?;
        }
        let (ours, most) = (&self.limits, &Limits::MAX);
        let limits = [
            ("ticks", ours.ticks, most.ticks),
            ("heap_mib", ours.heap_mib, most.heap_mib),
            ("observation_bytes", ours.observation_bytes, most.observation_bytes),
            ("state_bytes", ours.state_bytes, most.state_bytes),
        ];
        for (name, ours, most) in limits {
            if ours == 0 || ours > most {
                return Err(format!("limits.{name} is {ours}; it goes from 1 to {most}"));
            }
        }
        Ok(())
    }
}
