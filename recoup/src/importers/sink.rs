//! The other end of an importer: what receives runs, labels, losses and quarantined records.

use crate::trajectory::{NativeId, Sealed, Trajectory};
use crate::verdict::ReferenceLabel;
use crate::warning::{Loss, Quarantine};

/// Something an importer has to say.
#[derive(Debug)]
pub enum Event {
    /// A run, complete and hashed.
    Trajectory(Box<Sealed>),
    /// A label about a run that stands in another file.
    Label(LooseLabel),
    /// A record that could not be read.
    Quarantine(Quarantine),
    /// Something that the records cannot carry.
    Loss(Loss),
}

/// A label whose run is named, not held, by the file it stands in.
#[derive(Clone, Debug, PartialEq)]
pub struct LooseLabel {
    /// Native run id, question id or task id: whatever the label file calls the run.
    pub run: String,
    /// The label. Its `node` is found when the run is known.
    pub label: ReferenceLabel,
}

/// The receiver failed (the disk is full, the store is locked).
#[derive(Debug, thiserror::Error)]
#[error("cannot store what was read")]
pub struct SinkError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Receives events in input order.
pub trait Sink {
    /// Takes one event.
    ///
    /// # Errors
    /// When the receiver cannot go on.
    fn event(&mut self, event: Event) -> Result<(), SinkError>;

    /// Seals a run and takes it; a draft that breaks an invariant is quarantined.
    ///
    /// # Errors
    /// When the receiver cannot go on.
    fn trajectory(
        &mut self,
        draft: Trajectory,
        native: &NativeId,
        labels: Vec<ReferenceLabel>,
    ) -> Result<(), SinkError> {
        let (uri, span) = (draft.source.uri.clone(), draft.source.span);
        match draft.seal(native, labels) {
            Ok(sealed) => self.event(Event::Trajectory(Box::new(sealed))),
            Err(reason) => self.event(Event::Quarantine(Quarantine {
                uri,
                line: None,
                span,
                code: "not-a-trajectory".to_owned(),
                reason,
            })),
        }
    }

    /// Notes something the records cannot carry.
    ///
    /// # Errors
    /// When the receiver cannot go on.
    fn loss(&mut self, loss: Loss) -> Result<(), SinkError> {
        self.event(Event::Loss(loss))
    }
}

/// Keeps events in memory: workers hand theirs on in order, tests look at them.
impl Sink for Vec<Event> {
    fn event(&mut self, event: Event) -> Result<(), SinkError> {
        self.push(event);
        Ok(())
    }
}
