//! Reflexion's result logs, two of its three kinds (the third is plain text: [`super::react_text`]).
//!
//! * `env_results_trial_N.json`: an array of `{name: "env_0", memory[], is_success}`, ALFWorld and
//!   WebShop. No action is recorded. `is_success` is cumulative: an environment solved in an earlier
//!   trial stays solved and is not run again. `memory` repeats the earlier trials' reflections; one is
//!   written after each failed trial until it is full, so with the trial known those from position N
//!   on are this run's own, and all others are copied context.
//! * programming attempts, JSON lines `{prompt, test, is_solved, reflections[], implementations[]?,
//!   test_feedback[]?, solution}`: implementations and reflections alternate; `solution` is the last
//!   implementation, the agent's own. `test` judges it and is hidden. `is_solved` may be missing.
//!
//! A results entry says nothing that tells it from the same entry of another trial, and a trial that
//! solved nothing new writes the file of the trial before it again, byte for byte. Only the file's name
//! says which trial it is, so the trial is part of the run's identity, beside the file's bytes and the
//! entry's position. The task is only an index: its key is the family, told from the reflections'
//! words, and the name.

use super::object::Object;
use super::slice::{self, Stop};
use super::{ImportError, Importer, Outline, Probe, RawRecord, Shape, Sink, Source};
use crate::json::Json;
use crate::task::{EnvironmentRef, Task};
use crate::trajectory::{Node, Outcome, Part, Role, Trajectory};

/// Reflexion's result logs.
pub(super) struct Reflexion;

impl Importer for Reflexion {
    fn format(&self) -> &'static str {
        "reflexion"
    }

    fn recognizes(&self) -> &'static str {
        "an array of environments with `name`, `memory` and `is_success`, or attempts with `prompt`, \
         `test`, `entry_point` and `reflections`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        is_results(probe) || is_programming(probe)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        if is_results(&probe) {
            let file = Results {
                sha256: slice::file_sha256(source)?,
                trial: trial(source.name()),
                family: family(&probe.text()),
            };
            slice::each(source, probe.layout(), sink, |record, sink| file.result(self.format(), record, sink))
        } else {
            slice::each(source, probe.layout(), sink, |record, sink| attempts(self.format(), record, sink))
        }
    }
}

fn is_results(probe: &Probe) -> bool {
    let mut rows = probe.records().iter();
    let is_result = |row: &Outline| {
        let name = row.get("name").and_then(Outline::as_str);
        name.is_some_and(|name| name.starts_with("env_"))
            && matches!(row.get("is_success"), Some(Outline::Bool(_)))
            && row.get("memory").is_some_and(Outline::is_array)
    };
    probe.shape == Shape::Array && rows.any(is_result)
}

fn is_programming(probe: &Probe) -> bool {
    // The first lines may be attempts that never ended.
    let own: [&[u8]; 2] = [b"\"is_solved\"", b"\"reflections\""];
    probe.any_record_has(&["prompt", "test", "entry_point"])
        && own.iter().any(|key| memchr::memmem::find(&probe.head, key).is_some())
}

/// The number at the end of `env_results_trial_3.json`.
fn trial(name: &str) -> Option<i64> {
    let digits = name.strip_prefix("env_results_trial_")?.strip_suffix(".json")?;
    digits.parse().ok().filter(|trial| *trial >= 0)
}

/// The family of environments, by words that only its reflections use.
fn family(text: &str) -> Option<&'static str> {
    let families: [(&str, &[&str]); 2] = [
        ("alfworld", &["countertop", "sinkbasin", "fridge", "shelf", "cabinet", "drawer"]),
        ("webshop", &["search results", "product", "Buy Now", "items"]),
    ];
    let count = |words: &[&str]| words.iter().map(|word| text.matches(word).count()).sum::<usize>();
    let counts = families.map(|(name, words)| (count(words), name));
    let (most, name) = counts.into_iter().max()?;
    (most > 0).then_some(name)
}

/// What a results file says of all its entries.
struct Results {
    sha256: String,
    trial: Option<i64>,
    family: Option<&'static str>,
}

