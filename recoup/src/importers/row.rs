//! A row: the record around a run in data sets of chats, with ids, task, outcome and whatever else
//! its author put beside the messages.

use serde_json::value::RawValue;

use super::Scoring;
use super::object::Object;
use super::value::{is_object, json_object, value};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Node, Outcome, Role, Trajectory};

/// Names of the run's own id, the most particular first.
const RUN_IDS: [&str; 4] = ["trajectory_id", "run_id", "session_id", "id"];
/// Names of the task's id.
const TASK_IDS: [&str; 2] = ["task_id", "instance_id"];
/// Names of a pass flag.
pub(super) const FLAGS: [&str; 5] = ["success", "resolved", "passed", "solved", "is_correct"];
/// Names of a score.
const SCORES: [&str; 2] = ["reward", "score"];
/// Names of the right answer, which no judge and no view may see.
const GOLD: [&str; 5] = ["ground_truth", "expected_answer", "gold_answer", "gold", "reference_answer"];

/// Fills the head of a run, whose messages are in place, from the row they stood in, ends the run
/// and returns the source's own id of it.
pub(super) fn settle(run: &mut Trajectory, mut row: Object<'_>, scoring: &Scoring) -> Option<String> {
    let outcome = outcome(&row, scoring);
    let judged = take_judged(&mut row, scoring);
    run.hidden.verifier_output = json_object(judged);
    let gold: Vec<(&str, Json)> =
        GOLD.iter().filter_map(|name| Some((*name, row.take(name)?.into()))).collect();
    run.hidden.gold = match gold.as_slice() {
        [(_, only)] => Some(only.clone()),
        _ => json_object(gold),
    };
    let task = TASK_IDS.iter().find_map(|name| row.id(name));
    run.task = task.map_or_else(|| derived_task(run), |key| Task::named(key, goal(run)));
    run.trial = row.read("trial");
    run.seed = row.read("seed");
    let native = RUN_IDS.iter().find_map(|name| row.text(name));
    if !run.agents.is_empty()
        && let Some(model) = row.text("model")
    {
        for agent in &mut run.agents {
            agent.model = Some(model.clone());
        }
    }
    run.extra.extend(row.rest());
    run.finish(outcome);
    native
}

/// The goal as the agent saw it: the first message of the user that says something, else of the
/// system.
pub(crate) fn goal(run: &Trajectory) -> String {
    let first = |role| {
        let mut nodes = run.nodes.iter().filter(|node| node.role == role && !node.occurrence.copied_context);
        nodes.find_map(|node| Some(node.text()).filter(|text| !text.trim().is_empty()))
    };
    first(Role::User).or_else(|| first(Role::System)).unwrap_or_default()
}

/// The task of a run whose source names none. Where nobody states a goal, its first words stand in
/// for one in the key, lest all such runs count as one task.
pub(crate) fn derived_task(run: &Trajectory) -> Task {
    let goal = goal(run);
    if !goal.is_empty() {
        return Task::from_goal(goal);
    }
    let first = run.nodes.iter().map(Node::text).find(|text| !text.trim().is_empty());
    Task { goal, ..Task::from_goal(first.unwrap_or_default()) }
}

/// The outcome that a row states: of the score the user chose, else of its pass flag, else of its
/// only score.
pub(super) fn outcome(row: &Object<'_>, scoring: &Scoring) -> Outcome {
    let scores = scores(row, scoring);
    let flags: Vec<(&str, bool)> =
        FLAGS.iter().filter_map(|name| Some((*name, value(row.get(name)?)?))).collect();
    match (&scoring.score, flags.as_slice()) {
        (Some(name), _) if !scores.iter().any(|(scorer, _)| scorer == name) => {
            let flag = row.get(name).and_then(value);
            flag.map_or_else(|| scoring.outcome(&scores, 1.0), |passed| Outcome::from_flag(passed, name))
        }
        (None, [(name, passed), others @ ..]) => {
            if let Some((other, _)) = others.iter().find(|(_, other)| other != passed) {
                let evidence = format!("`{name}` and `{other}` disagree");
                return Outcome { evidence, ..Outcome::unknown() };
            }
            let score = if let [(_, only)] = scores.as_slice() { Some(*only) } else { None };
            Outcome { score, ..Outcome::from_flag(*passed, name) }
        }
        _ => scoring.outcome(&scores, 1.0),
    }
}

