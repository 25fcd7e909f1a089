//! An envelope: the request, response or state that messages came in.
//!
//! What it says besides them stays in the object for the caller, except what says how the answer was
//! made (model, tokens, reason of the end), which becomes the [`Call`] of the answer.

use serde_json::value::RawValue;

use super::thread::Thread;
use super::{Aside, Dialect, anthropic, gemini, spoken, usage};
use crate::importers::RecordError;
use crate::importers::object::Object;
use crate::importers::value::{elements, is_array, is_object, text};
use crate::trajectory::{Call, Role};

/// Takes the messages out of an object that holds some, be it a request or a response; false where it
/// holds none, and stays whole.
///
/// # Errors
/// When a message cannot be read, with its place.
pub(super) fn open(
    object: &mut Object<'_>,
    thread: &mut Thread,
    dialect: Option<Dialect>,
    speaker: Role,
    aside: &mut Aside,
) -> Result<bool, RecordError> {
    // Messages in their own right, which may have members of these names.
    if object.has("role") || object.has("lc") {
        return Ok(false);
    }
    Ok(request(object, thread, dialect, speaker, aside)? || answer(object, thread, aside)?)
}

/// Takes the messages of a request out of its object; false where it holds none.
///
/// # Errors
/// As [`open`].
pub(in crate::importers) fn request(
    object: &mut Object<'_>,
    thread: &mut Thread,
    dialect: Option<Dialect>,
    speaker: Role,
    aside: &mut Aside,
) -> Result<bool, RecordError> {
    for (key, dialect, speaker) in [
        ("messages", dialect, speaker),
        ("contents", Some(Dialect::Gemini), Role::User),
        ("input", dialect.or(Some(Dialect::Responses)), Role::User),
    ] {
        let Some(raw) = object.get(key) else { continue };
        // A single content stands without its list.
        if !is_array(raw) && text(raw).is_none() && !(key == "contents" && is_object(raw)) {
            continue;
        }
        object.take(key);
        instructions(object, thread, aside)?;
        match elements(raw) {
            Some(list) => thread.add_all(&list, key, dialect, speaker, aside)?,
            None => thread.add(raw, dialect, speaker, aside)?,
        }
        return Ok(true);
    }
    Ok(false)
}

/// Takes out what a model is told apart from the messages.
fn instructions(object: &mut Object<'_>, thread: &mut Thread, aside: &mut Aside) -> Result<(), RecordError> {
    for key in ["system", "instructions", "systemInstruction", "system_instruction"] {
        let Some(raw) = object.get(key) else { continue };
        let parts = if is_object(raw) {
            gemini::parts(Object::parse(raw, key)?, aside)?
        } else if is_array(raw) || text(raw).is_some_and(|text| !text.is_empty()) {
            anthropic::blocks(raw, aside)?
        } else {
            continue;
        };
        object.take(key);
        thread.extend(vec![spoken(Role::System, None, parts)]);
    }
    Ok(())
}

/// Takes the answer out of a provider's response; false where it holds none. Of several the first counts, and
/// the others are [`Aside::alternatives`].
///
/// # Errors
/// As [`open`].
pub(in crate::importers) fn answer(
    object: &mut Object<'_>,
    thread: &mut Thread,
    aside: &mut Aside,
) -> Result<bool, RecordError> {
    for (key, inner, dialect) in [
        ("choices", "message", None),
        ("candidates", "content", Some(Dialect::Gemini)),
        ("generations", "message", Some(Dialect::LangChain)),
    ] {
        let Some(mut list) = object.get(key).and_then(elements) else { continue };
        if let [only] = list.as_slice()
            && let Some(nested) = elements(only)
        {
            list = nested;
        }
        let Some(mut first) = list.first().and_then(|raw| Object::of(raw)) else { continue };
        let finish_reason = ["finish_reason", "finishReason"].into_iter().find_map(|key| first.text(key));
        let message = first.take(inner);
        if message.is_none() && finish_reason.is_none() {
            continue;
        }
        object.take(key);
        if let Some(others) = list.get(1..).filter(|others| !others.is_empty()) {
            alternatives(others, (key, inner), dialect, aside)?;
        }
        match message {
            // An answer that was cut off before it said anything.
            None => thread.extend(vec![spoken(Role::Assistant, None, Vec::new())]),
            Some(message) => thread.add(message, dialect, Role::Assistant, aside)?,
        }
        made(object, finish_reason, thread, aside);
        first.take("index");
        aside.left(first, key);
        return Ok(true);
    }
    let Some(items) = object.get("output").and_then(elements) else { return Ok(false) };
    object.take("output");
    thread.add_all(&items, "output", Some(Dialect::Responses), Role::Assistant, aside)?;
    if thread.answered().is_none() && object.get("error").is_none() {
        // It said nothing, which is an answer too.
        thread.extend(vec![spoken(Role::Assistant, None, Vec::new())]);
    }
    let reason = object.object("incomplete_details").text("reason");
    let finish_reason = reason.or_else(|| object.text("status"));
    made(object, finish_reason, thread, aside);
    Ok(true)
}

/// Reads a response's answers behind the first.
fn alternatives(
    others: &[&RawValue],
    (key, inner): (&str, &str),
    dialect: Option<Dialect>,
    aside: &mut Aside,
) -> Result<(), RecordError> {
    let Some(mut kept) = aside.alternatives.take() else {
        aside.lose(key, "of several answers the first is kept");
        return Ok(());
    };
    for raw in others {
        let mut other = Object::parse(raw, key)?;
        let Some(message) = other.take(inner) else { continue };
        let mut thread = Thread::default();
        thread.add(message, dialect, Role::Assistant, aside)?;
        let finish_reason = ["finish_reason", "finishReason"].into_iter().find_map(|key| other.text(key));
        made(&mut Object::default(), finish_reason, &mut thread, aside);
        kept.extend(thread.finish());
    }
    aside.alternatives = Some(kept);
    Ok(())
}

/// Says on the answer how it was made.
fn made(object: &mut Object<'_>, finish_reason: Option<String>, thread: &mut Thread, aside: &mut Aside) {
    let Some(node) = thread.answered() else { return };
    let mut call = node.occurrence.call.take().map_or_else(Call::default, |call| *call);
    let model = ["model", "modelVersion", "model_version"].into_iter().find_map(|key| object.text(key));
    call.model = call.model.or(model);
    call.finish_reason = call.finish_reason.or(finish_reason);
    for key in ["usage", "usageMetadata", "usage_metadata"] {
        let mut tokens = object.object(key);
        call.usage = call.usage.or(usage(&mut tokens));
        aside.left(tokens, key);
    }
    if call != Call::default() {
        node.occurrence.call = Some(Box::new(call));
    }
}
