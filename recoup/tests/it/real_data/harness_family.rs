//! What the agent harnesses write, folder by folder against the counts that were taken from the same
//! files without this program (`expected_counts.json`, read in place).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use recoup::trajectory::{Node, Part, Role, Status, TerminationKind, Trajectory, body_bytes, chain};
use serde_json::Value;

use crate::harness::{Imported, import, shared_data};

/// A folder's runs, and the counts expected of them.
struct Folder {
    imported: Imported,
    expected: Value,
}

impl Folder {
    fn open(name: &str) -> Option<Self> {
        let counts = fs::read(shared_data("expected_counts.json")?).unwrap();
        let counts: Value = serde_json::from_slice(&counts).unwrap();
        let imported = import(&[&shared_data(name)?]);
        assert!(imported.quarantined.is_empty(), "{:?}", imported.quarantined);
        Some(Self { imported, expected: counts["totals"][name].clone() })
    }

    #[track_caller]
    fn count(&self, name: &str) -> usize {
        let count = self.expected[name].as_u64();
        count.unwrap_or_else(|| panic!("no `{name}` in {}", self.expected)) as usize
    }

    /// The runs of a format; every other file of the folder must be recognized as no trace.
    fn check(&self, format: &str) {
        assert_eq!(self.imported.runs.len(), self.count("trajectories"));
        assert!(self.imported.trajectories().all(|run| run.source.format == format));
    }

