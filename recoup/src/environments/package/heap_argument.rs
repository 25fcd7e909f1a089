//! A call's argument where packages have it, on the interpreter's heap: what the check of arguments asks of it.

use starlark::values::Value;
use starlark::values::dict::DictRef;
use starlark::values::list::ListRef;

use super::tree;
use crate::environments::ArgumentKind;
use crate::environments::arguments::Argument;

/// An argument on the heap.
#[derive(Clone, Copy)]
pub(super) struct HeapArgument<'v>(pub Value<'v>);

impl<'v> Argument<'v> for HeapArgument<'v> {
    fn members(self) -> Option<Vec<(&'v str, Self)>> {
        let members = DictRef::from_value(self.0)?;
        members.iter().map(|(name, value)| Some((name.unpack_str()?, Self(value)))).collect()
    }

    fn is(self, kind: ArgumentKind) -> bool {
        let value = self.0;
        match kind {
            ArgumentKind::String => value.unpack_str().is_some(),
            ArgumentKind::Boolean => value.unpack_bool().is_some(),
            ArgumentKind::Integer => value.get_type() == "int",
            ArgumentKind::Number => matches!(value.get_type(), "int" | "float"),
            ArgumentKind::Array => ListRef::from_value(value).is_some(),
            ArgumentKind::Object => DictRef::from_value(value).is_some(),
        }
    }

    fn equals(self, option: &serde_json::Value) -> bool {
        match (self.0.unpack_str(), option.as_str()) {
            (Some(value), Some(option)) => value == option,
            (None, None) => {
                let mut text = String::new();
                tree::write(&mut text, self.0, 0).is_ok()
                    && serde_json::from_str::<serde_json::Value>(&text).is_ok_and(|value| value == *option)
            }
            _ => false,
        }
    }
}
