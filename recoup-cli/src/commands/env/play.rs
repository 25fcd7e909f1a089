//! `recoup env play`: a task by hand, line by line.
//!
//! Works at a terminal and from a pipe. What the environment shows is made visible before it is printed.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use recoup::answers::Played;
use recoup::environments::{Action, Environment, Score, Step, ToolSpec};
use recoup::visible::{visible_controls, visible_line};
use serde_json::{Value, json};

use super::super::environment;
use super::episode::{Checkpoint, Episode};
use super::typed::Typed;
use crate::Ended;
use crate::args::{PlayArgs, TaskArgs};
use crate::failure::Failure;
use crate::printer::{Look, Printer};

/// Longest line that is read, in bytes.
const LINE_MAX: u64 = 1 << 20;
const HELP: &str = "\
tool name=value …    call a tool; `:tools` lists them
tool {\"name\": 1}     the same, with its arguments as JSON
other words          say them (`:say` before words that begin with a tool's name)
:tools  :policy      what can be called; the written rules
:undo                go back one step
:expert              let the teacher take the next step
:state  :score       the state as JSON; what the verifier says now
:quit                stop, and print the score";

/// Plays one task until the input ends.
pub(crate) fn play(flags: &PlayArgs, printer: Printer) -> Result<Ended, Failure> {
    let environment = environment::open(&flags.named.package, flags.named.trust)?;
    let seed = seed_of(&*environment, &flags.task)?;
    let episode = Episode::start(&*environment, seed, flags.task.difficulty)?;
    let mut table = Table { environment: &*environment, episode, past: Vec::new(), printer };
    table.show_task();
    let stdin = io::stdin();
    let prompts = stdin.is_terminal() && !printer.is_json();
    loop {
        if prompts {
            let _ = write!(io::stderr(), "> ");
        }
        let mut line = Vec::new();
        let read = stdin.lock().take(LINE_MAX).read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::machine("cannot read standard input", &error))? == 0 {
            break;
        }
        if !table.take(&String::from_utf8_lossy(&line))? {
            break;
        }
    }
    table.show_end()?;
    Ok(Ended::Done)
}

/// The seed that was asked for: the first of the family from there on, where one is named.
pub(super) fn seed_of(environment: &dyn Environment, flags: &TaskArgs) -> Result<u64, Failure> {
    let manifest = &environment.identity().manifest;
    let Some(family) = &flags.family else { return Ok(flags.seed) };
    let (first, distance) = manifest.seeds_of(family).ok_or_else(|| {
        let known = manifest.families.join(", ");
        Failure::user(format!("`{}` has no family `{family}`", manifest.name))
            .code("no-family")
            .hint(format!("its families are {known}"))
    })?;
    let behind = (first + distance - flags.seed % distance) % distance;
    flags.seed.checked_add(behind).ok_or_else(|| Failure::user("the seed is too large"))
}

/// Who plays, and where they stand.
struct Table<'a> {
    environment: &'a dyn Environment,
    episode: Episode,
    past: Vec<Checkpoint>,
    printer: Printer,
}

