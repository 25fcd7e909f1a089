//! The published table, which must be what is measured.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::measure::{Ordinary, Row};

const BEGIN: &str = "<!-- measured: begin -->\n";
const END: &str = "<!-- measured: end -->\n";

/// In percent, rounded down: 99.999 % is not all.
fn share(of: usize, all: usize) -> String {
    let hundredths = of * 10_000 / all.max(1);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

pub fn render(rows: &BTreeMap<&'static str, Row>, ordinary: &[Ordinary]) -> String {
    let mut out = String::from(
        "| to be found | items | found | share | took more along |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    for (name, Row { items, found, wider, .. }) in rows {
        writeln!(out, "| {name} | {items} | {found} | {} | {wider} |", share(*found, *items)).unwrap();
    }
    let (items, found) = rows.values().fold((0, 0), |sum, row| (sum.0 + row.items, sum.1 + row.found));
    writeln!(out, "| together | {items} | {found} | {} | |\n", share(found, items)).unwrap();
    out.push_str("| to be left | items | tokens | hits |\n| --- | ---: | ---: | ---: |\n");
    for Ordinary { class, items, tokens, hits } in ordinary {
        writeln!(out, "| {class} | {items} | {tokens} | {} |", hits.values().sum::<usize>()).unwrap();
    }
    out
}

/// Compares with `docs/redaction.md`, or writes it there.
pub fn published(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/redaction.md");
    let text = fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (kept, tail) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_REDACTION").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
        return;
    }
    assert!(kept == table, "docs/redaction.md is stale; set UPDATE_REDACTION=1. Measured:\n{table}");
}
