//! JSON text to values of the interpreter and back.
//!
//! Text is read straight into the interpreter's heap: an episode that goes through bytes does this at
//! every step.

use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use starlark::collections::SmallSet;
use starlark::values::dict::{AllocDict, DictRef};
use starlark::values::float::UnpackFloat;
use starlark::values::list::{AllocList, ListRef};
use starlark::values::tuple::TupleRef;
use starlark::values::{Heap, UnpackValue, Value, ValueIdentity};

use crate::canonical::{write_float, write_string};

/// Deepest nesting of a value.
const DEPTH_MAX: usize = 64;
/// The key under which `serde_json` hands a number over as text where another crate of the build has asked it
/// to keep all digits.
const NUMBER: &str = "$serde_json::private::Number";

/// Puts JSON text on the heap.
///
/// # Errors
/// Where it is no JSON, holds an integer beyond 64 bits, or is nested too deep.
pub(super) fn read<'v>(heap: Heap<'v>, json: &str) -> Result<Value<'v>, serde_json::Error> {
    let mut text = serde_json::Deserializer::from_str(json);
    let value = Reader { heap, depth: 0 }.deserialize(&mut text)?;
    text.end()?;
    Ok(value)
}

/// Makes values of what a deserializer meets.
#[derive(Clone, Copy)]
struct Reader<'v> {
    heap: Heap<'v>,
    depth: usize,
}

impl<'v> Reader<'v> {
    fn inside(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn number<E: serde::de::Error>(self, text: &str) -> Result<Value<'v>, E> {
        if text.contains(['.', 'e', 'E']) {
            return self.visit_f64(text.parse().map_err(E::custom)?);
        }
        let integer = text.parse();
        self.visit_i64(integer.map_err(|_| E::custom(format_args!("{text} does not fit in 64 bits")))?)
    }
}

impl<'de, 'v> DeserializeSeed<'de> for Reader<'v> {
    type Value = Value<'v>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'v>, D::Error> {
        if self.depth > DEPTH_MAX {
            return Err(D::Error::custom(format_args!("nested deeper than {DEPTH_MAX}")));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de, 'v> Visitor<'de> for Reader<'v> {
    type Value = Value<'v>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value<'v>, E> {
        Ok(Value::new_none())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value<'v>, E> {
        Ok(Value::new_bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value<'v>, E> {
        Ok(self.heap.alloc(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value<'v>, E> {
        let value =
            i64::try_from(value).map_err(|_| E::custom(format_args!("{value} does not fit in 64 bits")))?;
        self.visit_i64(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value<'v>, E> {
        if !value.is_finite() {
            return Err(E::custom(format_args!("{value} is no finite number")));
        }
        Ok(self.heap.alloc(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value<'v>, E> {
        Ok(self.heap.alloc(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value<'v>, A::Error> {
        let inside = self.inside();
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inside)? {
            list.push(item);
        }
        Ok(self.heap.alloc(AllocList(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value<'v>, A::Error> {
        let inside = self.inside();
        let mut dict = Vec::new();
        while let Some(key) = members.next_key_seed(inside)? {
            match key.unpack_str() {
                Some(NUMBER) => return self.number(&members.next_value::<String>()?),
                // A string, so that it has a hash.
                Some(_) => dict.push((key, members.next_value_seed(inside)?)),
                None => return Err(A::Error::custom("a key is no string")),
            }
        }
        Ok(self.heap.alloc(AllocDict(dict)))
    }
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
        match u8::try_from(small) {
            // Most numbers of a state are such.
            Ok(digit @ 0..=9) => out.push((b'0' + digit).into()),
            _ => drop(write!(out, "{small}")),
        }
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
pub(super) fn is_shared<'v>(value: Value<'v>, met: &mut SmallSet<ValueIdentity<'v>>) -> bool {
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

#[cfg(test)]
mod tests {
    use starlark::values::Heap;

    use super::{DEPTH_MAX, read, write};

    /// What a text is after it was read and written.
    fn again(json: &str) -> Result<String, String> {
        Heap::temp(|heap| {
            let value = read(heap, json).map_err(|error| error.to_string())?;
            let mut out = String::new();
            write(&mut out, value, 0).map(|()| out)
        })
    }

    #[test]
    fn what_is_written_reads_back() {
        let texts = [
            r#"{"b":[],"a":{"":null},"é":"\n\"\\"}"#,
            "[true,false,0,9,10,-1,2147483648,9223372036854775807,-9223372036854775808,0.5,-0.0,1e300]",
        ];
        for text in texts {
            assert_eq!(again(text).as_deref(), Ok(text));
        }
        assert_eq!(again(r#"{"a":1,"b":2,"a":3}"#).as_deref(), Ok(r#"{"a":3,"b":2}"#));
    }

    #[test]
    fn what_no_package_can_hold_is_refused() {
        let large = again("9223372036854775808").unwrap_err();
        assert!(large.starts_with("9223372036854775808 does not fit in 64 bits"), "{large}");
        for text in ["1e400", "[1]]", "[1", "{1:2}"] {
            assert!(again(text).is_err(), "{text}");
        }
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(again(&nested(DEPTH_MAX + 1)).is_ok());
        assert!(again(&nested(DEPTH_MAX + 2)).unwrap_err().starts_with("nested deeper than 64"));
    }
}
