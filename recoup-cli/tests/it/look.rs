//! Listing, showing, labelling, forgetting.

use crate::bench::{Bench, chat_line};

/// A project with three runs of one task: success, failure, unknown.
fn three() -> Bench {
    let bench = Bench::new();
    let text = [
        chat_line("one", "sum", Some(true), "the sum is 4"),
        chat_line("two", "sum", Some(false), "the sum is 5"),
        chat_line("three", "sum", None, "the sum is 6"),
    ];
    bench.write("runs.jsonl", text.concat());
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    bench
}

fn id(bench: &Bench, native: &str) -> String {
    let rows = bench.json_lines(&["ls", "--json"]);
    let row = rows.iter().find(|row| row["native_id"] == native).unwrap();
    row["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_list_has_one_line_a_run() {
    insta::assert_snapshot!(three().snapshot(&["ls"]));
}

#[test]
fn a_list_is_filtered_and_paged() {
    let bench = three();
    assert_eq!(bench.json_lines(&["ls", "--json", "--outcome", "failure"]).len(), 1);
    assert_eq!(bench.json_lines(&["ls", "--json", "--text", "sum is 6"]).len(), 1);
    assert_eq!(bench.json_lines(&["ls", "--json", "--format", "openai-chat"]).len(), 3);
    assert_eq!(bench.json_lines(&["ls", "--json", "-n", "2", "--offset", "1"]).len(), 2);
    assert_eq!(bench.json_lines(&["ls", "--json", "--model", "none"]).len(), 0);
    insta::assert_snapshot!(bench.snapshot(&["ls", "--outcome", "lost"]));
    let bogus = bench.snapshot(&["ls", "--format", "bogus"]);
    assert!(
        bogus.contains("error: `bogus` is no value of `--format`\n\nhint: use one of ")
            && bogus.contains(" tau2, "),
        "{bogus}"
    );
}

#[test]
fn every_row_has_the_promised_keys() {
    for row in three().json_lines(&["ls", "--json"]) {
        for key in ["id", "format", "task", "outcome", "blame", "nodes", "decisive_step"] {
            assert!(row.get(key).is_some(), "{key} in {row}");
        }
    }
}

#[test]
fn a_run_is_shown() {
    let bench = three();
    let id = id(&bench, "two");
    let text = bench.snapshot(&["show", &id[..16]]).replace(&id, "[id]");
    insta::assert_snapshot!(text);
}

#[test]
fn an_id_that_is_not_there_is_named() {
    insta::assert_snapshot!(three().snapshot(&["show", "ffff"]));
}

#[test]
fn a_label_decides_the_outcome_and_can_be_taken_back() {
    let bench = three();
    let id = id(&bench, "three");
    assert_eq!(
        bench.output(&["label", &id, "--outcome", "success", "--note", "looked at it"]).status.code(),
        Some(0)
    );
    assert_eq!(bench.json_lines(&["ls", "--json", "--outcome", "success"]).len(), 2);
    assert_eq!(bench.output(&["label", &id, "--outcome", "failure"]).status.code(), Some(0));
    let rows = bench.json_lines(&["ls", "--json", "--outcome", "failure"]);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["note"], "looked at it");
    insta::assert_snapshot!(bench.snapshot(&["label", &id]));
}

#[test]
fn a_forgotten_run_leaves_no_bytes() {
    let bench = three();
    let id = id(&bench, "three");
    insta::assert_snapshot!(bench.snapshot(&["forget", &id]).replace(&id, "[id]"));
    assert_eq!(bench.output(&["forget", &id, "--yes"]).status.code(), Some(0));
    assert_eq!(bench.json_lines(&["ls", "--json"]).len(), 2);
    for entry in std::fs::read_dir(bench.path(".recoup")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(8).any(|window| window == b"sum is 6"), "{}", path.display());
        }
    }
    assert_eq!(bench.output(&["verify"]).status.code(), Some(0));
}

#[test]
fn a_project_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = three();
    let mode = std::fs::metadata(bench.path(".recoup")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(std::fs::read_to_string(bench.path(".recoup/.gitignore")).unwrap(), "*\n");
}

#[test]
fn an_empty_pattern_forgets_nothing() {
    let bench = three();
    insta::assert_snapshot!(bench.snapshot(&["forget", "--matching", "", "--yes"]));
    assert_eq!(bench.json_lines(&["ls", "--json"]).len(), 3);
}

#[test]
fn a_line_feed_in_a_name_forges_no_row() {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("a", "t\nffffffffffff success forged", Some(false), "x"));
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    let output = bench.output(&["ls"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2, "{}", bench.render(&output));
    let json = bench.output(&["ls", "--json"]);
    assert!(json.stdout.is_ascii() && !json.stdout.contains(&0x7f));
}

#[test]
fn a_page_past_the_end_says_so() {
    let bench = three();
    insta::assert_snapshot!(bench.snapshot(&["ls", "--offset", "3"]));
    let last = bench.output(&["ls", "--offset", "2"]);
    assert!(last.stderr.is_empty(), "{}", bench.render(&last));
}

#[test]
fn an_empty_label_is_refused_and_a_note_changes_no_verdict() {
    let bench = three();
    let id = id(&bench, "two");
    for flag in ["--task", "--environment"] {
        let output = bench.output(&["label", &id, flag, " "]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(flag), "{flag}");
    }
    let noted = bench.output(&["label", &id, "--note", "odd"]);
    assert!(!String::from_utf8_lossy(&noted.stderr).contains("diagnose"));
    let judged = bench.output(&["label", &id, "--outcome", "success"]);
    assert!(String::from_utf8_lossy(&judged.stderr).contains("diagnose"));
}

#[test]
fn a_run_that_counts_as_solved_shows_no_blame() {
    let bench = three();
    let id = id(&bench, "two");
    assert_eq!(bench.output(&["diagnose"]).status.code(), Some(0));
    let shown = || String::from_utf8(bench.output(&["show", &id]).stdout).unwrap();
    assert!(shown().lines().any(|line| line.starts_with("blame")), "{}", shown());
    bench.output(&["label", &id, "--outcome", "success"]);
    assert!(!shown().lines().any(|line| line.starts_with("blame") || line.starts_with("class")));
}

#[test]
fn a_read_only_project_is_read_and_not_called_damaged() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = three();
    let id = id(&bench, "two");
    let set = |name: &str, mode| {
        std::fs::set_permissions(bench.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(".recoup/store.sqlite", 0o444);
    set(".recoup", 0o555);
    set(".", 0o777);
    if bench.powerless(&["--version"]).is_none() {
        return;
    }
    let powerless = |bench: &Bench, arguments: &[&str]| bench.powerless(arguments).unwrap();
    for arguments in [&["ls"][..], &["show", &id], &["stats"], &["verify"], &["ls", "--text", "sum is 6"]] {
        let output = powerless(&bench, arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?} {}", bench.render(&output));
    }
    assert_eq!(powerless(&bench, &["ls", "--json"]).stdout.split(|byte| *byte == b'\n').count(), 4);
    for arguments in [&["label", &id, "--note", "x"][..], &["import", "runs.jsonl"], &["gc"]] {
        let output = powerless(&bench, arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {text}");
        assert!(text.contains("the project is read-only"), "{arguments:?} {text}");
        assert!(!text.contains("import again"), "{arguments:?} {text}");
    }
    set(".recoup", 0o700);
}
