//! A path: where a value lies in a record, `$.turns[*].text`.
//!
//! It is the part of JSONPath (RFC 9535) that logs need: names (`.a`, `['a b']`), positions (`[0]`) and all
//! elements (`[*]`). Filters and searches (`..`) are refused with a word about what is read.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

use crate::importers::Outline;
use crate::importers::object::Object;
use crate::importers::value::{elements, write_object};

/// Steps of a path; a mapping is small, and what it leaves over is found by recursion.
const STEPS_MAX: usize = 32;
/// What a path may look like, for messages.
const FORM: &str = "a path looks like `$.a.b[*].c`, `$['a b']` or `$.a[0]`";

/// Where a value lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    steps: Vec<Step>,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
    Each,
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// When it is none of the part of JSONPath that is read, in words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let refuse = |what: &str| format!("`{text}` {what}; {FORM}");
        let mut rest = text.strip_prefix('$').ok_or_else(|| refuse("does not begin with `$`"))?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = step(rest).map_err(refuse)?;
            steps.push(step);
            rest = after;
        }
        if steps.len() > STEPS_MAX {
            return Err(refuse("has too many steps"));
        }
        Ok(Self { steps, text: text.to_owned() })
    }

    /// The values at the path, in source order; `null` is no value.
    pub(super) fn all<'a>(&self, root: &'a RawValue) -> Vec<&'a RawValue> {
        let mut found = vec![root];
        for step in &self.steps {
            found = found
                .into_iter()
                .flat_map(|raw| match step {
                    Step::Key(key) => {
                        Object::of(raw).and_then(|object| object.get(key)).into_iter().collect()
                    }
                    Step::Index(index) => {
                        elements(raw).and_then(|list| list.get(*index).copied()).into_iter().collect()
                    }
                    Step::Each => elements(raw).unwrap_or_default(),
                })
                .collect();
        }
        found.retain(|raw| raw.get() != "null");
        found
    }

    /// The first value at the path.
    pub(super) fn first<'a>(&self, root: &'a RawValue) -> Option<&'a RawValue> {
        self.all(root).into_iter().next()
    }

    /// What a probe saw at the path.
    pub(super) fn outlines<'a>(&self, root: &'a Outline) -> Vec<&'a Outline> {
        let mut found = vec![root];
        for step in &self.steps {
            found = found
                .into_iter()
                .flat_map(|outline| match step {
                    Step::Key(key) => outline.get(key).into_iter().collect(),
                    // An outline keeps the first elements only; they stand for the others.
                    Step::Index(index) => {
                        let list = outline.elements();
                        list.get(*index).or(list.last()).into_iter().collect()
                    }
                    Step::Each => outline.elements().iter().collect::<Vec<_>>(),
                })
                .collect();
        }
        found
    }

    /// Whether a probe saw something at the path.
    pub(super) fn is_in(&self, root: &Outline) -> bool {
        !self.outlines(root).is_empty()
    }

    /// Whether it is `$`, the record itself.
    pub(super) fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// The names, where the path is names and then all elements: an array that can be read one element
    /// at a time.
    pub(super) fn to_array(&self) -> Option<Vec<&str>> {
        let (last, names) = self.steps.split_last()?;
        let names = names.iter().map(|step| match step {
            Step::Key(name) => Some(name.as_str()),
            _ => None,
        });
        if *last == Step::Each { names.collect() } else { None }
    }

    /// A path below this one.
    pub(super) fn join(&self, below: &Self) -> Self {
        let steps = self.steps.iter().chain(&below.steps).cloned().collect();
        Self { steps, text: format!("{self}{}", &below.text[1..]) }
    }
}

/// The first step of what follows a `$`, and what comes behind it; else what is wrong.
fn step(text: &str) -> Result<(Step, &str), &'static str> {
    if text.starts_with("..") {
        return Err("searches with `..`");
    }
    if let Some(after) = text.strip_prefix('.') {
        let (name, after) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
        let plain = |c: char| !c.is_whitespace() && !"*'\"]()?@,:".contains(c);
        return if !name.is_empty() && name.chars().all(plain) {
            Ok((Step::Key(name.to_owned()), after))
        } else {
            Err("has no plain name behind a `.`")
        };
    }
    let inside = text.strip_prefix('[').ok_or("has something other than `.` or `[` behind a step")?;
    for quote in ['\'', '"'] {
        if let Some(quoted) = inside.strip_prefix(quote) {
            let (name, after) = quoted.split_once(quote).ok_or("has a name whose quote is not closed")?;
            let after = after.strip_prefix(']').ok_or("has a `[` that is not closed")?;
            return Ok((Step::Key(name.to_owned()), after));
        }
    }
    let (word, after) = inside.split_once(']').ok_or("has a `[` that is not closed")?;
    match (word, word.parse()) {
        ("*", _) => Ok((Step::Each, after)),
        (_, Ok(index)) => Ok((Step::Index(index), after)),
        _ => Err("has neither `*`, a number nor a quoted name between `[` and `]`"),
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// The values that paths take out of a record, and so what is left of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    whole: bool,
    keys: BTreeMap<String, Taken>,
    at: BTreeMap<usize, Taken>,
    each: Option<Box<Taken>>,
}

