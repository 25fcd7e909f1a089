//! The session family against `expected_counts.json`, folder by folder; where a count differs because
//! the file's own meaning is another, the relation is stated and checked.

use std::collections::BTreeMap;
use std::fs;

use recoup::trajectory::{Part, Role, Status, TerminationKind, Trajectory};
use serde_json::Value;

use crate::harness::{Imported, import, shared_data};

/// A folder's runs and the counts expected of it; `None` without the shared traces.
fn folder(name: &str) -> Option<(Imported, Value)> {
    let path = shared_data(name)?;
    let counts = shared_data("expected_counts.json")?;
    let counts: Value = serde_json::from_slice(&fs::read(counts).unwrap()).unwrap();
    Some((import(&[&path]), counts["totals"][name].clone()))
}

fn count(counts: &Value, key: &str) -> usize {
    counts[key].as_u64().unwrap_or_else(|| panic!("no count `{key}`")) as usize
}

fn of_format<'a>(imported: &'a Imported, format: &str) -> Vec<&'a Trajectory> {
    imported.trajectories().filter(|run| run.source.format == format).collect()
}

#[test]
fn reflexion_results_and_attempts() {
    let Some((imported, counts)) = folder("reflexion") else { return };
    let runs = of_format(&imported, "reflexion");
    assert_eq!(runs.len(), count(&counts, "trajectories"));
    let failed = runs.iter().filter(|run| run.outcome().status == Status::Failure);
    assert_eq!(failed.count(), count(&counts, "failures"));
    // Every entry of `memory` is a node of an environment's run; a reflection on a program is a node
    // between the prompt and the solution.
    let (programs, environments): (Vec<&Trajectory>, Vec<&Trajectory>) =
        runs.iter().copied().partition(|run| run.task.key.0.starts_with("reflexion/programming/"));
    let nodes = |runs: &[&Trajectory]| runs.iter().map(|run| run.nodes.len()).sum::<usize>();
    assert_eq!(nodes(&environments), count(&counts, "memories"));
    assert_eq!(nodes(&programs), count(&counts, "reflections") + 2 * programs.len());
    assert!(programs.iter().all(|run| run.hidden.verifier_output.is_some()));
    let families = ["reflexion/alfworld/env_", "reflexion/webshop/env_"];
    // A trial is a run of its own, also where its file equals the last trial's byte for byte.
    let keys: std::collections::BTreeSet<_> = runs.iter().map(|run| run.key).collect();
    assert_eq!(keys.len(), runs.len());
    assert!(environments.iter().all(|run| families.iter().any(|start| run.task.key.0.starts_with(start))));
    assert!(imported.quarantined.is_empty());
}

#[test]
fn react_questions_come_on_top() {
    let Some((imported, counts)) = folder("reflexion") else { return };
    let runs = of_format(&imported, "react-text");
    assert_eq!(imported.runs.len(), count(&counts, "trajectories") + runs.len());
    // A run that ends wrongly with its last permitted step, the sixth, is printed under two headings.
    let again: usize =
        imported.losses.iter().filter(|(loss, _)| loss.format == "react-text").map(|(_, count)| count).sum();
    assert_eq!(again, 12);
    assert_eq!(runs.len() + again, count(&counts, "questions"));
    let actions: usize = runs.iter().map(|run| run.tool_call_count()).sum();
    assert_eq!(actions + 6 * again, count(&counts, "actions"));
    // Five trials of the same hundred questions; their headings count 34 right answers each.
    let mut trials: BTreeMap<i64, Vec<&Trajectory>> = BTreeMap::new();
    for run in &runs {
        if let Some(trial) = run.trial {
            trials.entry(trial).or_default().push(run);
        }
    }
    assert_eq!(trials.len(), count(&counts, "trial_summaries"));
    for runs in trials.values() {
        let tasks: std::collections::BTreeSet<_> = runs.iter().map(|run| &run.task.key).collect();
        assert_eq!((runs.len(), tasks.len()), (100, 100));
        assert_eq!(runs.iter().filter(|run| run.outcome().status == Status::Success).count(), 34);
    }
    assert!(runs.iter().all(|run| run.hidden.gold.is_some()));
}

