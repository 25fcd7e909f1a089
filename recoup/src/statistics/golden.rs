//! The golden values of `tests/golden/inference.json`, by section.

use serde::de::DeserializeOwned;

/// The cases of a section. None is a failure: a test over no cases would pass.
pub(super) fn section<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let mut file: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(include_str!("../../tests/golden/inference.json")).unwrap();
    let cases: Vec<T> = serde_json::from_value(file.remove(name).unwrap()).unwrap();
    assert!(!cases.is_empty(), "no golden values for {name}");
    cases
}

/// Observations from the two columns of a case.
pub(super) fn observations<'a>(
    clusters: &'a [String],
    values: &'a [f64],
) -> impl Iterator<Item = (&'a str, f64)> {
    assert_eq!(clusters.len(), values.len());
    clusters.iter().map(String::as_str).zip(values.iter().copied())
}

/// Fails where two numbers are further apart than `error`, or one is not a number.
#[track_caller]
pub(super) fn close(case: &str, ours: f64, golden: f64, error: f64) {
    assert!((ours - golden).abs() <= error, "{case}: {ours} instead of {golden}");
}
