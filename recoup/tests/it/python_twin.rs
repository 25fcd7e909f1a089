//! The bundled packages under CPython: `recoup_env.py` must see every byte that recoup sees.
//!
//! Each seed is played by the teacher and by chance; task, tools, states, observations, the teacher's
//! word at every state, the score and the goals go to one Python process a package, which runs it all again.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use recoup::environments::{Environment, Exchange, Instance, TaskSpec, bundled};
use recoup::rollout::{Conditions, EpisodeLimits, Keep, policies, run};
use serde_json::{Value, json};

const SEEDS: u64 = 100;
/// Turns of chance: where it stands after them is as odd as after more.
const RANDOM_TURNS: u64 = 10;

#[test]
fn cpython_sees_every_byte() {
    let Some(python) = python() else {
        eprintln!("SKIPPED: no Python 3.11 or later in PATH");
        return;
    };
    let environments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../environments");
    for name in bundled::names() {
        let package = bundled::open(name).unwrap().unwrap();
        let families = package.identity().manifest.families.len() as u64;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for seed in 0..SEEDS {
            // Families take turns first, then difficulties.
            let task = package.generate(seed, (seed / families % 3) as u8 + 1).unwrap();
            for (policy, turns) in [("expert", None), ("random", Some(RANDOM_TURNS))] {
                writeln!(file, "{}", record(&*package, &task, policy, turns)).unwrap();
            }
        }
        let output = Command::new(&python)
            .arg(environments.join("recoup_env.py"))
            .arg("replay")
            .arg(environments.join(name))
            .stdin(Stdio::from(File::open(file.path()).unwrap()))
            .output()
            .unwrap();
        let (said, erred) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {said}{erred}");
        assert_eq!(said.trim(), format!("{} episodes, every byte alike", 2 * SEEDS), "{name}");
    }
}

#[test]
fn a_changed_byte_is_seen() {
    let Some(python) = python() else {
        eprintln!("SKIPPED: no Python 3.11 or later in PATH");
        return;
    };
    let package = bundled::open("quest").unwrap().unwrap();
    let task = package.generate(3, 1).unwrap();
    let mut recorded = record(&*package, &task, "expert", None);
    let observation = &mut recorded["steps"][1]["after"][1];
    *observation = json!(format!("{} ", observation.as_str().unwrap()));
    let environments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../environments");
    let mut child = Command::new(python)
        .arg(environments.join("recoup_env.py"))
        .arg("replay")
        .arg(environments.join("quest"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{recorded}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("seed 3, difficulty 1: step 1: "));
}

/// An episode as `recoup_env.py replay` reads it.
fn record(package: &dyn Environment, task: &TaskSpec, policy: &str, turns: Option<u64>) -> Value {
    let mut instance = package.open(task).unwrap();
    let limits = EpisodeLimits { turns, ..EpisodeLimits::default() };
    let conditions = Conditions { seed: task.seed, limits, keep: Keep::States, ..Conditions::default() };
    let episode = run(&mut *instance, task, &*policies::parse(policy).unwrap(), conditions);
    assert!(episode.end.error().is_none(), "{:?}", episode.end);
    let states: Vec<Value> = episode.checkpoints.iter().map(|state| parsed(state.as_str())).collect();
    let steps = episode.executed().iter().enumerate().map(|(at, Exchange { action, step })| {
        let expert = instance.expert(&episode.checkpoints[at]).unwrap().unwrap();
        json!({
            "expert": parsed(&expert.to_json()),
            "action": parsed(&action.to_json()),
            "after": [states[at + 1], step.observation, step.is_error, step.done],
        })
    });
    let steps: Vec<Value> = steps.collect();
    let achieved = instance.achieved(episode.checkpoints.last().unwrap()).unwrap();
    let goals = achieved.iter().map(|goal| json!({ "goal": goal.goal, "task": parsed(&goal.task) }));
    let mut recorded = json!({
        "seed": task.seed,
        "difficulty": task.difficulty,
        "task": parsed(&task.json),
        "tools": tools(&*instance),
        "start": [states[0], episode.first_observation],
        "steps": steps,
        "verify": episode.score,
    });
    if !achieved.is_empty() {
        recorded["achieved"] = goals.collect();
    }
    recorded
}

fn tools(instance: &dyn Instance) -> Vec<Value> {
    let tools = instance.tools().iter().map(|tool| {
        json!({
            "name": tool.name,
            "description": tool.description,
            "read_only": tool.read_only,
            "parameters": parsed(tool.schema.as_str()),
        })
    });
    tools.collect()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A Python that has `tomllib`.
fn python() -> Option<PathBuf> {
    let names = ["python3.14", "python3.13", "python3.12", "python3.11", "python3"];
    let works = |name: &&str| {
        let check = "import sys; sys.exit(sys.version_info < (3, 11))";
        let done = Command::new(name).args(["-c", check]).stderr(Stdio::null()).status();
        done.is_ok_and(|status| status.success())
    };
    names.iter().find(|name| works(name)).map(PathBuf::from)
}
