//! Files that hold one bad byte or key, and files of which nothing can be read.

use crate::bench::{Bench, chat_line};

#[test]
fn a_stray_nul_byte_costs_one_record() {
    let bench = Bench::new();
    let bad = chat_line("bad", "t", None, "_").replace('_', "\0").replace("\\u0000", "\0");
    let good = chat_line("good", "t", Some(false), "no idea");
    bench.write("a.jsonl", format!("{bad}{good}"));
    let summary = bench.json(&["import", "a.jsonl", "--json"], 1);
    assert_eq!((summary["trajectories"].as_u64(), summary["quarantined"].as_u64()), (Some(1), Some(1)));
}

#[test]
fn what_cannot_be_read_says_why() {
    let bench = Bench::new();
    let text = format!("\u{feff}{}", chat_line("a", "t", None, "x"));
    bench.write("utf16.jsonl", text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>());
    bench.write("utf32.jsonl", text.chars().flat_map(|c| (c as u32).to_le_bytes()).collect::<Vec<u8>>());
    bench.write("cut.eval", "PK\u{3}\u{4}and no more");
    bench.write("text.eval", "no archive");
    bench.write("good.jsonl", chat_line("good", "t", None, "x"));
    for (name, word) in [
        ("utf16.jsonl", "UTF-16"),
        ("utf32.jsonl", "UTF-32"),
        ("cut.eval", "rchive"),
        ("text.eval", "rchive"),
    ] {
        let text = bench.snapshot(&["import", "good.jsonl", name]);
        assert!(text.starts_with("exit: 1") && text.contains(word) && text.contains(name), "{text}");
    }
}

#[test]
fn a_key_that_stands_twice_is_said() {
    let bench = Bench::new();
    let message = r#"{"role":"assistant","content":"x","content":"y"}"#;
    let line = |id: &str, inner: &str| {
        format!(r#"{{"id":"{id}",{inner}"messages":[{{"role":"user","content":"hi"}},{message}]}}"#) + "\n"
    };
    bench.write("message.jsonl", line("a", ""));
    bench.write(
        "top.jsonl",
        line("b", r#""success":false,"success":true,"#)
            .replace(message, r#"{"role":"assistant","content":"{\"a\":1,\"a\":2}"}"#),
    );
    bench.write("fine.jsonl", chat_line("c", "t", None, r#"{"a":1,"a":2}"#));
    for (name, expected) in [("message.jsonl", true), ("top.jsonl", true), ("fine.jsonl", false)] {
        let text = bench.snapshot(&["import", name]);
        assert_eq!(text.contains("duplicate key"), expected, "{text}");
    }
    assert_eq!(bench.json_lines(&["ls", "--json", "--outcome", "success"]).len(), 1, "the last one counts");
}
