//! Files that are broken, hostile, or not there: a clear message, the right exit code, and everything
//! else imported.

use std::io::Write as _;
use std::process::Stdio;

use crate::bench::{Bench, chat_line};

/// One good run beside whatever is bad.
fn good() -> String {
    chat_line("good", "t", Some(false), "no idea")
}

#[test]
fn a_wrong_flag_is_named() {
    insta::assert_snapshot!(Bench::new().snapshot(&["run", "--frobnicate", "x"]));
}

#[test]
fn a_missing_path_is_named() {
    insta::assert_snapshot!(Bench::new().snapshot(&["run", "nowhere"]));
}

#[test]
fn an_empty_folder_is_no_project() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("empty")).unwrap();
    insta::assert_snapshot!(bench.snapshot(&["run", "empty"]));
    insta::assert_snapshot!(bench.snapshot(&["ls"]));
}

#[test]
fn a_folder_of_unrelated_files_says_so() {
    let bench = Bench::new();
    bench.write("stuff/README.md", "# Hello\n");
    bench.write("stuff/config.json", "{\"a\": 1}\n");
    insta::assert_snapshot!(bench.snapshot(&["run", "stuff"]));
}

#[test]
fn a_bad_line_costs_only_itself() {
    let bench = Bench::new();
    let text = format!("{}{{\"messages\": [{{\"role\"\n{}", good(), chat_line("b", "t", None, "x"));
    bench.write("runs.jsonl", text);
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl"]));
    let summary = bench.json(&["import", "runs.jsonl", "--json"], 1);
    assert_eq!(summary["trajectories"], 2);
    assert_eq!(summary["duplicates"], 2);
    assert_eq!(summary["quarantined"], 1);
}

#[test]
fn encodings_and_marks() {
    let bench = Bench::new();
    bench.write("bom.jsonl", format!("\u{feff}{}", good()));
    let utf16: Vec<u8> = format!("\u{feff}{}", good()).encode_utf16().flat_map(u16::to_le_bytes).collect();
    bench.write("utf16.jsonl", utf16);
    let mut latin = chat_line("latin", "t", None, "caf_").into_bytes();
    let at = latin.iter().rposition(|byte| *byte == b'_').unwrap();
    latin[at] = 0xe9;
    bench.write("latin.jsonl", latin);
    let summary = bench.json(&["import", "bom.jsonl", "latin.jsonl", "--json"], 0);
    assert_eq!(summary["trajectories"], 2);
    assert_eq!(bench.output(&["import", "utf16.jsonl"]).status.code(), Some(1));
}

#[test]
fn python_numbers_and_lone_surrogates_are_read_with_a_loss() {
    let bench = Bench::new();
    let text = r#"{"id":"a","reward":NaN,"messages":[{"role":"user","content":"hi \ud83d"},{"role":"assistant","content":"x"}]}"#;
    bench.write("runs.jsonl", format!("{text}\n"));
    let summary = bench.json(&["import", "runs.jsonl", "--json"], 0);
    assert_eq!(summary["trajectories"], 1);
    let text = bench.snapshot(&["import", "runs.jsonl"]);
    assert!(text.contains("lone surrogate became U+FFFD"), "{text}");
}

#[test]
fn a_record_above_the_limit_is_quarantined() {
    let bench = Bench::new();
    let huge = chat_line("huge", "t", None, &"x".repeat(100_000));
    bench.write("runs.jsonl", format!("{}{huge}{}", good(), chat_line("c", "t", None, "y")));
    let summary = bench.json(&["import", "runs.jsonl", "--max-record", "50kB", "--json"], 1);
    assert_eq!((summary["trajectories"].as_u64(), summary["quarantined"].as_u64()), (Some(2), Some(1)));
    let summary = bench.json(&["import", "runs.jsonl", "--json"], 0);
    assert_eq!(summary["new"], 1);
}

#[test]
fn deep_nesting_and_duplicate_keys_are_survived() {
    let bench = Bench::new();
    let deep = format!("{{\"messages\":{}\n", "[".repeat(200_000));
    let twice = r#"{"id":"a","id":"b","messages":[{"role":"user","content":"hi"}]}"#;
    bench.write("runs.jsonl", format!("{}{deep}{twice}\n", good()));
    let summary = bench.json(&["import", "runs.jsonl", "--json"], 1);
    assert!(summary["trajectories"].as_u64() >= Some(1), "{summary}");
}

