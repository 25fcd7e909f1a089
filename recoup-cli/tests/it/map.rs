//! `import --map`: logs of one's own, read as a mapping file says.

use serde_json::Value;

use crate::bench::{Bench, chat_line};

/// The fenced blocks of a document, each with its first line (`toml helpdesk.toml`).
fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(head), false) => {
                blocks.push((head, String::new()));
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let (_, block) = blocks.last_mut().unwrap();
                block.push_str(line);
                block.push('\n');
            }
            (None, false) => {}
        }
    }
    blocks
}

/// Every file and every command of the document, in its order; what commands print must be as it says.
#[test]
fn the_document_says_what_happens() {
    let bench = Bench::new();
    let mut commands = 0;
    for (head, block) in blocks(include_str!("../../../docs/importing.md")) {
        if let Some((_, name)) = head.split_once(' ') {
            bench.write(name, block);
        } else if head == "console" {
            let (command, expected) = block.split_once('\n').unwrap();
            let arguments: Vec<&str> = command.strip_prefix("$ recoup ").unwrap().split(' ').collect();
            let output = bench.output(&arguments);
            let printed =
                String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
            assert_eq!(printed, expected, "{command}");
            commands += 1;
        }
    }
    assert!(commands >= 4, "{commands}");
    let runs = bench.json_lines(&["ls", "--json"]);
    assert_eq!(runs.len(), 4, "two of each mapping: {runs:?}");
}

const MAPPING: &str = r#"
name = "desk"
[run]
id = "$.id"
messages = "$.log.turns[*]"
outcome = "$.state"
gold = "$.expected"
[message]
role = "$.who"
content = "$.text"
calls = "$.tools[*]"
call_id = "$.re"
error = "$.bad"
at = "$.t"
[call]
name = "$.fn"
arguments = "$.args"
id = "$.no"
[roles]
bot = "assistant"
human = "user"
box = "tool"
ping = "skip"
[outcomes]
done = "success"
lost = "failure"
"#;

const RECORD: &str = r#"{"id":"r1","state":"lost","expected":"42","team":"blue","log":{"v":2,"turns":[
    {"who":"human","text":"How many?","t":"2026-01-01T00:00:00Z","mood":"calm"},
    {"who":"ping"},
    {"who":"bot","text":"Let me count.","tools":[{"fn":"count","args":{ "n": 1.50 },"no":7,"ms":3},{"fn":"look"}]},
    {"who":"box","re":7,"text":"Zürich 東京"},
    {"who":"box","re":8,"bad":"no such tool"},
    {"who":"bot","text":{"answer":41}}]}}"#;

fn one_line(record: &str) -> String {
    record.split('\n').map(str::trim).collect::<String>() + "\n"
}

#[test]
fn a_mapping_reads_every_field_and_drops_nothing() {
    let bench = Bench::new();
    bench.write("desk.toml", MAPPING);
    bench.write("runs.jsonl", one_line(RECORD));
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl", "--map", "desk.toml"]));
    let run = &bench.json_lines(&["ls", "--json"])[0];
    assert_eq!((&run["native_id"], &run["outcome"]), (&Value::from("r1"), &Value::from("failure")));
    let mut shown = bench.json(&["show", run["id"].as_str().unwrap(), "--json"], 0);
    let shown = shown["trajectory"].take();
    for key in ["hidden", "task", "agents", "nodes", "leaves", "extra", "source"] {
        let text = serde_json::to_string_pretty(&shown[key]).unwrap();
        insta::assert_snapshot!(format!("mapped-{key}"), text);
    }
    assert_eq!(bench.json(&["import", "runs.jsonl", "--map", "desk.toml", "--json"], 0)["new"], 0);
}

#[test]
fn records_lie_in_lines_in_arrays_in_documents_and_packed() {
    let bench = Bench::new();
    let inner = MAPPING.replace("name = \"desk\"", "name = \"desk\"\nrecords = \"$.day.runs[*]\"");
    bench.write("flat.toml", MAPPING);
    bench.write("inner.toml", &inner);
    let record = one_line(RECORD);
    let record = record.trim();
    let second = record.replace("\"r1\"", "\"r2\"");
    bench.write("lines.jsonl", format!("{record}\n{second}\n"));
    bench.write("array.json", format!("[{record},\n{second}]"));
    bench.write("whole.json", RECORD);
    let document = format!("{{\"day\":{{\"runs\":[{record},{second}]}},\"site\":\"x\"}}");
    bench.write("document.json", &document);
    bench.write("documents.jsonl", format!("{document}\n{document}\n"));
    for (mapping, file, runs) in [
        ("flat.toml", "lines.jsonl", 2),
        ("flat.toml", "array.json", 2),
        ("flat.toml", "whole.json", 1),
        ("inner.toml", "document.json", 2),
        ("inner.toml", "documents.jsonl", 4),
    ] {
        let project = format!("{file}.project");
        let summary = bench.json(&["import", file, "--map", mapping, "--project", &project, "--json"], 0);
        assert_eq!(summary["trajectories"], runs, "{file}: {summary}");
        let expected = u64::try_from(runs).unwrap().min(2);
        assert_eq!(summary["new"], expected, "one key and one content in {file}: {summary}");
    }
    insta::assert_snapshot!(bench.snapshot(&[
        "import",
        "document.json",
        "--map",
        "inner.toml",
        "--project",
        "p"
    ]));
}

