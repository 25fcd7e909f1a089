//! A picture beside a trace: read once, held by hash, or left as the name that stands for it.

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
    Ok(Part::Media(Media { mime: mime(name).to_owned(), blob, reference: Some(name.to_owned()) }))
}

fn mime(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("webp") => "image/webp",
        Some("gif") => "image/gif",
        _ => "application/octet-stream",
    }
}
