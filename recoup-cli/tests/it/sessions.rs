//! Sessions of coding agents that grow between imports, are resumed and forked, and have subagents.

use serde_json::{Value, json};

use crate::bench::Bench;

/// A line of a Claude Code session; `more` goes over it.
fn line(session: &str, uuid: &str, parent: Option<&str>, role: &str, text: &str, more: &Value) -> String {
    let mut line = json!({
        "type": role, "sessionId": session, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
        "timestamp": "2026-02-01T10:00:00.000Z",
        "message": { "role": role, "content": [{ "type": "text", "text": text }] },
    });
    if role == "assistant" {
        line["message"]["id"] = format!("m-{uuid}").into();
    }
    for (key, value) in more.as_object().into_iter().flatten() {
        line[key.as_str()] = value.clone();
    }
    format!("{line}\n")
}

fn first_turns(session: &str, more: &Value) -> String {
    line(session, "u1", None, "user", "Sort the list.", more)
        + &line(session, "a1", Some("u1"), "assistant", "I sorted it.", more)
}

/// Runs listed, by native id.
fn listed(bench: &Bench) -> std::collections::BTreeMap<String, Value> {
    let rows = bench.json_lines(&["ls", "--json"]);
    rows.into_iter().map(|row| (row["native_id"].as_str().unwrap().to_owned(), row)).collect()
}

#[test]
fn a_session_that_grew_supersedes_what_was_said_of_it() {
    let bench = Bench::new();
    let none = json!({});
    bench.write("s.jsonl", first_turns("s", &none));
    assert_eq!(bench.json(&["import", "s.jsonl", "--json"], 0)["new"], 1);
    let before = listed(&bench).remove("s").unwrap();
    let id = before["id"].as_str().unwrap().to_owned();
    let told = ["--outcome", "failure", "--task", "lists/1", "--note", "odd"];
    assert_eq!(bench.output(&[&["label", &id][..], &told].concat()).status.code(), Some(0));
    assert_eq!(bench.output(&["diagnose"]).status.code(), Some(0));

    let grown = first_turns("s", &none)
        + &line("s", "u2", Some("a1"), "user", "It is not sorted.", &none)
        + &line("s", "a2", Some("u2"), "assistant", "Now it is.", &none);
    bench.write("s.jsonl", grown);
    let summary = bench.json(&["import", "s.jsonl", "--json"], 0);
    assert_eq!((summary["new"].as_u64(), summary["duplicates"].as_u64()), (Some(1), Some(0)));
    let runs = listed(&bench);
    assert_eq!(runs.len(), 1, "the latest alone");
    let after = &runs["s"];
    assert_eq!(after["key"], before["key"]);
    assert_ne!(after["id"], before["id"]);
    assert_eq!((after["nodes"].as_u64(), after["outcome"].as_str()), (Some(4), Some("unknown")));
    assert_eq!(
        (&after["task"], &after["note"]),
        (&json!("lists/1"), &json!("odd")),
        "what holds for any length"
    );
    let stats = bench.json(&["stats", "--json"], 0);
    assert_eq!(
        (stats["superseded"].as_u64(), stats["stale_verdicts"].as_u64() > Some(0)),
        (Some(1), true),
        "{stats}"
    );
    let shown = bench.json(&["show", after["id"].as_str().unwrap(), "--json"], 0);
    let kinds: Vec<&Value> =
        shown["verdicts"].as_array().unwrap().iter().map(|verdict| &verdict["kind"]).collect();
    assert!(!kinds.iter().any(|kind| kind.to_string().contains("diagnosis")), "{kinds:?}");

    // The older file again, from a backup: nothing goes back.
    bench.write("s.jsonl", first_turns("s", &none));
    assert_eq!(bench.json(&["import", "s.jsonl", "--json"], 0)["new"], 0);
    assert_eq!(listed(&bench)["s"]["nodes"], 4);
}