#[test]
fn a_mapping_that_is_wrong_says_where() {
    let bench = Bench::new();
    bench.write("runs.jsonl", one_line(RECORD));
    for (index, (from, to)) in [
        ("content = ", "contents = "),
        ("\"$.who\"", "\"$.who[?(@.x)]\""),
        ("name = \"desk\"", "name = \"openai-chat\""),
        ("\"skip\"", "\"ignore\""),
        ("[roles]", "[roles"),
    ]
    .into_iter()
    .enumerate()
    {
        bench.write("bad.toml", MAPPING.replacen(from, to, 1));
        insta::assert_snapshot!(
            format!("wrong-mapping-{index}"),
            bench.snapshot(&["import", "runs.jsonl", "--map", "bad.toml"])
        );
    }
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl", "--map", "none.toml"]));
    assert!(!bench.path(".recoup").exists());
}

#[test]
fn a_mapping_that_matches_nothing_says_what_it_looks_for() {
    let bench = Bench::new();
    bench.write("desk.toml", MAPPING);
    bench.write("other.jsonl", "{\"a\":1}\n{\"a\":2}\n");
    insta::assert_snapshot!(bench.snapshot(&["import", "other.jsonl", "--map", "desk.toml"]));
    insta::assert_snapshot!(bench.snapshot(&["import", "other.jsonl", "--map", "desk.toml", "--explain"]));
    bench.write("chat.jsonl", chat_line("a", "t", Some(true), "x"));
    insta::assert_snapshot!(bench.snapshot(&["import", "chat.jsonl", "--map", "desk.toml"]));
}

#[test]
fn a_message_that_cannot_be_read_costs_its_run_only() {
    let bench = Bench::new();
    bench.write("desk.toml", MAPPING);
    let record = one_line(RECORD);
    let strange = record.replace("\"r1\"", "\"r2\"").replacen("\"human\"", "\"alien\"", 1);
    let silent = record.replace("\"r1\"", "\"r3\"").replacen("\"who\":\"human\",", "", 1);
    bench.write("runs.jsonl", record + &strange + &silent + "{\"log\":");
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl", "--map", "desk.toml"]));
}

#[test]
fn an_explanation_names_the_mapping() {
    let bench = Bench::new();
    bench.write("desk.toml", MAPPING);
    bench.write("runs.jsonl", one_line(RECORD));
    insta::assert_snapshot!(bench.snapshot(&["import", "--explain", "runs.jsonl", "--map", "desk.toml"]));
}

#[test]
fn a_grown_log_is_the_same_run() {
    let bench = Bench::new();
    bench.write(
        "events.toml",
        "name = \"events\"\n[run]\nid = \"$.s\"\n[message]\nrole = \"$.r\"\ncontent = \"$.c\"\n",
    );
    let line = |session: &str, role: &str, text: &str| {
        format!("{{\"s\":\"{session}\",\"r\":\"{role}\",\"c\":\"{text}\"}}\n")
    };
    let mut log = line("a", "user", "one") + &line("b", "user", "two") + &line("a", "assistant", "three");
    bench.write("log.jsonl", &log);
    let import = ["import", "log.jsonl", "--map", "events.toml", "--json"];
    let first = bench.json(&import, 0);
    assert_eq!((first["trajectories"].as_u64(), first["nodes"].as_u64()), (Some(2), Some(3)));
    log += &line("b", "assistant", "four");
    bench.write("log.jsonl", &log);
    let second = bench.json(&import, 0);
    assert_eq!((second["new"].as_u64(), second["duplicates"].as_u64()), (Some(1), Some(1)));
    assert_eq!(bench.json_lines(&["ls", "--json"]).len(), 2, "the grown run replaced what it was");
}
