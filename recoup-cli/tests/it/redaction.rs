//! Nothing that was planted in a trace stands in any file that the program writes.

use std::path::Path;

use serde_json::json;

use crate::bench::Bench;

/// Made-up secrets, by the context that they are planted in (`{}` is the secret). Each is put together
/// here from two pieces, so that no scanner of this repository takes it for a real one.
fn planted() -> Vec<(&'static str, String)> {
    let hex = "0123456789abcdef";
    let join = |pieces: &[&str]| pieces.concat();
    vec![
        ("{}", join(&["sk-proj-", "abcD3fghIjkLmn0pQrsTuv"])),
        ("{}", join(&["sk-ant-", "api03-abcdefgh1jklmnop-qrstuv"])),
        ("{}", join(&["ghp_", "0123456789abcdefABCDEF0123456789abcd"])),
        ("{}", join(&["github_pat_", "11ABCDEFG0abcdefghijkl_0123456789"])),
        ("{}", join(&["glpat-", "abcDEF123ghiJKL456mn"])),
        ("{}", join(&["xoxb-", "123456789012-abcdefABCDEF"])),
        ("{}", join(&["sk_live_", "aBcDeFgHiJkLmNoPqRsTuVwX"])),
        ("{}", join(&["sk_test_", "4eC39HqLyjWDarjtT1zdp7dc"])),
        ("{}", join(&["rk_live_", "zYxWvUtSrQpOnMlKjIhGfEdC"])),
        ("{}", join(&["AIza", "SyA1234567890abcdefghijklmnopqrstuv"])),
        ("{}", join(&["hf_", "abcdefghijklmnopqrstuvwxyz0123456789"])),
        ("{}", join(&["npm_", "abcdefghijklmnopqrstuvwxyz0123456789"])),
        ("{}", join(&["pypi-AgEI", "cHlwaS5vcmcCJDU4NzQ3"])),
        ("{}", join(&["sq0atp-", "Ab1_cdefghijklmnopqrst"])),
        ("{}", join(&["SG.", "abcdefghij0123456789kl.mnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRS"])),
        ("{}", join(&["dop_v1_", &hex.repeat(4)])),
        ("{}", join(&["AC", &hex.repeat(2)])),
        ("{}", join(&["eyJhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g"])),
        ("AKIAIOSFODNN7EXAMPLE {}", join(&["wJalrXUtnFEMI/K7MDENG", "+bPxRfiCYEXAMPLEKEY"])),
        ("https://a.example/c?sv=1&sig={}", join(&["aBc1dEf2gHi3jKl4mNo5", "pQr6sTu7vWx8%2ByZ90%3D"])),
        ("Authorization: Bearer {}", join(&["q8Zr2LmX0vTn5KdW", "9sHb4PjC"])),
        ("postgres://app:{}@db.internal/main", join(&["pl3nty0f", "Sunsh1ne"])),
        ("password: \"{}\"", join(&["hunter2!", "Tr0ub4dor"])),
        (
            "{}",
            join(&[
                "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq",
                "hkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
            ]),
        ),
        ("{}", join(&["mia.li3818@", "example.com"])),
        ("{}", join(&["4111 1111 ", "1111 1111"])),
        ("{}", join(&["078-05-", "1120"])),
        ("{}", join(&["GB82WEST", "12345698765432"])),
        ("{}", join(&["(415) 555", "-0132"])),
        ("{}", join(&["020 7946", " 0958"])),
        ("{}", join(&["+44 20 ", "7946 0911"])),
        ("{}", join(&["93.184.", "216.34"])),
    ]
}

/// A failed run about one secret: in the question, a call's arguments, its result, which is an error
/// that comes again, and the answer.
fn run(index: usize, text: &str, secret: &str) -> String {
    let call = |id: &str| {
        json!({ "role": "assistant", "content": format!("I use {text} now."), "tool_calls": [
            { "id": id, "type": "function", "function":
                { "name": "connect", "arguments": json!({ "to": text, "n": 1 }).to_string() } },
        ]})
    };
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": format!("Error: cannot use {text} here") });
    let half = secret.len() / 2;
    let row = json!({
        "id": format!("run-{index}"), "task_id": format!("task-{index}"), "success": false,
        "model": "m",
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": format!("connect with {text} please") },
                { "type": "text", "text": format!("again: {}", text.replace(secret, &secret[..half])) },
                { "type": "text", "text": format!("{} !", &secret[half..]) },
            ]},
            call("a"), result("a"), call("b"), result("b"), call("c"), result("c"),
            { "role": "assistant", "content": format!("The connection with {text} has been made.") },
        ],
    });
    format!("{row}\n")
}

