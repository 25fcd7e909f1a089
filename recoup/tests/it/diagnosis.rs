//! Triage and diagnosis across modules: what is decided about a run survives sealing, holds for hostile
//! input, and tells failures from successes on runs that nobody here wrote.

use std::collections::BTreeMap;

use proptest::prelude::*;
use recoup::diagnosis::{DETECTORS, DiagnosisConfig, diagnose};
use recoup::task::Task;
use recoup::trajectory::{
    ArgumentsForm, NativeId, Node, Outcome, Part, Role, Status, TerminationKind, ToolCall, Trajectory,
};
use recoup::verdict::{Class, Content, Decision, Party};

use crate::harness;

const NOW: &str = "2026-01-01T00:00:00Z";

fn user(text: &str) -> Node {
    Node::new(Role::User, "user", vec![Part::text(text)])
}

fn say(text: &str) -> Node {
    Node::new(Role::Assistant, "assistant", vec![Part::text(text)]).sampled()
}

fn call(name: &str, arguments: &str) -> Node {
    let call = ToolCall {
        call_id: Some("call_1".to_owned()),
        name: name.to_owned(),
        arguments_raw: arguments.to_owned(),
        arguments_form: ArgumentsForm::String,
    };
    Node::new(Role::Assistant, "assistant", vec![Part::ToolCall(call)]).sampled()
}

fn result(text: &str) -> Node {
    Node::new(Role::Tool, "tool", vec![Part::text_result(Some("call_1".to_owned()), text)])
}

fn chat(nodes: Vec<Node>, outcome: Outcome) -> Trajectory {
    let mut run = Trajectory::new("test", Task::named("shop/1", "cancel the order"));
    for node in nodes {
        run.push(node);
    }
    run.finish(outcome);
    run
}

fn failed() -> Outcome {
    Outcome::from_score(0.0, 1.0, "reward")
}

