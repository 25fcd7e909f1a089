//! canonical-1 against its Python twin: `golden/canonical.py` wrote `golden/canonical.jsonl` with another
//! JSON parser, `make golden` writes it again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::fuzz_properties::meaning;
use proptest::prelude::*;
use recoup::canonical::{CanonicalError, canonicalize};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

#[derive(Deserialize)]
struct Header {
    script: String,
    sha256: String,
}

#[derive(Deserialize)]
struct Case {
    input: String,
    canonical: Option<String>,
    error: Option<String>,
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn kind(error: &CanonicalError) -> &'static str {
    match error {
        CanonicalError::Syntax { .. } => "syntax",
        CanonicalError::DuplicateKey { .. } => "duplicate_key",
        CanonicalError::NonFinite { .. } => "non_finite",
        CanonicalError::LoneSurrogate { .. } => "lone_surrogate",
        CanonicalError::TooDeep { .. } => "too_deep",
        _ => "a kind the twin does not know",
    }
}

#[test]
fn every_golden_case_has_the_twins_answer() {
    let text = std::fs::read_to_string(golden("canonical.jsonl")).unwrap();
    let (header, cases) = text.split_once('\n').unwrap();
    let header: Header = serde_json::from_str(header).unwrap();
    let mut digest = String::new();
    for byte in Sha256::digest(std::fs::read(golden(&header.script)).unwrap()) {
        let _ = write!(digest, "{byte:02x}");
    }
    assert_eq!(digest, header.sha256, "{} has changed since it wrote the golden file", header.script);

    let mut count = 0;
    for line in cases.lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let ours = canonicalize(&case.input);
        match (&ours, &case.canonical, case.error.as_deref()) {
            (Ok(ours), Some(twin), None) => assert_eq!(ours, twin, "input {:?}", case.input),
            (Err(ours), None, Some(twin)) => assert_eq!(kind(ours), twin, "input {:?}", case.input),
            _ => panic!(
                "input {:?}: {ours:?}, the twin says {:?} {:?}",
                case.input, case.canonical, case.error
            ),
        }
        count += 1;
    }
    assert!(count >= 150, "only {count} cases");
}

/// JSON texts with the freedom of spelling that JSON leaves: white space, escapes, number forms.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        // No `-0`: serde_json reads that integer as the double -0.0; the golden file holds it.
        "0|-?[1-9][0-9]{0,40}",
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?",
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| format!("{value:e}")),
        any::<String>().prop_map(|value| serde_json::to_string(&value).unwrap()),
        "\"(\\\\u00[0-9a-fA-F]{2}|\\\\/|[a-zA-Z é語😀])*\"",
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|parts| format!("[ {} ]", parts.join(" ,\n"))),
            prop::collection::btree_map(any::<String>(), inner, 0..5).prop_map(|members| {
                let members: Vec<String> = members
                    .iter()
                    .rev()
                    .map(|(key, value)| format!("{}\t: {value}", serde_json::to_string(key).unwrap()))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_bytes_are_their_own_canonical_form(text in json_text()) {
        let once = canonicalize(&text).unwrap();
        prop_assert_eq!(canonicalize(&once).unwrap(), once);
    }

    #[test]
    fn canonical_bytes_read_back_to_the_same_value(text in json_text()) {
        let once = canonicalize(&text).unwrap();
        let value = serde_json::from_str(&text).unwrap();
        let back = serde_json::from_str(&once).unwrap();
        prop_assert_eq!(meaning(back), meaning(value));
    }

    #[test]
    fn any_text_is_canonical_or_refused(text in any::<String>()) {
        if let Ok(once) = canonicalize(&text) {
            prop_assert_eq!(canonicalize(&once).unwrap(), once);
        }
    }
}
