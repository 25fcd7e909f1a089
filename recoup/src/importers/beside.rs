//! A picture beside a trace: read once, held by hash, or left as the name that stands for it.

use super::data_url::mime_of;
use super::{Sink, SinkError, Source};
use crate::id::Hash;
use crate::trajectory::{Media, Part, Trajectory};
use crate::warning::Loss;

/// The part for a picture that a run names. Its bytes go into the run's media where the file lies
/// beneath the imported folder; where it does not, the name stays and the loss is noted.
pub(super) fn picture(
    source: &Source,
    name: &str,
    run: &mut Trajectory,
    sink: &mut dyn Sink,
) -> Result<Part, SinkError> {
    let limit = source.options().record_bytes_max;
    let read = source.sibling(name).and_then(|file| file.read_all(limit).map_err(|error| error.to_string()));
    let blob = if let Ok(bytes) = read {
        let hash = Hash::of(&bytes);
        run.media.insert(hash, bytes);
        Some(hash)
    } else {
        let reason = "the picture is not beside the trace; its name stays";
        sink.loss(Loss::new(&run.source.format, "image", reason))?;
        None
    };
    let mime = mime_of(name).unwrap_or("application/octet-stream");
    Ok(Part::Media(Media { mime: mime.to_owned(), blob, reference: Some(name.to_owned()) }))
}
