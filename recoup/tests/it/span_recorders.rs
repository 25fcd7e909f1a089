//! The one scripted run (`fixtures/importers/writers/scripted_run.json`), as every library that records
//! spans wrote it: what the importers make of it is the same, field by field.

use std::fs;
use std::path::Path;

use recoup::trajectory::{Node, Part, Role, Trajectory};
use serde_json::{Value, json};

use crate::harness::import;

/// Cases, each with what its format cannot carry.
const CASES: [(&str, &[&str]); 21] = [
    ("langfuse/scripted-run", &["image"]),
    ("langfuse/scripted-run-csv", &["image"]),
    ("langfuse/scripted-run-folder", &["image"]),
    ("langfuse/scripted-run-page", &["image"]),
    ("langfuse/scripted-run-parquet", &["image"]),
    ("langsmith/scripted-run", &[]),
    ("mlflow/scripted-run", &["image"]),
    ("openai-agents/scripted-run", &["tools"]),
    ("openinference/arize-export", &[]),
    ("openinference/console-rows", &["reasoning", "errors"]),
    ("openinference/phoenix-frame-csv", &[]),
    ("openinference/phoenix-frame-lines", &[]),
    ("openinference/phoenix-frame-parquet", &[]),
    ("openinference/phoenix-otlp", &[]),
    ("openinference/phoenix-page", &[]),
    ("openinference/scripted-run", &[]),
    ("openinference/span-tree", &[]),
    ("openinference/trail-row", &[]),
    ("otel-genai/scripted-run", &[]),
    ("otel-genai/scripted-run-events", &[]),
    ("otel-genai/scripted-run-protobuf", &[]),
];

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn calls(node: &Node) -> Vec<Value> {
    let calls = node.tool_calls();
    calls.map(|(_, call)| json!([call.call_id, call.name, call.arguments().unwrap()])).collect()
}

fn reasoning(node: &Node) -> Option<&str> {
    node.parts.iter().find_map(|part| match part {
        Part::Reasoning { text, .. } => Some(text.as_str()),
        _ => None,
    })
}

/// Compares a run with the script.
fn compare(run: &Trajectory, script: &Value, lacks: &[&str], case: &str) {
    let carries = |what: &str| !lacks.contains(&what);
    let branch: Vec<&Node> = run.main_branch().nodes().map(|(_, node)| node).collect();
    assert_eq!((run.leaves.len(), branch.len()), (1, 8), "{case}: one line of messages");
    assert_eq!(branch[0].role, Role::System, "{case}");
    assert_eq!(branch[0].text(), script["system"].as_str().unwrap(), "{case}");
    assert_eq!(branch[1].text(), script["user"]["text"].as_str().unwrap(), "{case}");
    let image = branch[1].parts.iter().find_map(|part| match part {
        Part::Media(media) => Some(media),
        _ => None,
    });
    let blob = image.unwrap_or_else(|| panic!("{case}: no image")).blob;
    assert_eq!(blob.is_some(), carries("image"), "{case}: {image:?}");
    let turns = script["turns"].as_array().unwrap();
    let sampled: Vec<&&Node> = branch.iter().filter(|node| node.occurrence.sampled).collect();
    assert_eq!(sampled.len(), turns.len(), "{case}");
    for (node, turn) in sampled.iter().zip(turns) {
        assert_eq!(node.text(), turn["text"].as_str().unwrap_or_default(), "{case}");
        let wanted: Vec<Value> = turn["tool_calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| {
                let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
                json!([call["id"], call["name"], arguments])
            })
            .collect();
        assert_eq!(calls(node), wanted, "{case}");
        let thought = turn["reasoning"].as_str().filter(|_| carries("reasoning"));
        assert_eq!(reasoning(node), thought, "{case}");
        let call = node.occurrence.call.as_ref().unwrap_or_else(|| panic!("{case}: no model call"));
        assert_eq!(call.model.as_deref(), script["model"].as_str(), "{case}");
        let usage = call.usage.unwrap_or_else(|| panic!("{case}: no usage"));
        assert_eq!(json!(usage.input), turn["usage"]["input_tokens"], "{case}");
        assert_eq!(json!(usage.output), turn["usage"]["output_tokens"], "{case}");
    }
    let results: Vec<Value> = branch
        .iter()
        .flat_map(|node| node.tool_results().map(|(_, result)| (*node, result)))
        .map(|(node, result)| json!([result.call_id, node.text(), result.is_error == Some(true)]))
        .collect();
    let wanted: Vec<Value> = turns
        .iter()
        .flat_map(|turn| turn["results"].as_array().unwrap())
        .map(|result| {
            let failed = result["is_error"].as_bool().unwrap() && carries("errors");
            json!([result["id"], result["output"], failed])
        })
        .collect();
    assert_eq!(results, wanted, "{case}");
    let tools: Vec<Value> = run
        .tools
        .iter()
        .map(|tool| {
            json!([tool.name, tool.description, tool.parameters.as_ref().map(recoup::json::Json::to_value)])
        })
        .collect();
    let offered = script["tools"].as_array().unwrap().iter().filter(|_| carries("tools"));
    let offered: Vec<Value> =
        offered.map(|tool| json!([tool["name"], tool["description"], tool["parameters"]])).collect();
    assert_eq!(tools, offered, "{case}");
}

