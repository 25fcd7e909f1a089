//! Exports of training rows: every format from the user's door, and what is refused.

use serde_json::{Value, json};

use crate::bench::{Bench, chat_line};

/// Every format of training rows that is made for no one model.
const FORMATS: [&str; 15] = [
    "trl",
    "trl-messages",
    "trl-prompt-completion",
    "trl-preference",
    "trl-kto",
    "axolotl",
    "llamafactory",
    "verl",
    "verl-rl",
    "openai",
    "tinker",
    "unsloth",
    "scout",
    "hf",
    "parquet",
];

/// A run that calls a tool.
fn calling(id: &str, success: bool, arguments: &str, result: &str) -> Value {
    json!({
        "id": id,
        "task_id": id,
        "success": success,
        "messages": [
            { "role": "system", "content": "Be exact." },
            { "role": "user", "content": format!("find {id}") },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "find", "arguments": arguments } },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": result },
            { "role": "assistant", "content": format!("found {id}") },
        ],
        "tools": [{ "type": "function", "function": {
            "name": "find", "description": "Finds.",
            "parameters": { "type": "object", "properties": { "id": { "type": "string" } } },
        } }],
    })
}

fn imported(runs: &[Value]) -> Bench {
    let bench = Bench::new();
    let lines: Vec<String> = runs.iter().map(Value::to_string).collect();
    bench.write("runs.jsonl", lines.join("\n"));
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    bench
}

/// A view in a format: the answer.
fn exported(bench: &Bench, format: &str, more: &[&str]) -> Value {
    let words = ["export", "success_sft", "--format", format, "--out", format, "--check", "--json"];
    bench.json(&[&words[..], more].concat(), 0)
}

