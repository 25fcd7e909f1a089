//! Bridges: children that keep the protocol and children that do not.

use std::ffi::OsString;
use std::path::Path;

use recoup::environments::child::{ALLOWED_VARIABLES, ChildCommand};
use recoup::environments::{
    Action, CheckpointKind, Environment, EnvironmentError, Fault, Opening, State, open,
};
use recoup::json::Json;

use crate::broken::{first_error, folders, told};

fn opening(trust: bool) -> Opening {
    let variables =
        ALLOWED_VARIABLES.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let worker = ChildCommand { program: "true".into(), arguments: Vec::new(), variables: Vec::new() };
    Opening { worker, variables: variables.collect(), trust }
}

fn child(name: &str) -> Box<dyn Environment> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/environments/bad-children").join(name);
    open(folder.to_str().unwrap(), &opening(true)).unwrap()
}

fn add() -> Action {
    Action::call("add", Json::parse("{}").unwrap())
}

#[test]
fn each_bad_child_is_an_error_and_the_next_one_goes_on() {
    let mut list = String::new();
    for folder in folders("bad-children") {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let error = match open(folder.to_str().unwrap(), &opening(true)) {
            Ok(environment) => first_error(&*environment),
            Err(error) => Some(error),
        };
        let told = error.map_or_else(|| "no error".to_owned(), |error| told(&error));
        list.extend([name, ": ", &told, "\n"]);
    }
    insta::assert_snapshot!(list);
}

#[test]
fn a_state_is_the_actions_so_far_and_is_reached_again() {
    let environment = child("well-behaved");
    assert_eq!(environment.identity().checkpoint, CheckpointKind::Prefix);
    let task = environment.generate(7, 2).unwrap();
    let mut instance = environment.open(&task).unwrap();
    let (start, shown) = instance.start().unwrap();
    assert_eq!((start.as_str(), shown.as_str()), ("[]", "0"));
    let (one, _) = instance.step(&start, &add()).unwrap();
    let (two, step) = instance.step(&one, &add()).unwrap();
    assert_eq!(step.observation, "2");
    assert_eq!(one.as_str(), r#"[{"tool":"add","arguments":{}}]"#);
    // Back to an earlier state, and to one that only its bytes tell of.
    assert_eq!(instance.step(&one, &add()).unwrap(), (two.clone(), step.clone()));
    let mut other = environment.open(&task).unwrap();
    assert_eq!(other.step(&one, &add()).unwrap(), (two, step));
    // An action that fits no tool changes nothing.
    let (same, step) = other.step(&one, &Action::call("subtract", Json::parse("{}").unwrap())).unwrap();
    assert!(step.is_error);
    assert_eq!(same, one);
}

#[test]
fn a_child_that_died_is_started_again_and_takes_the_actions_again() {
    let environment = child("dies");
    let task = environment.generate(0, 1).unwrap();
    let mut instance = environment.open(&task).unwrap();
    let (start, _) = instance.start().unwrap();
    for _ in 0..2 {
        assert_eq!(instance.step(&start, &add()).unwrap_err().fault, Fault::Process);
        assert!(!instance.verify(&start, &[]).unwrap().success);
    }
}

#[test]
fn a_state_that_is_no_list_of_actions_is_refused() {
    let environment = child("well-behaved");
    let task = environment.generate(0, 1).unwrap();
    let mut instance = environment.open(&task).unwrap();
    for state in ["{}", "[1", "[ ]", ""] {
        let error = instance.step(&State::new(state), &add()).unwrap_err();
        assert_eq!(error.fault, Fault::Contract, "{state}: {error}");
    }
}

#[test]
fn a_foreign_program_runs_only_when_it_is_trusted() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/environments/bad-children/well-behaved");
    let error: EnvironmentError = open(folder.to_str().unwrap(), &opening(false)).err().unwrap();
    assert_eq!(error.fault, Fault::Unsupported);
    assert!(error.message.contains("child.sh"), "{error}");
    assert_eq!(open("no-such-thing", &opening(true)).err().unwrap().fault, Fault::Load);
}

/// A workspace with a wrong program and its test, or none where the machine lacks what one needs.
fn workspace(folder: &Path) -> Option<Box<dyn Environment>> {
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../environments/bridges/workspace_bridge.py");
    let template = folder.join("template");
    std::fs::create_dir(&template).unwrap();
    std::fs::write(template.join("calc.py"), "def add(a, b):\n    return a - b\n").unwrap();
    let test = "import unittest\nfrom calc import add\n\n\nclass Adds(unittest.TestCase):\n    \
                def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n";
    std::fs::write(template.join("test_calc.py"), test).unwrap();
    let command =
        ["python3", adapter.to_str()?, "--template", template.to_str()?, "--test", "python3 -m unittest -q"];
    let manifest = format!(
        "name = \"workspace\"\nversion = \"1\"\ndescription = \"\"\ninterface = \"shell\"\nlicence = \"own\"\n\
         families = [\"repair\"]\n[bridge]\ncommand = {command:?}\n"
    );
    std::fs::write(folder.join("environment.toml"), manifest).unwrap();
    match open(folder.to_str()?, &opening(true)) {
        Ok(environment) => Some(environment),
        Err(error) if error.fault == Fault::Process => {
            eprintln!("SKIPPED: no workspace on this machine: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_session_in_a_workspace_forks_at_every_step_and_goes_on_alike() {
    let folder = tempfile::tempdir().unwrap();
    let Some(environment) = workspace(folder.path()) else { return };
    let call = |tool: &str, arguments: &str| Action::call(tool, Json::parse(arguments).unwrap());
    let test = r#"{"command":"python3 -m unittest -q 2>/dev/null; echo $?"}"#;
    let session = [
        call("shell", test),
        call("read_file", r#"{"path":"calc.py"}"#),
        call("shell", r#"{"command":"mkdir notes && echo wrong sign > notes/why"}"#),
        call("edit_file", r#"{"path":"calc.py","old":"a - b","new":"a + b"}"#),
        call("shell", test),
        call("write_file", r#"{"path":"../outside","text":""}"#),
    ];
    let task = environment.generate(0, 1).unwrap();
    let mut recorded = environment.open(&task).unwrap();
    let mut states = vec![recorded.start().unwrap().0];
    let mut steps = Vec::new();
    for action in &session {
        let (state, step) = recorded.step(states.last().unwrap(), action).unwrap();
        states.push(state);
        steps.push(step);
    }
    assert!(steps[0].observation.starts_with("1\n") && steps[4].observation.starts_with("0\n"), "{steps:?}");
    assert!(steps[5].is_error, "{:?}", steps[5]);
    assert!(recorded.verify(&states[6], &[]).unwrap().success);
    assert!(!recorded.verify(&states[3], &[]).unwrap().success);
    // In the program that recorded it, which has snapshots, and in one that knows the actions alone.
    let mut fresh = environment.open(&task).unwrap();
    for fork in [4, 1, 5, 0, 3, 2] {
        for instance in [&mut recorded, &mut fresh] {
            let mut state = states[fork].clone();
            for at in fork..session.len() {
                let (after, step) = instance.step(&state, &session[at]).unwrap();
                assert_eq!(step, steps[at], "fork {fork}, step {at}");
                state = after;
            }
            assert!(instance.verify(&state, &[]).unwrap().success, "fork {fork}");
        }
    }
}
