//! The card: what a release says of itself, for the Hugging Face Hub and for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Release, Table};
use crate::artifact::PRODUCER;
use crate::fence::{cell, code};

/// What stands in every card that recoup wrote.
const MARK: &str = "<!-- written by recoup release -->";

/// Whether recoup wrote a card.
pub(crate) fn is_own_card(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, MARK.as_bytes()).is_some()
}

/// What a reader must know before using a release.
const LIMITS: [&str; 6] = [
    "Being in this data set says nothing of whether a run may be trained on. Held-out sides of the split, \
     failures of others than the agent, rejected diagnoses and untested repairs are all in it. Training files \
     come from `recoup export`, which decides that run by run.",
    "Diagnoses by rules see only what rules can see; a diagnosis that was admitted is grounded in the trace, not \
     proved. What is proved says so in `rung`.",
    "A repair counts as accepted where a re-execution passed; of environments that could not be re-executed \
     there is none.",
    "Redaction finds what has the shape of a secret or of personal data. Names of people in running text have no \
     shape and are not replaced.",
    "Near-duplicates are in it, on one side of the split, as far as their sketches tell.",
    "Outcomes are those of the sources: of a run without a scorer nobody knows whether it succeeded.",
];

/// The card of a release.
pub(super) fn card(release: &Release) -> String {
    let mut out = String::from(
        "---\nlicense: other\nlicense_name: see-the-card\ntags:\n- agent-trajectories\n- agent-errors\n- recoup\nconfigs:\n",
    );
    for table in Table::ALL {
        // Writing to a text cannot fail.
        _ = writeln!(out, "- config_name: {0}\n  data_files: {0}.parquet", table.name());
    }
    _ = writeln!(out, "---\n{MARK}\n\n# Agent runs, what went wrong in them, and what was tried\n");
    _ = writeln!(
        out,
        "{} runs of agents and {} continuations that replays made of them, with every diagnosis, proposed \
         repair, review and replay, accepted and rejected. Made by {PRODUCER}; `release.json` says the same to \
         programs, with the SHA-256 of every file.\n\n\
         **Membership is not training eligibility**: see the known limits.\n",
        release.runs, release.continuations
    );
    _ = writeln!(out, "## Tables\n\n| table | rows | a row is |\n|---|---|---|");
    for table in Table::ALL {
        let rows = release.rows.get(table.name()).copied().unwrap_or(0);
        _ = writeln!(out, "| `{}` | {rows} | {} |", table.name(), table.describe());
    }
    _ = writeln!(
        out,
        "\n`trace` links rows of all tables to `traces.id`; `diagnosis` and `of` to `diagnoses.id`; `continuation` \
         to `traces.id`; `pair` joins `candidates` and `replays`. Objects are columns of JSON text. Citations are \
         byte ranges of the redacted trace.\n"
    );
    for (table, statuses) in &release.statuses {
        section(&mut out, &format!("Status of {table}"), statuses);
    }
    section(&mut out, "Outcomes", &release.outcomes);
    section(&mut out, "Whose failure", &release.blame);
    section(&mut out, "Environments", &release.environments);
    section(&mut out, "Harness families", &release.harnesses);
    section(&mut out, "Policies", &release.policies);
    section(&mut out, "Formats", &release.formats);
    section(&mut out, "Split", &release.split);
    section(&mut out, "Licences", &release.licences);
    _ = writeln!(out, "## Gates\n");
    if release.gates.is_empty() {
        _ = writeln!(out, "No gate has spoken.\n");
    } else {
        _ = writeln!(out, "| gate | admitted | rejected | abstained |\n|---|---|---|---|");
        for (gate, of) in &release.gates {
            _ = writeln!(out, "| {} | {} | {} | {} |", cell(gate), of.admit, of.reject, of.abstain);
        }
        out.push('\n');
    }
    section(&mut out, "Redaction", &release.redactions);
    section(&mut out, "Runs left out", &release.refused);
    _ = writeln!(out, "## Known limits\n");
    for limit in LIMITS {
        _ = writeln!(out, "* {limit}");
    }
    out
}

fn section<K: AsRef<str> + Ord>(out: &mut String, title: &str, counts: &BTreeMap<K, u64>) {
    _ = writeln!(out, "## {title}\n");
    if counts.is_empty() {
        _ = writeln!(out, "None.\n");
        return;
    }
    for (name, count) in counts {
        _ = writeln!(out, "* {}: {count}", code(name.as_ref()));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Release, card};

    #[test]
    fn a_card_says_what_is_in_it_and_what_is_not() {
        let policies = BTreeMap::from([("model | of `x`".to_owned(), 2)]);
        let text = card(&Release { runs: 2, policies, ..Release::default() });
        assert!(text.starts_with("---\nlicense: other\n"));
        for wanted in [
            "config_name: traces",
            "2 runs of agents",
            "Membership is not training eligibility",
            "`` model | of `x` ``: 2",
        ] {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
    }
}
