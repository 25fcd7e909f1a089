//! What becomes of a trace's spans, on rows of Langfuse's form, which is the shortest.

mod otlp;

use std::fmt::Write as _;
use std::sync::Arc;

use super::Langfuse;
use crate::importers::{Event, ImportOptions, Importer, Source};
use crate::trajectory::{Sealed, Status, Trajectory};

/// Runs, put together again, and the reasons of losses and quarantines.
struct Read {
    runs: Vec<Trajectory>,
    reasons: Vec<String>,
}

fn open(run: &Sealed) -> Trajectory {
    let bodies: Vec<_> = run.bodies.iter().map(|body| (body.hash, body.bytes.clone().into_bytes())).collect();
    Trajectory::unseal(&run.record, run.head.source.clone(), run.head.key, &bodies).unwrap()
}

fn read_with(importer: &dyn Importer, files: &[&str], threads: usize) -> Read {
    let options = Arc::new(ImportOptions { threads, ..ImportOptions::default() });
    let sources: Vec<Source> = files
        .iter()
        .enumerate()
        .map(|(number, text)| Source::from_bytes(format!("{number}.jsonl"), text.as_bytes(), options.clone()))
        .collect();
    let mut events: Vec<Event> = Vec::new();
    importer.import_together(&sources.iter().collect::<Vec<_>>(), &mut events).unwrap();
    let mut read = Read { runs: Vec::new(), reasons: Vec::new() };
    for event in events {
        match event {
            Event::Trajectory(run) => read.runs.push(open(&run)),
            Event::Loss(loss) => read.reasons.push(format!("{}: {}", loss.field, loss.reason)),
            Event::Quarantine(entry) => read.reasons.push(format!("{}: {}", entry.code, entry.reason)),
            Event::Label(_) => {}
        }
    }
    read
}

fn read(rows: &[String]) -> Read {
    read_with(&Langfuse, &[&rows.join("\n")], 1)
}

/// A row: trace, id, parent, type and name, start in seconds, input and output as JSON.
fn row(trace: &str, id: &str, parent: &str, kind: &str, start: u32, input: &str, output: &str) -> String {
    let (kind, name) = kind.split_once(' ').unwrap_or((kind, "ask"));
    format!(
        r#"{{"id":"{id}","trace_id":"{trace}","type":"{kind}","name":"{name}","parent_observation_id":"{parent}","start_time":"2026-03-01 10:00:{start:02}","end_time":"2026-03-01 10:00:{start:02}.5","input":{input},"output":{output}}}"#
    )
}

fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":"{text}"}}"#)
}

fn said(text: &str) -> String {
    format!(r#"{{"role":"assistant","content":"{text}"}}"#)
}

fn calls(ids: &[&str]) -> String {
    let calls = ids.iter().map(|id| {
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"look","arguments":"{{\"at\":\"{id}\"}}"}}}}"#)
    });
    format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, calls.collect::<Vec<_>>().join(","))
}

fn result(id: &str, text: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
}

fn list(messages: &[String]) -> String {
    format!("[{}]", messages.join(","))
}

/// The main branch, or another: each message as agent and text, sampled ones with a star.
fn told(run: &Trajectory, leaf: usize) -> String {
    let mut out = String::new();
    for position in run.branch(leaf).positions() {
        let node = &run.nodes[*position];
        let star = if node.occurrence.sampled { "*" } else { "" };
        let _ = write!(out, "{}{star}={} ", node.agent, node.text());
    }
    out.trim_end().to_owned()
}

#[test]
fn a_history_that_every_request_repeats_adds_nothing() {
    let (asked, answered, again) = (user("hi"), said("hello"), user("bye"));
    let rows = [
        row(
            "t",
            "2",
            "",
            "GENERATION",
            2,
            &list(&[asked.clone(), answered.clone(), again]),
            &said("so long"),
        ),
        row("t", "1", "", "GENERATION", 1, &list(&[asked]), &answered),
    ];
    let read = read(&rows);
    assert_eq!(told(&read.runs[0], 0), "user=hi assistant*=hello user=bye assistant*=so long");
    assert_eq!((read.runs[0].leaves.len(), read.reasons.len()), (1, 0), "{:?}", read.reasons);
}

