//! ATIF out and in again: the run is the same, as far as the format goes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use recoup::exporters::atif::atif;
use recoup::importers::{Event, ImportOptions, Source, detect};
use recoup::json::Json;
use recoup::task::Task;
use recoup::trajectory::{
    Agent, ArgumentsForm, Call, Harness, Leaf, Media, Node, Outcome, Part, Role, Status, ToolCall,
    ToolResult, Trajectory, Usage,
};

use crate::harness::{import, shared_data, unseal};

/// Reads a document; panics with what was wrong.
fn read(document: &serde_json::Value) -> Trajectory {
    let bytes = serde_json::to_vec_pretty(document).unwrap();
    let source = Source::from_bytes("run.json", bytes, Arc::new(ImportOptions::default()));
    let importer = detect(&source).unwrap().expect("a recognized document");
    assert_eq!(importer.format(), "atif");
    let mut events: Vec<Event> = Vec::new();
    importer.import(&source, &mut events).unwrap();
    match events.as_slice() {
        [Event::Trajectory(sealed)] => unseal(sealed).0,
        other => panic!("{other:?}\n{document:#}"),
    }
}

/// What identity does not cover: where a run was read, and so its ids; the spelling of arguments; the
/// version, which rises to the one that has what is written.
fn comparable(mut run: Trajectory) -> Trajectory {
    let fresh = Trajectory::new("", Task::from_goal(""));
    (run.id, run.key, run.revision, run.source) = (fresh.id, fresh.key, fresh.revision, fresh.source);
    run.extra.remove("schema_version");
    for part in run.nodes.iter_mut().flat_map(|node| &mut node.parts) {
        if let Part::ToolCall(call) = part
            && call.arguments_form == ArgumentsForm::Object
            && let Ok(json) = Json::parse(&call.arguments_raw)
        {
            json.as_str().clone_into(&mut call.arguments_raw);
        }
    }
    run
}

fn text() -> impl Strategy<Value = String> {
    "[a-z\"\\\\\n é]{1,12}"
}