/// The numbers that may be scores: `reward`, `score`, the members of `scores`, and the one chosen.
fn scores(row: &Object<'_>, scoring: &Scoring) -> Vec<(String, f64)> {
    let chosen = scoring.score.as_deref().filter(|name| !SCORES.contains(name));
    let mut scores: Vec<(String, f64)> = SCORES
        .into_iter()
        .chain(chosen)
        .filter_map(|name| Some((name.to_owned(), value(row.get(name)?)?)))
        .collect();
    let named = row.get("scores").and_then(Object::of);
    for (name, value) in named.map(Object::rest).unwrap_or_default() {
        if let Ok(value) = value.as_str().parse() {
            scores.push((name, value));
        }
    }
    scores
}

/// Takes out what a verifier said: it is hidden from judges and views.
fn take_judged(row: &mut Object<'_>, scoring: &Scoring) -> Vec<(String, Json)> {
    let scorer = |raw: &RawValue| value::<f64>(raw).is_some() || value::<bool>(raw).is_some();
    let names = FLAGS.into_iter().chain(SCORES).chain(scoring.score.as_deref());
    let mut judged: Vec<(String, Json)> =
        names.filter_map(|name| Some((name.to_owned(), row.take_if(name, scorer)?.into()))).collect();
    judged.extend(row.take_if("scores", is_object).map(|raw| ("scores".to_owned(), raw.into())));
    judged
}

#[cfg(test)]
mod tests {
    use super::{outcome, settle};
    use crate::importers::Scoring;
    use crate::importers::object::Object;
    use crate::task::Task;
    use crate::trajectory::{Outcome, Status, Trajectory};

    fn judged(row: &str, score: Option<&str>) -> Outcome {
        let scoring = Scoring { score: score.map(str::to_owned), success_at: None };
        outcome(&serde_json::from_str(row).unwrap(), &scoring)
    }

    #[test]
    fn a_flag_decides_before_a_score_and_a_choice_before_both() {
        let both = judged(r#"{"resolved":false,"reward":0.4}"#, None);
        assert_eq!((both.status, both.score), (Status::Failure, Some(0.4)));
        assert_eq!(both.evidence, "resolved = false");
        assert_eq!(judged(r#"{"success":true,"passed":false}"#, None).status, Status::Unknown);
        assert_eq!(judged(r#"{"reward":1}"#, None).status, Status::Success);
        assert_eq!(judged(r#"{"reward":1,"score":0}"#, None).status, Status::Unknown);
        assert_eq!(judged(r#"{"reward":1,"score":0}"#, Some("score")).status, Status::Failure);
        assert_eq!(judged(r#"{"scores":{"a":1,"b":0}}"#, Some("b")).status, Status::Failure);
        assert_eq!(judged(r#"{"ok":true}"#, Some("ok")).status, Status::Success);
        assert_eq!(judged(r#"{"success":"yes","score":"high"}"#, None).status, Status::Unknown);
    }

    #[test]
    fn verdicts_and_answers_are_hidden_and_the_rest_is_kept() {
        let mut run = Trajectory::new("test", Task::from_goal(""));
        let row: Object<'_> =
            serde_json::from_str(r#"{"id":"r1","run_id":"r0","score":1.50,"gold":"B","tags":["x"]}"#)
                .unwrap();
        let native = settle(&mut run, row, &Scoring::default());
        assert_eq!(native.as_deref(), Some("r0"));
        assert_eq!(run.hidden.verifier_output.unwrap().as_str(), r#"{"score":1.5}"#);
        assert_eq!(run.hidden.gold.unwrap().as_str(), r#""B""#);
        assert_eq!(run.extra.keys().collect::<Vec<_>>(), ["id", "tags"]);
    }
}