#[test]
fn a_fork_shares_its_history_and_counts_only_its_own_steps() {
    let bench = Bench::new();
    let none = json!({});
    bench.write("p/old.jsonl", first_turns("old", &none));
    assert_eq!(bench.json(&["import", "p", "--json"], 0)["new"], 1);
    // One fork that says so, one that kept the old session's id on the lines that it copied, one that says nothing.
    let own = |session: &str| {
        let (asked, said) = (format!("u-{session}"), format!("a-{session}"));
        line(session, &asked, Some("a1"), "user", "Reverse it.", &none)
            + &line(session, &said, Some(&asked), "assistant", "Reversed.", &none)
    };
    let marked = json!({ "forkedFrom": { "sessionId": "old", "messageUuid": "u1" } });
    bench.write("p/fork.jsonl", first_turns("fork", &marked) + &own("fork"));
    bench.write("p/resumed.jsonl", first_turns("old", &none) + &own("resumed"));
    bench.write("p/silent.jsonl", first_turns("silent", &none) + &own("silent"));
    let summary = bench.json(&["import", "p", "--json"], 0);
    assert_eq!((summary["new"].as_u64(), summary["duplicates"].as_u64()), (Some(3), Some(2)), "{summary}");
    assert_eq!(bench.json(&["stats", "--json"], 0)["stored_nodes"], 4, "two of each, and the same two");
    let runs = listed(&bench);
    assert_eq!(runs.keys().collect::<Vec<_>>(), ["fork", "old", "resumed", "silent"]);
    for (name, steps) in [("old", 1), ("fork", 1), ("resumed", 1), ("silent", 1)] {
        assert_eq!(runs[name]["steps"], steps, "{name}");
    }
    assert_eq!(runs["fork"]["task"], runs["old"]["task"]);
}

#[test]
fn subagents_are_runs_of_their_own_wherever_their_files_lie() {
    let bench = Bench::new();
    let side = json!({ "isSidechain": true, "agentId": "x1" });
    let subagent = first_turns("s", &side);
    bench.write("p/s.jsonl", line("s", "m1", None, "user", "Delegate.", &json!({})));
    bench.write("p/agent-x1.jsonl", &subagent);
    assert_eq!(bench.json(&["import", "p", "--json"], 0)["new"], 2);
    std::fs::create_dir_all(bench.path("p/s/subagents")).unwrap();
    std::fs::rename(bench.path("p/agent-x1.jsonl"), bench.path("p/s/subagents/agent-x1.jsonl")).unwrap();
    let summary = bench.json(&["import", "p", "--json"], 0);
    assert_eq!((summary["new"].as_u64(), summary["duplicates"].as_u64()), (Some(0), Some(2)));
    let runs = listed(&bench);
    assert_eq!(runs.keys().collect::<Vec<_>>(), ["s", "s/x1"]);
    let shown = bench.json(&["show", runs["s/x1"]["id"].as_str().unwrap(), "--json"], 0);
    assert_eq!(shown["trajectory"]["extra"]["parent_trajectory"], "s");
}

#[test]
fn a_codex_session_that_grew_is_one_run() {
    let bench = Bench::new();
    let say = |time: &str, role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        let payload = json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
        format!("{}\n", json!({ "timestamp": time, "type": "response_item", "payload": payload }))
    };
    let meta =
        json!({ "timestamp": "2026-03-01T09:00:00Z", "type": "session_meta", "payload": { "id": "c" } });
    let mut rollout = format!("{meta}\n") + &say("2026-03-01T09:00:01Z", "user", "Count.");
    bench.write("rollout.jsonl", &rollout);
    assert_eq!(bench.json(&["import", "rollout.jsonl", "--json"], 0)["new"], 1);
    rollout += &say("2026-03-01T09:00:05Z", "assistant", "Two.");
    bench.write("rollout.jsonl", &rollout);
    let summary = bench.json(&["import", "rollout.jsonl", "--json"], 0);
    assert_eq!((summary["new"].as_u64(), summary["revisions"].as_u64()), (Some(1), Some(1)));
    assert_eq!(bench.json(&["stats", "--json"], 0)["stored_nodes"], 2);
    let runs = listed(&bench);
    assert_eq!((runs.len(), runs["c"]["nodes"].as_u64()), (1, Some(2)));
}

