//! What of an answer stands: gates, retries, the panel, and the verdicts that come of it.

use std::sync::{Arc, Mutex};

use recoup::diagnosis::{
    DiagnosisConfig, JudgingConfig, Known, Run, is_judged, judge, judging_verdicts, restored,
};
use recoup::json::Json;
use recoup::judges::{Case, JudgeConfig, ModelJudge};
use recoup::models::{ChatReply, ChatRequest, Finish, ModelError, ModelIdentity, ScriptedModel};
use recoup::task::Task;
use recoup::trajectory::{Node, Outcome, Part, Role, TerminationKind, Trajectory};
use recoup::verdict::{Candidate, Content, Decision, Party, Verdict};
use serde_json::json;

use super::{good, judge_of, judged, opinion, refused, run, run_with, saying, with};

fn config(members: &[&str]) -> JudgingConfig {
    let identity = |name: &&str| ModelIdentity {
        provider: "scripted".to_owned(),
        model: (*name).to_owned(),
        base_url: String::new(),
        family: (*name).to_owned(),
    };
    JudgingConfig { members: members.iter().map(identity).collect(), with_ground_truth: false, sample: 0 }
}

fn kinds(verdicts: &[Verdict]) -> Vec<&'static str> {
    let mut kinds: Vec<_> = verdicts.iter().map(|verdict| verdict.content.kind()).collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_proposal_that_all_admit_becomes_a_diagnosis_with_exact_citations() {
    let run = run();
    let panel = [saying("one", good().to_string()), saying("two", opinion("admit", 1))];
    let judged = judged(&run, &panel).unwrap();
    assert!(judged.is_admitted(), "{:?}", judged.last());
    let verdicts =
        judging_verdicts(&run, &judged, (None, None), &config(&["one", "two"]), "2026-01-01T00:00:00Z");
    assert_eq!(kinds(&verdicts), ["diagnosis", "blame", "failure_class", "review", "judging"]);
    let Content::Diagnosis(diagnosis) = &verdicts[0].content else { panic!() };
    assert!(diagnosis.admitted && diagnosis.decisive_node == 1);
    for quote in &diagnosis.citations {
        assert_eq!(quote.at.quote(&run), Ok(quote.quote.as_str()));
    }
    assert_eq!(verdicts[0].producer.model.as_deref(), Some("scripted:one"));
    assert_eq!(verdicts[0].producer.prompt_hash.as_ref().map(String::len), Some(64));
    let reviews = verdicts.iter().filter(|verdict| matches!(verdict.content, Content::Review(_)));
    assert_eq!(reviews.count(), 9 + 4 + 1);
    assert!(is_judged(&verdicts, &config(&["one", "two"])) && !is_judged(&verdicts, &config(&["one"])));
}

#[test]
fn every_bad_answer_is_refused_by_the_gate_that_it_breaks() {
    let mut run = run();
    run.hidden.gold = Some(Json::string("forty seven crowns"));
    run.nodes[1].parts.push(Part::Opaque { kind: "thinking".to_owned(), raw: "sealed thought".to_owned() });
    let cited =
        |node: i64, quote: &str| with("citations", json!([{ "node": node, "quote": quote }])).to_string();
    let half = good().to_string();
    let cases = [
        ("S1", "<!doctype html><html><title>502</title></html>".to_owned()),
        ("S1", half[..half.len() * 2 / 3].to_owned()),
        ("S1", format!("I think: {half}")),
        ("S1", with("explanation", json!("  ")).to_string()),
        ("S2", with("decisive_step", json!(99)).to_string()),
        ("S2", with("decisive_step", json!(-1)).to_string()),
        ("S2", with("decisive_step", json!(0)).to_string()),
        ("S3", with("responsible_agent", json!("user")).to_string()),
        ("S4", cited(1, "{\"order\":\"W99999\"}")),
        ("S4", cited(1, "7")),
        ("S4", cited(1, "")),
        ("S4", cited(44, "W77120")),
        ("S4", cited(-4, "W77120")),
        ("S4", cited(0, "forty seven crowns")),
        ("S5", cited(3, "Your order is refunded.")),
        (
            "S6",
            with("candidate", json!({"tool":"refund","arguments":"{\"order\":\"W77121\"}","rationale":""}))
                .to_string(),
        ),
        (
            "S6",
            with("candidate", json!({"tool":"refund","arguments":"{\"order\":7}","rationale":""}))
                .to_string(),
        ),
        ("S6", with("candidate", json!({"tool":"delete","arguments":"{}","rationale":""})).to_string()),
        (
            "S6",
            with("candidate", json!({"tool":"refund","arguments":"the order","rationale":""})).to_string(),
        ),
        ("S7", cited(1, "sealed thought")),
        ("S8", with("explanation", json!("Forty-seven crowns were due.")).to_string()),
        ("S9", with("explanation", json!("It should have asked for `W12345`.")).to_string()),
        ("S9", with("explanation", json!("A successful run of this task asks first.")).to_string()),
    ];
    for (gate, answer) in cases {
        let judged = judged(&run, &[saying("one", answer.clone())]).unwrap();
        assert_eq!(refused(&judged), Some(gate), "{answer}: {:?}", judged.last().map(|last| &last.reviews));
        assert_eq!(judged.spent.calls, 4, "{gate}");
        let verdicts = judging_verdicts(&run, &judged, (None, None), &config(&["one"]), "now");
        let rejected = verdicts.iter().filter(|verdict| verdict.content.kind() == "rejected_answer").count();
        // A step whose words alone are at fault is kept, behind the rules' own.
        assert_eq!(rejected, if gate == "S9" { 3 } else { 4 }, "{gate}");
        assert!(verdicts.iter().all(|verdict| match &verdict.content {
            Content::Diagnosis(diagnosis) =>
                gate == "S9" && !diagnosis.admitted && verdict.producer.rank < 40,
            Content::Blame(_) | Content::FailureClass(_) => false,
            _ => true,
        }));
    }
}

