//! Rows of tokens: masks, windows, and models that cannot be used.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::bench::{Bench, chat_line};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/model").join(name)
}

/// A project with successful runs of one task, and a model's files beside it.
fn project(lines: &[String]) -> Bench {
    let bench = Bench::new();
    for name in ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"] {
        bench.write(&format!("model/{name}"), std::fs::read(fixture(name)).unwrap());
    }
    bench.write("runs.jsonl", lines.concat());
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    bench
}

fn one() -> Bench {
    project(&[chat_line("one", "sum", Some(true), "hi, it is 4")])
}

const EXPORT: [&str; 7] = ["export", "--format", "trl-tokenized", "--model", "model", "--out", "rows"];

/// Exports, and reads the rows and the manifest.
fn exported(bench: &Bench, more: &[&str]) -> (Vec<Value>, Value) {
    bench.json(&[&EXPORT, more, &["--json"]].concat(), 0);
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    let rows =
        read("rows/success_sft.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (rows, serde_json::from_str(&read("rows/success_sft.manifest.json")).unwrap())
}

/// A conversation of so many questions and answers.
fn long(turns: usize) -> String {
    let turn = |number: usize| {
        [
            json!({"role": "user", "content": format!("question {number}")}),
            json!({"role": "assistant", "content": format!("answer {number}")}),
        ]
    };
    let messages: Vec<Value> = (0..turns).flat_map(turn).collect();
    format!("{}\n", json!({"id": "long", "task_id": "sum", "success": true, "messages": messages}))
}

#[test]
fn only_the_answer_and_the_end_of_the_turn_are_learned() {
    let (rows, manifest) = exported(&one(), &[]);
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    let pairs = row["input_ids"].as_array().unwrap().iter().zip(row["labels"].as_array().unwrap());
    let learned: Vec<u64> =
        pairs.filter(|(_, label)| **label != json!(-100)).map(|(id, _)| id.as_u64().unwrap()).collect();
    // `hi` is one token, then bytes; 258 ends the turn.
    let rest = ", it is 4".bytes().map(|byte| if byte == b' ' { 32 } else { u64::from(byte) });
    assert_eq!(learned, [[256].as_slice(), &rest.collect::<Vec<_>>(), &[258]].concat());
    assert_eq!(manifest["tokens"]["trained_tokens"], json!(learned.len()));
    assert_eq!(manifest["tokens"]["tokens"], json!(row["input_ids"].as_array().unwrap().len()));
    assert_eq!(manifest["tokens"]["retokenized"], json!(1));
}

#[test]
fn a_preview_marks_what_is_learned() {
    insta::assert_snapshot!(one().snapshot(&[&EXPORT, ["--preview", "1"].as_slice()].concat()));
}

#[test]
fn a_model_that_cannot_be_used_says_why_and_what_to_do() {
    let bench = one();
    let endless = "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}";
    let template = std::fs::read_to_string(fixture("chat_template.jinja")).unwrap();
    let mut said = Vec::new();
    for (name, source) in [
        ("broken", "{% if %}"),
        ("endless", endless),
        ("refusing", "{{ raise_exception('only Latin') }}"),
        ("dated", "{{ strftime_now('%Y') }}"),
        (
            "swelling",
            "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}x",
        ),
        ("another", &template.replace("<|im_end|>", "<|eot_id|>")),
    ] {
        bench.write(&format!("{name}.jinja"), source);
        said.push(bench.snapshot(&[&EXPORT, ["--template", &format!("{name}.jinja")].as_slice()].concat()));
    }
    let mut tokenizer: Value =
        serde_json::from_slice(&std::fs::read(fixture("tokenizer.json")).unwrap()).unwrap();
    tokenizer["model"]["vocab"]["hi"] = json!(104);
    bench.write("model/tokenizer.json", tokenizer.to_string());
    said.push(bench.snapshot(&EXPORT));
    bench.write("model/tokenizer.json", "{}");
    said.push(bench.snapshot(&EXPORT));
    said.push(bench.snapshot(&[&EXPORT[..3], &["--out", "rows"]].concat()));
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_template_finds_the_tokenizer_beside_it() {
    let bench = one();
    let (rows, _) = exported(&bench, &[]);
    let export = ["export", "--format", "trl-tokenized", "--out", "other", "--json"];
    bench.json(&[&export[..], &["--template", "model/chat_template.jinja"]].concat(), 0);
    let text = std::fs::read_to_string(bench.path("other/success_sft.jsonl")).unwrap();
    assert_eq!(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>(), rows);
}

#[test]
fn rows_of_text_are_proved_for_a_model_too() {
    let bench = project(&[
        chat_line("one", "sum", Some(true), "hi"),
        chat_line("two", "sum", Some(true), &"long ".repeat(500)),
    ]);
    let (_, tokens) = exported(&bench, &[]);
    for format in ["openai", "trl-messages", "parquet"] {
        let export = ["export", "success_sft", "--format", format, "--out", format, "--check", "--json"];
        let answer = bench.json(&[&export[..], &["--model", "model"]].concat(), 0);
        let expected = json!({"longer-than-the-context": 1});
        assert_eq!((&answer["rows"], &answer["refused"]), (&json!(1), &expected), "{format}");
        assert_eq!(
            (&answer["tokens"], answer["trained_tokens"].as_u64()),
            (&tokens["tokens"]["tokens"], Some(2))
        );
    }
    // What TRL compares or labels goes out as text.
    for (view, format) in
        [("preference", "trl-preference"), ("kto", "trl-kto"), ("success_sft", "trl-tokenized")]
    {
        let answer = bench
            .json(&["export", view, "--format", "trl", "--model", "model", "--out", "rows", "--json"], 0);
        assert_eq!(answer["format"], format);
    }
    // A limit without a model has no tokens to count.
    let limit = ["export", "--format", "openai", "--max-tokens", "9", "--out", "rows"];
    insta::assert_snapshot!(bench.snapshot(&limit));
}

#[test]
fn a_row_that_cannot_be_proved_is_refused_and_counted() {
    let spinning = "{% if 'spin' in messages | string %}{% for a in range(99999) %}{% for b in range(99999) %}x\
        {% endfor %}{% endfor %}{% endif %}";
    let template = std::fs::read_to_string(fixture("chat_template.jinja")).unwrap();
    let bench = project(&[
        chat_line("one", "sum", Some(true), "hi"),
        chat_line("two", "sum", Some(true), "spin"),
        chat_line("three", "sum", Some(true), " \n"),
        chat_line("four", "sum", Some(true), &"long ".repeat(500)),
    ]);
    bench.write("model/chat_template.jinja", format!("{spinning}{template}"));
    let (rows, manifest) = exported(&bench, &[]);
    assert_eq!(rows.len(), 1);
    let refused = json!({"longer-than-the-context": 1, "no-token-to-learn": 1, "template-does-not-end": 1});
    assert_eq!(manifest["refused"], refused);
}

#[test]
fn a_long_run_is_cut_between_turns_and_every_answer_is_learned_once() {
    let bench = project(&[long(12)]);
    let (whole, manifest) = exported(&bench, &[]);
    assert_eq!((whole.len(), &manifest["tokens"]["windows"]), (1, &json!(0)));
    let trained = manifest["tokens"]["trained_tokens"].clone();
    let (rows, manifest) = exported(&bench, &["--max-tokens", "200"]);
    assert!(rows.len() > 1);
    assert!(rows.iter().all(|row| row["input_ids"].as_array().unwrap().len() <= 200));
    assert_eq!(manifest["tokens"]["windows"], json!(rows.len()));
    assert_eq!(manifest["tokens"]["trained_tokens"], trained);
    assert_eq!(manifest["refused"], json!({}));
    // No room for even one turn.
    let (rows, manifest) = exported(&bench, &["--max-tokens", "20"]);
    assert_eq!((rows.len(), &manifest["refused"]), (0, &json!({"longer-than-the-context": 12})));
}

#[test]
fn a_token_over_an_edge_is_counted_or_refused() {
    let bench = project(&[chat_line("one", "sum", Some(true), "i")]);
    let template = std::fs::read_to_string(fixture("chat_template.jinja")).unwrap();
    // The header ends with the `h` of the pair `hi`.
    let template = template.replace("message.role + '\\n'", "message.role + '\\nh'");
    bench.write("model/chat_template.jinja", template.replace("assistant\\n'", "assistant\\nh'"));
    let (rows, manifest) = exported(&bench, &[]);
    assert_eq!((rows.len(), &manifest["tokens"]["straddling"]), (1, &json!(1)));
    let (rows, manifest) = exported(&bench, &["--strict"]);
    assert_eq!((rows.len(), &manifest["refused"]), (0, &json!({"token-over-an-edge": 1})));
}

#[test]
fn the_main_job_makes_rows_for_a_model_and_counts_their_tokens() {
    let bench = one();
    let (rows, manifest) = exported(&bench, &[]);
    let run = |more: &[&str]| bench.json(&[&["run", "runs.jsonl", "--json"], more].concat(), 0);
    let plain = run(&[]);
    assert_eq!(plain.get("tokens"), None);
    let for_model = run(&["--model", "model"]);
    assert_eq!(for_model["tokens"]["success_sft"], manifest["tokens"]);
    let read = |name: &str| std::fs::read_to_string(bench.path("recoup-out").join(name)).unwrap();
    let written: Vec<Value> =
        read("success_sft.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows, written);
    let tokens = manifest["tokens"]["tokens"].as_u64().unwrap();
    for page in ["report.html", "report.md"] {
        assert!(read(page).contains(&format!("{tokens} tokens, 11 of them learned")), "{}", read(page));
    }
    // Another call for the same model has nothing to write, one for none writes text again.
    let before = std::fs::metadata(bench.path("recoup-out/success_sft.jsonl")).unwrap().modified().unwrap();
    run(&["--model", "model"]);
    let after = std::fs::metadata(bench.path("recoup-out/success_sft.jsonl")).unwrap().modified().unwrap();
    assert_eq!(before, after);
    run(&[]);
    assert!(read("success_sft.jsonl").contains("\"messages\""));
    bench.write("broken.jinja", "{% if %}");
    let broken =
        ["run", "runs.jsonl", "--project", "other", "--model", "model", "--template", "broken.jinja"];
    assert_eq!(bench.output(&broken).status.code(), Some(2));
    assert!(!bench.path("other").exists(), "said before the work");
}
