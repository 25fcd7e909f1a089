//! Sealing: from an importer's draft to an immutable, hashed trajectory, and back.

use super::{Body, Record, RecordNode, SourceRef, Trajectory, body_bytes, body_from_bytes, chain};
use crate::deduplication::Sketch;
use crate::id::{Hash, NodeHash, Revision, TrajectoryId, TrajectoryKey};
use crate::verdict::ReferenceLabel;

/// What the source itself calls a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NativeId {
    /// A run id of the harness: the run keeps its identity while its record grows.
    Named(String),
    /// None: identity is the record's SHA-256 and its ordinal among equal records of the source.
    Record {
        /// How many equal records stand before it in the source.
        ordinal: u64,
    },
}

/// A trajectory ready for the store: everything derived from content is fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    /// Everything but the nodes' bodies (`nodes` is empty, `media` too).
    pub head: Trajectory,
    /// Canonical JSON of [`Record`]: the bytes that, with the node hashes, make the revision.
    pub record: String,
    /// Bodies, in node order.
    pub bodies: Vec<Body>,
    /// Media bytes by hash.
    pub media: Vec<(Hash, Vec<u8>)>,
    /// The harness's own run id, for joining outcomes and labels.
    pub native_id: Option<String>,
    /// Labels that the source carries about this run.
    pub labels: Vec<ReferenceLabel>,
    /// Sampled nodes.
    pub step_count: usize,
    /// Tool calls in all nodes.
    pub tool_call_count: usize,
    /// Tool results in all nodes.
    pub tool_result_count: usize,
    /// By what near-duplicates of the run are found; `None` where it is too short.
    pub sketch: Option<Sketch>,
}

impl Trajectory {
    /// Fixes a draft: hashes its nodes, its content and its identity.
    ///
    /// `source.sha256` must be set; `native` says what identifies the run.
    ///
    /// # Errors
    /// When an invariant does not hold or a number is not finite, in words.
    pub fn seal(mut self, native: &NativeId, labels: Vec<ReferenceLabel>) -> Result<Sealed, String> {
        self.check()?;
        let step_count = self.nodes.iter().filter(|node| node.occurrence.sampled).count();
        let tool_call_count = self.tool_call_count();
        let tool_result_count = self.tool_result_count();
        let sketch = Sketch::of(&self.nodes);
        let mut bodies: Vec<Body> = Vec::with_capacity(self.nodes.len());
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for node in std::mem::take(&mut self.nodes) {
            let bytes = body_bytes(&node);
            let hash = chain(node.parent.map(|parent| bodies[parent].hash), &bytes);
            bodies.push(Body { hash, parent: node.parent, bytes });
            nodes.push(RecordNode { parent: node.parent, occurrence: node.occurrence });
        }
        let media = std::mem::take(&mut self.media).into_iter().collect();
        let zero = Hash([0; 32]);
        let source = std::mem::replace(
            &mut self.source,
            SourceRef { format: String::new(), uri: String::new(), sha256: String::new(), span: None },
        );
        self.source.format.clone_from(&source.format);
        (self.id, self.key, self.revision) = (TrajectoryId(zero), TrajectoryKey(zero), Revision(zero));
        let record = Record { head: self, nodes };
        let text = record.canonical().map_err(|error| error.to_string())?;
        let mut head = record.head;
        head.revision = revision(&text, bodies.iter().map(|body| body.hash));
        head.key = key(&source, native);
        head.id = id(head.key, head.revision);
        head.source = source;
        let native_id = match native {
            NativeId::Named(name) => Some(name.clone()),
            NativeId::Record { .. } => None,
        };
        Ok(Sealed {
            head,
            record: text,
            bodies,
            media,
            native_id,
            labels,
            step_count,
            tool_call_count,
            tool_result_count,
            sketch,
        })
    }

