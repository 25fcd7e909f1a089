//! Goals in a source tree: calls that a test said to be wrong and, after an edit, no longer does; else what a
//! call gives at present, which a test that failed has shown.

use serde_json::{Map, Value, json};

use super::Template;
use crate::hindsight::episode::{Act, Episode};
use crate::hindsight::facts::Facts;
use crate::hindsight::proposal::{Proposal, Wording};

/// See the module.
pub(super) struct Repo;

/// Most calls that one goal names.
const CALLS_MAX: usize = 3;

/// A call that a test found to give something else than it expects.
#[derive(Clone, Debug, PartialEq)]
struct Failed {
    test: String,
    call: String,
    want: String,
    got: String,
    /// The run of tests that said so.
    at: usize,
}

/// A run of tests.
struct Tested {
    at: usize,
    name: String,
    failed: Vec<Failed>,
    /// Functions that tests call and that do not exist, each with its test.
    missing: Vec<(String, String)>,
    /// Tests that did not pass, whatever the report shows of them.
    broken: Vec<String>,
}

/// What a test expects of a call, as its file says.
struct Expectation {
    test: String,
    call: String,
    want: String,
    /// What showed the file.
    at: usize,
}

impl Template for Repo {
    fn propose(&self, episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
        let runs: Vec<Tested> = (0..episode.exchanges.len()).filter_map(|at| tested(episode, at)).collect();
        let expectations = expectations(episode, &runs);
        let mut proposals = Vec::new();
        for place in (0..runs.len()).rev() {
            proposals.extend(mended(&runs, place, &expectations, episode, facts));
        }
        for run in runs.iter().rev() {
            proposals.extend(observed(run, facts));
            proposals.extend(missing(run, facts));
            proposals.extend(passing(run, &expectations, facts));
        }
        proposals
    }

    fn resolve(&self, specification: &Value, _task: &Value) -> Option<Map<String, Value>> {
        let facts = json!({ "cases": specification.get("cases")?, "tells": [], "reading": [], "query": "" });
        json!({ "needs": [], "facts": facts, "hidden": { "fixed": {} } }).as_object().cloned()
    }
}

/// What tests expect: what reports say of those that failed, and what their files say.
fn expectations(episode: &Episode<'_>, runs: &[Tested]) -> Vec<Expectation> {
    let mut found: Vec<Expectation> = Vec::new();
    for failed in runs.iter().flat_map(|run| &run.failed) {
        let [test, call, want] = [&failed.test, &failed.call, &failed.want].map(Clone::clone);
        found.push(Expectation { test, call, want, at: failed.at });
    }
    for (at, exchange) in episode.exchanges.iter().enumerate() {
        let Some(("read_file", _, shown)) = exchange.called() else { continue };
        let module =
            exchange.argument("path").and_then(|path| path.strip_prefix("tests/")?.strip_suffix(".tly"));
        let Some(module) = module else { continue };
        let mut test = None;
        for line in shown.text.lines() {
            // A line has its number in front.
            let line = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim();
            if let Some(name) = line.strip_prefix("test ") {
                test = Some(format!("{module}.{name}"));
            } else if let (Some(test), Some((call, want))) =
                (&test, line.strip_prefix("expect ").and_then(|body| body.rsplit_once(" == ")))
            {
                let (call, want) = (call.to_owned(), want.to_owned());
                found.push(Expectation { test: test.clone(), call, want, at });
            }
        }
    }
    found
}

/// Tests that earlier runs found broken and this one does not, with an edit in between.
fn mended(
    runs: &[Tested],
    place: usize,
    expectations: &[Expectation],
    episode: &Episode<'_>,
    facts: &mut Facts<'_, '_>,
) -> Option<Proposal> {
    let run = &runs[place];
    let mut mended: Vec<&Expectation> = Vec::new();
    for test in runs[..place].iter().flat_map(|earlier| &earlier.broken) {
        let passes = test.contains(&run.name) && !run.broken.contains(test);
        for expected in expectations.iter().filter(|it| passes && it.test == *test && it.at < run.at) {
            if !mended.iter().any(|known| known.call == expected.call) {
                mended.push(expected);
            }
        }
    }
    mended.truncate(CALLS_MAX);
    let edits = edits(episode, run.at);
    let first = mended.first()?;
    edits.first()?;
    let mut doubts = Vec::new();
    if edits.iter().any(|(_, path)| path.starts_with("tests/")) {
        doubts.push("a test was edited, so its passing proves nothing");
    }
    let mut wording = Wording::new(facts).plain("Change ");
    for (place, (at, path)) in edits.iter().enumerate() {
        wording = wording.plain(if place == 0 { "" } else { " and " }).shown_by(path, *at);
    }
    wording = wording.plain(" so that ");
    for (place, expected) in mended.iter().enumerate() {
        wording = wording.plain(if place == 0 { "`" } else { ", `" }).shown_by(&expected.call, expected.at);
        wording = wording.plain("` gives ").shown_by(&expected.want, expected.at);
    }
    let answer = format!("`{}` gives {} now.", first.call, first.want);
    let proposal = wording.plain(". Leave the tests as they are.").done(run.at, answer).doubted(doubts);
    Some(specified(proposal, mended.iter().map(|expected| (&expected.call, &expected.want))))
}

