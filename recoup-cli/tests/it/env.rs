//! Environments: listed, checked, played by hand, exported.

use std::io::Write as _;
use std::process::{Output, Stdio};

use recoup::environments::bundled;
use serde_json::Value;

use crate::bench::Bench;

/// Runs a command with lines on its standard input.
pub fn typed(bench: &Bench, arguments: &[&str], lines: &str) -> Output {
    let mut child = bench
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn bundled_environments_are_listed() {
    let bench = Bench::new();
    let rows = bench.json_lines(&["env", "list", "--json"]);
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(names.contains(&"quest"), "{names:?}");
    let listed = text(&bench.output(&["env", "list"]).stdout);
    for row in &rows {
        for key in ["name", "version", "interface"] {
            assert!(listed.contains(row[key].as_str().unwrap()), "{listed}");
        }
        assert!(row["families"].as_array().is_some_and(|families| families.len() >= 3), "{row}");
    }
}

#[test]
fn a_check_gives_one_line_a_gate() {
    let bench = Bench::new();
    let check = ["env", "check", "quest", "--seeds", "12", "--cheater-seeds", "12"];
    let json = bench.json(&[&check[..], &["--json"]].concat(), 0);
    assert_eq!(json["admitted"], true, "{json}");
    let gates = json["gates"].as_array().unwrap();
    let names: Vec<&str> = gates.iter().filter_map(|gate| gate["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "loads",
            "solvable",
            "no-op",
            "cheaters",
            "mutants",
            "alternatives",
            "deterministic",
            "no-leak",
            "interface",
            "distinct"
        ]
    );
    for gate in gates {
        let keys: Vec<&String> = gate.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["name", "passed", "figure", "rule"]);
    }
    let output = bench.output(&check);
    let shown = text(&output.stdout);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), gates.len() + 1, "{shown}");
    assert!(lines[0].starts_with("pass loads"), "{shown}");
    assert!(lines[gates.len()].ends_with(": admitted"), "{shown}");
}

#[test]
fn some_gates_run_alone_and_admit_nothing() {
    let bench = Bench::new();
    let check = ["env", "check", "quest", "--seeds", "24", "--gate", "solvable,interface"];
    let json = bench.json(&[&check[..], &["--json"]].concat(), 0);
    assert_eq!(json["admitted"], false, "{json}");
    assert_eq!(json["gates"].as_array().unwrap().len(), 2, "{json}");
    assert!(text(&bench.output(&check).stdout).ends_with("these gates passed; all of them admit\n"));
    // Against the tools of a target, which has one of another shape.
    let go = r#"{"type":"function","function":{"name":"go","description":"","parameters":{"type":"object","properties":{}}}}"#;
    bench.write("target.json", format!("[{go}]"));
    let against = bench.json(&[&check[..], &["--target", "target.json", "--json"]].concat(), 1);
    let interface = &against["gates"][1];
    assert_eq!(interface["passed"], false, "{interface}");
    assert!(interface["figure"].as_str().unwrap().ends_with("is no tool of the target"), "{interface}");
    bench.write("target.json", "{}");
    insta::assert_snapshot!(bench.snapshot(&[&check[..], &["--target", "target.json"]].concat()));
    let unknown = bench.output(&["env", "check", "quest", "--gate", "luck"]);
    assert!(text(&unknown.stderr).contains("possible values: loads, solvable"), "{}", bench.render(&unknown));
}

#[test]
fn what_is_no_environment_is_named() {
    let bench = Bench::new();
    bench.write("folder/README.md", "no environment");
    for arguments in [
        &["env", "check", "moon"][..],
        &["env", "play", "moon"],
        &["env", "serve", "moon"],
        &["env", "export", "moon", "--to", "harbor", "--out", "out"],
        &["env", "check", "folder"],
    ] {
        let output = bench.output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.starts_with("error: "), "{said}");
        assert!(said.contains(arguments[2]), "{said}");
    }
    let said = text(&bench.output(&["env", "check", "moon"]).stderr);
    assert!(said.contains("hint: environments are") && said.contains("quest"), "{said}");
    let failure = bench.json(&["env", "check", "moon", "--json"], 2);
    assert_eq!(failure["error"]["code"], "no-environment");
    insta::assert_snapshot!(bench.snapshot(&["env", "play", "quest", "--family", "fly"]));
    insta::assert_snapshot!(bench.snapshot(&["env", "play", "quest", "--difficulty", "4"]));
}