/// Imports a session line by line; each time it is one run.
fn read_line_by_line(lines: &[Value]) -> Value {
    let bench = Bench::new();
    let mut text = String::new();
    for line in lines {
        text += &line.to_string();
        text.push('\n');
        bench.write("s.jsonl", &text);
        let summary = bench.json(&["import", "s.jsonl", "--json"], 0);
        let runs = bench.json_lines(&["ls", "--json"]);
        assert_eq!(runs.len(), 1, "after {line}: {summary}");
    }
    let rows = bench.json_lines(&["ls", "--json"]);
    // The whole file first, then the half one of a backup: nothing goes back.
    let half: String = text.split_inclusive('\n').take(lines.len() / 2).collect();
    let other = Bench::new();
    other.write("s.jsonl", &text);
    other.json(&["import", "s.jsonl", "--json"], 0);
    other.write("s.jsonl", half);
    other.json(&["import", "s.jsonl", "--json"], 0);
    assert_eq!(other.json_lines(&["ls", "--json"])[0]["id"], rows[0]["id"]);
    rows[0].clone()
}

#[test]
fn a_claude_code_session_read_in_mid_response_is_one_run() {
    let of_response = |uuid: &str, parent: &str, block: Value| {
        json!({
            "type": "assistant", "sessionId": "s", "uuid": uuid, "parentUuid": parent, "isSidechain": false,
            "timestamp": "2026-02-01T10:00:01.000Z",
            "message": { "role": "assistant", "id": "m1", "content": [block] },
        })
    };
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "Read", "input": { "path": id } });
    let result = |uuid: &str, parent: &str, id: &str| {
        json!({
            "type": "user", "sessionId": "s", "uuid": uuid, "parentUuid": parent, "isSidechain": false,
            "timestamp": "2026-02-01T10:00:02.000Z",
            "message": { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": "1" }] },
        })
    };
    let asked: Value =
        serde_json::from_str(&line("s", "u1", None, "user", "Read both.", &json!({}))).unwrap();
    let told: Value =
        serde_json::from_str(&line("s", "a9", Some("r2"), "assistant", "Both read.", &json!({}))).unwrap();
    let row = read_line_by_line(&[
        asked,
        of_response("a1", "u1", json!({ "type": "text", "text": "I read them." })),
        of_response("a2", "a1", call("one")),
        // The first answer stands before the second call of the same response.
        result("r1", "a2", "one"),
        of_response("a3", "a2", call("two")),
        result("r2", "a3", "two"),
        told,
    ]);
    assert_eq!((row["nodes"].as_u64(), row["steps"].as_u64()), (Some(4), Some(2)), "{row}");
}

#[test]
fn a_codex_session_read_in_mid_response_is_one_run() {
    let at = |second: u32, kind: &str, payload: Value| json!({ "timestamp": format!("2026-03-01T09:00:{second:02}Z"), "type": kind, "payload": payload });
    let say = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
    };
    let call =
        |id: &str| json!({ "type": "function_call", "name": "shell", "arguments": "{}", "call_id": id });
    let row = read_line_by_line(&[
        at(0, "session_meta", json!({ "id": "c" })),
        at(1, "response_item", say("user", "List the files.")),
        at(2, "response_item", say("assistant", "I look.")),
        at(4, "response_item", call("one")),
        at(7, "response_item", json!({ "type": "function_call_output", "call_id": "one", "output": "a b" })),
        at(8, "event_msg", json!({ "type": "exec_command_end", "call_id": "one", "exit_code": 0 })),
        at(9, "response_item", say("assistant", "Two files.")),
    ]);
    assert_eq!((row["nodes"].as_u64(), row["steps"].as_u64()), (Some(4), Some(2)), "{row}");
}
