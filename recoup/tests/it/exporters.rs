//! Exporters: masks, weights, pairs and labels in the words of each format, or refused.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use recoup::artifact::Provenance;
use recoup::exporters::{
    Built, EXPORTERS, ExportOptions, ExportWriter, Exporter, Manifest, Prover, Refusal, TokenCounts,
    Training, build_rows, check, exporter,
};
use recoup::json::Json;
use recoup::redaction::redact;
use recoup::task::Task;
use recoup::trajectory::{ArgumentsForm, Part, Role, Tool, ToolCall, Trajectory};
use recoup::verdict::Side;
use recoup::views::{Example, Lineage, Message, Objective, StepLabel, VIEWS, View};

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn view(name: &str) -> &'static dyn View {
    *VIEWS.iter().find(|view| view.name() == name).unwrap()
}

fn in_format(format: &str, of: &str) -> &'static dyn Exporter {
    exporter(format, view(of)).unwrap()
}

fn message(role: Role, parts: Vec<Part>) -> Arc<Message> {
    Arc::new(Message::written(role, role.as_str(), parts))
}

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        call_id: Some(id.to_owned()),
        name: "find".to_owned(),
        arguments_raw: arguments.to_owned(),
        arguments_form: ArgumentsForm::String,
    })
}

/// A question, a call with its result, and an answer; the messages named are learned.
fn example(of: &str, learned: &[usize], answer: &str) -> Example {
    let run = Trajectory::new("test", Task::named("test/1", "find it"));
    let context = vec![
        message(Role::User, vec![Part::text("find it")]),
        message(Role::Assistant, vec![Part::text("Looking. "), call("c1", r#"{"n": 2}"#)]),
        message(Role::Tool, vec![Part::text_result(Some("c1".to_owned()), "there")]),
        message(Role::Assistant, vec![Part::text(answer)]),
    ];
    let tools = vec![Tool {
        name: "find".to_owned(),
        description: "Finds.".to_owned(),
        parameters: Some(Json::parse(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#).unwrap()),
        read_only: None,
    }];
    let segments = learned.iter().flat_map(|index| context[*index].segments(*index)).collect();
    Example::new(context, tools.into(), segments, Lineage::new(of, &run, Side::Train))
}

fn weighted(mut example: Example, weight: f64) -> Example {
    example.segments.iter_mut().for_each(|segment| segment.weight = weight);
    example
}

fn rows(exporter: &dyn Exporter, examples: Vec<Example>) -> Vec<Result<Value, &'static str>> {
    let built = build_rows(exporter, examples, ExportOptions::default());
    let rows: Vec<_> = built.into_iter().map(|built| built.row.map_err(|refusal| refusal.reason)).collect();
    for row in rows.iter().flatten() {
        exporter.shape().check(row).unwrap();
    }
    rows
}

#[test]
fn a_mask_is_said_in_the_words_of_each_format() {
    let masked = || vec![example("success_sft", &[3], "There.")];
    let row = |format| rows(in_format(format, "success_sft"), masked()).remove(0);
    let said = |row: &Value, key: &str| -> Vec<Value> {
        row["messages"].as_array().unwrap().iter().map(|message| message[key].clone()).collect()
    };
    assert_eq!(
        said(&row("axolotl").unwrap(), "train"),
        [json!(null), json!(false), json!(null), json!(true)]
    );
    assert_eq!(said(&row("openai").unwrap(), "weight"), [json!(null), json!(0), json!(null), json!(1)]);
    assert_eq!(said(&row("tinker").unwrap(), "trainable"), [false, false, false, true].map(Value::from));
    for whole in ["trl", "llamafactory", "verl"] {
        assert_eq!(row(whole).unwrap_err(), "an-assistant-message-is-not-learned", "{whole}");
    }
    assert_eq!(row("unsloth").unwrap()["conversations"][3]["content"], "There.");
}

#[test]
fn hindsight_and_its_controls_go_out_step_by_step() {
    for of in ["hindsight_sft", "failure_sft", "shuffled_sft"] {
        // As if the first call had failed.
        let built = rows(in_format("trl", of), vec![example(of, &[3], "There.")]);
        assert_eq!(built[0].as_ref().unwrap()["completion"][0]["content"], "There.", "{of}");
        let built = rows(in_format("llamafactory", of), vec![example(of, &[1, 3], "There.")]);
        assert_eq!(built.iter().filter(|row| row.is_ok()).count(), 2, "{of}");
        let half = build_rows(
            in_format("trl", of),
            vec![weighted(example(of, &[3], "There."), 0.5)],
            ExportOptions::default(),
        );
        assert_eq!(half[0].row.as_ref().unwrap_err().reason, "weight-not-carried");
    }
}

#[test]
fn a_part_of_a_message_is_learned_by_axolotl_alone() {
    let mut partly = example("success_sft", &[3], "No. Yes.");
    partly.segments[0].start = 3;
    let built = |format| rows(in_format(format, "success_sft"), vec![partly.clone()]).remove(0);
    assert_eq!(
        built("axolotl").unwrap()["messages"][3]["content"],
        json!([{"type": "text", "text": "No.", "train": false}, {"type": "text", "text": " Yes.", "train": true}])
    );
    assert_eq!(built("openai").unwrap_err(), "a-part-of-a-message-is-learned");
    partly.segments[0].start = 0;
    partly.segments[0].end = 3;
    let built = |format| rows(in_format(format, "success_sft"), vec![partly.clone()]).remove(0);
    assert_eq!(built("axolotl").unwrap_err(), "a-message-is-learned-without-its-end");
}

/// A preference with tools.
fn halves(better: &str, worse: &str) -> Vec<Example> {
    let half = |answer| example("preference", &[3], answer);
    Example::paired(half(better), half(worse), Objective::Preference).to_vec()
}

#[test]
fn a_preference_is_one_row() {
    let halves = || halves("There.", "Nowhere.");
    let row = |format| {
        let mut rows = rows(in_format(format, "preference"), halves());
        assert_eq!(rows.len(), if format == "parquet" || format == "scout" { 2 } else { 1 }, "{format}");
        rows.remove(0)
    };
    let trl = row("trl").unwrap();
    assert_eq!(
        (&trl["chosen"][0]["content"], &trl["rejected"][0]["content"]),
        (&json!("There."), &json!("Nowhere."))
    );
    assert_eq!(trl["prompt"].as_array().unwrap().len(), 3);
    assert_eq!(row("openai").unwrap()["non_preferred_output"][0]["content"], "Nowhere.");
    assert_eq!(row("llamafactory").unwrap()["rejected"], json!({"from": "gpt", "value": "Nowhere."}));
    assert_eq!(row("axolotl").unwrap_err(), "tools-in-a-preference");
    assert_eq!(row("unsloth").unwrap_err(), "objective-not-carried");
    assert_eq!(row("parquet").unwrap()["chosen"], true);

    let [chosen, mut rejected] = <[Example; 2]>::try_from(halves()).unwrap();
    rejected.context[0] = message(Role::User, vec![Part::text("find the other")]);
    let built = rows(in_format("trl", "preference"), vec![chosen.clone(), rejected]);
    assert_eq!(built, [Err("halves-differ-before-the-decision")]);
    assert_eq!(rows(in_format("trl", "preference"), vec![chosen]), [Err("half-of-a-preference")]);
}

#[test]
fn no_ordinary_format_takes_a_contrast_of_goals() {
    for format in EXPORTERS {
        let half = |answer| example("preference", &[3], answer);
        let halves = Example::paired(half("There."), half("Here."), Objective::GoalContrast).to_vec();
        let built = rows((format.of_view)(view("preference")), halves);
        let refused = built == [Err("goal-contrast-needs-a-loss-of-its-own")];
        assert_eq!(refused, !matches!(format.name, "parquet" | "scout"), "{}", format.name);
    }
}

#[test]
fn labels_go_where_labels_are_read() {
    let unwanted = || {
        let mut example = example("kto", &[3], "Nowhere.");
        example.objective = Objective::Desirability;
        example.desirable = Some(false);
        vec![example]
    };
    let row = |format| rows(in_format(format, "kto"), unwanted()).remove(0);
    assert_eq!(row("trl").unwrap()["label"], false);
    assert_eq!(row("llamafactory").unwrap()["kto_tag"], false);
    assert_eq!(row("openai").unwrap_err(), "objective-not-carried");

    let mut steps = example("process_reward", &[], "There.");
    steps.objective = Objective::StepRewards;
    let label = |message, correct, value| StepLabel { message, correct, value };
    steps.step_labels = vec![label(1, true, None), label(3, false, Some(0.5))];
    let built = rows(in_format("trl", "process_reward"), vec![steps]);
    assert_eq!(built[0].as_ref().unwrap()["label"], true);
    assert_eq!(built[1], Err("value-of-a-step-not-carried"));
}

#[test]
fn a_weight_is_refused_or_resampled_and_falls_the_same_every_time() {
    let trl = in_format("trl", "success_sft");
    let half = |index: u32| weighted(example("success_sft", &[1, 3], &format!("There, {index}.")), 0.5);
    assert_eq!(rows(trl, vec![half(0)]), [Err("weight-not-carried")]);
    let resample = ExportOptions { resample: true, ..ExportOptions::default() };
    let resampled = || build_rows(trl, (0..400).map(half).collect(), resample);
    let kept = |built: &[Built]| built.iter().filter(|built| built.row.is_ok()).count();
    let built = resampled();
    assert!((160..240).contains(&kept(&built)), "{}", kept(&built));
    let same = built.iter().zip(resampled()).all(|(one, again)| one.row == again.row);
    assert!(same);
    let twice = weighted(example("success_sft", &[1, 3], "There."), 2.0);
    assert_eq!(build_rows(trl, vec![twice], resample)[0].copies, 2);
    let mut uneven = example("success_sft", &[1, 3], "There.");
    uneven.segments[0].weight = 0.5;
    assert_eq!(rows(trl, vec![uneven]), [Err("weights-differ-within-the-example")]);
}

/// Proves what does not say "wrong".
#[derive(Debug)]
struct Reader;

impl Prover for Reader {
    fn prove(&self, example: &Example) -> Result<TokenCounts, Refusal> {
        let last = example.context.last().unwrap();
        match &last.parts[0] {
            Part::Text(text) if text.text.contains("wrong") => Err(Refusal { reason: "unproved" }),
            _ => Ok(TokenCounts { tokens: 10, ..TokenCounts::default() }),
        }
    }
}

#[test]
fn both_halves_of_a_preference_are_proved_for_the_model() {
    let options = ExportOptions { prover: Some(&Reader), ..ExportOptions::default() };
    let pair = |better: &str, worse: &str| {
        let trl = in_format("trl", "preference");
        let built = build_rows(trl, halves(better, worse), options).remove(0);
        (built.row.map(|_| ()).map_err(|refusal| refusal.reason), built.tokens.map(|tokens| tokens.tokens))
    };
    assert_eq!(pair("There.", "Nowhere."), (Ok(()), Some(20)));
    assert_eq!(pair("There.", "wrong"), (Err("unproved"), None));
    assert_eq!(pair("wrong", "There."), (Err("unproved"), None));
}

#[test]
fn llamafactory_writes_calls_beside_text_as_its_templates_find_them() {
    let row = rows(in_format("llamafactory", "success_sft"), vec![example("success_sft", &[1, 3], "There.")])
        .remove(0);
    assert_eq!(
        row.unwrap()["conversations"],
        json!([
            {"from": "human", "value": "find it"},
            {"from": "function_call", "value": r#"Looking. <tool_call>{"name":"find","arguments":{"n":2}}</tool_call>"#},
            {"from": "observation", "value": "there"},
            {"from": "gpt", "value": "There."},
        ])
    );
}

/// Two examples written into a folder in a format.
fn exported(folder: &Path, format: &str) -> (Manifest, &'static dyn Exporter) {
    let (view, exporter) = (view("success_sft"), in_format(format, "success_sft"));
    let training = Training { view, exporter, options: ExportOptions::default() };
    let provenance = Provenance::new("c".to_owned(), "i".to_owned());
    let mut writer = ExportWriter::create(folder, training, provenance, Value::Null).unwrap();
    let run = redact(&Trajectory::new("test", Task::named("test/1", "find it")));
    for answer in ["There.", "Here."] {
        let mut examples = vec![example("success_sft", &[1, 3], answer)];
        examples[0].lineage.gates =
            if answer == "Here." { vec!["S1".to_owned(), "M2".to_owned()] } else { Vec::new() };
        writer.offer(&run, Ok(build_rows(exporter, examples, training.options))).unwrap();
    }
    (writer.finish().unwrap(), exporter)
}

#[test]
fn rows_are_counted_by_the_gates_that_admitted_them() {
    let folder = tempfile::tempdir().unwrap();
    let (manifest, _) = exported(folder.path(), "openai");
    assert_eq!((manifest.rows, manifest.gates), (2, [("M2".to_owned(), 1), ("S1".to_owned(), 1)].into()));
}

#[test]
fn damage_is_found_by_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let (mut manifest, exporter) = exported(folder.path(), "openai");
    let path = folder.path().join("success_sft.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let mut found = |text: &str, is_signed: bool| {
        fs::write(&path, text).unwrap();
        if is_signed {
            manifest.sha256 = hexadecimal(&Sha256::digest(text));
        }
        let said = check(folder.path(), &manifest, exporter).err().map(|error| error.to_string());
        said.unwrap_or_default().replace(&path.display().to_string(), "FILE")
    };
    assert_eq!(found(&whole, false), "");
    let changed = whole.replace("There.", "Where.");
    assert_eq!(found(&changed, false), "FILE: its SHA-256 is not the manifest's");
    let first = whole.split_inclusive('\n').next().unwrap();
    assert_eq!(found(first, true), "FILE: 1 rows where the manifest says 2");
    assert_eq!(found(&whole[..whole.len() - 9], true), "cannot read FILE");
    let wrong = whole.replacen("\"weight\":1", "\"weight\":\"1\"", 1);
    let misfit = found(&wrong, true);
    assert!(misfit.starts_with("FILE: row 1: ") && misfit.contains("weight: no whole number"), "{misfit}");
    let unknown = whole.replacen("{\"messages\"", "{\"reward\":1,\"messages\"", 1);
    let misfit = found(&unknown, true);
    assert!(misfit.contains("`reward` is no key of the format"), "{misfit}");
    fs::remove_file(&path).unwrap();
    assert_eq!(
        check(folder.path(), &manifest, exporter).unwrap_err().to_string(),
        format!("cannot read {}", path.display())
    );
}

#[cfg(feature = "parquet")]
#[test]
fn damaged_columns_are_found_by_the_check() {
    for format in ["verl", "verl-rl", "scout", "parquet"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut manifest, exporter) = exported(folder.path(), format);
        check(folder.path(), &manifest, exporter).unwrap();
        let path = folder.path().join("success_sft.parquet");
        let whole = fs::read(&path).unwrap();
        manifest.rows = 3;
        let counted = check(folder.path(), &manifest, exporter).unwrap_err().to_string();
        assert!(counted.ends_with("2 rows where the manifest says 3"), "{counted}");
        let cut = &whole[..whole.len() / 2];
        fs::write(&path, cut).unwrap();
        manifest.sha256 = hexadecimal(&Sha256::digest(cut));
        assert!(check(folder.path(), &manifest, exporter).is_err(), "{format}");
    }
}
