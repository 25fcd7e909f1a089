//! When two calls are the same action.

use serde_json::{Number, Value};

use super::ToolCall;

/// Same tool and equal arguments, where numbers are compared as numbers (`1` equals `1.0`) and keys in
/// any order. Arguments that are not JSON are compared as text.
///
/// Not the equality of ids: canonical bytes tell `1` from `1.0`.
pub fn same_action(left: &ToolCall, right: &ToolCall) -> bool {
    if left.name != right.name {
        return false;
    }
    match (left.arguments(), right.arguments()) {
        (Some(left), Some(right)) => same_value(&left, &right),
        _ => left.arguments_raw == right.arguments_raw,
    }
}

fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            // Two integers are compared as such: as doubles, long ids that differ in a digit would be one.
            let is_integer = |number: &Number| !number.to_string().contains(['.', 'e', 'E']);
            let as_doubles = || left.as_f64().is_some() && left.as_f64() == right.as_f64();
            left == right || !(is_integer(left) && is_integer(right)) && as_doubles()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_value(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| same_value(value, other)))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::same_action;
    use crate::trajectory::{ArgumentsForm, ToolCall};

    fn call(arguments: &str) -> ToolCall {
        ToolCall {
            call_id: None,
            name: "pay".to_owned(),
            arguments_raw: arguments.to_owned(),
            arguments_form: ArgumentsForm::String,
        }
    }

    #[test]
    fn spelling_is_not_a_difference() {
        assert!(same_action(&call(r#"{"a":1,"b":[2]}"#), &call(r#"{ "b":[2.0], "a":1.0 }"#)));
        assert!(!same_action(&call(r#"{"a":1}"#), &call(r#"{"a":"1"}"#)));
        assert!(!same_action(&call(r#"{"a":9007199254740993}"#), &call(r#"{"a":9007199254740992}"#)));
        assert!(same_action(&call("not json"), &call("not json")));
    }
}
