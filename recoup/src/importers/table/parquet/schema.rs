//! The shapes of columns that rows can be put together from: the decoder trusts the schema that it is
//! given, so what it would stumble over is refused here.

use parquet::basic::{ConvertedType, Repetition};
use parquet::schema::types::Type;

/// Checks the columns of a file.
///
/// # Errors
/// In words, what is wrong with the first bad one.
pub(super) fn check(root: &Type) -> Result<(), String> {
    if !root.is_group() || root.get_fields().is_empty() {
        return Err("it has no columns".to_owned());
    }
    root.get_fields().iter().try_for_each(|field| column(field))
}

/// Nesting has a limit already, in what the footer may hold.
fn column(kind: &Type) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("the column `{}` {what}", shown(kind)));
    if !kind.get_basic_info().has_repetition() {
        return wrong("does not say whether it may be absent");
    }
    if kind.is_primitive() {
        return Ok(());
    }
    let fields = kind.get_fields();
    if fields.is_empty() {
        return wrong("is a group of nothing");
    }
    fields.iter().try_for_each(|field| column(field))?;
    let inner = match kind.get_basic_info().converted_type() {
        ConvertedType::LIST => ("is a list without one repeated member", false),
        ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE => ("is a map without one repeated pair", true),
        _ => return Ok(()),
    };
    let (what, is_map) = inner;
    let [repeated] = fields else { return wrong(what) };
    if repeated.get_basic_info().repetition() != Repetition::REPEATED {
        return wrong(what);
    }
    if is_map {
        let is_pair = repeated.is_group()
            && repeated.get_fields().len() <= 2
            && repeated.get_fields().first().is_some_and(|key| key.is_primitive());
        return if is_pair { Ok(()) } else { wrong(what) };
    }
    Ok(())
}

fn shown(kind: &Type) -> String {
    kind.name().chars().take(80).collect()
}
