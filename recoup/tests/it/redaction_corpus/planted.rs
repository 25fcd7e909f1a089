//! A planted item: a value at a known place of a text, as it is written there.

use std::ops::Range;

use recoup::redaction::Kind;

/// Where in a run a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Somebody's message.
    Message,
    /// A call's arguments: JSON.
    Arguments,
    /// What a tool returned.
    Result,
}

/// How a value is written at its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Encode {
    Plain,
    /// In a JSON string; twice where the template has a string in a string.
    Json,
    Url,
}

pub struct Planted {
    /// Its row of the table.
    pub row: &'static str,
    /// What it is there.
    pub form: String,
    pub kind: Kind,
    pub place: Place,
    pub text: String,
    /// The value in the text.
    pub range: Range<usize>,
}

/// Puts a value into a template, which has one `{}`.
pub fn plant(
    (row, form, kind): (&'static str, &str, Kind),
    (place, encode, template): (Place, Encode, &str),
    value: &str,
) -> Planted {
    let written = match encode {
        Encode::Plain => value.to_owned(),
        Encode::Json => serde_json::json!(value).to_string().trim_matches('"').to_owned(),
        Encode::Url => value.bytes().map(percent).collect(),
    };
    let (before, after) = template.split_once("{}").expect("a template has a place");
    let range = before.len()..before.len() + written.len();
    Planted { row, form: form.to_owned(), kind, place, text: format!("{before}{written}{after}"), range }
}

fn percent(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}