#[test]
fn links_and_pipes_in_a_folder_are_passed_over() {
    let bench = Bench::new();
    bench.write("runs/a.jsonl", good());
    bench.write("secret.jsonl", chat_line("secret", "t", None, "x"));
    std::os::unix::fs::symlink("../secret.jsonl", bench.path("runs/link.jsonl")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(bench.path("runs/pipe.jsonl")).status().unwrap();
    assert!(made.success());
    let summary = bench.json(&["import", "runs", "--json"], 0);
    assert_eq!(summary["trajectories"], 1);
}

#[test]
fn files_and_folders_that_may_not_be_read_are_named_and_the_rest_is_imported() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    bench.write("runs/a.jsonl", good());
    bench.write("runs/locked.jsonl", chat_line("locked", "t", None, "x"));
    bench.write("runs/shut/b.jsonl", chat_line("shut", "t", None, "x"));
    let set = |name: &str, mode| {
        std::fs::set_permissions(bench.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(".", 0o777);
    set("runs/locked.jsonl", 0);
    set("runs/shut", 0);
    let read = bench.powerless(&["import", "runs"]);
    let summary = bench.powerless(&["import", "runs", "--json"]);
    set("runs/shut", 0o700);
    let (Some(read), Some(summary)) = (read, summary) else { return };
    let text = bench.render(&read);
    assert_eq!(read.status.code(), Some(1), "{text}");
    for said in ["cannot read runs/locked.jsonl: ", "cannot read runs/shut: ", "imported 1 run from 1 file"] {
        assert!(text.contains(said), "{said} in {text}");
    }
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout).unwrap();
    assert_eq!((&summary["trajectories"], &summary["unreadable"]), (&1.into(), &2.into()), "{summary}");
}

#[test]
fn a_full_disk_is_said_with_the_file_and_what_to_do() {
    let bench = Bench::new();
    let mut state = 1_u64;
    let mut words = || {
        let mut text = String::new();
        for _ in 0..60_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push(if state >> 60 == 0 { ' ' } else { char::from(b'a' + (state >> 40) as u8 % 26) });
        }
        text
    };
    let long = chat_line("long", "t", Some(true), &words()) + &chat_line("other", "u", Some(true), &words());
    bench.write("runs.jsonl", long);
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    let many: String =
        (0..150).map(|task| chat_line(&task.to_string(), &task.to_string(), Some(false), "no")).collect();
    bench.write("many.jsonl", many);
    assert_eq!(
        bench.output(&["run", "many.jsonl", "--project", "many", "--out", "before"]).status.code(),
        Some(0)
    );
    for (file, arguments) in [
        ("success_sft.jsonl", &["export", "success_sft", "--format", "trl", "--out", "out"][..]),
        ("success_sft.parquet", &["export", "success_sft", "--format", "parquet", "--out", "out"]),
        (".atif.json", &["export", "--format", "atif", "--out", "out"]),
        ("traces.parquet", &["release", "--out", "out"]),
        ("report.", &["run", "many.jsonl", "--project", "many", "--out", "out"]),
    ] {
        let output = bench.on_small_disk(80, arguments).output().unwrap();
        let text = bench.render(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {text}");
        for said in ["error: cannot write out/", file, "hint: make room"] {
            assert!(text.contains(said), "{arguments:?}: {said} in {text}");
        }
        // With room it is whole.
        assert_eq!(bench.output(arguments).status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn compressed_files_archives_and_standard_input_work() {
    let bench = Bench::new();
    bench.write("a.jsonl", good());
    for (program, name) in [("gzip", "a.jsonl.gz"), ("zstd", "a.jsonl.zst")] {
        let packed = std::process::Command::new(program).arg("-kq").arg(bench.path("a.jsonl")).status();
        if packed.is_ok_and(|status| status.success()) {
            let summary =
                bench.json(&["import", name, "--json", "--project", name.rsplit('.').next().unwrap()], 0);
            assert_eq!(summary["new"], 1, "{name}");
        } else {
            eprintln!("SKIPPED: no `{program}`");
        }
    }
    let mut child = bench
        .command(&["import", "-", "--json", "--project", "stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(good().as_bytes()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn a_file_that_cannot_be_unpacked_makes_no_project() {
    for (name, bytes) in [
        ("plain.jsonl.gz", "no gzip"),
        ("broken.jsonl.gz", "\u{1f}\u{8b}"),
        ("broken.jsonl.zst", "no zstd"),
        ("broken.zip", "PK\u{3}\u{4}nothing more"),
    ] {
        let bench = Bench::new();
        bench.write(name, bytes);
        bench.write("notes.txt", "no trace");
        let refused = bench.output(&["import", name, "notes.txt"]);
        let text = bench.render(&refused);
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("error: `{name}`: ")), "{text}");
        assert!(!bench.path(".recoup").exists());
    }
}

#[test]
fn an_unreadable_settings_file_is_named() {
    let bench = Bench::new();
    bench.write("recoup.toml", "[import]\nsucces_at = 1.0\n");
    bench.write("a.jsonl", good());
    insta::assert_snapshot!(bench.snapshot(&["import", "a.jsonl"]));
}

#[test]
fn a_project_that_is_no_project_is_named() {
    let bench = Bench::new();
    bench.write(".recoup/store.sqlite", "this is not a database, but long enough to look at".repeat(30));
    bench.write("a.jsonl", good());
    let output = bench.output(&["import", "a.jsonl"]);
    assert_eq!(output.status.code(), Some(2), "{}", bench.render(&output));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("store.sqlite"), "{text}");
}

#[test]
fn escape_sequences_in_a_trace_never_reach_the_terminal() {
    let bench = Bench::new();
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}";
    bench.write("a.jsonl", chat_line("a", hostile, Some(false), hostile));
    assert_eq!(bench.output(&["run", "a.jsonl"]).status.code(), Some(0));
    let id = bench.json_lines(&["ls", "--json"])[0]["id"].as_str().unwrap().to_owned();
    for arguments in [&["ls"][..], &["show", &id]] {
        let output = bench.output(arguments);
        assert!(!output.stdout.contains(&0x1b) && !output.stdout.contains(&0x07), "{arguments:?}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains('\u{202e}'), "{arguments:?}");
    }
}

#[test]
fn a_report_of_somebody_else_is_not_overwritten() {
    let bench = Bench::new();
    bench.write("runs.jsonl", good());
    for name in ["report.html", "report.md", "report.json"] {
        bench.write(&format!("out/{name}"), "mine");
        let refused = bench.output(&["run", "runs.jsonl", "--out", "out"]);
        assert_eq!(refused.status.code(), Some(2), "{name}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(name) && said.contains("hint: name another folder with `--out DIR`"), "{said}");
        assert_eq!(std::fs::read_to_string(bench.path("out").join(name)).unwrap(), "mine");
        assert!(!bench.path(".recoup").exists(), "said before the work");
        std::fs::remove_file(bench.path("out").join(name)).unwrap();
    }
    // Its own are.
    for _ in 0..2 {
        assert_eq!(bench.output(&["run", "runs.jsonl", "--out", "out"]).status.code(), Some(0));
        bench.write("runs.jsonl", chat_line("other", "t", Some(false), "no idea either"));
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_said_to_programs_too() {
    let bench = Bench::new();
    let answer = bench.json(&["ls", "--no-such-flag", "--json"], 2);
    assert_eq!(answer["error"]["code"], "usage", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("--no-such-flag"), "{answer}");
    let help = bench.output(&["ls", "--help", "--json"]);
    assert_eq!(help.status.code(), Some(0), "{}", bench.render(&help));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_behind_standard_output_is_said() {
    let bench = Bench::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = bench.command(&["env", "list"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: cannot write standard output: "), "{said}");
}

#[test]
fn a_dry_run_tells_what_is_read_with_a_trace_and_what_cannot_be_read() {
    let bench = Bench::new();
    bench.write("runs/report.json", "{\"resolved_ids\": []}");
    bench.write("runs/README.md", "# Runs\n");
    let output = bench.output(&["import", "runs", "--dry-run"]);
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
    assert_eq!(said, "not a trace      runs/README.md\nbeside a trace   runs/report.json\n");
    bench.write("runs/broken.zip", "PK\u{3}\u{4}nothing more");
    assert_eq!(bench.output(&["import", "runs", "--dry-run"]).status.code(), Some(1));
}
