//! Rows of a release: their shapes, their links, and what does not leave with them.

use recoup::exporters::release::{Case, Table, case_rows};
use recoup::json::Json;
use recoup::task::Task;
use recoup::trajectory::{Citation, NativeId, Node, Outcome, Part, Role, Trajectory};
use recoup::verdict::{
    Candidate, Content, Decision, Diagnosis, Finding, PersonReview, Producer, Quote, RejectedAnswer, Review,
    Side, Verdict,
};
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";
const SAID: &str = "I mailed mia@example.com about the wrong order";

fn run() -> Trajectory {
    let mut run = Trajectory::new("test", Task::named("task/1", "mail mia@example.com"));
    "/home/mia/runs.jsonl".clone_into(&mut run.source.uri);
    run.push(Node::new(Role::User, "user", vec![Part::text("mail mia@example.com")]));
    run.push(Node::new(Role::Assistant, "assistant", vec![Part::text(SAID)]).sampled());
    run.finish(Outcome::from_score(0.0, 1.0, "reward"));
    run.hidden.gold = Some(Json::string("the gold answer"));
    let sealed = run.clone().seal(&NativeId::Named("run".to_owned()), Vec::new()).unwrap();
    run.id = sealed.head.id;
    run
}

fn diagnosis(admitted: bool) -> Diagnosis {
    let at = Citation { node: 1, part_path: vec![0], start: 9, end: 24 };
    Diagnosis {
        decisive_node: 1,
        responsible_agent: "assistant".to_owned(),
        explanation: "it wrote to mia@example.com".to_owned(),
        citations: vec![Quote { at: at.clone(), quote: "mia@example.com".to_owned() }],
        candidate: Some(Candidate {
            action: Json::parse(r#"{"name":"send","arguments":{"to":"mia@example.com"}}"#).unwrap(),
            rationale: "mail mia@example.com the right order".to_owned(),
        }),
        rank: 0,
        findings: vec![Finding {
            detector: "lookup".to_owned(),
            node: 1,
            message: "`mia@example.com` is nobody's".to_owned(),
            strength: 0.5,
            capability: "lookup".to_owned(),
            citations: vec![at],
            resolved_at: None,
        }],
        admitted,
        suspected: false,
    }
}

fn case() -> Case {
    let run = run();
    let verdict = |producer, content| Verdict::new(run.id, producer, Vec::new(), content, NOW);
    let rules = || Producer::rules("rules", 1);
    let accepted = verdict(rules(), Content::Diagnosis(diagnosis(true)));
    let review = |gate: &str, decision| {
        let (of, reason) = (accepted.id, "for mia@example.com".to_owned());
        Content::Review(Review { of, gate: gate.to_owned(), verdict: decision, reason })
    };
    let answer = RejectedAnswer {
        attempt: 1,
        sample: 0,
        gate: "S2".to_owned(),
        reason: "no such text".to_owned(),
        answer: "mia@example.com did it".to_owned(),
        diagnosis: Some(diagnosis(false)),
    };
    let judge = Producer::judge(1, "hash", "openai:x");
    let person = PersonReview {
        verdict: Decision::Reject,
        node: Some(1),
        note: Some("ask mia@example.com".to_owned()),
    };
    let verdicts = vec![
        accepted.clone(),
        verdict(judge.clone(), Content::RejectedAnswer(answer)),
        verdict(rules(), review("S1", Decision::Admit)),
        verdict(judge, review("M1", Decision::Abstain)),
        verdict(Producer::person(), Content::PersonReview(person)),
    ];
    Case { run, side: Some(Side::Train), verdicts, continuations: Vec::new() }
}

#[test]
fn every_row_has_the_shape_of_its_table_and_leads_to_the_run() {
    let case = case();
    let given = case_rows(&case);
    assert_eq!(given.refused, None);
    for (table, rows) in &given.rows {
        for row in rows {
            table.shape().check(row).unwrap_or_else(|misfit| panic!("{}: {misfit} in {row}", table.name()));
            let run = if *table == Table::Traces { &row["id"] } else { &row["trace"] };
            assert_eq!(*run, json!(case.run.id));
        }
    }
    let counts: Vec<usize> = given.rows.values().map(Vec::len).collect();
    assert_eq!(counts, [1, 2, 1, 3], "traces, diagnoses, candidates, reviews");
    let diagnoses = &given.rows[&Table::Diagnoses];
    assert_eq!(diagnoses[0]["status"], "accepted");
    assert_eq!(diagnoses[1]["status"], "rejected");
    assert_eq!(diagnoses[0]["is_current"], true);
    assert_eq!(given.rows[&Table::Candidates][0]["status"], "untested");
    assert_eq!(given.rows[&Table::Candidates][0]["diagnosis"], diagnoses[0]["id"]);
    assert_eq!(given.rows[&Table::Reviews][0]["of"], diagnoses[0]["id"]);
}

#[test]
fn nothing_leaves_that_was_replaced_or_hidden() {
    let given = case_rows(&case());
    let text = given.rows.values().flatten().cloned().collect::<Value>().to_string();
    for secret in ["mia@", "/home/mia", "the gold answer"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    // The same value reads the same in the run and in what was said of it, and citations follow it.
    let diagnosis = &given.rows[&Table::Diagnoses][0];
    assert_eq!(diagnosis["explanation"], "it wrote to <EMAIL_1>");
    assert_eq!(diagnosis["citations"][0]["quote"], "<EMAIL_1>");
    let trace = &given.rows[&Table::Traces][0];
    assert_eq!(trace["trace"]["nodes"][1]["parts"][0]["text"], "I mailed <EMAIL_1> about the wrong order");
    assert_eq!(trace["trace"]["source"]["uri"], "runs.jsonl");
}