#[test]
fn an_answer_that_was_cut_is_refused() {
    let cut =
        judge_of("one", |_| Ok(ChatReply { finish: Finish::Length, ..ChatReply::text(good().to_string()) }));
    assert_eq!(refused(&judged(&run(), &[cut]).unwrap()), Some("S1"));
}

#[test]
fn a_refused_answer_goes_back_with_its_gate_and_may_be_mended() {
    let seen: Arc<Mutex<Vec<ChatRequest>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let judge = judge_of("one", move |request| {
        let mut seen = kept.lock().unwrap();
        seen.push(request.clone());
        let first = with("responsible_agent", json!("user"));
        Ok(ChatReply::text(if seen.len() == 1 { first.to_string() } else { good().to_string() }))
    });
    let judged = judged(&run(), &[judge]).unwrap();
    assert!(judged.is_admitted());
    assert_eq!((judged.attempts.len(), judged.spent.calls), (2, 2));
    let seen = seen.lock().unwrap();
    let last = &seen[1].messages.last().unwrap().content;
    assert!(last.contains("Gate S3") && last.contains("`assistant`"), "{last}");
    assert_eq!(seen[0].messages[..2], seen[1].messages[..2]);
}

#[test]
fn one_member_that_does_not_admit_refuses_for_all() {
    let run = run();
    for (word, decision) in [("reject", Decision::Reject), ("abstain", Decision::Abstain)] {
        let panel = [
            saying("one", good().to_string()),
            saying("two", opinion("admit", 1)),
            saying("three", opinion(word, 3)),
        ];
        let judged = judged(&run, &panel).unwrap();
        assert_eq!(refused(&judged), Some("M1"));
        assert_eq!(judged.opinions[1].word(), decision);
        let verdicts =
            judging_verdicts(&run, &judged, (None, None), &config(&["one", "two", "three"]), "now");
        assert!(!kinds(&verdicts).contains(&"diagnosis"));
        let Some(Content::Judging(judging)) = verdicts.last().map(|verdict| &verdict.content) else {
            panic!()
        };
        assert_eq!(
            judging.members.iter().map(|member| member.node).collect::<Vec<_>>(),
            [Some(1), Some(1), Some(3)]
        );
        assert!(verdicts.iter().any(|verdict| matches!(&verdict.content,
            Content::Review(review) if review.gate == "step" && review.verdict == Decision::Reject)));
    }
    let mumbling = [saying("one", good().to_string()), saying("two", "Looks fine to me!")];
    let judged = judged(&run, &mumbling).unwrap();
    assert_eq!((refused(&judged), judged.opinions[0].word()), (Some("M1"), Decision::Abstain));
}

#[test]
fn a_member_that_mumbles_is_told_what_is_wrong_and_may_mend_it() {
    let reviewer = judge_of("two", |request| {
        let told = request.messages.last().unwrap().content.contains("the answer is not a JSON object");
        Ok(ChatReply::text(if told { opinion("admit", 1) } else { "Sure, fine!".to_owned() }))
    });
    let judged = judged(&run(), &[saying("one", good().to_string()), reviewer]).unwrap();
    assert!(judged.is_admitted(), "{:?}", judged.last());
    assert_eq!(judged.spent.calls, 3);
}