#[test]
fn an_edited_history_and_a_sub_agent_are_branches() {
    let rows = [
        row("t", "a", "", "AGENT lead", 0, "null", "null"),
        row("t", "1", "a", "GENERATION", 1, &list(&[user("hi")]), &calls(&["c1"])),
        row("t", "b", "a", "AGENT scout", 2, "null", "null"),
        row("t", "2", "b", "GENERATION", 3, &list(&[user("scout it")]), &said("seen")),
        row(
            "t",
            "3",
            "a",
            "GENERATION",
            4,
            &list(&[user("hi"), calls(&["c1"]), result("c1", "seen")]),
            &said("done"),
        ),
        row("t", "4", "a", "GENERATION", 5, &list(&[user("summary of it all")]), &said("really done")),
    ];
    let read = read(&rows);
    let run = &read.runs[0];
    let branches: Vec<String> = (0..run.leaves.len()).map(|leaf| told(run, leaf)).collect();
    assert_eq!(
        branches,
        [
            "user=scout it scout*=seen",
            "user=hi lead*= tool=seen lead*=done",
            "user=summary of it all lead*=really done"
        ]
    );
    assert_eq!(run.main_leaf, 2, "the end is the last answer of the agent that nobody called");
    assert_eq!(run.agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(), ["lead", "scout"]);
}

