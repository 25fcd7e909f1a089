//! The way of a model's goal: two judges, the memory of what was refused, and what no answer means.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use recoup::hindsight::corpus::Corpus;
use recoup::hindsight::relabeler::Judges;
use recoup::hindsight::{RelabelConfig, Relabeled, Subject, relabel};
use recoup::judges::{JudgeConfig, Seat};
use recoup::models::{ChatReply, ModelError, ScriptedModel};
use recoup::task::Task;
use recoup::trajectory::{ArgumentsForm, Node, Outcome, Part, Role, ToolCall, Trajectory};
use recoup::verdict::Evidence;

/// A run that was to cancel an order and only looked one up.
fn run() -> Trajectory {
    let goal = "Cancel my order with the garden hose and refund it.";
    let mut run = Trajectory::new("test", Task::named("task/one", goal));
    run.source.uri.push_str("runs.jsonl");
    run.push(Node::new(Role::User, "user", vec![Part::text(goal)]));
    let call = ToolCall {
        call_id: None,
        name: "get_order".to_owned(),
        arguments_raw: r##"{"order":"#W7781"}"##.to_owned(),
        arguments_form: ArgumentsForm::String,
    };
    run.push(Node::new(Role::Assistant, "assistant", vec![Part::ToolCall(call)]).sampled());
    let answer = r##"{"order":"#W7781","state":"delivered","carrier":"Borealis"}"##;
    run.push(Node::new(Role::Tool, "get_order", vec![Part::text_result(None, answer)]));
    run.push(Node::new(Role::Assistant, "assistant", vec![Part::text("I cannot do that.")]).sampled());
    run.finish(Outcome::from_score(0.0, 1.0, "reward"));
    run
}

const TRUE: &str = r##"{"goal":"Please report the state and the carrier of order #W7781.",
    "claims":[{"text":"state","facts":[1]},{"text":"carrier","facts":[2]},{"text":"order #W7781","facts":[0]}],
    "valid":true,"confidence":0.9,"reason":"it was looked up"}"##;

fn opinion(valid: bool, confidence: f64) -> String {
    format!(r#"{{"reason":"r","valid":{valid},"confidence":{confidence}}}"#)
}

fn seat(model: ScriptedModel) -> Seat<'static> {
    Seat::new(Box::new(model), JudgeConfig::default(), Arc::default())
}

/// Relabels the run with a relabeler and a judge that say the same every time; also how often the judge was asked.
fn decided(
    relabeler: Result<&str, ModelError>,
    judge: Option<(&str, Result<String, ModelError>)>,
) -> (Relabeled, usize) {
    let run = run();
    let corpus = Corpus::new([(run.task.key.clone(), Corpus::document(&run))]);
    let reply = relabeler.map(ChatReply::text);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let judges = Judges {
        relabeler: seat(ScriptedModel::new("gpt", move |_| reply.clone())),
        judge: judge.map(|(family, says)| {
            seat(ScriptedModel::new(family, move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                says.clone().map(ChatReply::text)
            }))
        }),
        quotes_facts: false,
    };
    let subject = Subject { run: &run, environment: None, corpus: &corpus, document: Some(0), refused: &[] };
    let relabeled = relabel(subject, RelabelConfig::default(), Some(&judges));
    (relabeled, asked.load(Ordering::Relaxed))
}

fn evidence(relabeled: &Relabeled) -> Option<Evidence> {
    let accepted = relabeled.accepted()?.accepted.as_ref()?;
    Some(accepted.evidence)
}

#[test]
fn two_judges_of_two_families_accept_together() {
    let (both, asked) = decided(Ok(TRUE), Some(("qwen", Ok(opinion(true, 0.7)))));
    assert_eq!(evidence(&both), Some(Evidence::TwoJudges), "{:#?}", both.goals);
    assert_eq!(asked, 1);
    let confidence = both.accepted().unwrap().confidence();
    assert!((confidence - 0.8).abs() < 1e-9);
    // One family, or one judge, is one opinion.
    let (family, _) = decided(Ok(TRUE), Some(("gpt", Ok(opinion(true, 0.7)))));
    assert_eq!(evidence(&family), Some(Evidence::OneJudge));
    let (alone, _) = decided(Ok(TRUE), None);
    assert_eq!(evidence(&alone), Some(Evidence::OneJudge));
}

#[test]
fn a_refused_goal_is_kept_with_its_reason_and_not_judged_again() {
    let (refused, asked) = decided(Ok(TRUE), Some(("qwen", Ok(opinion(false, 0.99)))));
    // The relabeler repeats itself three times; the judge is asked once.
    assert_eq!(asked, 1);
    let [first] = refused.goals.as_slice() else { panic!("one goal: {:#?}", refused.goals) };
    assert_eq!(first.rejected.as_ref().unwrap().gate, "judge");
    // Below the gates no judge is asked at all.
    let vague =
        TRUE.replace("the state and the carrier of order #W7781", "some information").replace("#W7781", "it");
    let (vague, asked) = decided(Ok(&vague), Some(("qwen", Ok(opinion(true, 1.0)))));
    assert_eq!(asked, 0);
    assert!(vague.goals[0].rejected.is_some());
}

