//! Content of a message or a result: text, and media by path.

use serde_json::{Map, Value, json};

use super::step::Writer;
use crate::importers::data_url;
use crate::trajectory::{Media, Part};

/// Media types that strict readers accept.
const MEDIA_TYPES: [&str; 12] = [
    "image/jpeg",
    "image/png",
    "image/gif",
    "image/webp",
    "audio/wav",
    "audio/mpeg",
    "audio/mp4",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "audio/webm",
    "audio/aiff",
];

impl Writer<'_> {
    /// A message's or a result's content: a string where one will do, else a list of parts. `None`
    /// without parts. `form` says what a source's list told beyond them.
    pub(super) fn content(&mut self, parts: &[&Part], form: Option<&Value>) -> Option<Value> {
        match (parts, form) {
            ([], None) => return None,
            ([Part::Text(text)], None) => return Some(text.text.as_str().into()),
            _ => self.needs(6),
        }
        let mut list = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let told = form.and_then(|form| form.get(index)).and_then(Value::as_object);
            match part {
                Part::Media(media) => list.extend(self.media(media, told)),
                Part::Text(text) => list.push(json!({"type": "text", "text": text.text})),
                part => {
                    self.lost.note("content", "a part of another kind became text");
                    list.push(json!({"type": "text", "text": part.cited_text().unwrap_or_default()}));
                }
            }
        }
        Some(list.into())
    }

    fn media(&mut self, media: &Media, told: Option<&Map<String, Value>>) -> Option<Value> {
        let kind = media.mime.split('/').next().filter(|kind| matches!(*kind, "image" | "audio"));
        let Some(kind) = kind else {
            self.lost.note("content", "media that are neither image nor audio");
            return None;
        };
        let bytes = media.blob.and_then(|blob| self.trajectory.media.get(&blob));
        let path = match (&media.reference, bytes, media.blob) {
            (Some(reference), _, _) => reference.clone(),
            (None, Some(bytes), _) => data_url::encode(&media.mime, bytes),
            (None, None, blob) => {
                self.lost.note("content", "bytes of media, named by their hash");
                blob.map_or_else(String::new, |blob| format!("blake3:{blob}"))
            }
        };
        if kind == "audio" {
            self.needs(8);
        }
        let mut mime = media.mime.as_str();
        if !MEDIA_TYPES.contains(&mime) {
            self.lost.note("media_type", "not a type that the format lists");
            mime = if kind == "image" { "image/png" } else { "audio/wav" };
        }
        let mut source = told.cloned().unwrap_or_default();
        source.insert("media_type".to_owned(), mime.into());
        source.insert("path".to_owned(), path.into());
        Some(json!({"type": kind, "source": source}))
    }
}