#[test]
fn tools_give_times_errors_and_results_that_no_request_repeats() {
    let failed = row("t", "x", "", "TOOL look", 3, r#"{"at":"c2"}"#, "null")
        .replace("\"output\":null", "\"output\":null,\"level\":\"ERROR\",\"status_message\":\"boom\"");
    let rows = [
        row("t", "1", "", "GENERATION", 1, &list(&[user("hi")]), &calls(&["c1", "c2", "c3"])),
        row("t", "y", "", "TOOL look", 2, r#"{"at":"c1"}"#, "\"one\""),
        failed,
    ];
    let read = read(&rows);
    let nodes = read.runs[0].nodes.iter();
    let results = nodes.flat_map(|node| node.tool_results().map(move |(_, result)| (node, result)));
    let results: Vec<_> = results
        .map(|(node, result)| (result.call_id.clone().unwrap(), node.text(), result.is_error))
        .collect();
    let wanted =
        [("c1".to_owned(), "one".to_owned(), None), ("c2".to_owned(), "boom".to_owned(), Some(true))];
    assert_eq!(results, wanted);
    assert_eq!(read.reasons, ["tool_result: a call without a recorded result"]);
}

#[test]
fn a_history_that_drops_the_text_beside_calls_is_still_the_history() {
    let whole = calls(&["c1"]).replace("\"content\":null", "\"content\":\"let me look\"");
    let later = list(&[user("hi"), calls(&["c1"]), result("c1", "seen")]);
    let first = row("t", "1", "", "GENERATION", 1, &list(&[user("hi")]), &whole);
    let second = row("t", "2", "", "GENERATION", 2, &later, &said("done"));
    // The second may be looked at before the first, where the clocks differ.
    let skewed = second.replace("10:00:02", "10:00:00");
    for rows in [[first.clone(), second], [first, skewed]] {
        let read = read(&rows);
        assert_eq!(told(&read.runs[0], 0), "user=hi assistant*=let me look tool=seen assistant*=done");
        assert_eq!(read.runs[0].leaves.len(), 1);
    }
}

#[test]
fn runs_interleave_within_and_across_files_whatever_the_threads() {
    let rows: Vec<String> = (0..40)
        .map(|number: u32| {
            let trace = format!("t{}", number % 4);
            row(
                &trace,
                &number.to_string(),
                "",
                "GENERATION",
                number,
                &list(&[user(&format!("q{number}"))]),
                &said("a"),
            )
        })
        .collect();
    let (late, early) = rows.split_at(17);
    let files = [early.join("\n"), late.join("\n")];
    let all = |threads| {
        let read = read_with(&Langfuse, &[&files[0], &files[1]], threads);
        let runs = read.runs.iter().map(|run| (run.nodes.len(), run.id, run.source.uri.clone()));
        runs.collect::<Vec<_>>()
    };
    assert_eq!(all(1), all(2));
    assert_eq!(all(1).len(), 4);
    assert!(all(1).iter().all(|(nodes, _, uri)| *nodes == 20 && uri == "0.jsonl"));
}

#[test]
fn a_broken_row_costs_only_itself() {
    let good = row("t", "1", "", "GENERATION", 1, &list(&[user("hi")]), &said("hello"));
    let infinite = good.replace("\"name\":\"ask\"", "\"name\":\"ask\",\"cost\":NaN");
    let read = read(&[
        infinite,
        "{\"trace_id\": ".to_owned(),
        "{\"id\":\"\",\"start_time\":1}".to_owned(),
        "[]".to_owned(),
    ]);
    assert_eq!(told(&read.runs[0], 0), "user=hi assistant*=hello");
    let codes: Vec<&str> = read.reasons.iter().filter_map(|reason| reason.split(':').next()).collect();
    assert_eq!(codes, ["json", "truncated", "trace_id", "wrong-type"], "{:?}", read.reasons);
}

#[test]
fn a_run_without_a_message_is_said_and_one_without_a_model_call_is_what_its_root_says() {
    let read = read(&[
        row("t", "1", "", "SPAN", 1, "null", "null"),
        row("u", "1", "", "CHAIN", 1, "\"what?\"", "\"that\""),
    ]);
    assert_eq!(read.runs.len(), 1);
    assert_eq!(told(&read.runs[0], 0), "user=what? assistant*=that");
    assert!(
        read.reasons.iter().any(|reason| reason.starts_with("trace: a trace without a recorded message"))
    );
}

#[test]
fn what_an_exporter_cut_off_is_mended_and_said() {
    let whole = list(&[user("hi"), said("hello"), user("and a long one")]);
    let cut = crate::json::Json::string(&whole[..whole.len() - 9]);
    let read = read(&[row("t", "1", "", "GENERATION", 1, cut.as_str(), &said("ok"))]);
    assert_eq!(told(&read.runs[0], 0), "user=hi assistant=hello assistant*=ok");
    assert!(read.reasons[0].contains("cut off by the exporter"), "{:?}", read.reasons);
}

#[test]
fn what_is_no_message_is_kept_as_its_text() {
    let read = read(&[
        row("t", "1", "", "GENERATION", 1, r#"{"city":"Bern"}"#, r#"{"sky":"clear"}"#),
        row("u", "1", "", "GENERATION", 1, "\"how many?\"", "42"),
    ]);
    assert_eq!(told(&read.runs[0], 0), r#"user={"city":"Bern"} assistant*={"sky":"clear"}"#);
    assert_eq!(told(&read.runs[1], 0), "user=how many? assistant*=42");
    assert_eq!(read.reasons.len(), 2, "{:?}", read.reasons);
}

#[test]
fn a_failed_call_is_no_turn_of_the_agent() {
    let failed = row("t", "1", "", "GENERATION", 1, &list(&[user("hi")]), "null")
        .replace("\"output\":null", "\"output\":null,\"level\":\"ERROR\",\"status_message\":\"429\"");
    let read = read(&[failed, row("t", "2", "", "GENERATION", 2, &list(&[user("hi")]), &said("hello"))]);
    let run = &read.runs[0];
    let errors = run.nodes.iter().filter_map(|node| node.occurrence.call.as_ref()?.error.as_deref());
    assert_eq!(errors.collect::<Vec<_>>(), ["429"]);
    assert_eq!(told(run, run.main_leaf), "user=hi assistant*=hello");
    assert_eq!(run.nodes.iter().filter(|node| node.occurrence.sampled).count(), 1);
}

#[test]
fn scores_of_a_trace_in_another_file_are_its_outcome() {
    let rows = row("t", "1", "", "GENERATION", 1, &list(&[user("hi")]), &said("hello"));
    let score =
        r#"{"id":"s","trace_id":"t","observation_id":"","name":"success","value":0,"data_type":"BOOLEAN"}"#;
    let read = read_with(&Langfuse, &[score, &rows], 1);
    assert_eq!(read.runs[0].outcome().status, Status::Failure);
    assert!(read.runs[0].hidden.verifier_output.is_some());
}

#[test]
fn further_choices_are_branches_and_cost_nothing_more() {
    let response = r#"{"choices":[{"message":{"role":"assistant","content":"one"},"finish_reason":"stop"},{"message":{"role":"assistant","content":"two"},"finish_reason":"length"}]}"#;
    let first = row("t", "1", "", "GENERATION", 1, &list(&[user("hi")]), response)
        .replace("\"input\"", "\"usage_details\":{\"input\":3,\"output\":4},\"input\"");
    let next = list(&[user("hi"), said("one"), user("go on")]);
    let read = read(&[first, row("t", "2", "", "GENERATION", 2, &next, &said("done"))]);
    let run = &read.runs[0];
    let branches: Vec<String> = (0..run.leaves.len()).map(|leaf| told(run, leaf)).collect();
    assert_eq!(branches, ["user=hi assistant*=two", "user=hi assistant*=one user=go on assistant*=done"]);
    assert_eq!(run.main_leaf, 1);
    let calls = run.nodes.iter().filter_map(|node| node.occurrence.call.as_ref());
    let made: Vec<_> =
        calls.map(|call| (call.usage.map(|usage| usage.output), call.finish_reason.as_deref())).collect();
    assert_eq!(made, [(Some(4), Some("stop")), (None, Some("length")), (None, None)]);
    assert!(read.reasons.is_empty(), "{:?}", read.reasons);
}

#[test]
fn an_output_that_is_a_whole_conversation_is_one_branch() {
    let whole = [user("hi"), calls(&["c1"]), result("c1", "seen"), said("done")];
    let read = read(&[row("t", "1", "", "CHAIN", 1, &list(&whole[..1]), &list(&whole))]);
    let run = &read.runs[0];
    assert_eq!(told(run, 0), "user=hi assistant*= tool=seen assistant*=done");
    assert_eq!(run.leaves.len(), 1);
}