impl Results {
    fn result(&self, format: &str, record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
        let mut fields: Object<'_> = record.parse()?;
        let name: String = fields.required("name")?;
        let memory: Vec<String> = fields.required("memory")?;
        let solved: Option<bool> = fields.optional("is_success")?;
        let family = self.family.map(|family| format!("{family}/")).unwrap_or_default();
        let mut run = Trajectory::new(format, Task::named(format!("reflexion/{family}{name}"), ""));
        run.trial = self.trial;
        run.environment =
            self.family.map(|family| EnvironmentRef { name: family.to_owned(), version: None, reset: None });
        let own_from = match (self.trial, solved) {
            (Some(trial), Some(false)) => usize::try_from(trial).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        for (index, reflection) in memory.into_iter().enumerate() {
            let mut node = Node::new(Role::Assistant, "assistant", vec![Part::text(reflection)]);
            node.occurrence.sampled = index >= own_from;
            node.occurrence.copied_context = index < own_from;
            run.push(node);
        }
        run.finish(match solved {
            Some(solved) => Outcome::from_flag(solved, "is_success (cumulative over trials)"),
            None => Outcome::unknown(),
        });
        run.extra = fields.rest();
        let trial = self.trial.map_or_else(String::new, |trial| format!("trial {trial}/"));
        let native = format!("{trial}{}/{}", self.sha256, record.index);
        Ok(record.emit(sink, run, Some(native), Vec::new(), 0)?)
    }
}

fn attempts(format: &str, record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut fields: Object<'_> = record.parse()?;
    let prompt: String = fields.required("prompt")?;
    let solved: Option<bool> = fields.optional("is_solved")?;
    let implementations: Vec<String> = fields.optional("implementations")?.unwrap_or_default();
    let feedback: Vec<String> = fields.optional("test_feedback")?.unwrap_or_default();
    let reflections: Vec<String> = fields.optional("reflections")?.unwrap_or_default();
    let solution: Option<String> = fields.optional("solution")?;
    // The solution is written again as its own field: it is the last implementation.
    let last = solution.filter(|solution| implementations.last() != Some(solution));
    let task = match fields.optional::<String>("name")?.or(fields.optional("task_id")?) {
        Some(name) => Task::named(format!("reflexion/programming/{name}"), prompt.clone()),
        None => Task::from_goal(prompt.clone()),
    };
    let mut run = Trajectory::new(format, task);
    run.push(Node::new(Role::User, "user", vec![Part::text(prompt)]));
    let turn = |text: String| Node::new(Role::Assistant, "assistant", vec![Part::text(text)]).sampled();
    let rounds = implementations.len().max(reflections.len()).max(feedback.len());
    let (mut implementations, mut feedback) = (implementations.into_iter(), feedback.into_iter());
    let mut reflections = reflections.into_iter();
    for _ in 0..rounds {
        let told = |text: String| Node::new(Role::Tool, "tests", vec![Part::text(text)]);
        let round =
            [implementations.next().map(turn), feedback.next().map(told), reflections.next().map(turn)];
        round.into_iter().flatten().for_each(|node| {
            run.push(node);
        });
    }
    if let Some(last) = last {
        run.push(turn(last));
    }
    run.finish(match solved {
        Some(solved) => Outcome::from_flag(solved, "is_solved"),
        None => Outcome::unknown(),
    });
    run.hidden.verifier_output = fields.take("test").map(Json::from);
    run.hidden.gold = fields.take("canonical_solution").map(Json::from);
    run.extra = fields.rest();
    Ok(record.emit(sink, run, None, Vec::new(), 0)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Reflexion, family, trial};
    use crate::importers::{Event, Importer as _, Source};

    #[test]
    fn the_trial_is_the_file_names_number() {
        assert_eq!(trial("env_results_trial_12.json"), Some(12));
        assert_eq!(trial("env_results_trial_-1.json"), None);
        assert_eq!(trial("results.json"), None);
    }

    #[test]
    fn an_equal_file_of_another_trial_holds_other_runs() {
        let key = |name: &str| {
            let text = br#"[{"name":"env_0","memory":[],"is_success":true}]"#;
            let source = Source::from_bytes(name, text.as_slice(), Arc::default());
            let mut events: Vec<Event> = Vec::new();
            Reflexion.import(&source, &mut events).unwrap();
            let [Event::Trajectory(run)] = events.as_slice() else { panic!("one run: {events:?}") };
            run.head.key
        };
        assert_ne!(key("env_results_trial_5.json"), key("env_results_trial_6.json"));
        assert_eq!(key("copy/env_results_trial_5.json"), key("env_results_trial_5.json"));
    }

    #[test]
    fn the_family_is_told_from_words() {
        assert_eq!(family("put the plate on countertop 2"), Some("alfworld"));
        assert_eq!(family("the product was beyond my budget"), Some("webshop"));
        assert_eq!(family("nothing to tell"), None);
    }
}
