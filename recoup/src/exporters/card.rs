//! The card: what a folder for the Hugging Face Hub says of itself, for the Hub and for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Manifest;
use crate::artifact::PRODUCER;
use crate::fence::code;

/// The card's file.
pub(super) const CARD: &str = "README.md";
/// What stands in every card that recoup wrote.
pub(super) const MARK: &str = "<!-- written by recoup; the next export writes it again -->";

/// The card of several views, in order.
pub(super) fn card<'a>(views: impl Iterator<Item = &'a Manifest> + Clone) -> String {
    let mut out = String::from("---\n");
    let mut licences: BTreeMap<String, u64> = BTreeMap::new();
    for (licence, rows) in views.clone().flat_map(|manifest| &manifest.licences) {
        *licences.entry(licence.clone()).or_default() += rows;
    }
    // The Hub knows licences by names of its own; the sources' stand below.
    out.push_str(
        "license: other\nlicense_name: see-the-card\ntags:\n- agent-trajectories\n- recoup\nconfigs:\n",
    );
    for manifest in views.clone().filter(|manifest| manifest.rows > 0) {
        // Writing to a text cannot fail.
        _ = writeln!(
            out,
            "- config_name: {view}\n  data_files:\n  - split: train\n    path: data/{view}/train.jsonl",
            view = manifest.view
        );
    }
    _ = writeln!(
        out,
        "---\n{MARK}\n\n# Training data from agent runs\n\nMade by {PRODUCER}. One configuration a view:\n"
    );
    _ = writeln!(
        out,
        "| view | objective | rows | runs looked at | what is learned |\n|---|---|---|---|---|"
    );
    for manifest in views.clone() {
        let objective = serde_json::json!(manifest.objective);
        let Manifest { view, rows, runs_in, mask, .. } = manifest;
        let objective = objective.as_str().unwrap_or_default();
        _ = writeln!(out, "| `{view}` | {objective} | {rows} | {runs_in} | {mask} |");
    }
    _ = writeln!(out, "\n## Licences of the sources\n");
    for (licence, rows) in licences {
        _ = writeln!(out, "* {}: {rows} rows", code(&licence));
    }
    for manifest in views {
        details(&mut out, manifest);
    }
    out
}

fn details(out: &mut String, manifest: &Manifest) {
    _ = writeln!(out, "\n## `{}`\n", manifest.view);
    let mut line = |what: &str, counts: &BTreeMap<String, u64>| {
        if !counts.is_empty() {
            let counts: Vec<String> =
                counts.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
            _ = writeln!(out, "* {what}: {}", counts.join(", "));
        }
    };
    line("runs that give no example", &manifest.excluded);
    line("examples that became no row", &manifest.refused);
    let redactions = manifest.redactions.iter().map(|(kind, count)| (kind.word().to_lowercase(), *count));
    line("replaced in the runs", &redactions.collect());
    let sides = manifest.split.iter().map(|(side, count)| (side.as_str().to_owned(), *count));
    line("rows by side of the split", &sides.collect());
    if !manifest.train_with.is_empty() {
        let settings = manifest.train_with.iter().map(|(name, value)| format!("`{name}={value}`"));
        _ = writeln!(out, "* train with {}", settings.collect::<Vec<_>>().join(", "));
    }
    _ = writeln!(out, "* SHA-256 of the rows: `{}`", manifest.sha256);
}