    /// Puts a stored trajectory together again.
    ///
    /// # Errors
    /// When record and bodies do not fit, in words.
    pub fn unseal(
        record: &str,
        source: SourceRef,
        key: TrajectoryKey,
        bodies: &[(NodeHash, Vec<u8>)],
    ) -> Result<Self, String> {
        let record: Record = serde_json::from_str(record).map_err(|error| error.to_string())?;
        let text = record.canonical().map_err(|error| error.to_string())?;
        if record.nodes.len() != bodies.len() {
            return Err(format!("{} nodes in the record, {} bodies", record.nodes.len(), bodies.len()));
        }
        let mut trajectory = record.head;
        trajectory.revision = revision(&text, bodies.iter().map(|(hash, _)| *hash));
        trajectory.key = key;
        trajectory.id = id(key, trajectory.revision);
        trajectory.source = source;
        for (stored, (_, bytes)) in record.nodes.into_iter().zip(bodies) {
            let mut node = body_from_bytes(bytes).map_err(|error| error.to_string())?;
            node.parent = stored.parent;
            node.occurrence = stored.occurrence;
            trajectory.nodes.push(node);
        }
        Ok(trajectory)
    }
}

impl Sealed {
    /// Gives a run whose native id was already taken by other content an identity of its own.
    pub fn renumber(&mut self, ordinal: u64) {
        let renamed = Hash::of_all(&[&self.head.key.0.0, &ordinal.to_le_bytes()]);
        self.head.key = TrajectoryKey(renamed);
        self.head.id = id(self.head.key, self.head.revision);
    }
}

fn revision(record: &str, hashes: impl Iterator<Item = NodeHash>) -> Revision {
    let mut hasher = blake3::Hasher::new();
    hasher.update(record.as_bytes());
    for hash in hashes {
        hasher.update(&hash.0.0);
    }
    Revision(Hash(hasher.finalize().into()))
}

fn key(source: &SourceRef, native: &NativeId) -> TrajectoryKey {
    let format = source.format.as_bytes();
    TrajectoryKey(match native {
        NativeId::Named(name) => Hash::of_all(&[b"native", format, name.as_bytes()]),
        NativeId::Record { ordinal } => {
            Hash::of_all(&[b"record", format, source.sha256.as_bytes(), &ordinal.to_le_bytes()])
        }
    })
}

fn id(key: TrajectoryKey, revision: Revision) -> TrajectoryId {
    TrajectoryId(Hash::of_all(&[&key.0.0, &revision.0.0]))
}

#[cfg(test)]
mod tests {
    use super::NativeId;
    use crate::task::Task;
    use crate::trajectory::{Node, Outcome, Part, Role, Trajectory};

    fn draft(last: &str) -> Trajectory {
        let mut trajectory = Trajectory::new("test", Task::from_goal("say hi"));
        trajectory.push(Node::new(Role::User, "user", vec![Part::text("say hi")]));
        trajectory.push(Node::new(Role::Assistant, "assistant", vec![Part::text(last)]).sampled());
        trajectory.finish(Outcome::unknown());
        trajectory
    }

    #[test]
    fn sealing_reads_back_and_ignores_the_path() {
        let native = NativeId::Named("run-1".to_owned());
        let mut moved = draft("hi");
        moved.source.uri = "elsewhere.jsonl".to_owned();
        let moved = moved.seal(&native, Vec::new()).unwrap();
        let sealed = draft("hi").seal(&native, Vec::new()).unwrap();
        assert_eq!(moved.head.id, sealed.head.id);
        let bodies: Vec<_> =
            sealed.bodies.iter().map(|body| (body.hash, body.bytes.clone().into_bytes())).collect();
        let back =
            Trajectory::unseal(&sealed.record, sealed.head.source.clone(), sealed.head.key, &bodies).unwrap();
        assert_eq!(back.id, sealed.head.id);
        assert_eq!(back.nodes, draft("hi").nodes);
    }

    #[test]
    fn key_names_the_run_and_revision_its_content() {
        let native = NativeId::Named("run-1".to_owned());
        let first = draft("hi").seal(&native, Vec::new()).unwrap().head;
        let second = draft("hello").seal(&native, Vec::new()).unwrap().head;
        assert_eq!(first.key, second.key);
        assert_ne!(first.revision, second.revision);
        let other = draft("hi").seal(&NativeId::Record { ordinal: 0 }, Vec::new()).unwrap().head;
        assert_eq!(first.revision, other.revision);
        assert_ne!(first.key, other.key);
    }
}
