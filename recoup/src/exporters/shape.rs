//! Shapes: what a format's rows look like, one description that checks rows and makes columns.
//!
//! Every format says its shape once. [`Shape::check`] holds a row against it, key by key, and knows no key
//! that the format does not; Parquet columns follow from the same description.

use std::fmt::Write as _;

use serde_json::Value;

/// What stands at one place of a row.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Text.
    Text,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A whole number of at most 64 bits.
    Integer,
    /// Anything; in Parquet its JSON text.
    Any,
    /// An object with any keys; in Parquet its JSON text.
    Map,
    /// A list of things of one shape.
    List(&'static Shape),
    /// An object with these keys and no others.
    Object(&'static [Key]),
    /// One of several; never in Parquet.
    Either(&'static [Shape]),
}

/// A key of an object.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What stands there.
    pub shape: Shape,
    /// Whether it must stand there.
    pub is_needed: bool,
}

/// A key that every object has.
pub(super) const fn key(name: &'static str, shape: Shape) -> Key {
    Key { name, shape, is_needed: true }
}

/// A key that an object may lack.
pub(super) const fn optional(name: &'static str, shape: Shape) -> Key {
    Key { name, shape, is_needed: false }
}

/// Where a row does not have the shape of its format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Misfit {
    /// The place, as `messages[3].role`.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

impl Misfit {
    fn here(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    fn under(mut self, above: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{above}{joint}{}", self.path);
        self
    }
}

impl Shape {
    /// Whether a value has this shape.
    ///
    /// # Errors
    /// The first place where it has not.
    pub fn check(&self, value: &Value) -> Result<(), Misfit> {
        let wanted = |is: bool, what: &str| if is { Ok(()) } else { Err(Misfit::here(format!("no {what}"))) };
        match self {
            Self::Text => wanted(value.is_string(), "text"),
            Self::Flag => wanted(value.is_boolean(), "true or false"),
            Self::Integer => wanted(value.is_i64() || value.is_u64(), "whole number"),
            Self::Any => Ok(()),
            Self::Map => wanted(value.is_object(), "object"),
            Self::Word(words) => wanted(
                value.as_str().is_some_and(|text| words.contains(&text)),
                &format!("word out of {}", words.join(", ")),
            ),
            Self::List(of) => {
                let items = value.as_array().ok_or_else(|| Misfit::here("no list"))?;
                items.iter().enumerate().try_for_each(|(index, item)| {
                    of.check(item).map_err(|misfit| misfit.under(&format!("[{index}]")))
                })
            }
            Self::Object(keys) => object(keys, value),
            Self::Either(shapes) => {
                let mut problems = String::new();
                for shape in *shapes {
                    match shape.check(value) {
                        Ok(()) => return Ok(()),
                        // Writing to a text cannot fail.
                        Err(misfit) => _ = write!(problems, "{}{misfit}", separator(&problems)),
                    }
                }
                Err(Misfit::here(problems))
            }
        }
    }
}

fn separator(before: &str) -> &'static str {
    if before.is_empty() { "" } else { " / " }
}

fn object(keys: &[Key], value: &Value) -> Result<(), Misfit> {
    let members = value.as_object().ok_or_else(|| Misfit::here("no object"))?;
    for Key { name, shape, is_needed } in keys {
        match members.get(*name) {
            Some(member) => shape.check(member).map_err(|misfit| misfit.under(name))?,
            None if *is_needed => return Err(Misfit::here(format!("`{name}` is missing"))),
            None => {}
        }
    }
    match members.keys().find(|member| keys.iter().all(|key| key.name != member.as_str())) {
        Some(unknown) => Err(Misfit::here(format!("`{unknown}` is no key of the format"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Shape, key, optional};

    const ROW: Shape = Shape::Object(&[
        key(
            "messages",
            Shape::List(&Shape::Object(&[
                key("role", Shape::Word(&["user", "assistant"])),
                key("content", Shape::Either(&[Shape::Text, Shape::List(&Shape::Text)])),
            ])),
        ),
        optional("label", Shape::Flag),
    ]);

    #[test]
    fn a_row_is_held_against_its_shape_key_by_key() {
        let misfit = |row| ROW.check(&row).map_err(|misfit| misfit.to_string()).err().unwrap_or_default();
        let message = |role: &str| json!({"role": role, "content": ["a"]});
        assert_eq!(misfit(json!({"messages": [message("user")], "label": true})), "");
        assert_eq!(misfit(json!({"label": true})), ": `messages` is missing");
        assert_eq!(
            misfit(json!({"messages": [message("user"), message("robot")]})),
            "messages[1].role: no word out of user, assistant"
        );
        assert_eq!(misfit(json!({"messages": [], "weight": 1})), ": `weight` is no key of the format");
        assert_eq!(
            misfit(json!({"messages": [{"role": "user", "content": 1}]})),
            "messages[0].content: : no text / : no list"
        );
    }
}
