//! Workers: packages in a process of their own, which has shut itself in.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use recoup::environments::child::ChildCommand;
use recoup::environments::package::{Package, PackageFiles};
use recoup::environments::worker::WorkerPackage;
use recoup::environments::{Action, Environment, Fault, bundled};

use crate::broken::{first_error, folders, told};

fn worker() -> ChildCommand {
    ChildCommand::worker(env!("CARGO_BIN_EXE_recoup"), false)
}

#[test]
fn a_worker_gives_the_same_bytes_as_this_process() {
    let files = bundled::files("quest").unwrap();
    let (here, there) = (Package::load(&files).unwrap(), WorkerPackage::load(&files, &worker()).unwrap());
    assert_eq!(here.identity().version(), there.identity().version());
    for seed in 0..6 {
        let task = here.generate(seed, 2).unwrap();
        assert_eq!(there.generate(seed, 2).unwrap(), task);
        let (mut here, mut there) = (here.open(&task).unwrap(), there.open(&task).unwrap());
        assert_eq!(there.tools(), here.tools());
        let mut state = here.start().unwrap().0;
        assert_eq!(there.start().unwrap().0, state);
        let mut actions: Vec<Action> = Vec::new();
        for _ in 0..12 {
            let Some(action) = here.expert(&state).unwrap() else { break };
            assert_eq!(there.expert(&state).unwrap().as_ref(), Some(&action));
            let after = here.step(&state, &action).unwrap();
            assert_eq!(there.step(&state, &action).unwrap(), after);
            actions.push(action);
            if after.1.done {
                break;
            }
            state = after.0;
        }
        let ran = here.run_actions(None, &actions).unwrap();
        assert_eq!(ran.1.len(), actions.len() + 1);
        assert_eq!(there.run_actions(None, &actions).unwrap(), ran);
        assert_eq!(there.verify(&ran.0, &[]).unwrap(), here.verify(&ran.0, &[]).unwrap());
        assert_eq!(there.achieved(&ran.0).unwrap(), here.achieved(&ran.0).unwrap());
    }
}

#[test]
fn a_bad_package_errs_in_a_worker_as_it_does_here() {
    let folders = folders("bad");
    assert!(folders.len() >= 20, "{}", folders.len());
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let Ok(files) = PackageFiles::read(&folder) else { continue };
        let there = WorkerPackage::load(&files, &worker())
            .map_or_else(Some, |package| first_error(&package))
            .unwrap();
        if name == "doubles-a-string" {
            // More memory than a process of its own is given: the process ends, this one does not.
            assert_eq!(there.fault, Fault::Process, "{there}");
            continue;
        }
        let here = Package::load(&files).map_or_else(Some, |package| first_error(&package)).unwrap();
        assert_eq!(told(&there), told(&here), "{name}");
    }
}

#[test]
fn a_task_is_open_again_after_its_worker_has_ended() {
    let folder = folders("bad").into_iter().find(|folder| folder.ends_with("doubles-a-string")).unwrap();
    let package = WorkerPackage::load(&PackageFiles::read(&folder).unwrap(), &worker()).unwrap();
    let task = package.generate(0, 1).unwrap();
    let mut instance = package.open(&task).unwrap();
    let (state, _) = instance.start().unwrap();
    for _ in 0..2 {
        let action = instance.expert(&state).unwrap().unwrap();
        assert_eq!(instance.step(&state, &action).unwrap_err().fault, Fault::Process);
        assert_eq!(instance.start().unwrap().0, state);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_has_shut_itself_in_before_it_reads() {
    let mut worker = Command::new(env!("CARGO_BIN_EXE_recoup"))
        .arg("env-worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(worker.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let of = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", worker.id())).unwrap();
    let (status, limits) = (of("status"), of("limits"));
    let open = std::fs::read_dir(format!("/proc/{}/fd", worker.id())).unwrap().count();
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert_eq!(ready.trim(), r#"{"ready":"recoup-worker-1"}"#);
    let has = |text: &str, name: &str, value: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(line.split_whitespace().any(|word| word == value), "{line}");
    };
    has(&status, "NoNewPrivs", "1");
    has(&status, "Seccomp:", "2");
    has(&limits, "Max file size", "0");
    has(&limits, "Max core file size", "0");
    has(&limits, "Max open files", "16");
    has(&limits, "Max cpu time", "3600");
    assert!(!limits.lines().any(|line| line.starts_with("Max address space") && line.contains("unlimited")));
    assert_eq!(open, 3);
}

/// `recoup collect` in a fixture's folder: exit code and the object it prints.
fn collect(fixture: &str, trust: bool) -> (Option<i32>, serde_json::Value) {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../recoup/tests/fixtures/environments");
    let project = tempfile::tempdir().unwrap();
    let script = r#"scripted:[{"tool":"add","arguments":{}},{"tool":"add","arguments":{}}]"#;
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    command.args([
        "collect",
        "--env",
        &format!("{fixtures}/{fixture}"),
        "--policy",
        script,
        "--tasks",
        "3",
        "--json",
    ]);
    command.arg("--project").arg(project.path().join("p")).args(trust.then_some("--trust"));
    let done = command.output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    (done.status.code(), serde_json::from_str(text.lines().last().unwrap()).unwrap())
}

#[test]
fn an_episode_that_its_environment_breaks_is_an_error_and_the_next_one_is_played() {
    for (fixture, word) in [
        ("bad/loops", "environment-limit"),
        ("bad/doubles-a-string", "environment-process"),
        ("bad-children/dies", "environment-process"),
        ("bad-children/garbage", "environment-contract"),
    ] {
        let (code, summary) = collect(fixture, true);
        assert_eq!(
            (code, &summary["episodes"], &summary["success"]["n"]),
            (Some(1), &3.into(), &0.into()),
            "{fixture}: {summary}"
        );
        assert!(summary.to_string().contains("error"), "{fixture}: no {word} in {summary}");
    }
    let (code, summary) = collect("bad-children/well-behaved", true);
    assert_eq!((code, &summary["success"]["n"]), (Some(0), &3.into()), "{summary}");
}

#[test]
fn a_bridge_is_not_started_without_trust() {
    let (code, failure) = collect("bad-children/well-behaved", false);
    assert_eq!(code, Some(2));
    assert_eq!(failure["error"]["code"], "environment-unsupported");
    assert!(failure["error"]["hint"].as_str().unwrap().contains("--trust"), "{failure}");
}
