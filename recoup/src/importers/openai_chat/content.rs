//! The content of a message: a string, or a list of typed parts.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::object::{Object, wrong_type};
use crate::importers::value::{elements, text};
use crate::trajectory::{Part, Trajectory};
use crate::warning::Loss;

/// Appends the parts of a content that is not null.
pub(in crate::importers) fn content(
    raw: &RawValue,
    parts: &mut Vec<Part>,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<(), RecordError> {
    if let Some(text) = text(raw) {
        parts.push(Part::text(text));
    } else {
        let wrong = || wrong_type("content", "a string, a list of parts or null");
        for raw in elements(raw).ok_or_else(wrong)? {
            parts.push(part(raw, run, losses)?);
        }
    }
    Ok(())
}

/// The parts of a tool's answer.
pub(in crate::importers) fn result_parts(
    raw: &RawValue,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<Vec<Part>, RecordError> {
    let mut parts = Vec::new();
    content(raw, &mut parts, run, losses)?;
    Ok(parts)
}

fn part(raw: &RawValue, run: &mut Trajectory, losses: &mut BTreeSet<Loss>) -> Result<Part, RecordError> {
    if let Some(text) = text(raw) {
        return Ok(Part::text(text));
    }
    let mut part = Object::parse(raw, "content[]")?;
    let kind = part.text("type").unwrap_or_else(|| "untyped".to_owned());
    let read = match &*kind {
        "text" | "input_text" | "output_text" => part.text("text").map(Part::text),
        "refusal" => part.text("refusal").map(|raw| Part::Opaque { kind: "refusal".to_owned(), raw }),
        "thinking" | "reasoning" => {
            let text = ["thinking", "reasoning", "text"].into_iter().find_map(|key| part.text(key));
            let signature = part.text("signature");
            text.map(|text| Part::Reasoning { text, signature })
        }
        "image_url" | "input_image" | "image" => image(&mut part, run),
        "input_audio" => audio(&mut part.object("input_audio"), run),
        _ => None,
    };
    let Some(read) = read else {
        return Ok(Part::Opaque { kind, raw: raw.get().to_owned() });
    };
    for key in part.keys() {
        let field = format!("message.content[].{key}");
        losses.insert(Loss::new(&run.source.format, field, "a part has no place for it"));
    }
    Ok(read)
}

fn image(part: &mut Object<'_>, run: &mut Trajectory) -> Option<Part> {
    Some(data_url::media(&image_url(part)?, "image/*", &mut run.media))
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

fn audio(audio: &mut Object<'_>, run: &mut Trajectory) -> Option<Part> {
    let mime = format!("audio/{}", audio.text("format")?);
    data_url::encoded(&mime, &audio.text("data")?, &mut run.media)
}
