//! The content of a message: a string, or a list of typed parts.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::object::{Object, elements, is_array, is_object, is_string, text, wrong_type};
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
    } else if is_array(raw) {
        for raw in elements(raw, "content")? {
            parts.push(part(raw, run, losses)?);
        }
    } else {
        return Err(wrong_type("content", "a string, a list of parts or null"));
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
    let kind = part.take_text("type").unwrap_or(Cow::Borrowed("untyped"));
    let read = match &*kind {
        "text" | "input_text" | "output_text" => part.take_text("text").map(Part::text),
        "refusal" => part
            .take_text("refusal")
            .map(|raw| Part::Opaque { kind: "refusal".to_owned(), raw: raw.into_owned() }),
        "thinking" | "reasoning" => {
            let text = ["thinking", "reasoning", "text"].into_iter().find_map(|key| part.take_text(key));
            let signature = part.take_text("signature").map(Cow::into_owned);
            text.map(|text| Part::Reasoning { text: text.into_owned(), signature })
        }
        "image_url" | "input_image" | "image" => image(&mut part, run),
        "input_audio" => part.take_if("input_audio", is_object).and_then(|raw| audio(raw, run)),
        _ => None,
    };
    let Some(read) = read else {
        return Ok(Part::Opaque { kind: kind.into_owned(), raw: raw.get().to_owned() });
    };
    for key in part.keys() {
        let field = format!("message.content[].{key}");
        losses.insert(Loss::new(&run.source.format, field, "a part has no place for it"));
    }
    Ok(read)
}

fn image(part: &mut Object<'_>, run: &mut Trajectory) -> Option<Part> {
    let url = part.take_text("image_url").or_else(|| part.take_if("image", is_string).and_then(text));
    let url = if let Some(url) = url {
        url
    } else {
        let mut image = Object::parse(part.take_if("image_url", is_object)?, "image_url").ok()?;
        let url = image.take_text("url")?;
        // Left over as the part's own, so that its loss is noted.
        if let Some(detail) = image.get("detail") {
            part.push(Cow::Borrowed("detail"), detail);
        }
        url
    };
    Some(Part::Media(data_url::media(&url, "image/*", run)))
}

fn audio(raw: &RawValue, run: &mut Trajectory) -> Option<Part> {
    let mut audio = Object::parse(raw, "input_audio").ok()?;
    let bytes = data_url::decode_base64(&audio.take_text("data")?)?;
    let mime = format!("audio/{}", audio.take_text("format")?);
    Some(Part::Media(data_url::embedded(&mime, bytes, run)))
}
