//! What stands around the records of a document: the document with its array of records emptied.

use std::io;

use super::RawRecord;
use super::cursor::Cursor;
use super::scan::Next;
use crate::importers::{ImportError, Source};

/// The document with the array at `path` emptied: what stands beside the records.
///
/// # Errors
/// When the file cannot be read, is larger than a record may be even so, has no such array
/// (`missing-field`), or ends inside it or before it (`truncated`).
pub fn header(source: &Source, path: &[&str]) -> Result<RawRecord, ImportError> {
    let (mut cursor, mut kept) = up_to_array(source, path)?;
    // Damage among the records cuts the file off as its end would.
    let cut = |error: io::Error| unreadable(source, "truncated", format!("{INSIDE}: {error}"));
    loop {
        match cursor.walk_to_element().map_err(cut)? {
            Next::Element => {
                cursor.skip_value().map_err(cut)?;
                cursor.skip_junk().map_err(cut)?;
            }
            Next::Close => break,
            Next::Cut => return Err(unreadable(source, "truncated", INSIDE.to_owned())),
        }
    }
    cursor.mark();
    while cursor.fill().map_err(|error| ImportError::io(source, error))? {
        cursor.take_buffered();
    }
    kept.extend_from_slice(&cursor.stop_capture().ok_or_else(|| too_large(source))?);
    Ok(RawRecord::whole(source, kept))
}

/// As [`header`], of a document that is cut off among its records: what stands before them, closed.
///
/// # Errors
/// As [`header`], but for the end inside the array.
pub fn header_before_cut(source: &Source, path: &[&str]) -> Result<RawRecord, ImportError> {
    let (_, mut kept) = up_to_array(source, path)?;
    kept.push(b']');
    kept.resize(kept.len() + path.len(), b'}');
    Ok(RawRecord::whole(source, kept))
}

/// Why a header ends early.
const INSIDE: &str = "the file ends inside the array";

/// A cursor behind the `[` of the array, and what it passed.
fn up_to_array(source: &Source, path: &[&str]) -> Result<(Cursor, Vec<u8>), ImportError> {
    let mut cursor = Cursor::new(source.open()?, source.options().record_bytes_max);
    let io = |error| ImportError::io(source, error);
    cursor.fill_at_least(3).map_err(io)?;
    if cursor.ahead().starts_with(b"\xef\xbb\xbf") {
        cursor.skip(3);
    }
    cursor.mark();
    if !cursor.walk_to_array(path).map_err(io)? {
        let place = path.join(".");
        return Err(match cursor.peek().map_err(io)? {
            None => unreadable(source, "truncated", format!("the file ends before the array at `{place}`")),
            Some(_) => unreadable(source, "missing-field", format!("expected an array at `{place}`")),
        });
    }
    let kept = cursor.stop_capture().ok_or_else(|| too_large(source))?;
    Ok((cursor, kept))
}

fn unreadable(source: &Source, code: &'static str, reason: String) -> ImportError {
    ImportError::Unreadable { uri: source.uri().to_owned(), code, reason }
}

fn too_large(source: &Source) -> ImportError {
    unreadable(source, "too-large", "larger than a record may be".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{header, header_before_cut};
    use crate::importers::{ImportError, RawRecord, Source};

    fn text(header: Result<RawRecord, ImportError>) -> String {
        match header {
            Ok(record) => String::from_utf8(record.bytes).unwrap(),
            Err(ImportError::Unreadable { code, .. }) => code.to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_stands_around_the_records_is_kept() {
        let source = |text: &str| Source::from_bytes("x", text.as_bytes(), Arc::default());
        let of = |text: &str| super::tests::text(header(&source(text), &["samples"]));
        let nested = r#"{"info":{"samples":[9]},"samples":[1,{"a":[2}],"rest":[3]}"#;
        assert_eq!(of(nested), r#"{"info":{"samples":[9]},"samples":[],"rest":[3]}"#);
        assert_eq!(of(r#"{"a":1}"#), "missing-field");
        for cut in [r#"{"a":1,"samples":[1,{"b":"#, r#"{"a":1,"samples":["#, r#"{"a":[1"#, "{"] {
            assert_eq!(of(cut), "truncated", "{cut}");
        }
        let cut = source(r#"{"a":1,"samples":[1,{"b":"#);
        assert_eq!(text(header_before_cut(&cut, &["samples"])), r#"{"a":1,"samples":[]}"#);
        assert_eq!(text(header_before_cut(&source(r#"{"a":[1"#), &["samples"])), "truncated");
    }
}