impl Table<'_> {
    /// Does what a line says; false where it says to stop.
    fn take(&mut self, line: &str) -> Result<bool, Failure> {
        match Typed::read(line, self.episode.tools()) {
            Err(what) => self.printer.note(format_args!("{what}")),
            Ok(Typed::Nothing) => {}
            Ok(Typed::Act(action)) => self.act(action)?,
            Ok(Typed::Command(command)) => match command.as_str() {
                "quit" | "q" => return Ok(false),
                "undo" => self.undo(),
                "expert" => self.expert()?,
                "tools" => self.show_tools(),
                "policy" => self.show_policy(),
                "state" => self.show_state(),
                "score" => self.show_score()?,
                "help" => HELP.lines().for_each(|line| self.printer.note(line)),
                other => {
                    self.printer.note(format_args!("there is no command `:{other}`; `:help` lists them"));
                }
            },
        }
        Ok(true)
    }

    fn act(&mut self, action: Action) -> Result<(), Failure> {
        if let Some(why) = self.episode.over() {
            self.printer.note(format_args!("{why}; `:undo` goes back a step, `:quit` stops"));
            return Ok(());
        }
        let before = self.episode.checkpoint();
        let step = self.episode.act(action)?;
        self.past.push(before);
        self.show_step(&step);
        if let Some(why) = self.episode.over() {
            self.printer.note(&why);
            self.show_score()?;
        }
        Ok(())
    }

    fn undo(&mut self) {
        let Some(before) = self.past.pop() else {
            self.printer.note("this is the start");
            return;
        };
        self.episode.restore(before);
        self.printer.note(format_args!("back at step {}", self.episode.steps()));
        let step = Step { observation: self.episode.observation().to_owned(), ..Step::default() };
        self.show_step(&step);
    }

    fn expert(&mut self) -> Result<(), Failure> {
        let Some(action) = self.episode.expert()? else {
            self.printer.note("the environment has no teacher");
            return Ok(());
        };
        if !self.printer.is_json() {
            let action = visible_line(&action.to_json()).into_owned();
            self.printer.line(self.printer.paint(Look::Dim, format_args!("teacher: {action}")));
        }
        self.act(action)
    }

    fn show_task(&self) {
        let (task, identity) = (self.episode.task(), self.environment.identity());
        if self.printer.is_json() {
            self.printer.json(&json!({
                "goal": task.goal,
                "max_steps": task.max_steps,
                "observation": self.episode.observation(),
                "policy": identity.policy,
                "tools": self.episode.tools().iter().map(tool_json).collect::<Vec<_>>(),
            }));
            return;
        }
        let title = format!("{} {}", identity.manifest.name, identity.version());
        self.printer.line(format_args!(
            "{}: seed {}, difficulty {}, {}, at most {} steps",
            self.printer.paint(Look::Bold, title),
            task.seed,
            task.difficulty,
            task.family,
            task.max_steps
        ));
        self.printer.line(format_args!("goal: {}", visible_controls(&task.goal)));
        if identity.policy.is_some() {
            self.printer.line("There are written rules: `:policy` shows them.");
        }
        self.printer.line(format_args!("\n{}", visible_controls(self.episode.observation())));
        self.printer.note("`:help` says what can be typed");
    }

    fn show_step(&self, step: &Step) {
        if self.printer.is_json() {
            self.printer.json(&json!({
                "observation": step.observation, "is_error": step.is_error, "done": step.done,
            }));
            return;
        }
        let observation = visible_controls(&step.observation);
        if step.is_error {
            self.printer.line(self.printer.paint(Look::Red, format_args!("! {observation}")));
        } else {
            self.printer.line(observation);
        }
    }

    fn show_tools(&self) {
        for tool in self.episode.tools() {
            if self.printer.is_json() {
                self.printer.json(&tool_json(tool));
                continue;
            }
            let name = self.printer.paint(Look::Bold, visible_line(&tool.name));
            let looks = if tool.read_only { " (only looks)" } else { "" };
            self.printer.line(format_args!("{name}{looks}: {}", visible_line(&tool.description)));
            for parameter in &tool.parameters {
                let needed = if tool.required.contains(&parameter.name) { "" } else { ", optional" };
                let options = parameter.options.as_ref().map_or_else(String::new, |options| {
                    let words = options.iter().map(|option| match option {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    });
                    format!(": {}", words.collect::<Vec<_>>().join(", "))
                });
                let line = format!("    {}= {}{needed}{options}", parameter.name, parameter.kind.as_str());
                self.printer.line(visible_line(&line));
            }
        }
    }

    fn show_policy(&self) {
        match &self.environment.identity().policy {
            Some(policy) if self.printer.is_json() => self.printer.json(&json!({ "policy": policy })),
            Some(policy) => self.printer.line(visible_controls(policy.trim_end())),
            None => self.printer.note("there are no written rules here"),
        }
    }

    fn show_state(&self) {
        let state = self.episode.state();
        if self.printer.is_json() {
            let value: Value = serde_json::from_str(state.as_str()).unwrap_or_default();
            self.printer.json(&json!({ "state": value, "hash": state.hash() }));
        } else {
            self.printer.line(visible_line(state.as_str()));
        }
    }

    fn show_score(&mut self) -> Result<(), Failure> {
        let score = self.episode.score()?;
        if self.printer.is_json() {
            self.printer.json(&score);
        } else {
            self.printer.line(score_line(&score, self.printer));
        }
        Ok(())
    }

    fn show_end(&mut self) -> Result<(), Failure> {
        let score = self.episode.score()?;
        let (task, identity) = (self.episode.task(), self.environment.identity());
        if self.printer.is_json() {
            let played = Played {
                environment: identity.into(),
                seed: task.seed,
                difficulty: task.difficulty,
                family: &task.family,
                steps: self.episode.steps(),
                score: &score,
            };
            let flags = (task.seed, task.difficulty);
            self.printer.json(&environment::answer(self.environment, &flags, played));
        } else {
            self.printer.line(format_args!(
                "{} steps. {}",
                self.episode.steps(),
                score_line(&score, self.printer)
            ));
        }
        Ok(())
    }
}

fn tool_json(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "read_only": tool.read_only,
        "parameters": tool.schema.to_value(),
    })
}

fn score_line(score: &Score, printer: Printer) -> String {
    let word = if score.success {
        printer.paint(Look::Green, "success")
    } else {
        printer.paint(Look::Red, "no success")
    };
    let checks: Vec<String> = score
        .checks
        .iter()
        .map(|(name, passed)| format!("{} {}", if *passed { "✓" } else { "✗" }, visible_line(name)))
        .collect();
    format!("{word}, score {}: {}", score.score, checks.join(", "))
}
