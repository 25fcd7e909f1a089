//! Messages whose text an exporter cut off: what is whole of them.

use serde_json::value::RawValue;

use crate::importers::value::text;
use crate::json::Json;

/// What is whole of a list of messages whose text an exporter cut off, or a number or truth value as
/// text; `None` for anything else, which is as it should be.
pub(super) fn mended(raw: &RawValue, lost: &mut Vec<(String, &'static str)>) -> Option<Box<RawValue>> {
    if !raw.get().starts_with(['"', '[', '{']) {
        return RawValue::from_string(Json::string(raw.get()).as_str().to_owned()).ok();
    }
    // The start of a list of objects within a string.
    if !raw.get().starts_with("\"[{") {
        return None;
    }
    let text = text(raw)?;
    let mut rest = text.strip_prefix('[')?;
    if serde_json::from_str::<&RawValue>(&text).is_ok() {
        return None;
    }
    let mut whole: Vec<&str> = Vec::new();
    loop {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let Some(Ok(value)) = values.next() else { break };
        whole.push(value.get());
        let after = rest.get(values.byte_offset()..).unwrap_or_default().trim_start();
        let Some(next) = after.strip_prefix(',') else { break };
        rest = next;
    }
    if whole.is_empty() {
        return None;
    }
    lost.push(("messages".to_owned(), "cut off by the exporter; the messages before the cut are kept"));
    RawValue::from_string(format!("[{}]", whole.join(","))).ok()
}
