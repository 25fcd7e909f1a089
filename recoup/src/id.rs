//! Ids: what makes two things the same thing.
//!
//! Every id is a BLAKE3 hash of content, never of a path, a clock or a random number, so the same
//! input has the same ids on every machine. They print as 64 hexadecimal digits; people type a
//! prefix.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A 256-bit BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl std::hash::Hash for Hash {
    /// Eight bytes tell hashes apart as well as all of them, in a map of fewer than billions.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0[..8]);
        state.write_u64(u64::from_le_bytes(first));
    }
}

impl Hash {
    /// The hash of a byte string.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }

    /// The hash of several byte strings, each preceded by its length, so that moving a byte from
    /// one to the next changes the hash.
    pub fn of_all(fields: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for field in fields {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field);
        }
        Self(hasher.finalize().into())
    }

    /// Its first 64 bits, as a seed.
    pub fn to_seed(self) -> u64 {
        self.0[..8].iter().rev().fold(0, |seed, byte| seed << 8 | u64::from(*byte))
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let high = (pair[0] as char).to_digit(16)?;
            let low = (pair[1] as char).to_digit(16)?;
            *byte = (high * 16 + low) as u8;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("expected 64 hexadecimal digits"))
    }
}

/// A digest of another kind in the form that [`Hash`] prints in.
pub(crate) fn hexadecimal(digest: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
    digest.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

macro_rules! hash_ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(pub Hash);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

hash_ids! {
    /// One revision of one run: the hash of its key and its revision.
    TrajectoryId
    /// One run, however far it has been recorded: the hash of its format and its native run id, or,
    /// where it has none, of the SHA-256 of its record and the ordinal among equal records.
    TrajectoryKey
    /// The content of a trajectory, hashed.
    Revision
    /// A message in its context: the hash of the parent's hash and of the message's body.
    NodeHash
    /// A verdict: the hash of its subject, producer and content, without the time.
    VerdictId
}

/// Identity of a task: goal, environment and verifier. The native id where the source has one
/// (`tau-bench/airline/7`), else `derived/` and a hash of the normalized goal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct TaskKey(pub String);

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Hash;

    #[test]
    fn hex_reads_back() {
        let hash = Hash::of(b"recoup");
        assert_eq!(Hash::from_hex(&hash.to_string()), Some(hash));
        assert_eq!(Hash::from_hex("zz"), None);
    }

    #[test]
    fn fields_do_not_run_together() {
        assert_ne!(Hash::of_all(&[b"ab", b"c"]), Hash::of_all(&[b"a", b"bc"]));
    }
}