/// Refused, then reported as done.
fn dishonest() -> Trajectory {
    chat(
        vec![
            user("Please cancel order W2201."),
            call("get_order", r#"{"id": "W2201"}"#),
            result(r#"{"id": "W2201", "state": "shipped"}"#),
            call("cancel_order", r#"{"id": "W2201"}"#),
            result("Error: order W2201 is already shipped"),
            say("Your order W2201 has been cancelled."),
            user("Thanks!"),
        ],
        failed(),
    )
}

#[test]
fn a_claim_against_an_error_is_the_decisive_step_and_teaches_nothing() {
    let run = dishonest();
    let diagnosed = diagnose(&run, &[], &DiagnosisConfig::default());
    let diagnosis = diagnosed.diagnosis.as_ref().unwrap();
    assert_eq!((diagnosis.decisive_node, diagnosis.responsible_agent.as_str()), (5, "assistant"));
    assert_eq!(
        diagnosis.explanation,
        "The call of `cancel_order` was refused, yet the agent says \"has been cancelled\". \
         Nothing later in the run makes up for it."
    );
    let refused = diagnosed.findings.iter().find(|one| one.detector == "unaddressed-error").unwrap();
    assert_eq!((refused.node, refused.resolved_at), (3, None), "the refused call is no example to follow");
    let quotes: Vec<&str> = diagnosis.citations.iter().map(|quote| quote.quote.as_str()).collect();
    assert_eq!(quotes, ["Error: order W2201 is already shipped", "has been cancelled"]);
    assert!(diagnosis.admitted && diagnosed.reviews.iter().all(|review| review.decision != Decision::Reject));
    let class = diagnosed.class.unwrap();
    assert_eq!((class.class, class.loss_weight.to_bits()), (Class::Hallucination, 0.0_f64.to_bits()));
}

#[test]
fn verdicts_stand_on_the_sealed_run_and_do_not_depend_on_the_clock() {
    let sealed = dishonest().seal(&NativeId::Named("run".to_owned()), Vec::new()).unwrap();
    let bodies: Vec<_> =
        sealed.bodies.iter().map(|body| (body.hash, body.bytes.clone().into_bytes())).collect();
    let source = sealed.head.source.clone();
    let run = Trajectory::unseal(&sealed.record, source, sealed.head.key, &bodies).unwrap();
    let verdicts = diagnose(&run, &[], &DiagnosisConfig::default()).verdicts(run.id, NOW);
    let later = diagnose(&run, &[], &DiagnosisConfig::default()).verdicts(run.id, "2027-01-01T00:00:00Z");
    let ids = |verdicts: &[recoup::verdict::Verdict]| verdicts.iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(&verdicts), ids(&later));
    let diagnosis = verdicts.iter().find(|verdict| verdict.content.kind() == "diagnosis").unwrap();
    assert!(diagnosis.evidence.iter().all(|citation| citation.quote(&run).is_ok()));
    let reviewed = verdicts
        .iter()
        .filter(|verdict| matches!(&verdict.content, Content::Review(review) if review.of == diagnosis.id));
    assert_eq!(reviewed.count(), 9);
    let text = serde_json::to_string(&verdicts).unwrap();
    let back: Vec<recoup::verdict::Verdict> = serde_json::from_str(&text).unwrap();
    assert_eq!(back, verdicts);
}

#[test]
fn a_success_of_the_same_task_shows_what_was_left_out_and_is_never_named() {
    let success = chat(
        vec![
            user("Please cancel order W2201."),
            call("get_order", r#"{"id": "W2201"}"#),
            result("open"),
            call("cancel_order", r#"{"id": "W2201"}"#),
            result("done"),
        ],
        Outcome::from_score(1.0, 1.0, "reward"),
    );
    let run = chat(
        vec![
            user("Please cancel order W2201."),
            call("get_order", r#"{"id": "W2201"}"#),
            result("open"),
            say("That is not possible, I am afraid."),
            user("###STOP###"),
        ],
        failed(),
    );
    let diagnosed = diagnose(&run, &[&success, &dishonest()], &DiagnosisConfig::default());
    let diagnosis = diagnosed.diagnosis.unwrap();
    assert_eq!((diagnosis.decisive_node, diagnosis.admitted), (3, true));
    assert!(!diagnosis.explanation.contains("cancel_order"), "{}", diagnosis.explanation);
    assert!(diagnose(&run, &[], &DiagnosisConfig::default()).diagnosis.is_none());
}

#[test]
fn a_run_in_circles_is_decided_where_the_repetition_starts() {
    let mut nodes =
        vec![user("Please cancel order W2201."), call("get_user", r#"{"id": "U1"}"#), result("u")];
    for _ in 0..5 {
        nodes.extend([call("get_order", r#"{"id": "W2201"}"#), result("open")]);
        nodes.extend([call("list_orders", r#"{"of": "U1"}"#), result("W2201")]);
    }
    let run = chat(nodes, failed().ended(TerminationKind::StepLimit, "max_steps"));
    let diagnosed = diagnose(&run, &[], &DiagnosisConfig::default());
    assert_eq!(diagnosed.diagnosis.as_ref().unwrap().decisive_node, 7);
    let repeated =
        diagnosed.findings.iter().filter(|one| ["loop", "repeated-call"].contains(&one.detector.as_str()));
    assert!(repeated.clone().count() > 5 && repeated.clone().all(|one| one.resolved_at.is_none()));

    let nodes = vec![user("go"), call("get_user", r#"{"id": "U1"}"#), result("u")];
    let short = chat(nodes, failed().ended(TerminationKind::ContextOverflow, "context"));
    let diagnosis = diagnose(&short, &[], &DiagnosisConfig::default()).diagnosis.unwrap();
    assert_eq!(diagnosis.decisive_node, 1);
    assert!(diagnosis.explanation.contains("No earlier fault is known."), "{}", diagnosis.explanation);
}

#[test]
fn the_bundled_runs_leave_their_refusals_and_circles_open() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/failed-runs");
    let imported = harness::import(&[&root]);
    let runs: Vec<&Trajectory> = imported.trajectories().collect();
    let judged = |goal: &str, is_it: &dyn Fn(&Trajectory) -> bool| {
        let run = runs.iter().find(|run| run.task.goal.contains(goal) && is_it(run)).unwrap();
        let siblings: Vec<&Trajectory> = runs
            .iter()
            .filter(|other| other.task.key == run.task.key && other.id != run.id)
            .copied()
            .collect();
        diagnose(run, &siblings, &DiagnosisConfig::default())
    };
    let holds = |run: &Trajectory, text: &str| run.nodes.iter().any(|node| node.text().contains(text));
    let refused = judged("oak desk lamp", &|run| holds(run, "anything else I can help you with today, Nina"));
    assert_eq!(refused.diagnosis.unwrap().decisive_node, 6);
    let error = refused.findings.iter().find(|one| one.detector == "unaddressed-error").unwrap();
    assert_eq!((error.node, error.resolved_at), (6, None));
    let circles = judged("add two suitcases", &|run| run.nodes.len() == 26);
    assert_eq!(circles.diagnosis.unwrap().decisive_node, 8);
    assert!(circles.findings.iter().all(|one| one.resolved_at.is_none()), "{:?}", circles.findings);
}

#[test]
fn a_call_without_arguments_is_decided_by_what_it_answers_to() {
    let refused = || vec![call("cancel_order", ""), result("Error: no order is open")];
    let diagnosed = |nodes| diagnose(&chat(nodes, failed()), &[], &DiagnosisConfig::default());

    let asked = diagnosed([vec![user("Please cancel my order.\nNow.")], refused()].concat());
    let diagnosis = asked.diagnosis.unwrap();
    let quotes: Vec<&str> = diagnosis.citations.iter().map(|quote| quote.quote.as_str()).collect();
    assert_eq!(quotes, ["Please cancel my order.", "Error: no order is open"]);
    assert_eq!((diagnosis.decisive_node, diagnosis.admitted), (1, true), "{:?}", asked.reviews);

    let bare = diagnosed(refused());
    assert!(bare.findings.iter().any(|finding| finding.detector == "unaddressed-error"));
    assert_eq!(bare.diagnosis, None, "nothing up to the call can be quoted");
}

#[test]
fn somebody_elses_failure_is_blamed_and_not_diagnosed() {
    for (kind, party) in [
        (TerminationKind::UserError, Party::UserSimulator),
        (TerminationKind::InfrastructureError, Party::Infrastructure),
    ] {
        let run = chat(dishonest().nodes, failed().ended(kind, "word"));
        let diagnosed = diagnose(&run, &[], &DiagnosisConfig::default());
        assert_eq!(diagnosed.blame.as_ref().unwrap().party, party);
        let kinds: Vec<&str> =
            diagnosed.verdicts(run.id, NOW).iter().map(|verdict| verdict.content.kind()).collect();
        assert_eq!(kinds, ["blame", "findings"]);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,40}",
        Just(String::new()),
        Just("Error: ü\u{1F600}\nexitcode: 1".to_owned()),
        Just("I’ve checked it. It has been cancelled for $1,987.5 by HAT77é".to_owned()),
        Just("```bash\nls\n```".to_owned()),
        Just("Action 1: Finish[İstanbul 12]".to_owned()),
        Just("{\"error\": \"".to_owned()),
        Just("É.\nLet me look at it \n ".to_owned()),
        "[`\"{}\\[\\]:,.0-9a-zé\n ]{0,60}",
    ]
}

fn any_node() -> impl Strategy<Value = Node> {
    let name = prop_oneof![Just("cancel_order"), Just("get_order"), Just("bash"), Just("submit"), Just("")];
    prop_oneof![
        any_text().prop_map(|text| user(&text)),
        any_text().prop_map(|text| say(&text)),
        any_text().prop_map(|text| result(&text)),
        (name, any_text(), any::<i32>(), any::<bool>()).prop_map(|(name, text, number, is_json)| {
            let json = serde_json::json!({ "id": text, "n": [number], "amount": f64::from(number) / 7.0 });
            call(name, if is_json { json.to_string() } else { text }.as_str())
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_run_is_diagnosed_with_exact_citations(
        nodes in prop::collection::vec(any_node(), 0..14),
        other in prop::collection::vec(any_node(), 0..10),
    ) {
        let run = chat(nodes, failed());
        let success = chat(other, Outcome::from_score(1.0, 1.0, "reward"));
        let diagnosed = diagnose(&run, &[&success], &DiagnosisConfig::default());
        for finding in &diagnosed.findings {
            prop_assert!((0.0..=1.0).contains(&finding.strength));
            for citation in &finding.citations {
                prop_assert!(citation.quote(&run).is_ok(), "{finding:?}");
            }
        }
        if let Some(diagnosis) = &diagnosed.diagnosis {
            let rejected: Vec<_> =
                diagnosed.reviews.iter().filter(|review| review.decision == Decision::Reject).collect();
            prop_assert!(diagnosis.admitted, "{rejected:?} {diagnosis:?}");
        }
    }
}

#[test]
fn a_run_of_thousands_of_bad_calls_takes_no_quadratic_time() {
    let mut nodes = vec![user("go")];
    for at in 0..4_000 {
        nodes.push(call("get_order", &format!(r#"{{"id": "Q{at}X", "amount": {at}.37}}"#)));
        nodes.push(result(&format!("Error: no order in row {at}")));
    }
    let run = chat(nodes, failed());
    let start = std::time::Instant::now();
    let diagnosed = diagnose(&run, &[&run], &DiagnosisConfig::default());
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    assert!(diagnosed.findings.len() < 40 * DETECTORS.len());
}

#[test]
fn findings_tell_failures_from_successes_on_real_runs() {
    let Some(path) = harness::shared_data("tau-bench/historical_trajectories") else { return };
    let imported = harness::import(&[&path]);
    let runs: Vec<&Trajectory> = imported.trajectories().collect();
    let mut trials: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        trials.entry(run.task.key.0.as_str()).or_default().push(at);
    }
    let (mut on_failures, mut on_successes, mut diagnosed_count) = (0, 0, 0);
    for (at, run) in runs.iter().enumerate() {
        let siblings: Vec<&Trajectory> = trials[run.task.key.0.as_str()]
            .iter()
            .filter(|other| **other != at)
            .map(|other| runs[*other])
            .collect();
        let diagnosed = diagnose(run, &siblings, &DiagnosisConfig::default());
        let is_open = diagnosed.findings.iter().any(|one| one.resolved_at.is_none() && one.strength >= 0.4);
        match run.outcome().status {
            Status::Success => on_successes += usize::from(is_open),
            _ => on_failures += usize::from(is_open),
        }
        if let Some(diagnosis) = diagnosed.diagnosis {
            diagnosed_count += 1;
            assert!(diagnosis.admitted, "{:?}", diagnosed.reviews);
        }
    }
    assert!(on_failures >= 55 && on_successes <= 2, "{on_failures} failures, {on_successes} successes");
    assert!(diagnosed_count >= 55, "{diagnosed_count} of 116 diagnosed");
}