/// A solved run whose names are secrets.
fn named(index: usize, secret: &str) -> String {
    let row = json!({
        "id": secret, "task_id": secret, "success": index.is_multiple_of(2), "model": secret, "agent": secret,
        "tools": [{ "type": "function", "function": { "name": secret, "description": secret,
            "parameters": { "type": "object", "properties": {} } } }],
        "messages": [
            { "role": "user", "content": format!("number {index}") },
            { "role": "assistant", "name": secret, "content": "", "tool_calls": [
                { "id": secret, "type": "function", "function": { "name": secret, "arguments": "{}" } },
            ]},
            { "role": "tool", "name": secret, "tool_call_id": secret, "content": format!("ok {index}") },
            { "role": "assistant", "content": "done" },
        ],
    });
    format!("{row}\n")
}

fn texts_below(folder: &Path, out: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            texts_below(&path, out);
        } else {
            out.push((name, String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()));
        }
    }
}

#[test]
fn nothing_planted_stands_in_any_output() {
    let bench = Bench::new();
    let planted = planted();
    let in_names = ["sk-proj-", "ghp_", "hf_", "mia.li", "AC0"];
    let mut lines = String::new();
    for (index, (context, secret)) in planted.iter().enumerate() {
        lines.push_str(&run(index, &context.replace("{}", secret), secret));
        if in_names.iter().any(|prefix| secret.starts_with(prefix)) {
            lines.push_str(&named(index, secret));
        }
    }
    let name = format!("{}.jsonl", planted[0].1);
    bench.write(&format!("traces/{name}"), lines);
    let summary = bench.json(&["run", "traces", "--json"], 0);
    assert!(summary["exported"]["success_sft"].as_u64() > Some(1), "{summary}");
    let export = bench.json(&["export", "--format", "atif", "--out", "atif", "--json"], 0);
    assert_eq!(export["refused"], json!([]));

    let mut outputs = Vec::new();
    texts_below(&bench.path("recoup-out"), &mut outputs);
    texts_below(&bench.path("atif"), &mut outputs);
    assert!(outputs.len() > planted.len(), "{}", outputs.len());
    let mut leaks = Vec::new();
    for (_, secret) in &planted {
        let json = json!(secret).to_string();
        // The domain alone tells nobody.
        let half = if secret.contains('@') { 0 } else { secret.len() / 2 };
        let halves = [&secret[..half.max(10)], &secret[half.min(secret.len() - 10)..]];
        for wanted in halves.into_iter().chain([json.trim_matches('"')]) {
            for (name, text) in &outputs {
                if text.contains(wanted) {
                    leaks.push(format!("{wanted} in {name}"));
                }
            }
        }
    }
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[test]
fn a_run_without_messages_is_refused_as_a_document() {
    let bench = Bench::new();
    let empty = |number: u32| {
        let row =
            json!({ "id": format!("empty-{number}"), "task_id": "t", "success": false, "messages": [] });
        format!("{row}\n")
    };
    let rows: String = (0..12).map(empty).collect();
    bench.write("traces/runs.jsonl", rows + &crate::bench::chat_line("full", "u", Some(true), "yes"));
    bench.output(&["import", "traces"]);
    let runs = bench.json_lines(&["ls", "--json"]);
    let output = bench.output(&["export", "--format", "atif", "--out", "atif"]);
    let text = bench.render(&output);
    assert_eq!((runs.len(), output.status.code()), (13, Some(1)), "{runs:?}");
    for said in ["wrote 1 file", "12 runs not written: it has no messages", "and 2 more runs"] {
        assert!(text.contains(said), "{said} in {text}");
    }
}
