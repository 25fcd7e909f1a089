//! `import --watch`: folders that are followed while they grow.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::bench::{Bench, chat_line};

/// A watch under way, whose events are read as they come.
struct Watching {
    child: Child,
    events: BufReader<ChildStdout>,
}

impl Watching {
    fn start(bench: &Bench, more: &[&str]) -> Self {
        let arguments = [&["import", "--watch", "logs", "--interval", "150ms", "--json"], more].concat();
        let mut command = bench.command(&arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap());
        Self { child, events }
    }

    /// The next event; the watch says one only when it has read something.
    fn event(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.events.read_line(&mut line).unwrap() > 0, "the watch has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Interrupts it, and gives what it says last and on standard error.
    fn interrupt(mut self) -> (ExitStatus, Value, String) {
        let signalled = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(signalled.success());
        let last = self.event();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), last, said)
    }
}

fn append(bench: &Bench, name: &str, text: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(bench.path(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn counts(event: &Value) -> [u64; 5] {
    ["new", "revisions", "duplicates", "quarantined", "unfinished"].map(|key| event[key].as_u64().unwrap())
}

#[test]
fn outcomes_find_their_runs_in_any_look() {
    let bench = Bench::new();
    bench.write("outcomes.csv", "task_id,outcome\n1,failure\n2,success\n3,success\n");
    bench.write("logs/a.jsonl", chat_line("a", "bench/1", None, "x"));
    let mut watching = Watching::start(&bench, &["--outcomes", "outcomes.csv"]);
    assert_eq!(watching.event()["new"], 1);
    bench.write("logs/b.jsonl", chat_line("b", "bench/2", None, "y"));
    assert_eq!(watching.event()["new"], 1);
    let (status, _, said) = watching.interrupt();
    assert_eq!(status.code(), Some(1), "{said}");
    assert_eq!(said.matches("names no run").count(), 1, "{said}");
    assert!(said.contains("line 4 of the outcome file names no run: `3`"), "{said}");
    let rows = bench.json_lines(&["ls", "--json"]);
    assert_eq!(rows.iter().map(|row| &row["outcome"]).collect::<Vec<_>>(), ["failure", "success"]);
}

#[test]
fn what_is_new_or_has_grown_is_imported_as_it_comes() {
    let bench = Bench::new();
    let first = chat_line("a", "t", Some(true), "x");
    bench.write("logs/a.jsonl", &first);
    let mut watching = Watching::start(&bench, &[]);
    let event = watching.event();
    assert_eq!((counts(&event), &event["files"]), ([1, 0, 0, 0, 0], &serde_json::json!(["logs/a.jsonl"])));
    let second = chat_line("b", "t", Some(false), "Zürich");
    let (half, rest) = second.split_at(second.len() / 2);
    append(&bench, "logs/a.jsonl", half);
    assert_eq!(counts(&watching.event()), [0, 0, 1, 0, 1], "half a line waits");
    append(&bench, "logs/a.jsonl", rest);
    assert_eq!(counts(&watching.event()), [1, 0, 1, 0, 0], "and is read when it is whole");
    bench.write("logs/deep/c.jsonl", chat_line("c", "t", None, "y"));
    let event = watching.event();
    assert_eq!(
        (counts(&event), &event["files"]),
        ([1, 0, 0, 0, 0], &serde_json::json!(["logs/deep/c.jsonl"]))
    );
    let (status, last, said) = watching.interrupt();
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!((last["format"].as_str(), last["new"].as_u64()), (Some("recoup.watched"), Some(3)));
    assert_eq!(last["quarantined"], 0);
    assert_eq!(bench.json_lines(&["ls", "--json"]).len(), 3);

    let (status, last, _) = {
        let mut again = Watching::start(&bench, &[]);
        assert_eq!(counts(&again.event()), [0, 0, 3, 0, 0], "a watch that starts again knows its runs");
        again.interrupt()
    };
    assert_eq!((status.code(), last["new"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn a_session_that_goes_on_is_one_run() {
    let bench = Bench::new();
    let line = |uuid: &str, parent: &str, kind: &str, text: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"sessionId\":\"s\",\
             \"message\":{{\"role\":\"{kind}\",\"content\":\"{text}\"}}}}\n"
        )
    };
    bench.write("logs/s.jsonl", line("u1", "null", "user", "hi"));
    let mut watching = Watching::start(&bench, &[]);
    assert_eq!(counts(&watching.event()), [1, 0, 0, 0, 0]);
    append(&bench, "logs/s.jsonl", &line("a1", "\"u1\"", "assistant", "hello"));
    assert_eq!(counts(&watching.event()), [1, 1, 0, 0, 0]);
    let (status, last, _) = watching.interrupt();
    assert_eq!((status.code(), last["revisions"].as_u64()), (Some(0), Some(1)));
    let listed = bench.json_lines(&["ls", "--json"]);
    assert_eq!(listed.len(), 1, "the latest revision alone");
    assert_eq!(listed[0]["nodes"], 2);
}

#[test]
fn a_trace_spread_over_files_is_one_run() {
    let bench = Bench::new();
    let row = |id: u32, input: &str, output: &str| {
        format!(
            "{{\"id\":\"{id}\",\"trace_id\":\"t\",\"type\":\"GENERATION\",\"name\":\"ask\",\
             \"parent_observation_id\":\"\",\"start_time\":\"2026-03-01 10:00:0{id}\",\
             \"input\":[{input}],\"output\":{output}}}\n"
        )
    };
    let said = |role: &str, text: &str| format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}");
    let (hi, hello) = (said("user", "hi"), said("assistant", "hello"));
    bench.write("logs/a.jsonl", row(1, &hi, &hello));
    let mut watching = Watching::start(&bench, &[]);
    assert_eq!(counts(&watching.event()), [1, 0, 0, 0, 0]);
    let all = [hi, hello, said("user", "bye")].join(",");
    bench.write("logs/b.jsonl", row(2, &all, &said("assistant", "so long")));
    assert_eq!(counts(&watching.event()), [1, 1, 0, 0, 0]);
    assert_eq!(watching.interrupt().0.code(), Some(0));
    let listed = bench.json_lines(&["ls", "--json"]);
    assert_eq!((listed.len(), &listed[0]["nodes"]), (1, &serde_json::json!(4)));
}

#[test]
fn an_event_that_comes_into_the_folder_of_a_conversation_makes_it_go_on() {
    let bench = Bench::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../recoup/tests/fixtures/importers/openhands-v1/scripted-run/input/conversation-1");
    let copy = |name: &str| bench.write(&format!("logs/c/{name}"), std::fs::read(from.join(name)).unwrap());
    let names = std::fs::read_dir(from.join("events")).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| format!("events/{}", entry.unwrap().file_name().to_string_lossy())).collect();
    names.sort();
    let last = names.pop().unwrap();
    copy("base_state.json");
    for name in &names {
        copy(name);
    }
    let mut watching = Watching::start(&bench, &[]);
    assert_eq!(counts(&watching.event()), [1, 0, 0, 0, 0]);
    copy(&last);
    assert_eq!(counts(&watching.event()), [1, 1, 0, 0, 0]);
    assert_eq!(watching.interrupt().0.code(), Some(0));
}

#[test]
fn what_stays_unfinished_or_broken_is_said_in_the_end() {
    let bench = Bench::new();
    bench.write("logs/a.jsonl", chat_line("a", "t", None, "x") + "{\"messages\": [{\"role\"");
    bench.write(
        "logs/b.jsonl",
        chat_line("b", "t", None, "x") + "{broken}\n" + &chat_line("c", "t", None, "y"),
    );
    bench.write("logs/bad.zip", "PK\x03\x04 and no more");
    let mut watching = Watching::start(&bench, &[]);
    assert_eq!(counts(&watching.event()), [3, 0, 0, 1, 1]);
    let (status, last, said) = watching.interrupt();
    assert_eq!((status.code(), last["quarantined"].as_u64()), (Some(1), Some(2)));
    insta::assert_snapshot!(said);
}

#[test]
fn a_killed_watch_goes_on_without_duplicates() {
    let bench = Bench::new();
    bench.write("logs/a.jsonl", chat_line("a", "t", None, "x") + &chat_line("b", "t", None, "y"));
    let killed =
        ["import", "--watch", "logs", "--interval", "20ms", "--for", "20s", "--stop-at", "before-import"];
    if cfg!(debug_assertions) {
        assert_eq!(bench.output(&killed).status.code(), None, "stopped dead before the commit");
    }
    for new in [2, 0] {
        let mut watching = Watching::start(&bench, &[]);
        assert_eq!(counts(&watching.event()), [new, 0, 2 - new, 0, 0]);
        assert_eq!(watching.interrupt().0.code(), Some(0));
    }
    assert_eq!(bench.output(&["verify"]).status.code(), Some(0));
}

#[test]
fn an_end_can_be_set_and_nothing_is_made_of_nothing() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("logs")).unwrap();
    bench.write("logs/notes.md", "# Notes\n");
    let arguments = ["import", "--watch", "logs", "--interval", "10ms", "--for", "0s"];
    insta::assert_snapshot!(bench.snapshot(&arguments));
    assert!(!bench.path(".recoup").exists());
    bench.write("runs.jsonl", chat_line("a", "t", Some(true), "x"));
    let output = bench.output(&["import", "--watch", "runs.jsonl", "--interval", "10ms", "--for", "1s"]);
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("1 run new from 1 file read"),
        "{}",
        bench.render(&output)
    );
    assert_eq!(bench.json_lines(&["ls", "--json"]).len(), 1);
}

#[test]
fn wrong_flags_are_named() {
    let bench = Bench::new();
    bench.write("logs/a.jsonl", chat_line("a", "t", Some(true), "x"));
    insta::assert_snapshot!(bench.snapshot(&["import", "--watch", "nowhere", "--for", "1s"]));
    insta::assert_snapshot!(bench.snapshot(&["import", "logs", "--interval", "1s"]));
    insta::assert_snapshot!(bench.snapshot(&["import", "logs", "--watch", "--dry-run"]));
    insta::assert_snapshot!(bench.snapshot(&["import", "logs", "--watch", "--interval", "soon"]));
}