#[test]
fn adp_items_are_nodes() {
    let Some((imported, counts)) = folder("adp") else { return };
    assert_eq!(imported.runs.len(), count(&counts, "trajectories"));
    let standardized = of_format(&imported, "adp");
    let nodes: Vec<_> = standardized.iter().flat_map(|run| &run.nodes).collect();
    assert_eq!(nodes.len(), count(&counts, "steps"));
    // The three AndroidControl rows open with their instruction, written as an action.
    let steps = nodes.iter().filter(|node| node.occurrence.sampled).count();
    let instructions = standardized.iter().filter(|run| run.source.uri.contains("androidcontrol")).count();
    assert_eq!((steps + instructions, instructions), (count(&counts, "actions"), 3));
    assert!(standardized.iter().all(|run| run.outcome().status == Status::Unknown));
    let rows = of_format(&imported, "nebius");
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|run| run.outcome().status == Status::Success));
    assert!(rows.iter().all(|run| run.outcome().termination_kind() == Some(TerminationKind::Completed)));
    assert!(imported.quarantined.is_empty());
}

#[test]
fn webvoyager_pictures_are_held() {
    let Some((imported, counts)) = folder("webvoyager") else { return };
    assert_eq!(imported.runs.len(), count(&counts, "trajectories"));
    assert_eq!(imported.node_count(), count(&counts, "messages"));
    assert_eq!(imported.tool_call_count(), count(&counts, "tool_calls"));
    assert_eq!(imported.tool_result_count(), count(&counts, "tool_results"));
    for run in imported.trajectories() {
        // One screenshot for each user message, all of them in the folder.
        let users: Vec<_> = run.nodes.iter().filter(|node| node.role == Role::User).collect();
        assert_eq!(run.media.len(), users.len());
        let shown = |part: &Part| matches!(part, Part::Media(media) if media.blob.is_some());
        assert!(users.iter().all(|node| node.parts.iter().any(shown)));
        assert!(run.media.values().all(|bytes| bytes.starts_with(b"\x89PNG")));
    }
    assert!(imported.losses.is_empty() && imported.quarantined.is_empty());
}

#[test]
fn claude_code_lines_are_accounted_for() {
    let Some((imported, counts)) = folder("claude-code-log") else { return };
    // A file of one session is a run; one of the files holds a line of a second session.
    assert_eq!(imported.runs.len(), count(&counts, "trajectories") + 1);
    assert_eq!(imported.tool_call_count(), count(&counts, "tool_calls"));
    assert_eq!(imported.tool_result_count(), count(&counts, "tool_results"));
    let results = imported.trajectories().flat_map(|run| &run.nodes).flat_map(|node| &node.parts);
    let errors =
        results.filter(|part| matches!(part, Part::ToolResult(result) if result.is_error == Some(true)));
    assert_eq!(errors.count(), count(&counts, "is_error"));
    // Bad lines are those that hold no object; three more hold one that is no line of a session.
    let bad = imported.quarantined.iter().filter(|entry| entry.reason.contains("expected an object")).count();
    assert_eq!(bad, count(&counts, "bad_lines"));
    assert_eq!(imported.quarantined.len(), bad + 3);
    let titles = |run: &Trajectory| {
        run.extra.get("titles").map_or(0, |titles| titles.to_value().as_array().unwrap().len())
    };
    let summaries: usize = imported.trajectories().map(titles).sum();
    assert_eq!(
        imported.node_count() + summaries + imported.quarantined.len(),
        count(&counts, "lines"),
        "no response of these files is spread over several lines"
    );
}

#[test]
fn codex_failed_starts_are_runs_without_steps() {
    let Some((imported, counts)) = folder("codex") else { return };
    assert_eq!(imported.runs.len(), count(&counts, "trajectories"));
    assert_eq!(imported.tool_call_count(), count(&counts, "tool_calls"));
    assert_eq!(imported.tool_result_count(), count(&counts, "tool_results"));
    let (run, _) = &imported.runs[0];
    assert_eq!((run.nodes.len(), run.outcome().status), (0, Status::Unknown));
    assert!(run.agents[0].system_prompt.is_some());
    assert_eq!(run.outcome().termination, None);
}
