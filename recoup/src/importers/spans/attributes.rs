//! The attributes of a span: flat names with dots in them, each with a JSON value.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::otlp_value::meaning;
use crate::importers::RecordError;
use crate::importers::object::Object;
use crate::importers::value::{elements, is_array, is_object, text, value, write_object};
use crate::json::Json;

/// Nesting of a value that is followed; below it the source's own text stands.
pub(super) const DEPTH_MAX: usize = 32;
/// Names that flattening makes of one span at most.
const NAMES_MAX: usize = 100_000;

/// Bytes of a name below which nothing more is flattened: every leaf repeats the names above it.
const NAME_BYTES_MAX: usize = 1024;

/// Attributes whose values are JSON of others': a table's cell may hold them without their string.
const WHOLE: [&str; 5] =
    ["input.value", "output.value", "llm.invocation_parameters", "tool.parameters", "metadata"];

/// Attributes by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes<'a>(BTreeMap<Cow<'a, str>, Cow<'a, RawValue>>);

/// An attribute of OTLP.
#[derive(Deserialize)]
struct KeyValue<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow, default)]
    value: Option<Object<'a>>,
}

impl<'a> Attributes<'a> {
    /// The attributes of a list as OTLP has it: `[{"key", "value": {"stringValue"}}]`.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn from_otlp(list: &'a RawValue) -> Result<Self, RecordError> {
        let pairs: Vec<KeyValue<'a>> = serde_json::from_str(list.get())?;
        let values = pairs.into_iter().filter_map(|pair| Some((pair.key, meaning(pair.value?, 0)?)));
        Ok(Self(values.collect()))
    }

    /// The members of an object, as they are.
    pub(super) fn from_object(object: Object<'a>) -> Self {
        let members = object.members().into_iter();
        Self(members.map(|(name, raw)| (Cow::Owned(name), Cow::Borrowed(raw))).collect())
    }

    /// The leaves of an object, under the names that lead to them.
    pub(super) fn flattened(object: Object<'a>) -> Self {
        let mut flat = Self::default();
        for (name, raw) in object.members() {
            flat.flatten(name, raw, 0);
        }
        flat
    }

    fn flatten(&mut self, name: String, raw: &'a RawValue, depth: usize) {
        let is_full = depth >= DEPTH_MAX || self.0.len() > NAMES_MAX || name.len() > NAME_BYTES_MAX;
        let is_full = is_full || WHOLE.contains(&&*name);
        let inner: Option<Vec<(String, &'a RawValue)>> = if is_full {
            None
        } else if is_object(raw) {
            Object::of(raw).map(|object| object.members().into_iter().collect())
        } else if is_array(raw) && elements(raw).is_some_and(|list| list.iter().any(|raw| is_object(raw))) {
            elements(raw).map(|list| {
                list.into_iter().enumerate().map(|(index, raw)| (index.to_string(), raw)).collect()
            })
        } else {
            None
        };
        match inner {
            Some(inner) if !inner.is_empty() => {
                for (key, raw) in inner {
                    self.flatten(format!("{name}.{key}"), raw, depth + 1);
                }
            }
            _ => {
                self.0.insert(Cow::Owned(name), Cow::Borrowed(raw));
            }
        }
    }

    /// Flattens lists whose elements are objects within strings, as Arize's exports have them.
    pub(super) fn unpack(&mut self, names: &[&str]) {
        for name in names {
            let elements = self.0.get(*name).and_then(|raw| elements(raw)).unwrap_or_default();
            let objects = elements.into_iter().map(|raw| text(raw).filter(|text| text.starts_with('{')));
            let Some(objects) = objects.collect::<Option<Vec<_>>>().filter(|objects| !objects.is_empty())
            else {
                continue;
            };
            let mut flat = Self::default();
            for (index, object) in objects.iter().enumerate() {
                let Ok(object) = serde_json::from_str::<Object<'_>>(object) else { continue };
                for (key, raw) in Attributes::flattened(object).0 {
                    flat.insert(format!("{name}.{index}.{key}"), Cow::Owned(raw.into_owned()));
                }
            }
            self.0.remove(*name);
            self.absorb(flat);
        }
    }

    /// True where an attribute is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Adds what is not there yet.
    pub(super) fn absorb(&mut self, other: Self) {
        for (name, raw) in other.0 {
            self.0.entry(name).or_insert(raw);
        }
    }

    /// Adds an attribute.
    pub(super) fn insert(&mut self, name: String, raw: Cow<'a, RawValue>) {
        self.0.insert(Cow::Owned(name), raw);
    }

    /// Adds an attribute in place of one of its name; `null` says nothing.
    pub(super) fn put(&mut self, name: Cow<'a, str>, raw: Cow<'a, RawValue>) {
        if raw.get() == "null" {
            self.0.remove(&name);
        } else {
            self.0.insert(name, raw);
        }
    }

    /// Takes an attribute that says something.
    pub(super) fn take(&mut self, name: &str) -> Option<Cow<'a, RawValue>> {
        self.0.remove(name).filter(|raw| !matches!(raw.get(), "null" | "\"\""))
    }

    /// Takes the first attribute of these names that says something.
    pub(super) fn take_any(&mut self, names: &[&str]) -> Option<Cow<'a, RawValue>> {
        names.iter().find_map(|name| self.take(name))
    }

    /// Takes an attribute as text: a string's content, any other value's source.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let raw = self.take(name)?;
        Some(text(&raw).map_or_else(|| raw.get().to_owned(), Cow::into_owned))
    }

    /// The text of an attribute that stays.
    pub(super) fn peek(&self, name: &str) -> Option<Cow<'_, str>> {
        text(self.0.get(name)?).filter(|text| !text.is_empty())
    }

    /// Takes an attribute that is a number, or a string of one; any other stays.
    pub(super) fn number(&mut self, name: &str) -> Option<f64> {
        let raw = self.0.get(name)?;
        let number: f64 = value(raw).or_else(|| text(raw)?.trim().parse().ok())?;
        self.0.remove(name);
        number.is_finite().then_some(number)
    }

    /// Takes a count, under the first of these names that is there.
    pub(super) fn count(&mut self, names: &[&str]) -> Option<u64> {
        let number = names.iter().find_map(|name| self.number(name))?;
        (number >= 0.0).then_some(number as u64)
    }

    /// Takes the attributes whose names begin so, under what follows.
    pub(super) fn take_under(&mut self, prefix: &str) -> Self {
        let from = (std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded);
        let range = self.0.range::<str, _>(from).map(|(name, _)| name.clone());
        let names: Vec<Cow<'a, str>> = range.take_while(|name| name.starts_with(prefix)).collect();
        let taken = names.into_iter().filter_map(|name| {
            let raw = self.0.remove(&name)?;
            Some((Cow::Owned(name.get(prefix.len()..)?.to_owned()), raw))
        });
        Self(taken.collect())
    }

    /// Takes the attributes `<prefix>.<number>.<rest>`, by number.
    pub(super) fn take_numbered(&mut self, prefix: &str) -> BTreeMap<usize, Self> {
        let mut numbered: BTreeMap<usize, Self> = BTreeMap::new();
        for (name, raw) in self.take_under(prefix).0 {
            let (number, rest) = name.split_once('.').unwrap_or((&name, ""));
            if let Ok(number) = number.parse() {
                numbered.entry(number).or_default().0.insert(Cow::Owned(rest.to_owned()), raw);
            } else {
                self.0.insert(Cow::Owned(format!("{prefix}{name}")), raw);
            }
        }
        numbered
    }

    /// All of them, by name.
    pub(super) fn into_values(self) -> BTreeMap<Cow<'a, str>, Cow<'a, RawValue>> {
        self.0
    }

    /// True where nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text of a JSON object of all of them.
    pub(super) fn to_object(&self) -> String {
        write_object(self.0.iter().map(|(name, raw)| (name, raw.get())))
    }

    /// What was not taken and says something.
    pub(super) fn rest(self) -> BTreeMap<String, Json> {
        let said = self.0.into_iter().filter(|(_, raw)| !matches!(raw.get(), "null" | "\"\"" | "{}" | "[]"));
        said.map(|(name, raw)| (name.into_owned(), Json::from(&*raw))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Attributes;
    use crate::importers::object::Object;

    #[test]
    fn lists_of_objects_within_strings_are_unpacked() {
        let text = r#"{"m":["{\"a\":1,\"b\":{\"c\":2}}","{\"a\":3}"],"n":["x"]}"#;
        let mut flat = Attributes::flattened(serde_json::from_str::<Object<'_>>(text).unwrap());
        flat.unpack(&["m", "n", "none"]);
        assert_eq!(flat.to_object(), r#"{"m.0.a":1,"m.0.b.c":2,"m.1.a":3,"n":["x"]}"#);
    }

    #[test]
    fn a_long_name_is_not_repeated_for_every_leaf() {
        let name = "n".repeat(super::NAME_BYTES_MAX + 1);
        let text = format!(r#"{{"{name}":{{"a":1,"b":2}}}}"#);
        let flat = Attributes::flattened(serde_json::from_str::<Object<'_>>(&text).unwrap());
        assert_eq!(flat.to_object(), text);
    }

    #[test]
    fn flattened_names_are_read_by_number() {
        let text =
            r#"{"llm":{"messages":[{"message.role":"user"},{"message":{"role":"tool"}}],"stop":["a"]}}"#;
        let mut flat = Attributes::flattened(serde_json::from_str::<Object<'_>>(text).unwrap());
        let messages = flat.take_numbered("llm.messages.");
        let roles: Vec<_> =
            messages.into_values().map(|mut message| message.text("message.role").unwrap()).collect();
        assert_eq!(roles, ["user", "tool"]);
        assert_eq!(flat.to_object(), r#"{"llm.stop":["a"]}"#);
    }
}
