//! A small part of JSON Schema, enough to say that a tool call's arguments or a model's answer are wrong.
//!
//! Checked: `type`, `required`, `enum`, `properties`, `additionalProperties: false`, `items`, `minimum`,
//! `maximum`, `minLength`, `maxLength`, `minItems`, `maxItems`. Where a schema uses a keyword that
//! could widen what it accepts (`anyOf`, `$ref`, …), that part of it is not checked: better silent than wrong.

use std::fmt;

use serde_json::Value;

/// Why a value does not fit a schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Violation {
    /// Keys from the arguments down to the value; empty for the arguments themselves.
    pub(crate) path: Vec<String>,
    /// What is wrong with it.
    pub(crate) kind: Kind,
}

/// Kinds of violation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// The value is of another type than this one.
    Type(String),
    /// This required key is missing.
    Missing(String),
    /// This key is not in the schema.
    Unknown(String),
    /// The value is none of those listed.
    Enum,
    /// The value is outside the bounds.
    Bounds,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { "it".to_owned() } else { format!("`{}`", self.path.join(".")) };
        match &self.kind {
            Kind::Type(expected) => write!(f, "{place} must be of type {expected}"),
            Kind::Missing(key) => write!(f, "{place} lacks the required `{key}`"),
            Kind::Unknown(key) => write!(f, "{place} holds `{key}`, which is not in the schema"),
            Kind::Enum => write!(f, "{place} is not among the allowed values"),
            Kind::Bounds => write!(f, "{place} is outside the allowed bounds"),
        }
    }
}

/// Keywords that this checker does not know how to hold together with the rest.
const WIDENING: &[&str] =
    &["anyOf", "oneOf", "allOf", "not", "if", "$ref", "$dynamicRef", "patternProperties"];

/// Deepest nesting looked at.
const DEPTH_MAX: usize = 16;

/// The first violation, in the order of the schema's own keywords; `None` where all fits.
pub(crate) fn violation(schema: &Value, value: &Value) -> Option<Violation> {
    check(schema, value, &mut Vec::new())
}

fn check(schema: &Value, value: &Value, path: &mut Vec<String>) -> Option<Violation> {
    let schema = schema.as_object()?;
    if path.len() > DEPTH_MAX || WIDENING.iter().any(|keyword| schema.contains_key(*keyword)) {
        return None;
    }
    let found = |path: &[String], kind: Kind| Some(Violation { path: path.to_vec(), kind });
    let nullable = schema.get("nullable") == Some(&Value::Bool(true)) && value.is_null();
    if let Some(expected) = schema.get("type").filter(|_| !nullable)
        && !has_type(expected, value)
    {
        return found(path, Kind::Type(type_words(expected)));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !nullable
        && !allowed.contains(value)
    {
        return found(path, Kind::Enum);
    }
    if out_of_bounds(schema, value) {
        return found(path, Kind::Bounds);
    }
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for key in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
                if let Some(key) = key.as_str()
                    && !members.contains_key(key)
                {
                    return found(path, Kind::Missing(key.to_owned()));
                }
            }
            let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
            for (key, member) in members {
                match properties.and_then(|properties| properties.get(key)) {
                    Some(inner) => {
                        path.push(key.clone());
                        let violation = check(inner, member, path);
                        path.pop();
                        if violation.is_some() {
                            return violation;
                        }
                    }
                    None if closed => return found(path, Kind::Unknown(key.clone())),
                    None => {}
                }
            }
            None
        }
        Value::Array(items) => {
            let inner = schema.get("items")?;
            for (at, item) in items.iter().enumerate() {
                path.push(at.to_string());
                let violation = check(inner, item, path);
                path.pop();
                if violation.is_some() {
                    return violation;
                }
            }
            None
        }
        _ => None,
    }
}

fn has_type(expected: &Value, value: &Value) -> bool {
    match expected {
        Value::String(name) => match name.to_ascii_lowercase().as_str() {
            "object" | "dict" => value.is_object(),
            "array" | "list" => value.is_array(),
            "string" | "str" => value.is_string(),
            "boolean" | "bool" => value.is_boolean(),
            "null" => value.is_null(),
            "number" | "float" => value.is_number(),
            "integer" | "int" => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            _ => true,
        },
        Value::Array(names) => names.iter().any(|name| has_type(name, value)),
        _ => true,
    }
}

fn type_words(expected: &Value) -> String {
    match expected {
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}

fn out_of_bounds(schema: &serde_json::Map<String, Value>, value: &Value) -> bool {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let outside = |size: f64, least: &str, most: &str| {
        bound(least).is_some_and(|least| size < least) || bound(most).is_some_and(|most| size > most)
    };
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|size| outside(size, "minimum", "maximum")),
        Value::String(text) => outside(text.chars().count() as f64, "minLength", "maxLength"),
        Value::Array(items) => outside(items.len() as f64, "minItems", "maxItems"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Kind, violation};

    fn kind(schema: &serde_json::Value, value: &serde_json::Value) -> Option<Kind> {
        violation(schema, value).map(|violation| violation.kind)
    }

    #[test]
    fn each_checked_keyword_finds_its_fault() {
        let schema = json!({
            "type": "object", "required": ["id"], "additionalProperties": false,
            "properties": {
                "id": {"type": "string", "minLength": 2},
                "cabin": {"enum": ["economy", "business"]},
                "bags": {"type": "integer", "minimum": 0, "maximum": 4},
                "legs": {"type": "array", "items": {"type": "string"}},
            },
        });
        assert_eq!(kind(&schema, &json!({"id": "A1", "bags": 2.0, "legs": ["x"]})), None);
        assert_eq!(kind(&schema, &json!({})), Some(Kind::Missing("id".to_owned())));
        assert_eq!(kind(&schema, &json!({"id": 1})), Some(Kind::Type("string".to_owned())));
        assert_eq!(kind(&schema, &json!({"id": "A"})), Some(Kind::Bounds));
        assert_eq!(kind(&schema, &json!({"id": "A1", "cabin": "first"})), Some(Kind::Enum));
        assert_eq!(kind(&schema, &json!({"id": "A1", "bags": 5})), Some(Kind::Bounds));
        assert_eq!(kind(&schema, &json!({"id": "A1", "x": 5})), Some(Kind::Unknown("x".to_owned())));
        let deep = violation(&schema, &json!({"id": "A1", "legs": ["x", 3]})).unwrap();
        assert_eq!(deep.path, ["legs", "1"]);
    }

    #[test]
    fn keywords_it_does_not_know_keep_it_silent() {
        for schema in [
            json!({"anyOf": [{"type": "string"}], "type": "integer"}),
            json!({"$ref": "#/x", "type": "integer"}),
            json!({"type": "decimal"}),
            json!(true),
        ] {
            assert_eq!(kind(&schema, &json!("x")), None, "{schema}");
        }
    }
}
