//! A row of `results.jsonl`: prompt and completion as chat messages, the reward and what made it up.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::FORMAT;
use crate::importers::dialect::{Aside, Dialect, messages};
use crate::importers::object::{Object, missing};
use crate::importers::value::json_object;
use crate::importers::{Outline, RecordError, Scoring, row};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Outcome, Role, Trajectory};
use crate::warning::Loss;

/// What a row says beside its messages, of which one suffices.
const FIGURES: [&str; 5] = ["generation_ms", "scoring_ms", "total_ms", "example_id", "is_completed"];

/// True for a row of results: what trainers read has a prompt and a completion too, but no reward.
pub(super) fn is_row(record: &Outline) -> bool {
    record.has_all(&["prompt", "completion", "reward"]) && FIGURES.iter().any(|key| record.get(key).is_some())
}

/// The run of a row and its id.
pub(super) fn run(
    mut line: Object<'_>,
    scoring: &Scoring,
    losses: &mut BTreeSet<Loss>,
) -> Result<(Trajectory, Option<String>), RecordError> {
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut aside = Aside::default();
    for (key, speaker) in [("prompt", Role::User), ("completion", Role::Assistant)] {
        let raw: &RawValue = line.take(key).ok_or_else(|| missing(key))?;
        for mut node in messages(raw, Some(Dialect::Chat), speaker, &mut aside)? {
            // What stands in the prompt was shown to the model, whoever's words it repeats.
            node.occurrence.sampled &= key == "completion";
            run.push(node);
        }
    }
    aside.settle(&mut run, losses);
    run.hidden.gold = line.take("answer").filter(|raw| raw.get() != "\"\"").map(Json::from);
    let reward = line.read::<f64>("reward");
    // Beside the known members each number is a part of the reward.
    let parts: Vec<(String, f64)> = line
        .clone()
        .rest()
        .into_iter()
        .filter(|(key, _)| {
            !FIGURES.contains(&key.as_str()) && !["id", "rollout_id", "trial"].contains(&key.as_str())
        })
        .filter_map(|(key, value)| Some((key, value.as_str().parse().ok()?)))
        .collect();
    let mut judged: Vec<(String, Json)> = Vec::new();
    judged.extend(reward.and_then(|reward| Some(("reward".to_owned(), Json::from_serialize(&reward).ok()?))));
    judged.extend(parts.iter().filter_map(|(key, _)| Some((key.clone(), Json::from(line.take(key)?)))));
    run.hidden.verifier_output = json_object(judged);
    let outcome = match (&scoring.score, reward) {
        (Some(name), _) if parts.iter().any(|(part, _)| part == name) => scoring.outcome(&parts, 1.0),
        (_, Some(reward)) => Outcome::from_score(reward, scoring.success_at.unwrap_or(1.0), "reward"),
        (_, None) => Outcome::unknown(),
    };
    let example = ["example_id", "id"].into_iter().find_map(|key| line.id(key));
    let family = line.text("task").or_else(|| line.text("env_id")).unwrap_or_else(|| "default".to_owned());
    run.task = match example {
        Some(example) => Task::named(format!("{FORMAT}/{family}/{example}"), row::goal(&run)),
        None => row::derived_task(&run),
    };
    run.extra.extend(line.filled_rest());
    run.finish(outcome);
    Ok((run, None))
}