#[test]
fn a_task_is_played_by_hand() {
    let bench = Bench::new();
    let play = ["env", "play", "quest", "--seed", "2", "--family", "fetch"];
    let all = ":expert\n".repeat(60);
    let output = typed(&bench, &play, &all);
    assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
    let shown = text(&output.stdout);
    assert!(shown.contains("goal: ") && shown.contains("fetch"), "{shown}");
    assert!(shown.lines().last().unwrap().contains("success, score 1"), "{shown}");

    // The same through JSON: one object a line, the verdict last.
    let output = typed(&bench, &[&play[..], &["--json"]].concat(), &all);
    let rows: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows[0]["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    let end = rows.last().unwrap();
    assert_eq!((&end["success"], &end["seed"], &end["family"]), (&true.into(), &4.into(), &"fetch".into()));
    assert_eq!(
        end["steps"].as_u64().unwrap() as usize,
        rows.iter().filter(|row| row["done"].is_boolean()).count()
    );
}

#[test]
fn a_step_is_taken_back() {
    let bench = Bench::new();
    let states = |lines: &str| {
        let output = typed(&bench, &["env", "play", "quest", "--json"], lines);
        let rows = text(&output.stdout);
        let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.filter(|row| row["state"].is_object()).map(|row| row["hash"].clone()).collect::<Vec<_>>()
    };
    let hashes = states(":state\n:expert\n:state\n:undo\n:state\n:undo\n:expert\n:state\n");
    assert_eq!((hashes.len(), &hashes[0], &hashes[1]), (4, &hashes[2], &hashes[3]));
    assert_ne!(hashes[0], hashes[1]);
}

#[test]
fn every_way_of_typing_works() {
    let bench = Bench::new();
    let lines = "look\ngo direction=up\ngo {\"direction\": \"up\"}\ngo up\nfly {\"to\": \"moon\"}\n:frobnicate\n:help\n:tools\n\
                 :policy\n:score\nI give up.\nlook\n:quit\nlook\n";
    let output = typed(&bench, &["env", "play", "quest"], lines);
    assert_eq!(output.status.code(), Some(0));
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(shown.matches("must be one of").count(), 2, "{shown}");
    assert!(shown.contains("there is no tool \"fly\""), "{shown}");
    assert!(shown.contains("direction= string: north"), "{shown}");
    assert!(said.contains("`:say go up` says it as words"), "{said}");
    assert!(said.contains("there is no command `:frobnicate`"), "{said}");
    assert!(said.contains("the episode has ended; `:undo`"), "{said}");
    assert!(shown.lines().last().unwrap().contains("no success, score 0"), "{shown}");
}

#[test]
fn a_closed_input_ends_the_play_with_the_score() {
    let bench = Bench::new();
    let output = bench.output(&["env", "play", "quest"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).lines().last().unwrap().starts_with("0 steps. no success"));
}

#[test]
fn nothing_that_an_environment_says_reaches_the_terminal_as_a_control() {
    let bench = Bench::new();
    // The environment repeats what it does not know.
    let output = typed(
        &bench,
        &["env", "play", "quest"],
        "examine object=\u{1b}[2J\u{202e}x\nexamine {\"item\":\"\\u001b[2J\"}\n",
    );
    assert!(!output.stdout.contains(&0x1b), "{}", text(&output.stdout));
    assert!(!text(&output.stdout).contains('\u{202e}'));
}

#[test]
fn an_export_never_overwrites() {
    let bench = Bench::new();
    write_dials(&bench, "dials", |program| program);
    let export = ["env", "export", "dials", "--trust", "--to", "verifiers", "--out", "out", "--seeds", "3"];
    let done = bench.json(&[&export[..], &["--json"]].concat(), 0);
    assert_eq!((&done["tasks"], &done["files"]), (&3.into(), &done["new"]));
    let readme = bench.write("out/README.md", "mine");
    let again = bench.json(&[&export[..], &["--json"]].concat(), 0);
    assert_eq!(again["new"], 0);
    bench.write("out/pyproject.toml", "mine");
    insta::assert_snapshot!(bench.snapshot(&export));
    assert_eq!(std::fs::read_to_string(bench.path("out/pyproject.toml")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(readme).unwrap(), "mine");
}

/// The smallest package that is admitted, changed.
fn write_dials(bench: &Bench, folder: &str, change: impl Fn(String) -> String) {
    let fixture =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../recoup/tests/fixtures/environments/dials");
    let read = |name: &str| std::fs::read_to_string(fixture.join(name)).unwrap();
    bench.write(&format!("{folder}/environment.toml"), read("environment.toml"));
    bench.write(&format!("{folder}/environment.star"), change(read("environment.star")));
}

#[test]
fn no_environment_may_repeat_a_held_out_task() {
    let bench = Bench::new();
    let check = [
        "env",
        "check",
        "quest",
        "--gate",
        "no-leak",
        "--seeds",
        "6",
        "--held-out",
        "held-out.txt",
        "--json",
    ];
    bench.write("held-out.txt", "A question of another world, which nobody in these rooms was ever asked.\n");
    let figure =
        |json: &serde_json::Value| json["gates"][0]["figure"].as_str().unwrap_or_default().to_owned();
    assert_eq!(figure(&bench.json(&check, 0)), "0 of 6 seeds leak");
    let task = bundled::open("quest").unwrap().unwrap().generate(0, 1).unwrap();
    bench.write("held-out.txt", task.goal.replace('\n', " "));
    let said = figure(&bench.json(&check, 1));
    assert!(said.contains(" of 6 seeds leak, such as \""), "{said}");
    bench.write("held-out.txt", "quest-17\nquest-18\n");
    let said = bench.json(&check, 2);
    assert_eq!(said["error"]["message"], "`--held-out` names ids alone, with which nothing can be compared");
    bench.write("held-out.txt", "");
    let said = bench.json(&check, 2);
    assert_eq!(
        said["error"]["message"], "`held-out.txt` is no list of tasks: it names no id and no text",
        "{said}"
    );
}

#[test]
fn a_folder_is_checked_and_exported_only_when_admitted() {
    let bench = Bench::new();
    write_dials(&bench, "good", |program| program);
    write_dials(&bench, "paid", |program| program.replace("else 0.0,", "else 0.1,"));
    let seeds = ["--seeds", "60", "--cheater-seeds", "60", "--trust", "--json"];
    assert_eq!(bench.json(&[&["env", "check", "good"][..], &seeds].concat(), 0)["admitted"], true);
    let refused = bench.json(&[&["env", "check", "paid"][..], &seeds].concat(), 1);
    let failed = refused["gates"].as_array().unwrap().iter().filter(|gate| gate["passed"] == false);
    assert_eq!(failed.map(|gate| &gate["name"]).collect::<Vec<_>>(), ["no-op", "cheaters"]);

    let export = |folder: &str| {
        bench.output(&["env", "export", folder, "--trust", "--to", "harbor", "--out", "out", "--seeds", "2"])
    };
    let output = export("paid");
    assert_eq!(output.status.code(), Some(2), "{}", bench.render(&output));
    let said = text(&output.stderr);
    assert!(
        said.contains("is not admitted:\n  no-op: ") && said.contains("hint: `recoup env check paid`"),
        "{said}"
    );
    assert!(!bench.path("out").exists());
    let output = export("good");
    assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
    assert!(bench.path("out/dials-three-0/task.toml").is_file());
}
