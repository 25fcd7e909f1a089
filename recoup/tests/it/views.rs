//! Views and exports: the mask, by properties; the rows, byte for byte.

use std::fs;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;

use serde_json::Value;

use recoup::artifact::Provenance;
use recoup::exporters::{
    ExportOptions, ExportWriter, Exporter, Manifest, TrlMessages, TrlPromptCompletion, build_rows, natural,
};
use recoup::json::Json;
use recoup::redaction::{Redacted, redact};
use recoup::rollout::interleave::{Aggregate, LabelSettings};
use recoup::task::Task;
use recoup::trajectory::{ArgumentsForm, Node, Outcome, Part, Role, Tool, ToolCall, Trajectory};
use recoup::verdict::{Blame, Diagnosis, Finding, Party, Side};
use recoup::views::{
    DiagnosisAnswer, Example, Exclusion, Kto, PreventionTarget, ProcessReward, StepMaskedSft, SuccessSft,
    VIEWS, View, ViewInput, ViewSettings,
};

static DEFAULT: ViewSettings = ViewSettings {
    diagnosis_answer: DiagnosisAnswer::Full,
    prevention_target: PreventionTarget::Action,
    after_recovery: false,
    sibling_pairs: false,
    one_judge: false,
    synthetic_answers: false,
    labels: LabelSettings {
        off: Vec::new(),
        verified: false,
        teacher_reasoning: false,
        aggregate: Aggregate::All,
    },
};

fn call(name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        call_id: Some("call_0".to_owned()),
        name: name.to_owned(),
        arguments_raw: arguments.to_owned(),
        arguments_form: ArgumentsForm::String,
    })
}