fn json_value() -> impl Strategy<Value = Json> {
    prop_oneof![
        any::<i64>().prop_map(|number| Json::parse(&number.to_string()).unwrap()),
        text().prop_map(|text| Json::string(&text)),
        Just(Json::parse(r#"[1.5,{"a":[true]}]"#).unwrap()),
    ]
}

fn said() -> impl Strategy<Value = Vec<Part>> {
    let media = prop_oneof![Just("image/png"), Just("audio/wav")].prop_map(|mime| {
        let reference = Some("images/1.bin".to_owned());
        Part::Media(Media { mime: mime.to_owned(), blob: None, reference })
    });
    proptest::collection::vec(prop_oneof![text().prop_map(Part::text), media], 0..3)
}

fn tool_call() -> impl Strategy<Value = Part> {
    let big = r#"{"a":123456789012345678901234567890}"#;
    let arguments = prop_oneof![
        Just((big.to_owned(), ArgumentsForm::Object)),
        json_value().prop_map(|value| (format!("{{\"a\":{}}}", value.as_str()), ArgumentsForm::Object)),
        text().prop_map(|text| (text, ArgumentsForm::String)),
        Just((r#"{"a":1}"#.to_owned(), ArgumentsForm::String)),
        Just((r#"{ "a":  1 }"#.to_owned(), ArgumentsForm::String)),
    ];
    (any::<Option<u8>>(), text(), arguments).prop_map(|(id, name, (arguments_raw, arguments_form))| {
        let call_id = id.map(|id| format!("c{id}"));
        Part::ToolCall(ToolCall { call_id, name, arguments_raw, arguments_form })
    })
}

fn call() -> impl Strategy<Value = Call> {
    let usage = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>()).prop_map(
        |(input, output, cached, reasoning)| Usage {
            input: input.into(),
            output: output.into(),
            cached: cached.into(),
            reasoning: reasoning.into(),
        },
    );
    (
        proptest::option::of(text()),
        proptest::option::of(usage),
        proptest::option::of(0.0..9.0f64),
        proptest::option::of(proptest::collection::vec(any::<u32>(), 0..3)),
        proptest::option::of(proptest::collection::vec(-9.0..-0.1f64, 1..3)),
        proptest::option::of(json_value()),
    )
        .prop_map(|(model, usage, cost, ids, logprobs, effort)| Call {
            finish_reason: model.clone(),
            model,
            usage,
            cost,
            completion_ids: ids.clone(),
            prompt_ids: ids,
            logprobs,
            parameters: effort.map(|value| {
                Json::parse(&format!("{{\"reasoning_effort\":\"low\",\"x\":{}}}", value.as_str())).unwrap()
            }),
            ..Call::default()
        })
}

fn speaker() -> impl Strategy<Value = Node> {
    let role = prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant)];
    let own = (
        proptest::option::of(text()),
        proptest::collection::vec(tool_call(), 0..3),
        proptest::option::of(call()),
        proptest::option::of(text()),
    );
    (role, said(), own, any::<(bool, bool, bool)>(), proptest::option::of(text())).prop_map(
        |(role, said, (reasoning, calls, call, refusal), (copied, sampled, other), extra)| {
            let mut parts: Vec<Part> = Vec::new();
            let agent = role == Role::Assistant;
            if agent {
                parts.extend(
                    reasoning.map(|text| Part::Reasoning { signature: other.then(|| text.clone()), text }),
                );
            }
            parts.extend(said);
            parts.extend(refusal.map(|raw| Part::Opaque { kind: "refusal".to_owned(), raw }));
            if agent {
                parts.extend(calls);
            }
            let name = if agent { if other { "second" } else { "first" } } else { role.as_str() };
            let mut node = Node::new(role, name, parts);
            node.occurrence.copied_context = copied;
            node.occurrence.sampled = agent && sampled;
            node.occurrence.at = other.then(|| "2026-01-01T00:00:00Z".to_owned());
            node.occurrence.call = call.filter(|call| agent && *call != Call::default()).map(Box::new);
            node.occurrence.extra = extra.map(|extra| {
                let text = Json::string(&extra);
                Json::parse(&format!("{{\"extra\":{{\"k\":{}}},\"weight\":0}}", text.as_str())).unwrap()
            });
            node
        },
    )
}

fn observation() -> impl Strategy<Value = Node> {
    let result = (any::<Option<u8>>(), said(), any::<Option<bool>>(), any::<Option<i64>>()).prop_map(
        |(id, parts, is_error, exit_code)| {
            let call_id = id.map(|id| format!("c{id}"));
            Part::ToolResult(ToolResult { call_id, parts, is_error, exit_code })
        },
    );
    let name = prop_oneof![Just("tool".to_owned()), text()];
    (name, proptest::collection::vec(result, 1..3), proptest::option::of(text()), any::<bool>()).prop_map(
        |(name, parts, at, words)| {
            let parts = if words { vec![Part::text("words of the environment")] } else { parts };
            let mut node = Node::new(Role::Tool, name, parts);
            node.occurrence.at = at;
            node
        },
    )
}

fn trajectory() -> impl Strategy<Value = Trajectory> {
    let nodes = proptest::collection::vec(prop_oneof![2 => speaker(), 1 => observation()], 1..7);
    (nodes, any::<(bool, bool)>(), any::<Option<i64>>(), json_value()).prop_map(
        |(nodes, (named, scored), trial, value)| {
            let mut run = Trajectory::new("atif", Task::from_goal(""));
            run.agents.push(Agent {
                name: "first".to_owned(),
                model: named.then(|| "m".to_owned()),
                system_prompt: scored.then(|| "be good".to_owned()),
            });
            run.harness = named.then(|| Harness { name: "first".to_owned(), version: Some("1".to_owned()) });
            let mut copied = false;
            for mut node in nodes {
                // A step is copied with its observation; before the first step stands none.
                if node.role == Role::Tool {
                    node.occurrence.copied_context = copied;
                } else {
                    copied = node.occurrence.copied_context;
                }
                run.push(node);
            }
            run.task = if named { Task::named("t/1", "goal") } else { Task::from_goal(goal(&run)) };
            run.trial = trial;
            run.extra = BTreeMap::from([("extra".to_owned(), Json::parse(r#"{"a":1}"#).unwrap())]);
            run.extra.insert("session_id".to_owned(), Json::string("s1"));
            run.extra.insert("other".to_owned(), value);
            let outcome = Outcome { status: Status::Failure, score: Some(0.5), ..Outcome::unknown() };
            run.finish(if scored { outcome } else { Outcome::unknown() });
            run
        },
    )
}

fn goal(run: &Trajectory) -> String {
    let text = |role| {
        run.nodes
            .iter()
            .filter(|node| node.role == role && !node.occurrence.copied_context)
            .map(Node::text)
            .find(|text| !text.trim().is_empty())
    };
    text(Role::User).or_else(|| text(Role::System)).unwrap_or_default()
}

proptest! {
    #[test]
    fn a_run_that_the_format_can_hold_comes_back(run in trajectory()) {
        let mut losses = Vec::new();
        let document = atif(&run, &mut losses);
        assert_eq!(losses, []);
        let (read, run) = (comparable(read(&document)), comparable(run));
        assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&run).unwrap());
        assert_eq!(read, run);
    }
}

#[test]
fn real_documents_come_back_as_the_same_value() {
    let Some(folder) = shared_data("derived_atif") else { return };
    let imported = import(&[&folder]);
    assert_eq!(imported.runs.len(), 3);
    for run in imported.trajectories() {
        let original: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&run.source.uri).unwrap()).unwrap();
        let mut losses = Vec::new();
        assert_eq!(atif(run, &mut losses), original, "{}", run.source.uri);
        assert_eq!(losses, []);
    }
}

#[test]
fn every_field_comes_back() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers/atif/every-field/input.json");
    let original: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let mut losses = Vec::new();
    assert_eq!(atif(&read(&original), &mut losses), original);
    assert_eq!(losses, []);
}

#[test]
fn what_the_format_cannot_hold_is_a_loss() {
    let mut run = Trajectory::new("test", Task::from_goal("hi"));
    let call = ToolCall {
        call_id: None,
        name: "f".to_owned(),
        arguments_raw: "{}".to_owned(),
        arguments_form: ArgumentsForm::Object,
    };
    let reasoning = Part::Reasoning { text: "hm".to_owned(), signature: None };
    run.push(Node::new(Role::User, "user", vec![Part::text("hi"), Part::ToolCall(call)]));
    let root = run.push(Node::new(Role::Assistant, "a", vec![Part::text("so"), reasoning]).sampled());
    run.finish(Outcome::unknown());
    let mut other = Node::new(Role::Assistant, "a", Vec::new());
    other.parent = Some(root - 1);
    let other = run.push_under(other);
    run.leaves.push(Leaf { node: Some(other), outcome: Outcome::unknown() });
    run.hidden.gold = Some(Json::string("42"));
    run.extra.insert("big".to_owned(), Json::parse("123456789012345678901").unwrap());
    let mut losses = Vec::new();
    let document = atif(&run, &mut losses);
    let fields: Vec<&str> = losses.iter().map(|loss| loss.field.as_str()).collect();
    // With packages compiled in, `serde_json` keeps every digit.
    let lost = ["big", "branches", "hidden", "message", "tool_calls"];
    assert_eq!(fields, lost[usize::from(cfg!(feature = "packages"))..]);
    assert!(!document.to_string().contains("42"), "answers never leave");
}

#[test]
fn runs_of_other_formats_travel_in_it() {
    let folders = ["tau-bench", "who_and_when"].map(shared_data);
    for folder in folders.iter().flatten() {
        for run in import(&[folder]).trajectories().step_by(4) {
            let mut losses = Vec::new();
            let document = atif(run, &mut losses);
            assert!(losses.iter().all(|loss| loss.field == "hidden"), "{losses:?}");
            let mut expected = run.clone();
            expected.hidden = recoup::trajectory::Hidden::default();
            let same = comparable(read(&document)) == comparable(expected);
            assert!(same, "{} line {:?}", run.source.uri, run.source.span);
        }
    }
}
