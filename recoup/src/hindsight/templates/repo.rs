//! Goals in a source tree: calls that a test said to be wrong and, after an edit, no longer does.

use serde_json::{Map, Value, json};

use super::Template;
use crate::hindsight::episode::Episode;
use crate::hindsight::facts::Facts;
use crate::hindsight::proposal::{Proposal, Wording};

/// See the module.
pub(super) struct Repo;

/// Most calls that one goal names.
const CALLS_MAX: usize = 3;

/// A call that a test expects something of.
#[derive(Clone, Debug, PartialEq)]
struct Expected {
    test: String,
    call: String,
    want: String,
    /// The run of tests that said it was wrong.
    at: usize,
}

/// A run of tests.
struct Tested {
    at: usize,
    name: String,
    failed: Vec<Expected>,
    /// Tests that did not pass, whatever the report shows of them.
    broken: Vec<String>,
}

impl Template for Repo {
    fn propose(&self, episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
        let mut proposals = Vec::new();
        let runs: Vec<Tested> = (0..episode.exchanges.len()).filter_map(|at| tested(episode, at)).collect();
        for (place, run) in runs.iter().enumerate().rev() {
            let mut mended: Vec<&Expected> = Vec::new();
            for expected in runs[..place].iter().flat_map(|earlier| &earlier.failed) {
                let ran = expected.test.contains(&run.name) && !run.broken.contains(&expected.test);
                if ran && !mended.iter().any(|known| known.call == expected.call) {
                    mended.push(expected);
                }
            }
            let edits = edits(episode, run.at);
            if mended.is_empty() || edits.is_empty() {
                continue;
            }
            let mut doubts = Vec::new();
            if edits.iter().any(|(_, path)| path.starts_with("tests/")) {
                doubts.push("a test was edited, so its passing proves nothing");
            }
            mended.truncate(CALLS_MAX);
            let mut wording = Wording::new(facts).plain("Change ");
            let mut paths: Vec<&(usize, String)> = Vec::new();
            for edit in &edits {
                if !paths.iter().any(|(_, path)| *path == edit.1) {
                    paths.push(edit);
                }
            }
            for (place, (at, path)) in paths.iter().enumerate() {
                wording = wording.plain(if place == 0 { "" } else { " and " }).shown_by(path, *at);
            }
            wording = wording.plain(" so that ");
            for (place, expected) in mended.iter().enumerate() {
                wording =
                    wording.plain(if place == 0 { "`" } else { ", `" }).shown_by(&expected.call, expected.at);
                wording = wording.plain("` gives ").shown_by(&expected.want, expected.at);
            }
            let cases: Option<Vec<Value>> = mended
                .iter()
                .map(|expected| {
                    let want: Value = serde_json::from_str(&expected.want).ok()?;
                    Some(json!({ "group": "fix_1", "call": expected.call, "want": want }))
                })
                .collect();
            let answer = format!("`{}` gives {} now.", mended[0].call, mended[0].want);
            let proposal =
                wording.plain(". Leave the tests as they are.").done(run.at, answer).doubted(doubts);
            proposals.push(match cases {
                Some(cases) => proposal.specified(json!({ "cases": cases })),
                None => proposal,
            });
        }
        proposals
    }

    fn resolve(&self, specification: &Value, _task: &Value) -> Option<Map<String, Value>> {
        let facts = json!({ "cases": specification.get("cases")?, "tells": [], "reading": [], "query": "" });
        json!({ "needs": [], "facts": facts, "hidden": { "fixed": {} } }).as_object().cloned()
    }
}

/// The files edited by then and not taken back, each with the exchange that edited it last.
fn edits(episode: &Episode<'_>, until: usize) -> Vec<(usize, String)> {
    let mut edits: Vec<(usize, String)> = Vec::new();
    for (at, exchange) in episode.exchanges[..until].iter().enumerate() {
        let Some((tool, ..)) = exchange.called() else { continue };
        let Some(path) = exchange.argument("path") else { continue };
        if tool == "edit" || tool == "restore" {
            edits.retain(|(_, known)| known != path);
        }
        if tool == "edit" {
            edits.push((at, path.to_owned()));
        }
    }
    edits
}

/// What a run of tests reports. One that failed is a report like any other.
fn tested(episode: &Episode<'_>, at: usize) -> Option<Tested> {
    let exchange = episode.exchanges.get(at)?;
    let text = exchange.shown.as_ref()?.text;
    if !matches!(&exchange.act, crate::hindsight::episode::Act::Call { tool, .. } if *tool == "run_tests")
        || !text.contains(" passed, ")
    {
        return None;
    }
    let name = exchange.argument("name").unwrap_or_default().to_owned();
    let (mut failed, mut broken) = (Vec::new(), Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((test, _)) = line.strip_prefix("ERROR ").and_then(|rest| rest.split_once(": ")) {
            broken.push(test.to_owned());
        }
        let Some((test, _)) = line.strip_prefix("FAILED ").and_then(|rest| rest.split_once(": expected "))
        else {
            continue;
        };
        broken.push(test.to_owned());
        let stands = lines.peek().and_then(|line| line.split_once(": expect ")).map(|(_, body)| body);
        if let Some((call, want)) = stands.and_then(|body| body.rsplit_once(" == ")) {
            let (test, call, want) = (test.to_owned(), call.to_owned(), want.trim().to_owned());
            failed.push(Expected { test, call, want, at });
        }
    }
    Some(Tested { at, name, failed, broken })
}
