//! `import --explain`: who takes a file, why, and what would be lost.

use crate::bench::{Bench, chat_line};

#[test]
fn a_file_is_explained_and_nothing_is_stored() {
    let bench = Bench::new();
    let weighted = "{\"id\":\"c\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\",\"cache_control\":1}]}]}\n";
    bench.write("runs.jsonl", chat_line("a", "t", Some(true), "x") + weighted + "{\"messages\": [{\n");
    insta::assert_snapshot!(bench.snapshot(&["import", "--explain", "runs.jsonl"]));
    let told = bench.json(&["import", "--explain", "runs.jsonl", "--json"], 1);
    assert_eq!(told["taken"]["format"], "openai-chat");
    assert_eq!((told["runs"].as_u64(), told["quarantined_count"].as_u64()), (Some(2), Some(1)));
    assert!(!bench.path(".recoup").exists());
}

#[test]
fn a_file_that_nobody_takes_is_held_against_the_formats() {
    let bench = Bench::new();
    bench.write(
        "own.jsonl",
        "{\"session\":\"s1\",\"conversations\":[{\"speaker\":\"bot\",\"value\":\"hi\"}]}\n{\"session\":\"s2\"}\n",
    );
    insta::assert_snapshot!(bench.snapshot(&["import", "--explain", "own.jsonl"]));
    let told = bench.json(&["import", "--explain", "own.jsonl", "--json"], 1);
    assert!(told["taken"].is_null());
    assert_eq!(told["nearest"][0]["format"], "sharegpt");
}

#[test]
fn a_folder_is_explained_file_by_file() {
    let bench = Bench::new();
    bench.write("mixed/a.jsonl", chat_line("a", "t", None, "x"));
    bench.write("mixed/empty.jsonl", "");
    bench.write("mixed/notes.md", "# Notes\n");
    bench.write("mixed/report.json", "{\"resolved\": true}");
    bench.write("mixed/wide.jsonl", b"\xff\xfe{\0}\0");
    bench.write("mixed/z\u{1b}[31m.bin", [0_u8; 64]);
    insta::assert_snapshot!(bench.snapshot(&["import", "--explain", "mixed"]));
    std::fs::create_dir(bench.path("nothing")).unwrap();
    insta::assert_snapshot!(bench.snapshot(&["import", "--explain", "nothing"]));
    insta::assert_snapshot!(bench.snapshot(&["import", "--explain", "nowhere"]));
    insta::assert_snapshot!(bench.snapshot(&["import", "--explain", "--dry-run", "mixed"]));
}
