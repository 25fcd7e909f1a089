//! Harbor: a task folder for each seed.
//!
//! In its container the agent acts with the command `act`, which keeps the log of its actions. The verifier runs
//! that log again in a container of its own, so no state that the agent could touch decides the reward. The agent could
//! read the environment's program, and what is hidden with it: harbor gives it a shell.

use std::fmt::Write as _;
use std::path::PathBuf;

use recoup::environments::{Instance, TaskSpec};
use recoup::rollout::policies::Expert;
use recoup::rollout::{Conditions, run};
use serde_json::json;

use super::{Exported, Files};
use crate::failure::Failure;

const ACT: &str = include_str!("act.py");
const SCORE: &str = include_str!("score.py");
/// One release and distribution, so that a task is built the same next year; a tag and not a digest, so that
/// it is built for any processor and from any mirror.
macro_rules! image {
    () => {
        "FROM python:3.12.11-slim-bookworm\n"
    };
}
const DOCKERFILE: &str = concat!(
    image!(),
    "\
COPY recoup /opt/recoup
RUN chmod +x /opt/recoup/act && ln -s /opt/recoup/act /usr/local/bin/act
WORKDIR /app
RUN touch actions.jsonl
"
);
/// The verifier's own image: nothing in it was within the agent's reach.
const VERIFIER: &str = concat!(image!(), "COPY . /tests\nWORKDIR /app\n");
const COMMAND: &str = "#!/bin/sh\nexec python3 \"$(dirname \"$(readlink -f \"$0\")\")/act.py\" \"$@\"\n";
const TEST: &str = "\
#!/bin/sh
# Harbor's folder for what a verifier has to say.
logs=\"${RECOUP_LOGS:-/logs/verifier}\"
mkdir -p \"$logs\"
python3 \"$(dirname \"$0\")/score.py\" > \"$logs/reward.txt\"
";
const SOLVE: &str = "#!/bin/sh\nact --from \"$(dirname \"$0\")/actions.jsonl\"\n";

/// The folders of all seeds.
pub(super) fn files(exported: &Exported<'_>) -> Result<Files, Failure> {
    let mut files = Files::new();
    for seed in 0..exported.seeds {
        let task = exported.environment.generate(seed, exported.difficulty(seed))?;
        let mut instance = exported.environment.open(&task)?;
        let solution = solution(&mut *instance, &task)?;
        let name = format!("{}-{}-{seed}", exported.manifest().name, task.family);
        let at = |path: &str| PathBuf::from(&name).join(path);
        let which = json!({ "seed": seed, "difficulty": task.difficulty }).to_string() + "\n";
        for folder in ["environment/recoup", "tests"] {
            files.extend(exported.package(&at(folder)));
            files.push((at(folder).join("task.json"), which.clone()));
        }
        files.extend([
            (at("task.toml"), config(exported, &task, &name)),
            (at("instruction.md"), instruction(exported, &*instance, &task)),
            (at("environment/Dockerfile"), DOCKERFILE.to_owned()),
            (at("environment/recoup/act"), COMMAND.to_owned()),
            (at("environment/recoup/act.py"), ACT.to_owned()),
            (at("tests/Dockerfile"), VERIFIER.to_owned()),
            (at("tests/test.sh"), TEST.to_owned()),
            (at("tests/score.py"), SCORE.to_owned()),
            (at("solution/solve.sh"), SOLVE.to_owned()),
            (at("solution/actions.jsonl"), solution),
        ]);
    }
    Ok(files)
}

/// The teacher's actions, one a line.
fn solution(instance: &mut dyn Instance, task: &TaskSpec) -> Result<String, Failure> {
    let episode = run(instance, task, &Expert, Conditions::default());
    if !episode.succeeded() {
        return Err(Failure::user(format!("the teacher does not solve seed {}", task.seed)).code("unsolved"));
    }
    let lines = episode.executed().iter().map(|exchange| exchange.action.to_json() + "\n");
    Ok(lines.collect())
}

fn config(exported: &Exported<'_>, task: &TaskSpec, name: &str) -> String {
    let identity = exported.environment.identity();
    let text = |value: &str| toml::Value::String(value.to_owned()).to_string();
    format!(
        "schema_version = \"1.4\"\nartifacts = [\"/app/actions.jsonl\"]\n\n[task]\nname = {}\ndescription = {}\n\n\
         [metadata]\nenvironment = {}\nversion = {}\nfamily = {}\ndifficulty = {}\nseed = {}\nlicence = {}\n\n\
         [agent]\ntimeout_sec = 900.0\n\n[verifier]\nenvironment_mode = \"separate\"\ntimeout_sec = 120.0\n\n[environment]\nbuild_timeout_sec = 600.0\n",
        text(&format!("recoup/{name}")),
        text(&identity.manifest.description),
        text(&identity.manifest.name),
        text(&identity.version()),
        text(&task.family),
        task.difficulty,
        task.seed,
        text(&identity.manifest.licence),
    )
}

fn instruction(exported: &Exported<'_>, instance: &dyn Instance, task: &TaskSpec) -> String {
    let mut text = format!(
        "{}\n\nAct with the command `act`, and with nothing else: `act TOOL name=value …` calls a tool and prints what \
         it shows, `act TOOL '{{\"name\": value}}'` does the same with JSON, `act --say TEXT` says something, `act` alone \
         prints where you are. You have {} actions.\n\n## Tools\n\n",
        task.goal, task.max_steps
    );
    for tool in instance.tools().iter() {
        let _ = writeln!(text, "* `{}`: {}", tool.name, tool.description);
        for parameter in &tool.parameters {
            let needed = if tool.required.contains(&parameter.name) { "" } else { ", optional" };
            let _ = write!(text, "  * `{}` ({}{needed})", parameter.name, parameter.kind.as_str());
            if let Some(options) = &parameter.options {
                let options: Vec<String> = options.iter().map(|option| format!("`{option}`")).collect();
                let _ = write!(text, ": {}", options.join(", "));
            }
            text.push('\n');
        }
    }
    if let Some(policy) = &exported.environment.identity().policy {
        let _ = write!(text, "\n## Rules\n\n{}\n", policy.trim());
    }
    text
}
