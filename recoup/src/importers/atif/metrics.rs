//! A step's metrics and a model call: the same figures in two shapes, read and written here so that
//! neither direction can drift from the other.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::importers::RecordError;
use crate::importers::object::Object;
use crate::importers::value::value;
use crate::json::Json;
use crate::trajectory::{Call, Usage};

/// Reads metrics into a call and returns what the call has no place for: members to add to
/// [`metrics`] of the call, with null for one to leave out.
pub(super) fn take(raw: &RawValue, call: &mut Call) -> Result<Option<Json>, RecordError> {
    let mut object = Object::parse(raw, "metrics")?;
    let Value::Object(mut original) = serde_json::from_str(raw.get())? else { return Ok(None) };
    // Another model of the format says `cost`; the published one has `cost_usd`.
    if let Some(cost) = original.shift_remove("cost") {
        original.entry("cost_usd").or_insert(cost);
    }
    let reasoning = object.object("extra").read("reasoning_tokens");
    let cached = object.read("cached_tokens");
    let counts = object.read("prompt_tokens").zip(object.read("completion_tokens"));
    if let Some((input, output)) = counts {
        let (cached, reasoning) = (cached.unwrap_or(0), reasoning.unwrap_or(0));
        call.usage = Some(Usage { input, output, cached, reasoning });
    }
    call.cost = ["cost_usd", "cost"].into_iter().find_map(|key| object.take(key).and_then(value));
    call.prompt_ids = object.read("prompt_token_ids");
    call.completion_ids = object.read("completion_token_ids");
    call.logprobs = object.read("logprobs");
    let written = metrics(call);
    let mut rest = Map::new();
    for (key, value) in &original {
        if !value.is_null() && written.get(key) != Some(value) {
            rest.insert(key.clone(), value.clone());
        }
    }
    for key in written.keys() {
        if original.get(key).is_none_or(Value::is_null) {
            rest.insert(key.clone(), Value::Null);
        }
    }
    let said = !rest.is_empty() || written.is_empty();
    Ok(said.then(|| Json::from_foreign(&Value::Object(rest).to_string())))
}

/// The metrics that a call gives; empty for one without figures.
pub(crate) fn metrics(call: &Call) -> Map<String, Value> {
    let mut metrics = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        metrics.extend(value.map(|value| (key.to_owned(), value)));
    };
    let usage = call.usage;
    set("prompt_tokens", usage.map(|usage| usage.input.into()));
    set("completion_tokens", usage.map(|usage| usage.output.into()));
    set("cached_tokens", usage.filter(|usage| usage.cached > 0).map(|usage| usage.cached.into()));
    set("cost_usd", call.cost.map(Value::from));
    set("prompt_token_ids", call.prompt_ids.clone().map(Value::from));
    set("completion_token_ids", call.completion_ids.clone().map(Value::from));
    set("logprobs", call.logprobs.clone().map(Value::from));
    let reasoning = usage.map(|usage| usage.reasoning).filter(|tokens| *tokens > 0);
    set("extra", reasoning.map(|tokens| serde_json::json!({"reasoning_tokens": tokens})));
    metrics
}

#[cfg(test)]
mod tests {
    use super::{metrics, take};
    use crate::trajectory::Call;

    #[test]
    fn what_a_call_cannot_hold_is_what_is_returned() {
        let read = |text: &str| {
            let mut call = Call::default();
            let rest = take(serde_json::from_str(text).unwrap(), &mut call).unwrap();
            (call, rest.map(|rest| rest.as_str().to_owned()))
        };
        let (call, rest) = read(
            r#"{"prompt_tokens":9,"completion_tokens":2,"cost_usd":0.5,"completion_token_ids":[1,2],"logprobs":[-0.1,-0.2]}"#,
        );
        assert_eq!((call.completion_ids.as_deref(), rest), (Some([1, 2].as_slice()), None));
        assert_eq!(metrics(&call).len(), 5);
        let (call, rest) = read(r#"{"prompt_tokens":9,"cached_tokens":0}"#);
        assert_eq!((call.usage, rest.as_deref()), (None, Some(r#"{"cached_tokens":0,"prompt_tokens":9}"#)));
        let (call, rest) = read(r#"{"cost":0.5}"#);
        assert_eq!((call.cost, rest), (Some(0.5), None));
        assert_eq!(read("{}").1.as_deref(), Some("{}"));
    }
}