/// A function that a test calls and nobody has defined.
fn missing(run: &Tested, facts: &mut Facts<'_, '_>) -> Option<Proposal> {
    let (test, function) = run.missing.first()?;
    let wording = Wording::new(facts).plain("Run the tests and tell me: why does ").shown_by(test, run.at);
    let wording = wording.plain(" not run through, and is there a function `").shown_by(function, run.at);
    let proposal =
        wording.plain("`? Change nothing.").done(run.at, format!("`{function}` is not a function."));
    Some(proposal.specified(json!({ "cases": [{ "group": "fix_1", "absent": function }] })))
}

/// A test that passes, with what its file says it expects.
fn passing(run: &Tested, expectations: &[Expectation], facts: &mut Facts<'_, '_>) -> Option<Proposal> {
    let expected = expectations.iter().find(|expected| {
        expected.at < run.at && expected.test.contains(&run.name) && !run.broken.contains(&expected.test)
    })?;
    let module = expected.test.split('.').next().unwrap_or_default();
    let wording = Wording::new(facts).plain("Read the tests in ").shown(module, expected.at);
    let wording = wording.plain(", run them, and tell me whether `").shown_by(&expected.call, expected.at);
    let wording = wording.plain("` gives ").shown_by(&expected.want, expected.at).plain(".");
    let proposal = wording.done(run.at, format!("Yes: `{}` gives {}.", expected.call, expected.want));
    Some(specified(proposal, std::iter::once((&expected.call, &expected.want))))
}

/// What calls gave when the tests ran.
fn observed(run: &Tested, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for many in [1, CALLS_MAX.min(run.failed.len())] {
        let Some(failed) = run.failed.get(..many).filter(|failed| !failed.is_empty()) else { continue };
        let mut wording = Wording::new(facts).plain("Run the tests and tell me: ");
        for (place, one) in failed.iter().enumerate() {
            wording = wording.plain(if place == 0 { "what does `" } else { ", and what does `" });
            wording = wording.shown_by(&one.call, run.at).plain("` give where ").shown_by(&one.test, run.at);
            wording = wording.plain(" expects ").shown_by(&one.want, run.at);
        }
        let answer: Vec<String> =
            failed.iter().map(|one| format!("`{}` gives {}", one.call, one.got)).collect();
        let proposal = wording.plain("? Change nothing.").done(run.at, format!("{}.", answer.join("; ")));
        proposals.push(specified(proposal, failed.iter().map(|one| (&one.call, &one.got))));
    }
    proposals
}

/// A proposal with what its calls give, where all of that is said in values.
fn specified<'c>(proposal: Proposal, calls: impl Iterator<Item = (&'c String, &'c String)>) -> Proposal {
    let cases: Option<Vec<Value>> = calls
        .map(|(call, gives)| {
            let gives: Value = serde_json::from_str(gives).ok()?;
            Some(json!({ "group": "fix_1", "call": call, "want": gives }))
        })
        .collect();
    match cases {
        Some(cases) => proposal.specified(json!({ "cases": cases })),
        None => proposal,
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

/// What a run of tests reports.
fn tested(episode: &Episode<'_>, at: usize) -> Option<Tested> {
    let exchange = episode.exchanges.get(at)?;
    let Act::Call { tool: "run_tests", .. } = exchange.act else { return None };
    // A report of failed tests is an answer too; without its last line it is none.
    let text = exchange.shown.as_ref()?.text;
    if !text.contains(" passed, ") {
        return None;
    }
    let name = exchange.argument("name").unwrap_or_default().to_owned();
    let (mut failed, mut missing, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((test, why)) = line.strip_prefix("ERROR ").and_then(|rest| rest.split_once(": ")) {
            broken.push(test.to_owned());
            let function =
                why.split_once(": '").and_then(|(_, rest)| rest.strip_suffix("' is not a function"));
            missing.extend(function.map(|function| (test.to_owned(), function.to_owned())));
        }
        let Some((test, said)) = line.strip_prefix("FAILED ").and_then(|rest| rest.split_once(": expected "))
        else {
            continue;
        };
        broken.push(test.to_owned());
        let stands = lines.peek().and_then(|line| line.split_once(": expect ")).map(|(_, body)| body);
        if let (Some((call, want)), Some((_, got))) =
            (stands.and_then(|body| body.rsplit_once(" == ")), said.split_once(", got "))
        {
            let [test, call, want, got] = [test, call, want.trim(), got].map(str::to_owned);
            failed.push(Failed { test, call, want, got, at });
        }
    }
    Some(Tested { at, name, failed, missing, broken })
}
