//! The content of a message in OpenAI's two APIs and in what followed them: a string, or a list of
//! typed parts.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{Aside, opaque};
use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::object::{Object, wrong_type};
use crate::importers::value::{elements, text};
use crate::trajectory::{Media, Part};

/// The parts of a content that is not null.
pub(super) fn content(raw: &RawValue, aside: &mut Aside) -> Result<Vec<Part>, RecordError> {
    if let Some(text) = text(raw) {
        return Ok(vec![Part::text(text)]);
    }
    let wrong = || wrong_type("content", "a string, a list of parts or null");
    elements(raw).ok_or_else(wrong)?.into_iter().map(|raw| part(raw, aside)).collect()
}

fn part(raw: &RawValue, aside: &mut Aside) -> Result<Part, RecordError> {
    if let Some(text) = text(raw) {
        return Ok(Part::text(text));
    }
    let mut part = Object::parse(raw, "content[]")?;
    let kind = part.text("type").unwrap_or_else(|| "untyped".to_owned());
    let Some(read) = known(&kind, &mut part, aside) else { return Ok(opaque(&kind, raw)) };
    for key in part.filled_rest().into_keys() {
        aside.lose(format!("message.content[].{key}"), "a part has no place for it");
    }
    Ok(read)
}

/// A part of a known kind, or `None` where it is not what its kind says.
pub(super) fn known(kind: &str, part: &mut Object<'_>, aside: &mut Aside) -> Option<Part> {
    match kind {
        "text" | "input_text" | "output_text" => part.text("text").map(Part::text),
        "refusal" => part.text("refusal").map(|raw| Part::Opaque { kind: kind.to_owned(), raw }),
        "thinking" | "reasoning" => {
            let text = ["thinking", "reasoning", "text"].into_iter().find_map(|key| part.text(key));
            let signature = part.text("signature");
            text.map(|text| Part::Reasoning { text, signature })
        }
        "image_url" | "input_image" | "image" => image(part, aside),
        "input_audio" => audio(&mut part.object("input_audio"), aside),
        "file" if part.has("file") => file(&mut part.object("file"), aside),
        "input_file" => file(part, aside),
        _ => None,
    }
}

fn image(part: &mut Object<'_>, aside: &mut Aside) -> Option<Part> {
    match image_url(part) {
        Some(url) => Some(data_url::media(&url, "image/*", &mut aside.media)),
        None => part.text("file_id").map(|id| elsewhere("image/*", id)),
    }
}

/// A file: its bytes as a data URL, or the name it has with the provider.
fn file(file: &mut Object<'_>, aside: &mut Aside) -> Option<Part> {
    const MIME: &str = "application/octet-stream";
    let url = file.text("file_data").or_else(|| file.text("file_url"));
    match url {
        Some(url) => Some(data_url::media(&url, MIME, &mut aside.media)),
        None => file.text("file_id").map(|id| elsewhere(MIME, id)),
    }
}

/// Media whose bytes a provider holds under an id.
pub(super) fn elsewhere(mime: &str, id: String) -> Part {
    Part::Media(Media { mime: mime.to_owned(), blob: None, reference: Some(id) })
}

/// Takes the URL of a picture out of its part, where it stands as a string or in an object.
pub(in crate::importers) fn image_url(part: &mut Object<'_>) -> Option<String> {
    if let Some(url) = part.text("image_url").or_else(|| part.text("image")) {
        return Some(url);
    }
    let mut image = part.object("image_url");
    let url = image.text("url")?;
    // Left over as the part's own, so that its loss is noted.
    if let Some(detail) = image.get("detail") {
        part.push(Cow::Borrowed("detail"), detail);
    }
    Some(url)
}

fn audio(audio: &mut Object<'_>, aside: &mut Aside) -> Option<Part> {
    let mime = format!("audio/{}", audio.text("format")?);
    data_url::encoded(&mime, &audio.text("data")?, &mut aside.media)
}