    fn run(&self, file: &str) -> &Trajectory {
        let mut runs = self.imported.trajectories().filter(|run| run.source.uri.contains(file));
        let run = runs.next().unwrap_or_else(|| panic!("no run from {file}"));
        assert!(runs.next().is_none(), "several runs from {file}");
        run
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn inspect_logs() {
    let Some(folder) = Folder::open("inspect_ai") else { return };
    folder.check("inspect");
    assert_eq!(folder.imported.node_count(), folder.count("messages"));
    // The counts leave the calls in `.eval` members out: one archive of the folder has five of each.
    let inside = |run: &&Trajectory| run.source.uri.contains(".eval#");
    let in_archives: usize =
        folder.imported.trajectories().filter(inside).map(Trajectory::tool_call_count).sum();
    assert_eq!(in_archives, 5);
    assert_eq!(folder.imported.tool_call_count(), folder.count("tool_calls") + in_archives);
    assert_eq!(folder.imported.tool_result_count(), folder.count("tool_results") + in_archives);

    let browser = folder.run("browser.json");
    assert_eq!(browser.task.key.0, "inspect/browser/1");
    let (_, call) = browser.nodes[1].tool_calls().next().unwrap();
    assert_eq!(
        (call.name.as_str(), call.arguments_raw.contains("https://www.aisi.gov.uk/")),
        ("web_browser_go", true)
    );
    assert_eq!(browser.outcome().evidence, "includes = 1 ≥ 1");
    assert_eq!(browser.trial, Some(1));
    let call = browser.nodes[1].occurrence.call.as_ref().unwrap();
    assert_eq!(call.finish_reason.as_deref(), Some("tool_calls"));
    assert!(!browser.tools.is_empty() && browser.hidden.verifier_output.is_some());

    let pooled = folder.run("log_message_deduplication.eval");
    assert_eq!(pooled.main_branch().steps().len(), 6);
    assert!(pooled.nodes.iter().all(|node| node.occurrence.sampled == node.occurrence.call.is_some()));
    assert!(pooled.tool("python").unwrap().description.starts_with("Use the python function"));
    let image = folder.run("log_images_tc.json");
    let held =
        image.nodes[1].parts.iter().any(|part| matches!(part, Part::Media(media) if media.blob.is_some()));
    assert!(held && image.media.len() == 1);
    assert_eq!(image.outcome().status, Status::Failure);
    assert_eq!(image.hidden.gold.as_ref().unwrap().as_str(), r#"["bike","bicycle"]"#);
}

#[test]
fn swe_agent_trajectories() {
    let Some(folder) = Folder::open("swe-agent") else { return };
    folder.check("swe-agent");
    assert_eq!(folder.imported.node_count(), folder.count("messages"));
    assert_eq!(folder.imported.tool_call_count(), folder.count("tool_calls"));
    assert_eq!(folder.imported.tool_result_count(), folder.count("tool_results"));
    // A step whose turn is not in the history is kept beside it: the expected steps are both.
    let outside = |run: &Trajectory| {
        let steps = run.extra.get("steps_outside_history").map(recoup::json::Json::to_value);
        steps.and_then(|steps| steps.as_array().map(Vec::len)).unwrap_or(0)
    };
    let outside: usize = folder.imported.trajectories().map(outside).sum();
    assert_eq!((folder.imported.step_count() + outside, outside), (folder.count("steps"), 1));
    assert_eq!(folder.imported.outcome_count(Status::Unknown), folder.count("trajectories"));
    // `args.yaml`, `all_preds.jsonl`, the licence and the documentation are no traces.
    assert_eq!(folder.imported.unrecognized.len(), 4, "{:?}", folder.imported.unrecognized);

    let pydicom = folder.run("pydicom__pydicom-1458.traj");
    assert_eq!(pydicom.task.key.0, "swe-agent/pydicom__pydicom-1458");
    assert_eq!(pydicom.task.group_keys, ["repository/pydicom__pydicom"]);
    assert!(pydicom.task.goal.starts_with("We're currently solving"), "the demonstration is not the goal");
    assert!(pydicom.nodes[1].occurrence.copied_context);
    assert_eq!(pydicom.outcome().termination_kind(), Some(TerminationKind::Completed));
    let demonstration = folder.run("function_calling_simple.traj");
    assert!(
        demonstration.nodes.iter().all(|node| node.occurrence.copied_context && !node.occurrence.sampled)
    );
    let called = folder.run("1867__function_calling");
    assert!(called.nodes.iter().any(|node| node.text().contains("\r\n")));
    let extra = called.nodes[2].occurrence.extra.as_ref().unwrap().to_value();
    assert!(extra["execution_time"].is_f64() && extra["state"].is_object(), "{extra}");
    let old = folder.run("1867__xml_sys").nodes[2].occurrence.extra.as_ref().unwrap().to_value();
    assert!(old["state"].is_object(), "{old}");
}

#[test]
fn swe_smith_outcome_stands_in_the_evaluation_folder() {
    let Some(folder) = Folder::open("swe-smith") else { return };
    folder.check("swe-agent");
    assert_eq!(folder.imported.node_count(), folder.count("messages"));
    assert_eq!(folder.imported.step_count(), folder.count("steps"));
    assert_eq!(folder.imported.tool_call_count(), folder.count("tool_calls"));
    assert_eq!(folder.imported.tool_result_count(), folder.count("tool_results"));
    let run = folder.run(".traj");
    assert_eq!(run.outcome().evidence, "report.json resolved = true");
    assert!(run.hidden.verifier_output.is_some());
    assert_eq!(run.task.key.0, "swe-agent/pydantic__pydantic.acb0f10f.pr_8316");

    // The file alone is beside no report.
    let files = shared_data("swe-smith/tests/test_logs/trajectories").unwrap();
    let alone = import(&[&files]);
    assert_eq!(alone.outcome_count(Status::Unknown), 1);
}

/// Files that store the whole prompt at every step: what is stored are the distinct (prefix, message)
/// pairs, counted here by other means than the importer's.
#[test]
fn repeated_prompts_add_no_nodes() {
    for folder in ["swe-agent", "swe-smith"] {
        let Some(root) = shared_data(folder) else { return };
        let imported = import(&[&root]);
        let mut stored = BTreeSet::new();
        let mut expected = 0;
        for run in imported.trajectories() {
            let file = read(Path::new(&run.source.uri));
            let mut pairs = BTreeSet::new();
            let steps = file["trajectory"].as_array().cloned().unwrap_or_default();
            let prompts = steps.iter().flat_map(|step| [&step["query"], &step["messages"]]);
            for prompt in prompts.chain([&file["history"]]).filter_map(Value::as_array) {
                let mut prefix = String::new();
                for message in prompt {
                    let of = |key: &str| message.get(key).filter(|value| !value.is_null()).cloned();
                    let parts =
                        (of("role"), of("content"), of("tool_calls"), of("tool_call_ids"), of("agent"));
                    prefix.push_str(&serde_json::to_string(&parts).unwrap());
                    pairs.insert(prefix.clone());
                }
            }
            expected += pairs.len();
            let mut hashes = Vec::new();
            for node in &run.nodes {
                let hash = chain(node.parent.map(|parent| hashes[parent]), &body_bytes(node));
                hashes.push(hash);
                // Runs that start alike share their first messages in a store; here each counts.
                stored.insert((run.id, hash));
            }
        }
        assert_eq!(stored.len(), expected, "{folder}");
    }
}

#[test]
fn mini_swe_agent_runs() {
    let Some(folder) = Folder::open("mini-swe-agent") else { return };
    folder.check("mini-swe-agent");
    assert_eq!(folder.imported.node_count(), folder.count("messages"));
    assert_eq!(folder.imported.tool_call_count(), folder.count("tool_calls"));
    assert!(folder.imported.unrecognized.iter().any(|uri| uri.ends_with("results.json")));
    let run = folder.run("local.traj.json");
    assert_eq!(run.main_branch().steps(), [2, 4]);
    assert_eq!(
        run.nodes[2].occurrence.extra.as_ref().unwrap().as_str(),
        r#"{"action":"echo 'hello world'"}"#
    );
    assert_eq!(run.outcome().termination_kind(), Some(TerminationKind::Completed));
    assert_eq!(run.outcome().status, Status::Unknown);
}

#[test]
fn openhands_runs() {
    let Some(folder) = Folder::open("openhands") else { return };
    folder.check("openhands");
    assert_eq!(folder.imported.node_count(), folder.count("events"));
    assert_eq!(folder.count("events"), folder.count("actions") + folder.count("observations"));
    assert_eq!(folder.count("errors"), 0);
    let results = folder.imported.tool_result_count();
    // Every observation is a result, but for the harness's notes to itself: six in one file (changes of
    // state and empty answers to messages), and one state change by action.
    let is_note = |part: &Part| matches!(part, Part::Opaque { .. });
    let notes: Vec<_> = folder
        .run("basic_gui_mode.json")
        .nodes
        .iter()
        .filter(|node| node.parts.iter().all(is_note))
        .collect();
    assert_eq!((notes.len(), results + 7), (8, folder.count("observations")));
    assert!(notes.iter().all(|node| node.role == Role::System && !node.occurrence.sampled));

    let run = folder.run("wrong_initial_state.json");
    let called: Vec<_> =
        run.nodes.iter().flat_map(Node::tool_calls).map(|(_, call)| call.call_id.clone()).collect();
    let answered: Vec<_> =
        run.nodes.iter().flat_map(Node::tool_results).map(|(_, result)| result.call_id.clone()).collect();
    assert_eq!(called[..3], answered[..]);
    let (_, call) = run.nodes[1].tool_calls().next().unwrap();
    assert_eq!(call.arguments_raw, r#"{"command": "view", "path": "/workspace"}"#);
    assert_eq!(run.model("agent"), Some("claude-3-5-sonnet-20241022"));
    let resolved =
        folder.imported.trajectories().find(|run| run.task.key.0 == "openhands/neubig/pr-viewer#5").unwrap();
    assert_eq!(resolved.outcome().evidence, "success = true");
}

#[test]
fn toolbench_trees() {
    let Some(folder) = Folder::open("toolbench") else { return };
    folder.check("toolbench");
    assert_eq!(folder.imported.node_count(), folder.count("nodes"));
    assert_eq!(folder.imported.tool_call_count(), folder.count("tool_calls"));
    assert_eq!(folder.imported.tool_result_count(), folder.count("tool_calls"), "every call is answered");
    assert_eq!(folder.imported.outcome_count(Status::Failure), folder.count("failures"));
    let leaves = || folder.imported.trajectories().flat_map(|run| &run.leaves);
    let pruned = leaves()
        .filter(|leaf| leaf.outcome.evidence == "pruned = true" || leaf.outcome.evidence == "win = false");
    // A pruned node is always the end of an attempt; where the search failed, the last one is the run's.
    assert_eq!(pruned.count(), folder.count("pruned"));
    assert!(folder.imported.trajectories().all(|run| !run.tools.is_empty() && !run.task.goal.is_empty()));
    for run in folder.imported.trajectories() {
        let file = read(Path::new(&run.source.uri));
        assert_eq!(run.nodes.len() as u64, file["tree"]["size"].as_u64().unwrap());
        assert_eq!(run.outcome().status == Status::Success, file["win"].as_bool().unwrap());
    }
    let run = folder.run("G1_answer/57_");
    assert_eq!(run.leaves.len(), 4);
    let last = run.main_branch().nodes().next_back().unwrap().1.text();
    assert_eq!(last, r#"{"response":"successfully giving the final answer."}"#);
}