impl Taken {
    /// What these paths take.
    pub(super) fn by<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut taken = Self::default();
        for path in paths {
            let mut below = &mut taken;
            for step in &path.steps {
                below = match step {
                    Step::Key(key) => below.keys.entry(key.clone()).or_default(),
                    Step::Index(index) => below.at.entry(*index).or_default(),
                    Step::Each => below.each.get_or_insert_default(),
                };
            }
            below.whole = true;
        }
        taken
    }

    /// The JSON text of what is left of a value; `None` where nothing is.
    pub(super) fn rest_of(&self, raw: &RawValue) -> Option<String> {
        if self.whole {
            return None;
        }
        if !self.keys.is_empty()
            && let Some(object) = Object::of(raw)
        {
            let nothing = Self::default();
            let left = object.members().into_iter().filter_map(|(key, value)| {
                let rest = self.keys.get(&key).unwrap_or(&nothing).rest_of(value)?;
                Some((key, rest))
            });
            return Some(write_object(left)).filter(|text| text != "{}");
        }
        if let (true, Some(list)) = (self.each.is_some() || !self.at.is_empty(), elements(raw)) {
            let nothing = Self::default();
            let left = list.into_iter().enumerate().filter_map(|(index, value)| {
                self.at.get(&index).or(self.each.as_deref()).unwrap_or(&nothing).rest_of(value)
            });
            let left: Vec<String> = left.collect();
            return (!left.is_empty()).then(|| format!("[{}]", left.join(",")));
        }
        Some(raw.get().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{Path, Taken};

    const RECORD: &str =
        r#"{"a b":1,"turns":[{"text":"x","n":null},{"text":{"k":2},"by":"me"}],"log":{"turns":[7,8]}}"#;

    fn record() -> Box<RawValue> {
        RawValue::from_string(RECORD.to_owned()).unwrap()
    }

    fn found(path: &str) -> Vec<String> {
        Path::parse(path).unwrap().all(&record()).into_iter().map(|raw| raw.get().to_owned()).collect()
    }

    #[test]
    fn a_path_finds_values_in_order() {
        assert_eq!(found("$.turns[*].text"), [r#""x""#, r#"{"k":2}"#]);
        assert_eq!(found("$['a b']"), ["1"]);
        assert_eq!(found("$[\"log\"].turns[1]"), ["8"]);
        assert_eq!(found("$"), [RECORD]);
        for nothing in ["$.turns[0].n", "$.turns[5]", "$.turns.text", "$.no", "$[*]"] {
            assert!(found(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn what_is_no_path_says_why() {
        for (path, word) in [
            ("turns", "begin with `$`"),
            ("$..text", "searches"),
            ("$.a[?(@.x)]", "between `[`"),
            ("$.a[-1]", "between `[`"),
            ("$.a[1", "not closed"),
            ("$['a]", "quote is not closed"),
            ("$['a'", "not closed"),
            ("$.", "no plain name"),
            ("$.*", "no plain name"),
            ("$a", "other than"),
        ] {
            let error = Path::parse(path).unwrap_err();
            assert!(error.contains(word) && error.contains("looks like"), "{path}: {error}");
        }
        assert!(Path::parse(&"$.a".repeat(40).replace("a$", "a")).is_err());
    }

    #[test]
    fn what_paths_do_not_take_is_left() {
        let rest = |paths: &[&str]| {
            let paths: Vec<Path> = paths.iter().map(|path| Path::parse(path).unwrap()).collect();
            Taken::by(&paths).rest_of(&record())
        };
        assert_eq!(rest(&["$"]), None);
        assert_eq!(
            rest(&["$.turns[*].text", "$['a b']", "$.log.turns[0]"]).as_deref(),
            Some(r#"{"log":{"turns":[8]},"turns":[{"by":"me"}]}"#)
        );
        assert_eq!(rest(&["$.turns", "$.log", "$['a b']"]), None);
    }

    #[test]
    fn a_path_of_names_leads_to_an_array() {
        assert_eq!(Path::parse("$.a.b[*]").unwrap().to_array(), Some(vec!["a", "b"]));
        assert_eq!(Path::parse("$[*]").unwrap().to_array(), Some(vec![]));
        assert_eq!(Path::parse("$.a[*].b").unwrap().to_array(), None);
        assert_eq!(Path::parse("$").unwrap().to_array(), None);
        let joined = Path::parse("$.a[*]").unwrap().join(&Path::parse("$.b").unwrap());
        assert_eq!(joined, Path::parse("$.a[*].b").unwrap());
    }
}
