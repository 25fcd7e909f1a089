//! Lists and dictionaries that print as Python prints them wherever the engine makes text of them, joining
//! with `~` included.

use std::fmt;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr};

use super::repr::str_of;

/// A list or dictionary of the engine's, in all but its print.
#[derive(Debug)]
struct Container(DynObject);

impl Object for Container {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        self.0.repr()
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get_value(key)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.0.get_value_by_str(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.0.enumerate()
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.0.enumerator_len()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&str_of(&Value::from_dyn_object(Arc::clone(self))))
    }
}

fn contained(value: Value) -> Value {
    match value.as_object() {
        Some(object) => Value::from_object(Container(object.clone())),
        None => value,
    }
}

/// A list.
pub(crate) fn list(items: impl Iterator<Item = Value>) -> Value {
    contained(items.collect())
}

/// A dictionary; of equal keys the last one's value stands in the first one's place.
pub(crate) fn dictionary<'a>(pairs: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    contained(Value::from_pairs(pairs))
}

#[cfg(test)]
mod tests {
    use minijinja::Value;

    use super::{dictionary, list};

    #[test]
    fn the_engine_prints_them_as_python_does() {
        let value = list([Value::from("a\u{200d}"), dictionary([("k", Value::from(1e20))])].into_iter());
        assert_eq!(value.to_string(), r"['a\u200d', {'k': 1e+20}]");
        assert_eq!((value.len(), value.is_true()), (Some(2), true));
        assert_eq!(value.get_item(&Value::from(1)).unwrap().get_attr("k").unwrap(), Value::from(1e20));
        assert!(!list(std::iter::empty()).is_true());
        assert_eq!(value, Value::from(vec![Value::from("a\u{200d}"), Value::from_pairs([("k", 1e20)])]));
    }
}
