//! JSON text to values of the interpreter and back.
//!
//! Text is read straight into the interpreter's heap: an episode that goes through bytes does this at
//! every step.

use std::collections::HashSet;
use std::fmt::Write as _;

use starlark::values::dict::{AllocDict, DictRef};
use starlark::values::float::UnpackFloat;
use starlark::values::list::{AllocList, ListRef};
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, UnpackValue, Value, ValueIdentity};

use crate::canonical::{write_float, write_string};

/// Deepest nesting of a value.
const DEPTH_MAX: usize = 64;

/// Puts a parsed JSON value on the heap.
///
/// # Errors
/// In words: an integer beyond 64 bits, or nesting too deep.
pub(super) fn alloc<'v>(
    heap: Heap<'v>,
    value: &serde_json::Value,
    depth: usize,
) -> Result<Value<'v>, String> {
    use serde_json::Value as Json;
    if depth > DEPTH_MAX {
        return Err(format!("nested deeper than {DEPTH_MAX}"));
    }
    Ok(match value {
        Json::Null => Value::new_none(),
        Json::Bool(value) => Value::new_bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => heap.alloc(integer),
            None if number.to_string().contains(['.', 'e', 'E']) => {
                let float = number.as_f64().filter(|float| float.is_finite());
                heap.alloc(float.ok_or_else(|| format!("{number} is no finite number"))?)
            }
            None => return Err(format!("{number} does not fit in 64 bits")),
        },
        Json::String(text) => heap.alloc(text.as_str()),
        Json::Array(items) => {
            let items: Vec<Value<'v>> =
                items.iter().map(|item| alloc(heap, item, depth + 1)).collect::<Result<_, _>>()?;
            heap.alloc(AllocList(items))
        }
        Json::Object(members) => {
            let members: Vec<(Value<'v>, Value<'v>)> = members
                .iter()
                .map(|(key, member)| Ok((heap.alloc(key.as_str()), alloc(heap, member, depth + 1)?)))
                .collect::<Result<_, String>>()?;
            heap.alloc(AllocDict(members))
        }
    })
}

/// Writes a value as compact JSON in insertion order.
///
/// # Errors
/// In words: a value that has no JSON form, or nesting too deep.
pub(super) fn write(out: &mut String, value: Value<'_>, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("nested deeper than {DEPTH_MAX}"));
    }
    if let Some(text) = value.unpack_str() {
        write_string(out, text);
    } else if let Some(small) = value.unpack_i32() {
        let _ = write!(out, "{small}");
    } else if let Some(members) = DictRef::from_value(value) {
        out.push('{');
        for (index, (key, member)) in members.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_string(out, key.unpack_str().ok_or_else(|| format!("a key of type {}", key.get_type()))?);
            out.push(':');
            write(out, member, depth + 1)?;
        }
        out.push('}');
    } else if let Some(items) = ListRef::from_value(value) {
        write_items(out, items.content(), depth)?;
    } else if value.is_none() {
        out.push_str("null");
    } else if let Some(flag) = value.unpack_bool() {
        out.push_str(if flag { "true" } else { "false" });
    } else if let Ok(Some(integer)) = i64::unpack_value(value) {
        let _ = write!(out, "{integer}");
    } else if let Some(items) = TupleRef::from_value(value) {
        write_items(out, items.content(), depth)?;
    } else if value.get_type() == "float" {
        let float = UnpackFloat::unpack_value(value).ok().flatten().map(|float| float.0);
        write_float(out, float.filter(|float| float.is_finite()).ok_or("a float that is not finite")?);
    } else {
        return Err(match value.get_type() {
            "int" => "an integer beyond 64 bits".to_owned(),
            other => format!("a value of type {other}"),
        });
    }
    Ok(())
}

/// Whether a list or dict stands at two places of a value. Its JSON would be two, so what a step changes
/// would depend on whether the state was kept or restored. What is frozen cannot be changed.
pub(super) fn is_shared<'v>(value: Value<'v>, met: &mut HashSet<ValueIdentity<'v>>) -> bool {
    let mut again = |value: Value<'v>| value.unpack_frozen().is_none() && !met.insert(value.identity());
    if let Some(members) = DictRef::from_value(value) {
        return again(value) || members.values().any(|member| is_shared(member, met));
    }
    if let Some(items) = ListRef::from_value(value) {
        return again(value) || items.iter().any(|item| is_shared(item, met));
    }
    false
}

fn write_items(out: &mut String, items: &[Value<'_>], depth: usize) -> Result<(), String> {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, *item, depth + 1)?;
    }
    out.push(']');
    Ok(())
}
