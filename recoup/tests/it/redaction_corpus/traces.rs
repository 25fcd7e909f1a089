//! Real traces: what stands in them and is nobody's must stay.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::harness::shared_data;
use recoup::redaction::{Kind, redact};
use recoup::task::Task;
use recoup::trajectory::{Citation, Node, Outcome, Part, Role, Trajectory};

/// Conversations about orders and flights, sessions of coding agents, calls of public APIs.
const FOLDERS: &[&str] = &[
    "tau-bench/historical_trajectories",
    "inspect_ai",
    "who_and_when",
    "swe-agent",
    "toolbench",
    "openhands",
    "mini-swe-agent",
];
/// Bytes read of one folder: a test takes seconds.
const FOLDER_MAX: usize = 1 << 20;

fn files_below(path: &Path, out: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        out.push(path.to_owned());
        return;
    }
    let mut entries: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in &entries {
        files_below(entry, out);
    }
}

#[test]
fn ids_in_real_traces_stay_and_hardly_anything_else_goes() {
    // UUIDs, digests, order ids, user names with a number, base64.
    let ids = Regex::new(
        r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{32,64}\b|#W\d{7}\b|\b[a-z]+_[a-z]+_\d{4}\b|base64,[A-Za-z0-9+/]{64,}",
    )
    .unwrap();
    let (mut tokens, mut seen) = (0, 0);
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    for folder in FOLDERS {
        let Some(root) = shared_data(folder) else { return };
        let mut files = Vec::new();
        files_below(&root, &mut files);
        let texts = files.iter().filter_map(|file| String::from_utf8(fs::read(file).unwrap()).ok());
        let mut original = Trajectory::new("test", Task::from_goal("test"));
        let mut left = FOLDER_MAX;
        for text in texts {
            let text = &text[..text.floor_char_boundary(left)];
            left -= text.len();
            tokens += text.split_whitespace().count();
            original.push(Node::new(Role::User, "user", vec![Part::text(text)]));
        }
        original.finish(Outcome::unknown());
        let redacted = redact(&original);
        for (node, message) in original.nodes.iter().enumerate() {
            let text = message.text();
            for id in ids.find_iter(&text) {
                // A user's name may also be the local part of an address, which goes as a whole.
                if text[id.end()..].starts_with('@') {
                    continue;
                }
                let here = Citation { node, part_path: vec![0], start: id.start(), end: id.end() };
                let there = redacted.map.to_redacted(&here);
                let left = there.quote(&redacted.trajectory).unwrap();
                assert_eq!(left, id.as_str(), "{folder}, byte {}", id.start());
                seen += 1;
            }
        }
        for (kind, count) in redacted.counts {
            *counts.entry(kind).or_default() += count;
        }
    }
    assert!(seen >= 500, "{seen} ids");
    // Addresses and telephone numbers stand there, of customers that are made up and of offices that are
    // not; read by hand. Of the other kinds there are none, or next to none.
    let other: usize = counts
        .iter()
        .filter(|(kind, _)| !matches!(kind, Kind::Email | Kind::Phone))
        .map(|(_, count)| count)
        .sum();
    assert!(other * 10_000 <= tokens, "{counts:?} on {tokens} tokens");
}