#[test]
fn a_view_goes_out_in_every_format() {
    let bench = imported(&[
        calling("a", true, r#"{"id": "a", "n": 2}"#, "one"),
        calling("b", true, r#"{"id": "b", "n": 1.5}"#, "two"),
        calling("c", false, r#"{"id": "c"}"#, "none"),
    ]);
    for format in FORMATS {
        let answer = exported(&bench, format, &[]);
        let form = if format == "trl" { "trl-messages" } else { format };
        assert_eq!((&answer["view"], &answer["format"]), (&json!("success_sft"), &json!(form)), "{answer}");
        assert_eq!(answer["checked"], true, "{answer}");
        let rows = match format {
            "trl-prompt-completion" | "unsloth" => 4,
            "trl-preference" | "trl-kto" => 0,
            _ => 2,
        };
        assert_eq!(answer["rows"], rows, "{answer}");
        if rows == 0 {
            assert_eq!(answer["refused"], json!({ "objective-not-carried": 2 }), "{answer}");
        }
        for file in answer["files"].as_array().unwrap() {
            assert!(bench.path(format).join(file.as_str().unwrap()).is_file(), "{file}");
        }
        let manifest = bench.path(format).join("success_sft.manifest.json");
        let manifest: Value = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
        for key in ["rows", "in", "built", "excluded", "refused", "split", "licences", "redactions", "config"]
        {
            assert!(manifest.get(key).is_some(), "{key} in {manifest}");
        }
        assert_eq!(manifest["excluded"], json!({ "failed": 1 }));
        let first = std::fs::read(bench.path(format).join(answer["files"][0].as_str().unwrap())).unwrap();
        exported(&bench, format, &[]);
        let again = std::fs::read(bench.path(format).join(answer["files"][0].as_str().unwrap())).unwrap();
        assert!(first == again, "{format}: the same bytes");
    }
    let list = std::fs::read_to_string(bench.path("llamafactory/dataset_info.json")).unwrap();
    insta::assert_snapshot!(list);
    let card = std::fs::read_to_string(bench.path("hf/README.md")).unwrap();
    assert!(card.contains("    path: data/success_sft/train.jsonl"), "{card}");
}

#[test]
fn rows_are_counted_out_with_their_reasons() {
    let mut bare = calling("bare", true, "{}", "x");
    bare["tools"][0]["function"].as_object_mut().unwrap().remove("parameters");
    // Named so that it is not held out.
    let mut twice = calling("same", true, "{}", "x");
    let calls = twice["messages"][2]["tool_calls"].as_array_mut().unwrap();
    calls.push(calls[0].clone());
    let secret = calling("secret", true, "{}", "the key is AKIAIOSFODNN7EXAMPLE, mail mia@example.com");
    let bench = imported(&[
        calling("patch", true, "*** Begin Patch", "x"),
        calling("list", true, "[1]", "x"),
        bare,
        twice,
        secret,
    ]);
    let refused = |format| exported(&bench, format, &[])["refused"].clone();
    for format in ["trl", "openai", "llamafactory"] {
        assert_eq!(
            refused(format),
            json!({
                "arguments-are-not-an-object": 1, "arguments-are-not-json": 1, "colliding-call-ids": 1,
                "tool-without-schema": 1,
            })
        );
    }
    assert_eq!(exported(&bench, "parquet", &[])["rows"], 5, "what is not JSON is text there");
    let text = std::fs::read_to_string(bench.path("trl/success_sft.jsonl")).unwrap();
    assert!(text.contains("mail <EMAIL_1>") && !text.contains("AKIAIOSFODNN7EXAMPLE"), "{text}");
}

#[test]
fn what_was_written_is_checked() {
    let bench = imported(&[calling("a", true, "{}", "one")]);
    insta::assert_snapshot!(bench.snapshot(&[
        "export",
        "success_sft",
        "--format",
        "openai",
        "--out",
        "o",
        "--check"
    ]));
}

#[test]
fn what_cannot_be_exported_is_named() {
    let bench = imported(&[calling("a", true, "{}", "one")]);
    insta::assert_snapshot!(bench.snapshot(&["export", "succes_sft", "--format", "trl", "--out", "o"]));
    insta::assert_snapshot!(bench.snapshot(&["export", "--format", "atif", "--check", "--out", "o"]));
    insta::assert_snapshot!(bench.snapshot(&[
        "export",
        "success_sft",
        "--format",
        "trl",
        "--out",
        "o",
        "--no-redact"
    ]));
    insta::assert_snapshot!(bench.snapshot(&["export", "success_sft", "--format", "csv", "--out", "o"]));
    insta::assert_snapshot!(bench.snapshot(&[
        "export",
        "success_sft",
        "--format",
        "trl",
        "--out",
        "o",
        "--weight"
    ]));
    assert!(!bench.path("o").exists());
}

#[test]
fn results_name_the_calls_that_they_answer() {
    let mut run = calling("a", true, r#"{"id": "a"}"#, "first");
    let messages = run["messages"].as_array_mut().unwrap();
    let mut other = messages[2]["tool_calls"][0].clone();
    other["id"] = json!("c2");
    messages[2]["tool_calls"].as_array_mut().unwrap().push(other);
    // The later call is answered first.
    messages.insert(3, json!({ "role": "tool", "tool_call_id": "c2", "content": "second" }));
    let bench = imported(&[run]);
    exported(&bench, "trl", &[]);
    let row = std::fs::read_to_string(bench.path("trl/success_sft.jsonl")).unwrap();
    let row: Value = serde_json::from_str(row.trim_end()).unwrap();
    let calls = row["messages"][2]["tool_calls"].as_array().unwrap();
    assert_eq!([&calls[0]["id"], &calls[1]["id"]], ["call_1", "call_2"]);
    let result = |index: usize| [&row["messages"][index]["tool_call_id"], &row["messages"][index]["content"]];
    assert_eq!([result(3), result(4)], [["call_2", "second"], ["call_1", "first"]]);
}

#[test]
fn whole_runs_of_a_view_are_those_that_it_learns_from() {
    let bench = imported(&[calling("a", true, "{}", "one"), calling("b", false, "{}", "two")]);
    let written = |words: &[&str]| {
        let words = [&["export", "--format", "atif", "--out", "o", "--json"], words].concat();
        bench.json(&words, 0)["written"].clone()
    };
    assert_eq!((written(&["success_sft"]), written(&[])), (json!(1), json!(2)));
}

#[test]
fn a_preview_of_text_marks_what_is_learned() {
    let bench = imported(&[calling("a", true, r#"{"id": "a"}"#, "one")]);
    let words = ["export", "success_sft", "--format", "openai", "--out", "o", "--preview", "1"];
    insta::assert_snapshot!(bench.snapshot(&words));
}

#[test]
fn a_view_without_rows_is_an_empty_file() {
    let bench = imported(&[calling("a", false, "{}", "one")]);
    insta::assert_snapshot!(bench.snapshot(&["export", "success_sft", "--format", "trl", "--out", "o"]));
    assert_eq!(std::fs::read(bench.path("o/success_sft.jsonl")).unwrap(), b"");
    let empty = exported(&bench, "parquet", &[]);
    assert_eq!(empty["rows"], 0, "{empty}");
}

#[test]
fn an_empty_project_has_nothing_to_export() {
    let bench = Bench::new();
    insta::assert_snapshot!(bench.snapshot(&["export", "success_sft", "--format", "trl", "--out", "o"]));
}

#[test]
fn only_the_runs_named_are_exported() {
    let bench = Bench::new();
    let text = [chat_line("one", "sum", Some(true), "4"), chat_line("two", "sum", Some(true), "2 + 2 = 4")];
    bench.write("runs.jsonl", text.concat());
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    let id = bench.json_lines(&["ls", "--json"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(exported(&bench, "trl", &[])["rows"], 2);
    assert_eq!(exported(&bench, "trl", &[&id[..20]])["rows"], 1);
}

#[test]
fn a_card_of_somebody_else_stays() {
    let bench = imported(&[calling("a", true, "{}", "one")]);
    bench.write("hf/README.md", "# Mine\n");
    let output = bench.output(&["export", "success_sft", "--format", "hf", "--out", "hf"]);
    assert_eq!(output.status.code(), Some(2), "{}", bench.render(&output));
    assert_eq!(std::fs::read_to_string(bench.path("hf/README.md")).unwrap(), "# Mine\n");
}

#[test]
fn a_view_named_twice_is_written_once() {
    let bench = imported(&[calling("a", true, r#"{"id": "a"}"#, "one")]);
    let lines = bench.json_lines(&[
        "export",
        "success_sft",
        "success_sft",
        "--format",
        "trl",
        "--out",
        "rows",
        "--json",
    ]);
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[test]
fn a_format_that_cannot_carry_a_view_is_said() {
    let bench = imported(&[calling("a", true, r#"{"id": "a"}"#, "one")]);
    insta::assert_snapshot!(bench.snapshot(&[
        "export",
        "success_sft",
        "--format",
        "trl-kto",
        "--out",
        "rows"
    ]));
}

#[test]
fn a_place_that_cannot_be_written_is_said_with_a_hint() {
    let bench = imported(&[calling("a", true, r#"{"id": "a"}"#, "one")]);
    bench.write("file", "mine");
    let answer = bench.json(&["export", "success_sft", "--format", "trl", "--out", "file", "--json"], 2);
    assert!(answer["error"]["hint"].as_str().unwrap().contains("--out"), "{answer}");
    assert_eq!(std::fs::read(bench.path("file")).unwrap(), b"mine");
    // A card of somebody else's is seen before anything is written.
    bench.write("theirs/README.md", "# Mine");
    let answer = bench.json(&["export", "success_sft", "--format", "hf", "--out", "theirs", "--json"], 2);
    assert!(answer["error"]["message"].as_str().unwrap().contains("card"), "{answer}");
    assert!(!bench.path("theirs/data").exists());
}