#[test]
fn an_answer_that_there_is_no_room_to_mend_is_refused() {
    let judge = judge_of("one", |request| {
        if request.messages.len() > 2 {
            let message = "Requested tokens (4100) exceed context window of 4096".to_owned();
            let host = "h".to_owned();
            return Err(ModelError::Status { host, status: 400, message, retry_after_ms: None });
        }
        Ok(ChatReply::text(with("decisive_step", json!(99)).to_string()))
    });
    let judged = judged(&run(), &[judge]).unwrap();
    assert_eq!((refused(&judged), judged.attempts.len()), (Some("S2"), 1));
}

#[test]
fn a_provider_that_fails_decides_nothing() {
    let error = || Err(ModelError::Transport { host: "h".to_owned(), message: "reset".to_owned() });
    assert!(judged(&run(), &[judge_of("one", move |_| error())]).is_err());
    let panel = [saying("one", good().to_string()), judge_of("two", move |_| error())];
    assert!(judged(&run(), &panel).is_err());
}

#[test]
fn nothing_leaves_unredacted_and_quotes_find_their_way_back() {
    let mut run = run_with("Refund W77120, I am mia@example.com.", "Error: W77121 does not exist");
    run.task.goal = "refund for mia@example.com".to_owned();
    let answer = {
        let mut answer = with("citations", json!([{ "node": 0, "quote": "I am <EMAIL_1>." }]));
        answer["explanation"] = json!("The user `<EMAIL_1>` named another order.");
        answer.to_string()
    };
    let judge = judge_of("one", move |request| {
        let told: String = request.messages.iter().map(|message| message.content.as_str()).collect();
        assert!(!told.contains("mia@example") && told.contains("<EMAIL_1>"), "{told}");
        Ok(ChatReply::text(answer.clone()))
    });
    let judged = judged(&run, &[judge]).unwrap();
    assert!(judged.is_admitted(), "{:?}", judged.last());
    let diagnosis = judged.last().unwrap().diagnosis.as_ref().unwrap();
    assert_eq!(diagnosis.citations[0].quote, "I am mia@example.com.");
    assert!(diagnosis.explanation.contains("<EMAIL_1>"), "what is kept holds no secret");
    let action = Json::parse(r#"{"name":"refund","arguments":{"order":"of <EMAIL_1>"}}"#).unwrap();
    let written = Candidate { action, rationale: String::new() };
    assert!(
        restored(&run, written).action.as_str().contains("of mia@example.com"),
        "what is executed is whole"
    );
}

#[test]
fn the_answer_is_shown_only_where_that_is_asked_for_and_then_trains_nothing() {
    let mut run = run();
    run.hidden.gold = Some(Json::string("refund W77120 in full"));
    let shown = |with_truth: bool| {
        JudgeConfig::default().first_question(&Case::new(&run, &[], with_truth)).messages[1].content.clone()
    };
    assert!(!shown(false).contains("in full") && shown(true).contains("refund W77120 in full"));
    let case = Case::new(&run, &[], true);
    let index = Run::new(&run, &[], &DiagnosisConfig::default());
    let judged = judge(&case, &index, &[saying("one", good().to_string())], Known::default()).unwrap();
    assert!(judged.is_admitted(), "{:?}", judged.last());
    let config = JudgingConfig { with_ground_truth: true, ..config(&["one"]) };
    let verdicts = judging_verdicts(&run, &judged, (None, None), &config, "now");
    let Content::Diagnosis(diagnosis) = &verdicts[0].content else { panic!() };
    assert!(!diagnosis.admitted);
    assert_eq!(verdicts[0].producer.name, "judge-with-ground-truth");
    assert!(
        matches!(&verdicts.last().unwrap().content, Content::Judging(judging) if judging.with_ground_truth)
    );
}

/// An answer that holds the simulated user responsible.
fn blames_the_user() -> String {
    let mut answer = with("blame", json!({ "party": "user_simulator", "reason": "It changed the order." }));
    answer["decisive_step"] = json!(null);
    answer["responsible_agent"] = json!(null);
    answer["candidate"] = json!(null);
    answer["failure_class"] = json!(null);
    answer["explanation"] = json!("The user names an order that is not there.");
    answer.to_string()
}

/// Whom judges blame by an answer, and whether it makes a diagnosis, where the harness's own record blames
/// `settled`.
fn decided(answer: &str, settled: Option<Party>) -> (Option<Party>, bool) {
    let run = run();
    let case = Case::new(&run, &[], false);
    let index = Run::new(&run, &[], &DiagnosisConfig::default());
    let panel = [saying("one", answer), saying("two", opinion("admit", 1))];
    let judged = judge(&case, &index, &panel, Known { findings: &[], settled }).unwrap();
    let verdicts = judging_verdicts(&run, &judged, (None, None), &config(&["one", "two"]), "now");
    let party = verdicts.iter().find_map(|verdict| match &verdict.content {
        Content::Blame(blame) => Some(blame.party),
        _ => None,
    });
    (party, kinds(&verdicts).contains(&"diagnosis"))
}

#[test]
fn a_judge_refines_blame_and_never_overrules_the_harness() {
    let (users, agents) = (blames_the_user(), good().to_string());
    assert_eq!(decided(&users, None), (Some(Party::UserSimulator), false));
    assert_eq!(decided(&users, Some(Party::Agent)), (None, false));
    assert_eq!(decided(&users, Some(Party::UserSimulator)), (Some(Party::UserSimulator), false));
    assert_eq!(decided(&agents, None), (Some(Party::Agent), true));
    assert_eq!(decided(&agents, Some(Party::Infrastructure)), (None, false));
}

#[test]
fn a_run_that_acts_in_text_gets_its_candidate_in_text() {
    let mut run = Trajectory::new("test", Task::named("rome/1", "When was Rome founded?"));
    let turn = |text: &str| Node::new(Role::Assistant, "assistant", vec![Part::text(text)]).sampled();
    run.push(Node::new(Role::User, "user", vec![Part::text("When was Rome founded?")]));
    run.push(turn("Action: Search[Rome]"));
    run.push(Node::new(Role::User, "user", vec![Part::text("Rome is a city.")]));
    run.push(turn("Action: Finish[Rome]"));
    run.finish(Outcome::from_score(0.0, 1.0, "reward"));
    let mut answer = good();
    answer["citations"] = json!([{ "node": 3, "quote": "Finish[Rome]" }, { "node": 0, "quote": "When was" }]);
    answer["decisive_step"] = json!(3);
    answer["explanation"] = json!("It answers with the city.");
    let propose = |tool: serde_json::Value, text: &str| {
        let mut answer = answer.clone();
        answer["candidate"] = json!({ "tool": tool, "arguments": text, "rationale": "Ask further." });
        judged(&run, &[saying("one", answer.to_string())]).unwrap()
    };
    let asked = propose(json!(null), "Action: Search[founded]");
    assert!(asked.is_admitted(), "{:?}", asked.last());
    let candidate = asked.last().unwrap().diagnosis.as_ref().unwrap().candidate.as_ref().unwrap();
    assert_eq!(candidate.action.as_str(), r#"{"say":"Action: Search[founded]"}"#);
    for (tool, text) in [
        (json!("Search"), "founded"),
        (json!(null), "I would search."),
        (json!(null), "Action: Finish[Rome]"),
    ] {
        assert_eq!(refused(&propose(tool, text)), Some("S6"), "{text}");
    }
}

#[test]
fn a_class_that_the_harness_names_is_not_overruled() {
    let mut run = run();
    run.finish(Outcome::from_score(0.0, 1.0, "reward").ended(TerminationKind::StepLimit, "max_steps"));
    let judged = judged(&run, &[saying("one", good().to_string())]).unwrap();
    let verdicts = judging_verdicts(&run, &judged, (None, None), &config(&["one"]), "now");
    assert!(judged.is_admitted() && !kinds(&verdicts).contains(&"failure_class"));
}

#[test]
fn the_same_run_asks_the_same_question() {
    let question = || JudgeConfig::default().first_question(&Case::new(&run(), &[], false));
    assert_eq!(question(), question());
    let schema = question().schema.unwrap().schema.to_value();
    assert_eq!(schema["required"][0], "citations");
}

#[test]
fn a_question_that_is_too_long_is_asked_of_less() {
    let long = run_with(&"the order is W77120 and more. ".repeat(4_000), "Error: W77121 does not exist");
    let model = ScriptedModel::new("small", |request| {
        let bytes: usize = request.messages.iter().map(|message| message.content.len()).sum();
        if bytes > 20_000 {
            let message = "This model's maximum context length is 8192 tokens".to_owned();
            return Err(ModelError::Status {
                host: "h".to_owned(),
                status: 400,
                message,
                retry_after_ms: None,
            });
        }
        let mut answer = good();
        answer["citations"][1] = json!({ "node": 3, "quote": "refunded" });
        Ok(ChatReply::text(answer.to_string()))
    });
    let judge: [Box<dyn recoup::judges::Judge>; 1] =
        [Box::new(ModelJudge::new(Box::new(model), JudgeConfig::default(), Arc::default()))];
    assert!(judged(&long, &judge).unwrap().is_admitted());
}