/// A run that looks up a reservation, cancels the wrong one and says it is done.
fn run(outcome: Outcome) -> Trajectory {
    let mut run = Trajectory::new("test", Task::named("test/1", "cancel it"));
    run.tools.push(Tool {
        name: "get".to_owned(),
        description: "Looks up.".to_owned(),
        parameters: Some(Json::parse(r#"{"type":"object","properties":{"id":{"type":"string"}}}"#).unwrap()),
        read_only: None,
    });
    run.push(Node::new(Role::System, "system", vec![Part::text("Be exact.")]));
    run.push(Node::new(Role::User, "user", vec![Part::text("Cancel mine, mia@example.com.")]));
    run.push(
        Node::new(
            Role::Assistant,
            "assistant",
            vec![Part::text("Looking."), call("get", r#"{"id": "A1", "n": 2}"#)],
        )
        .sampled(),
    );
    run.push(Node::new(
        Role::Tool,
        "get",
        vec![Part::text_result(Some("call_0".to_owned()), "A1 of mia@example.com")],
    ));
    run.push(Node::new(Role::Assistant, "assistant", vec![call("cancel", r#"{"id": "B2"}"#)]).sampled());
    run.push(Node::new(
        Role::Tool,
        "cancel",
        vec![Part::text_result(Some("call_0".to_owned()), "no such id")],
    ));
    run.push(Node::new(Role::Assistant, "assistant", vec![Part::text("Done.")]).sampled());
    run.finish(outcome);
    run
}

fn passed() -> Outcome {
    Outcome::from_flag(true, "resolved")
}

fn failed() -> Outcome {
    Outcome::from_flag(false, "resolved")
}

fn blame(party: Party) -> Blame {
    Blame { party, rule: "test".to_owned(), reason: String::new(), suspected: false }
}

fn diagnosis(decisive_node: usize, findings: Vec<Finding>) -> Diagnosis {
    Diagnosis {
        decisive_node,
        responsible_agent: "assistant".to_owned(),
        explanation: String::new(),
        citations: Vec::new(),
        candidate: None,
        rank: 0,
        findings,
        admitted: true,
        suspected: false,
    }
}

fn finding(node: usize, resolved_at: Option<usize>) -> Finding {
    Finding {
        detector: "test".to_owned(),
        node,
        message: String::new(),
        strength: 1.0,
        capability: String::new(),
        citations: Vec::new(),
        resolved_at,
    }
}

fn input<'a>(run: &'a Trajectory, blame: &'a Blame, diagnosis: &'a Diagnosis) -> ViewInput<'a> {
    ViewInput { blame: Some(blame), diagnosis: Some(diagnosis), ..ViewInput::new(run, Side::Train, &DEFAULT) }
}

fn reason(built: Result<Vec<Example>, Exclusion>) -> &'static str {
    built.expect_err("an exclusion").reason
}

#[test]
fn a_successful_run_is_one_row_of_messages() {
    let redacted = redact(&run(passed()));
    let (blame, diagnosis) = (blame(Party::Agent), diagnosis(4, Vec::new()));
    let examples = SuccessSft.build(&input(&redacted.trajectory, &blame, &diagnosis)).unwrap();
    let [example] = examples.as_slice() else { panic!("one example") };
    assert_eq!(
        TrlMessages.row(example).unwrap().to_string(),
        concat!(
            r#"{"messages":[{"role":"system","content":"Be exact."},"#,
            r#"{"role":"user","content":"Cancel mine, <EMAIL_1>."},"#,
            r#"{"role":"assistant","content":"Looking.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"get","arguments":{"id":"A1","n":2}}}]},"#,
            r#"{"role":"tool","tool_call_id":"call_1","name":"get","content":"A1 of <EMAIL_1>"},"#,
            r#"{"role":"assistant","content":"","tool_calls":[{"id":"call_2","type":"function","function":{"name":"cancel","arguments":{"id":"B2"}}}]},"#,
            r#"{"role":"tool","tool_call_id":"call_2","name":"cancel","content":"no such id"},"#,
            r#"{"role":"assistant","content":"Done."}],"#,
            r#""tools":"[{\"type\":\"function\",\"function\":{\"name\":\"get\",\"description\":\"Looks up.\",\"parameters\":{\"properties\":{\"id\":{\"type\":\"string\"}},\"type\":\"object\"}}}]"}"#,
        )
    );
    let steps = example.steps();
    assert_eq!(steps.len(), 3);
    let row = TrlPromptCompletion.row(&steps[2]).unwrap();
    assert_eq!(row["completion"].to_string(), r#"[{"role":"assistant","content":"Done."}]"#);
    assert_eq!(row["prompt"].as_array().unwrap().len(), 6);
}

#[test]
fn a_failed_run_teaches_the_steps_before_its_first_lasting_error() {
    let run = run(failed());
    let blame = blame(Party::Agent);
    let late = diagnosis(6, vec![finding(2, Some(4)), finding(4, None)]);
    let examples = StepMaskedSft.build(&input(&run, &blame, &late)).unwrap();
    let [example] = examples.as_slice() else { panic!("one example") };
    let steps = example.steps();
    let [step] = steps.as_slice() else { panic!("one kept step") };
    assert_eq!(step.context.len(), 3);
    let row = TrlPromptCompletion.row(step).unwrap().to_string();
    assert!(
        row.contains(
            r#""completion":[{"role":"assistant","content":"Looking.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"get","arguments":{"id":"A1","n":2}}}]}]"#
        ),
        "{row}"
    );
    assert!(!row.contains("B2"), "what comes after the error is not in the row");
}

#[test]
fn what_teaches_nothing_says_why() {
    let (agent, tool) = (blame(Party::Agent), blame(Party::Environment));
    let found = diagnosis(4, Vec::new());
    let failed = run(failed());
    let unknown = run(Outcome::unknown());
    let passed = run(passed());
    assert_eq!(reason(SuccessSft.build(&input(&failed, &agent, &found))), "failed");
    assert_eq!(reason(SuccessSft.build(&input(&unknown, &agent, &found))), "outcome-unknown");
    let held_out = ViewInput { side: Side::Test, ..input(&passed, &agent, &found) };
    assert_eq!(reason(SuccessSft.build(&held_out)), "held-out");
    assert_eq!(reason(StepMaskedSft.build(&input(&passed, &agent, &found))), "succeeded");
    assert_eq!(reason(StepMaskedSft.build(&input(&unknown, &agent, &found))), "outcome-unknown");
    assert_eq!(reason(StepMaskedSft.build(&input(&failed, &tool, &found))), "not-the-agents-failure");
    let first = diagnosis(2, Vec::new());
    assert_eq!(reason(StepMaskedSft.build(&input(&failed, &agent, &first))), "no-step-before-the-error");
    let rejected = Diagnosis { admitted: false, ..diagnosis(4, Vec::new()) };
    assert_eq!(reason(StepMaskedSft.build(&input(&failed, &agent, &rejected))), "diagnosis-not-admitted");
    let silent = ViewInput { diagnosis: None, ..input(&failed, &agent, &found) };
    assert_eq!(reason(StepMaskedSft.build(&silent)), "no-diagnosis");
}

#[test]
fn a_format_refuses_what_it_cannot_carry() {
    let mut copied = run(passed());
    copied.nodes[2].occurrence.copied_context = true;
    let (blame, found) = (blame(Party::Agent), diagnosis(4, Vec::new()));
    let example = SuccessSft.build(&input(&copied, &blame, &found)).unwrap().remove(0);
    assert_eq!(TrlMessages.row(&example).unwrap_err().reason, "an-assistant-message-is-not-learned");
    assert_eq!(example.steps().iter().filter(|step| TrlPromptCompletion.row(step).is_ok()).count(), 2);

    for (arguments, refused) in [
        ("*** Begin Patch", "arguments-are-not-json"),
        ("[1]", "arguments-are-not-an-object"),
        (r#"{"a":1,"a":2}"#, "arguments-are-not-exact-as-an-object"),
        (r#"{"a":123456789012345678901234567890}"#, "arguments-are-not-exact-as-an-object"),
    ] {
        let mut run = run(passed());
        run.nodes[2].parts[1] = call("get", arguments);
        let example = SuccessSft.build(&input(&run, &blame, &found)).unwrap().remove(0);
        assert_eq!(TrlMessages.row(&example).unwrap_err().reason, refused);
    }
}

fn provenance() -> Provenance {
    Provenance { producer: "test 1".to_owned(), config_hash: "c".to_owned(), inputs_hash: "i".to_owned() }
}

#[test]
fn an_export_counts_what_became_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let (blame, found) = (blame(Party::Agent), diagnosis(4, Vec::new()));
    let mut writer =
        ExportWriter::create(folder.path(), natural(&SuccessSft), provenance(), Value::Null).unwrap();
    let rows = |redacted: &Redacted| {
        let run = &redacted.trajectory;
        let examples = SuccessSft.build(&input(run, &blame, &found))?;
        Ok(build_rows(&TrlMessages, examples, ExportOptions::default()))
    };
    for outcome in [passed(), passed(), failed()] {
        let redacted = redact(&run(outcome));
        writer.offer(&redacted, rows(&redacted)).unwrap();
    }
    // As if redaction had missed an address.
    let mut missed = redact(&run(passed()));
    missed.trajectory.nodes[0].parts = vec![Part::text("Write to leo@example.com.")];
    writer.offer(&missed, rows(&missed)).unwrap();
    let manifest = writer.finish().unwrap();

    let rows = fs::read_to_string(folder.path().join("success_sft.jsonl")).unwrap();
    assert_eq!(rows.lines().count(), 1);
    assert!(
        rows.starts_with(r#"{"messages":[{"role":"system","content":"Be exact.","train":false},"#),
        "{rows}"
    );
    let written: Manifest =
        serde_json::from_slice(&fs::read(folder.path().join("success_sft.manifest.json")).unwrap()).unwrap();
    assert_eq!(written, manifest);
    let counts = serde_json::to_value(&manifest).unwrap();
    assert_eq!((&counts["in"], &counts["rows"], &counts["duplicates"]), (&4.into(), &1.into(), &1.into()));
    assert_eq!(counts["train_with"].to_string(), r#"{"assistant_only_loss":true}"#);
    assert_eq!(counts["excluded"].to_string(), r#"{"failed":1}"#);
    assert_eq!(counts["refused"].to_string(), r#"{"leftover-email":1}"#);
    assert_eq!(counts["redactions"].to_string(), r#"{"email":2}"#);
    assert_eq!(
        (counts["licences"].to_string(), counts["split"].to_string()),
        (r#"{"own":1}"#.to_owned(), r#"{"train":1}"#.to_owned())
    );
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "no temporary file stays: {names:?}");
}

/// A message of a generated run.
#[derive(Clone, Copy, Debug)]
enum Turn {
    User,
    System,
    Tool,
    Sampled,
    Copied,
    Scripted,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    vec(
        select(
            &[
                Turn::User,
                Turn::System,
                Turn::Tool,
                Turn::Sampled,
                Turn::Sampled,
                Turn::Copied,
                Turn::Scripted,
            ][..],
        ),
        1..12,
    )
}

/// A line of turns; with `fork`, a second branch leaves it there.
fn generated(turns: &[Turn], fork: usize, outcome: Outcome) -> Trajectory {
    let mut run = Trajectory::new("test", Task::named("test/1", "goal"));
    for (index, turn) in turns.iter().enumerate() {
        let text = Part::text(format!("message {index}"));
        let assistant = |parts| Node::new(Role::Assistant, "assistant", parts);
        let mut node = match turn {
            Turn::User => Node::new(Role::User, "user", vec![text]),
            Turn::System => Node::new(Role::System, "system", vec![text]),
            Turn::Tool => {
                Node::new(Role::Tool, "get", vec![Part::text_result(None, format!("result {index}"))])
            }
            Turn::Sampled | Turn::Copied => assistant(vec![text, call("get", "{}")]).sampled(),
            Turn::Scripted => assistant(vec![text]),
        };
        node.occurrence.copied_context = matches!(turn, Turn::Copied);
        run.push(node);
    }
    run.finish(outcome);
    if fork + 1 < turns.len() {
        let mut other = Node::new(Role::Assistant, "assistant", vec![Part::text("elsewhere")]).sampled();
        other.parent = Some(fork);
        let node = run.push_under(other);
        run.leaves.push(recoup::trajectory::Leaf { node: Some(node), outcome: Outcome::unknown() });
    }
    run
}

/// Whether every result has a call before it; all calls have one id, so none waits beside another.
fn results_answer_calls(turns: &[Turn]) -> bool {
    let mut waits = false;
    turns.iter().all(|turn| match turn {
        Turn::Sampled | Turn::Copied => !std::mem::replace(&mut waits, true),
        Turn::Tool => std::mem::take(&mut waits),
        Turn::User | Turn::System | Turn::Scripted => true,
    })
}

/// What holds for every example of any view.
fn check_mask(example: &Example, run: &Trajectory) {
    for segment in &example.segments {
        let message = &example.context[segment.message];
        let node = &run.nodes[message.node.unwrap()];
        assert!(node.occurrence.sampled && !node.occurrence.copied_context, "{segment:?}");
        assert_eq!(node.role, Role::Assistant);
        let part = node.part(&segment.part_path).unwrap();
        assert!(!matches!(part, Part::ToolResult(_) | Part::Media(_) | Part::Opaque { .. }));
        assert!(part.cited_text().unwrap().get(segment.start..segment.end).is_some());
    }
    for message in &example.context {
        let node = &run.nodes[message.node.unwrap()];
        assert_eq!((&message.parts, message.role), (&node.parts, node.role));
    }
}

/// What is wrong with a generated run.
struct Faults {
    decisive: usize,
    findings: Vec<Finding>,
    /// The first node at fault for something never made up for.
    first_error: usize,
}

fn faults(nodes: usize, decisive: usize, found: &[(usize, Option<u8>)]) -> Faults {
    let decisive = decisive % nodes;
    let findings: Vec<Finding> =
        found.iter().map(|(node, resolved)| finding(node % nodes, resolved.map(usize::from))).collect();
    let lasting = findings.iter().filter(|finding| finding.resolved_at.is_none()).map(|finding| finding.node);
    let first_error = lasting.chain([decisive]).min().unwrap();
    Faults { decisive, findings, first_error }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn success_learns_every_sampled_turn_and_nothing_else(turns in turns(), fork in 0_usize..12) {
        let run = generated(&turns, fork, passed());
        prop_assert!(run.check().is_ok());
        let (blame, found) = (blame(Party::Agent), diagnosis(0, Vec::new()));
        let sampled: Vec<usize> =
            turns.iter().enumerate().filter(|(_, turn)| matches!(turn, Turn::Sampled)).map(|(index, _)| index).collect();
        match SuccessSft.build(&input(&run, &blame, &found)) {
            Err(exclusion) => prop_assert!(sampled.is_empty(), "{exclusion}"),
            Ok(examples) => {
                prop_assert_eq!(examples.len(), 1);
                check_mask(&examples[0], &run);
                let mut learned: Vec<usize> = examples[0].segments.iter().map(|segment| segment.message).collect();
                learned.dedup();
                prop_assert_eq!(learned, sampled.clone());
                prop_assert_eq!(examples[0].steps().len(), sampled.len());
                let row = TrlMessages.row(&examples[0]);
                let before_last = &turns[..=*sampled.last().unwrap()];
                let all = before_last.iter().all(|turn| !matches!(turn, Turn::Copied | Turn::Scripted));
                prop_assert_eq!(row.is_ok(), all && results_answer_calls(before_last));
            }
        }
    }

    #[test]
    fn a_failure_learns_nothing_at_or_after_the_first_lasting_error(
        turns in turns(),
        decisive in 0_usize..12,
        found in vec((0_usize..12, any::<Option<u8>>()), 0..4),
    ) {
        let run = generated(&turns, 12, failed());
        let last_step = run.main_branch().steps().last().copied();
        let Faults { decisive, findings, first_error } = faults(turns.len(), decisive, &found);
        let blame = blame(Party::Agent);
        let diagnosis = diagnosis(decisive, findings);
        let kept: Vec<usize> = (0..first_error)
            .filter(|index| matches!(turns[*index], Turn::Sampled) && Some(*index) != last_step)
            .collect();
        match StepMaskedSft.build(&input(&run, &blame, &diagnosis)) {
            Err(exclusion) => prop_assert!(kept.is_empty(), "{exclusion}"),
            Ok(examples) => {
                prop_assert_eq!(examples.len(), 1);
                let steps = examples[0].steps();
                for step in &steps {
                    check_mask(step, &run);
                    prop_assert!(step.context.iter().all(|message| message.node.unwrap() < first_error));
                    prop_assert_eq!(step.segments.last().map(|segment| segment.message + 1), Some(step.context.len()));
                }
                let learned: Vec<usize> = steps.iter().map(|step| step.segments[0].message).collect();
                prop_assert_eq!(learned, kept);
            }
        }
    }

    #[test]
    fn no_view_learns_what_nobody_knows_what_is_held_out_or_what_was_not_the_agents(
        turns in turns(),
        fork in 0_usize..12,
        decisive in 0_usize..12,
        side in select(&[Side::Validation, Side::Test, Side::Excluded][..]),
        party in select(&[Party::Infrastructure, Party::Verifier, Party::Unknown][..]),
    ) {
        let unknown = generated(&turns, fork, Outcome::unknown());
        let lost = generated(&turns, fork, failed());
        let won = generated(&turns, fork, passed());
        let (agent, other) = (blame(Party::Agent), blame(party));
        let suspected = Blame { suspected: true, ..agent.clone() };
        let found = diagnosis(decisive % turns.len(), Vec::new());
        for view in VIEWS {
            prop_assert!(view.build(&input(&unknown, &agent, &found)).is_err(), "{}", view.name());
            for run in [&lost, &won] {
                let held_out = ViewInput { side, ..input(run, &agent, &found) };
                prop_assert!(view.build(&held_out).is_err(), "{}", view.name());
            }
            prop_assert!(view.build(&input(&lost, &other, &found)).is_err(), "{}", view.name());
            prop_assert!(view.build(&input(&lost, &suspected, &found)).is_err(), "{}", view.name());
            let unblamed = ViewInput { blame: None, ..input(&lost, &agent, &found) };
            prop_assert!(view.build(&unblamed).is_err(), "{}", view.name());
        }
    }

    #[test]
    fn a_turn_is_right_only_before_the_first_lasting_error(
        turns in turns(),
        decisive in 0_usize..12,
        found in vec((0_usize..12, any::<Option<u8>>()), 0..4),
    ) {
        let run = generated(&turns, 12, failed());
        let last_step = run.main_branch().steps().last().copied();
        let Faults { decisive, findings, first_error } = faults(turns.len(), decisive, &found);
        let at_fault = |node: usize| node == decisive || findings.iter().any(|finding| finding.node == node);
        let (blame, diagnosis) = (blame(Party::Agent), diagnosis(decisive, findings.clone()));
        for example in Kto.build(&input(&run, &blame, &diagnosis)).unwrap_or_default() {
            check_mask(&example, &run);
            let node = example.context.last().unwrap().node.unwrap();
            if example.desirable == Some(true) {
                prop_assert!(node < first_error && !at_fault(node) && Some(node) != last_step);
            } else {
                prop_assert!(at_fault(node));
            }
        }
        for example in ProcessReward.build(&input(&run, &blame, &diagnosis)).unwrap_or_default() {
            check_mask(&example, &run);
            prop_assert!(example.segments.is_empty());
            for label in &example.step_labels {
                let node = example.context[label.message].node.unwrap();
                prop_assert_eq!(label.correct, !at_fault(node));
                prop_assert!(matches!(turns[node], Turn::Sampled));
            }
        }
    }
}