#[test]
fn no_answer_accepts_nothing_and_decides_nothing() {
    let down = || ModelError::Unreachable { host: "h".to_owned(), message: "down".to_owned() };
    let (relabeler, _) = decided(Err(down()), Some(("qwen", Ok(opinion(true, 1.0)))));
    assert!(relabeler.undecided.is_some() && relabeler.accepted().is_none());
    let (judge, _) = decided(Ok(TRUE), Some(("qwen", Err(down()))));
    assert!(judge.undecided.is_some() && judge.accepted().is_none());
    // An answer that cannot be read is an answer: no goal stands.
    let (garbled, _) = decided(Ok("Sure!"), Some(("qwen", Ok(opinion(true, 1.0)))));
    assert!(garbled.undecided.is_none() && garbled.accepted().is_none());
}

#[test]
fn a_quoted_fact_is_one_only_where_it_stands() {
    let mut run = run();
    run.nodes[2].parts = vec![Part::text_result(None, "Carried by Borealis Night Freight.\nDelivered.")];
    let corpus = Corpus::new([(run.task.key.clone(), Corpus::document(&run))]);
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&asked);
    let relabeler = ScriptedModel::new("gpt", move |request| {
        let is_for_facts = request.schema.as_ref().is_some_and(|schema| schema.name == "quoted_facts");
        if !is_for_facts {
            kept.lock().unwrap().push(request.messages[1].content.clone());
            return Ok(ChatReply::text(TRUE));
        }
        Ok(ChatReply::text(
            r#"{"facts":[{"node":2,"quote":"Borealis Night Freight"},{"node":2,"quote":"Boreal Night Freight"},
                {"node":1,"quote":"Borealis Night Freight"},{"node":2,"quote":"Freight.\nDelivered"}]}"#,
        ))
    });
    let judges = Judges { relabeler: seat(relabeler), judge: None, quotes_facts: true };
    let subject = Subject { run: &run, environment: None, corpus: &corpus, document: Some(0), refused: &[] };
    let relabeled = relabel(subject, RelabelConfig::default(), Some(&judges));
    assert_eq!((relabeled.quotes.kept, relabeled.quotes.dropped), (1, 3));
    assert!(asked.lock().unwrap()[0].contains(r#""says":"Borealis Night Freight""#));
}

#[test]
fn an_answer_that_cannot_be_read_is_asked_for_once_more() {
    let run = run();
    let corpus = Corpus::new([(run.task.key.clone(), Corpus::document(&run))]);
    let once = |answer: String| {
        seat(ScriptedModel::new(if answer == TRUE { "gpt" } else { "qwen" }, move |request| {
            let is_again = request.messages.len() > 2;
            Ok(ChatReply::text(if is_again { answer.as_str() } else { "Sure!" }))
        }))
    };
    let judges = Judges {
        relabeler: once(TRUE.to_owned()),
        judge: Some(once(opinion(true, 0.8))),
        quotes_facts: false,
    };
    let subject = Subject { run: &run, environment: None, corpus: &corpus, document: Some(0), refused: &[] };
    let relabeled = relabel(subject, RelabelConfig::default(), Some(&judges));
    assert_eq!(evidence(&relabeled), Some(Evidence::TwoJudges), "{:#?}", relabeled.goals);
}

#[test]
fn a_record_that_is_too_long_is_shown_in_part() {
    let run = run();
    let corpus = Corpus::new([(run.task.key.clone(), Corpus::document(&run))]);
    let refuses = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refuses);
    let relabeler = ScriptedModel::new("gpt", move |request| {
        if request.max_tokens > 1_000 {
            counted.fetch_add(1, Ordering::Relaxed);
            let (host, message) = ("h".to_owned(), "the prompt is too long".to_owned());
            return Err(ModelError::Status { host, status: 400, message, retry_after_ms: None });
        }
        Ok(ChatReply::text(TRUE))
    });
    let config = JudgeConfig { window_tokens: 4_000, ..JudgeConfig::default() };
    let relabeler = Seat::new(Box::new(relabeler), config, Arc::default());
    let judges = Judges { relabeler, judge: None, quotes_facts: false };
    let subject = Subject { run: &run, environment: None, corpus: &corpus, document: Some(0), refused: &[] };
    for _ in 0..2 {
        assert!(relabel(subject, RelabelConfig::default(), Some(&judges)).accepted().is_some());
    }
    assert_eq!(refuses.load(Ordering::Relaxed), 1, "the limit is met once");
}