#[test]
fn every_recorder_of_spans_gives_the_same_run() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers");
    let script = read(&fixtures.join("writers/scripted_run.json"));
    for (case, lacks) in CASES {
        let folder = fixtures.join(case);
        let mut files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let input = files.find(|path| path.file_stem().is_some_and(|stem| stem == "input")).unwrap();
        let imported = import(&[&input]);
        assert!(imported.quarantined.is_empty(), "{case}: {:?}", imported.quarantined);
        let runs: Vec<&Trajectory> = imported.trajectories().collect();
        assert_eq!(runs.len(), 1, "{case}");
        compare(runs[0], &script, lacks, case);
    }
}

/// Model calls recorded by one instrumentation, tools by another, each in a file of its own conventions.
#[test]
fn a_trace_in_files_of_two_conventions_is_one_run() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers");
    let recorded = fs::read_to_string(fixtures.join("openinference/scripted-run/input.jsonl")).unwrap();
    let (tools, others): (Vec<&str>, Vec<&str>) =
        recorded.lines().partition(|line| line.contains(r#"{"stringValue":"TOOL"}"#));
    assert_eq!((tools.len(), others.len()), (3, 4));
    let mut written = String::new();
    for line in tools {
        let mut batch: Value = serde_json::from_str(line).unwrap();
        let span = batch.pointer_mut("/resourceSpans/0/scopeSpans/0/spans/0").unwrap();
        let said = |name: &str| {
            let attributes = span["attributes"].as_array().unwrap();
            attributes.iter().find(|pair| pair["key"] == name).map(|pair| pair["value"].clone())
        };
        let renamed = [
            ("gen_ai.tool.name", "tool.name"),
            ("gen_ai.tool.call.id", "tool.id"),
            ("gen_ai.tool.call.result", "output.value"),
        ];
        let mut attributes =
            vec![json!({ "key": "gen_ai.operation.name", "value": { "stringValue": "execute_tool" } })];
        attributes
            .extend(renamed.iter().filter_map(|(new, old)| Some(json!({ "key": new, "value": said(old)? }))));
        span["attributes"] = attributes.into();
        written.push_str(&batch.to_string());
        written.push('\n');
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("models.jsonl"), others.join("\n")).unwrap();
    fs::write(folder.path().join("a-tools.jsonl"), written).unwrap();
    let imported = import(&[folder.path()]);
    let runs: Vec<&Trajectory> = imported.trajectories().collect();
    assert_eq!(runs.len(), 1, "{:?}", imported.losses);
    assert_eq!(runs[0].source.format, "openinference");
    compare(runs[0], &read(&fixtures.join("writers/scripted_run.json")), &[], "two files");
}
