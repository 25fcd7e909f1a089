//! A teacher beside the student, or in its place.

use std::time::{Duration, Instant};

use recoup::store::Store;
use recoup::task::Task;
use recoup::verdict::{Actor, LabelMark, RefusalCode, Side};
use serde_json::{Value, json};

use super::{Proxy, assistant, chat, counting, labels, runs, scripted, user};
use crate::bench::{Bench, chat_line};
use crate::fault_server::{Fault, FaultServer, completion};

const PATH: &str = "/v1/chat/completions";

fn teacher() -> FaultServer {
    FaultServer::start(|_, asked| {
        let shown = asked.json()["messages"].as_array().map_or(0, Vec::len);
        Fault::answer(&format!("lesson {shown}"))
    })
}

/// Asks for some turns of a conversation; returns what was answered.
fn converse(proxy: &Proxy, session: &str, turns: usize) -> Vec<Value> {
    let mut history: Vec<Value> = Vec::new();
    let mut answers = Vec::new();
    for turn in 0..turns {
        history.push(user(&format!("turn {turn}")));
        let got = proxy.post(
            PATH,
            &[
                ("x-recoup-session", session),
                ("x-recoup-task", "desk/trip-1"),
                ("Authorization", "Bearer mine"),
            ],
            &chat(&history),
        );
        assert_eq!(got.status, 200, "{}", got.text());
        let said = got.json()["choices"][0]["message"]["content"].clone();
        history.push(assistant(said.as_str().unwrap()));
        answers.push(said);
    }
    answers
}

#[test]
fn a_shadow_labels_and_is_never_waited_for() {
    let bench = Bench::new();
    let student = counting();
    let slow = FaultServer::start(|_, _| {
        Fault::Slow(Duration::from_millis(1500), Box::new(Fault::answer("lesson")))
    });
    let proxy = Proxy::start(&bench, &["--upstream", &student.url(), "--teacher", &slow.model("wise")]);
    let started = Instant::now();
    assert_eq!(converse(&proxy, "s", 2), ["answer 1", "answer 3"]);
    assert!(started.elapsed() < Duration::from_millis(1400), "{:?}", started.elapsed());
    let done = proxy.stop();
    assert_eq!(done["ended"]["pure_student"], 2);
    let asked = slow.asked();
    assert_eq!(
        (asked.len(), asked[0].header("authorization")),
        (2, None),
        "the client's key goes to its own upstream"
    );
    assert_eq!(asked[0].json()["model"], "wise");
    let run = &runs(&bench)[0];
    let labels = labels(&bench, run);
    let taught: Vec<_> =
        labels.iter().map(|label| (label.turn, label.state, label.executed, label.agrees)).collect();
    assert_eq!(taught, [(0, 0, Some(1), Some(false)), (1, 2, Some(3), Some(false))]);
    assert_eq!(labels[0].action.as_ref().unwrap().text, "lesson");
    assert_eq!(labels[0].teacher, "openai:wise");
}

#[test]
fn coins_share_turns_and_are_the_same_again() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let bench = Bench::new();
        let (student, teacher) = (counting(), teacher());
        let flags = [
            "--upstream",
            &student.url(),
            "--teacher",
            &teacher.model("wise"),
            "--mode",
            "mix",
            "--beta",
            "0.5",
            "--seed",
            "3",
        ];
        let proxy = Proxy::start(&bench, &flags);
        seen.push(converse(&proxy, "s", 8));
        let done = proxy.stop();
        let run = &runs(&bench)[0];
        let labels = labels(&bench, run);
        assert_eq!(labels.len(), 8);
        let teachers = labels.iter().filter(|label| label.actor == Actor::Teacher).count();
        assert_eq!(done["ended"]["pure_teacher"], teachers);
        assert_eq!(done["ended"]["pure_student"], 8 - teachers);
        for (label, answer) in labels.iter().zip(&seen[0]) {
            assert_eq!(label.actor == Actor::Teacher, answer.as_str().unwrap().starts_with("lesson"));
            assert_eq!(label.agrees, Some(label.actor == Actor::Teacher));
        }
        let interleaved: Value = run.extra["interleaved"].to_value();
        assert_eq!(
            (&interleaved["outcome"], &interleaved["mixing"]["turns"]["beta"]),
            (&"mixed".into(), &0.5.into())
        );
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn a_task_that_is_held_out_is_the_students_alone() {
    let bench = Bench::new();
    let (student, teacher) = (counting(), teacher());
    let proxy = Proxy::start(
        &bench,
        &["--upstream", &student.url(), "--teacher", &teacher.model("wise"), "--mode", "mix"],
    );
    let names = (0..).map(|number| format!("desk/{number}"));
    let held_out = names.filter(|name| Store::side_of_new(&Task::named(name.as_str(), "")) != Side::Train);
    for task in held_out.take(3) {
        assert_eq!(proxy.post(PATH, &[("x-recoup-task", &task)], &chat(&[user("hi")])).status, 200);
    }
    assert_eq!(proxy.stop()["ended"]["pure_student"], 3);
    assert!(teacher.asked().is_empty());
}

#[test]
fn a_goal_that_the_project_holds_out_is_the_students_alone() {
    let bench = Bench::new();
    let (student, teacher) = (counting(), teacher());
    let names: Vec<String> = (0..60).map(|number| format!("desk/{number}")).collect();
    let lines: String =
        names.iter().map(|name| chat_line(name, name, None, &format!("did {name}"))).collect();
    let file = bench.write("runs.jsonl", lines);
    assert!(bench.output(&["import", file.to_str().unwrap()]).status.success());
    let store = Store::open(&bench.path(".recoup")).unwrap();
    // By its words alone it would be taught.
    let held_out = names.iter().map(|name| format!("solve {name}")).find(|goal| {
        let task = Task::from_goal(goal.as_str());
        Store::side_of_new(&task) == Side::Train && store.side_of_task(&task).unwrap() != Side::Train
    });
    let flags = ["--upstream", &student.url(), "--teacher", &teacher.model("wise"), "--mode", "shadow"];
    let proxy = Proxy::start(&bench, &flags);
    assert_eq!(proxy.post(PATH, &[], &chat(&[user(&held_out.unwrap())])).status, 200);
    proxy.stop();
    assert!(teacher.asked().is_empty());
}

#[test]
fn a_prefix_is_the_students_and_the_rest_the_teachers() {
    let bench = Bench::new();
    let (student, teacher) = (counting(), teacher());
    let flags = [
        "--upstream",
        &student.url(),
        "--teacher",
        &teacher.model("wise"),
        "--mode",
        "prefix",
        "--kappa",
        "3",
    ];
    let proxy = Proxy::start(&bench, &flags);
    let mut lengths = Vec::new();
    for session in 0..8 {
        let answers = converse(&proxy, &format!("s{session}"), 5);
        let students =
            answers.iter().take_while(|answer| answer.as_str().unwrap().starts_with("answer")).count();
        assert!(
            answers[students..].iter().all(|answer| answer.as_str().unwrap().starts_with("lesson")),
            "{answers:?}"
        );
        lengths.push(students);
    }
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 1 && lengths.iter().all(|length| *length <= 3), "{lengths:?}");
}

#[test]
fn a_teacher_that_fails_costs_a_label_or_a_turn_and_nothing_else() {
    let bench = Bench::new();
    let (student, broken) =
        (counting(), scripted(vec![Fault::status(529, "{\"error\":{\"message\":\"overloaded\"}}")]));
    let flags = |mode: &'static str| {
        [
            "--upstream".to_owned(),
            student.url(),
            "--teacher".to_owned(),
            broken.model("wise"),
            "--mode".to_owned(),
            mode.to_owned(),
        ]
    };
    let shadow = flags("shadow");
    let proxy = Proxy::start(&bench, &shadow.iter().map(String::as_str).collect::<Vec<_>>());
    converse(&proxy, "s", 1);
    assert_eq!(proxy.stop()["ended"]["degraded"], 1);
    let run = &runs(&bench)[0];
    assert_eq!(labels(&bench, run)[0].refused.as_ref().unwrap().code, RefusalCode::Missing);
    assert_eq!(run.extra["interleaved"].to_value()["outcome"], "degraded");
    let mix = flags("mix");
    let proxy = Proxy::start(&bench, &mix.iter().map(String::as_str).collect::<Vec<_>>());
    let got = proxy.post(PATH, &[("x-recoup-task", "desk/trip-1")], &chat(&[user("hi")]));
    assert_eq!((got.status, &got.json()["error"]["message"]), (529, &"overloaded".into()));
    assert_eq!(student.asked().len(), 1, "there is no silent swap");
    assert_eq!(proxy.stop()["ended"]["aborted"], 1);
}

#[test]
fn a_teacher_sees_no_secret_and_gives_it_back() {
    let bench = Bench::new();
    let student = counting();
    let teacher = FaultServer::start(|_, asked| {
        let text = asked.json()["messages"][0]["content"].as_str().unwrap().to_owned();
        Fault::answer(
            &format!("I shall {text}; see <EMAIL_9>")
                .replace("; see <EMAIL_9>", if asked.body.contains("odd") { "; see <EMAIL_9>" } else { "" }),
        )
    });
    let ask = |flags: &[&str], text: &str, stream: bool| {
        let (url, model) = (student.url(), teacher.model("wise"));
        let proxy = Proxy::start(
            &bench,
            &[&["--upstream", &url, "--teacher", &model, "--mode", "mix"], flags].concat(),
        );
        let body =
            json!({ "model": "toy", "stream": stream, "messages": [{ "role": "user", "content": text }] });
        let got = proxy.post(PATH, &[("x-recoup-task", "desk/trip-1")], body.to_string().as_bytes());
        proxy.stop();
        got
    };
    let mail = "write to mia@example.com";
    let got = ask(&[], mail, false);
    assert_eq!(got.json()["choices"][0]["message"]["content"], "I shall write to mia@example.com");
    assert!(!teacher.asked()[0].body.contains("mia@"), "{}", teacher.asked()[0].body);
    // A client that asked for a stream gets one, with the values in place.
    let got = ask(&[], mail, true);
    assert!(
        got.head.contains("text/event-stream") && got.text().contains("mia@example.com"),
        "{}",
        got.text()
    );
    assert!(got.text().ends_with("data: [DONE]\n\n"));
    // What nobody can restore is no answer.
    assert_eq!(ask(&[], "odd mail of mia@example.com", false).status, 502);
    // Unless the teacher may see everything.
    ask(&["--teacher-raw"], mail, false);
    assert!(teacher.asked().last().unwrap().body.contains("mia@example.com"));
}

/// Rows that `dagger` writes, and what the report says of the labels.
fn taught(bench: &Bench, flags: &[&str]) -> (Value, Value) {
    let folder = bench.path("rows");
    let out = folder.to_str().unwrap();
    let export =
        bench.output(&[&["export", "dagger", "--format", "openai", "--out", out, "--json"], flags].concat());
    let rows =
        serde_json::from_slice::<Value>(&export.stdout).map_or(Value::Null, |said| said["rows"].clone());
    let report = bench.path("report");
    assert!(bench.output(&[&["run", "--out", report.to_str().unwrap()], flags].concat()).status.success());
    let text = std::fs::read_to_string(report.join("report.json")).unwrap();
    let said: Value = serde_json::from_str(&text).unwrap();
    assert!(std::fs::read_to_string(report.join("report.html")).unwrap().contains("<section id=shared>"));
    (rows, said["shared"]["rounds"][0]["labels"].clone())
}

#[test]
fn filters_hold_back_labels_of_recorded_conversations_too() {
    let bench = Bench::new();
    let student = scripted(vec![Fault::Answer(completion("look", "toy", None))]);
    let teacher = teacher();
    let flags = ["--upstream", &student.url(), "--teacher", &teacher.model("wise"), "--context", "1000"];
    let proxy = Proxy::start(&bench, &flags);
    let mut history = vec![user("find the key")];
    for turn in 0..5 {
        // The last state is longer than the student's context.
        let padding = if turn == 4 { "x".repeat(4000) } else { String::new() };
        let got = proxy.post(PATH, &[("x-recoup-task", "desk/trip-1")], &chat(&history));
        assert_eq!(got.status, 200, "{}", got.text());
        history.extend([assistant("look"), user(&format!("nothing{padding}"))]);
    }
    let got = proxy.post(PATH, &[("x-recoup-task", "desk/trip-1")], &chat(&history));
    assert_eq!(got.status, 200, "{}", got.text());
    proxy.stop();
    let labels = labels(&bench, &runs(&bench)[0]);
    let marks: Vec<_> = labels.iter().map(|label| label.marks.as_slice()).collect();
    let circle = &[LabelMark::Loop][..];
    assert_eq!(marks, [&[], &[], &[], circle, circle, &[LabelMark::ContextOverflow]]);
    let (rows, counts) = taught(&bench, &[]);
    assert_eq!((&rows, &counts["accepted"], &counts["held_back"]), (&3.into(), &3.into(), &3.into()));
    assert_eq!(counts["marked"], json!({ "loop": 2, "context_overflow": 1 }));
    let (rows, counts) = taught(&bench, &["--no-label-filter", "loop"]);
    assert_eq!((&rows, &counts["accepted"]), (&5.into(), &5.into()));
}

#[test]
fn a_state_that_the_students_upstream_finds_too_long_is_marked() {
    let bench = Bench::new();
    let full = r#"{"error":{"message":"This model's maximum context length is 8 tokens","code":"context_length_exceeded"}}"#;
    let student = scripted(vec![Fault::status(400, full)]);
    let teacher = teacher();
    let proxy = Proxy::start(&bench, &["--upstream", &student.url(), "--teacher", &teacher.model("wise")]);
    assert_eq!(proxy.post(PATH, &[("x-recoup-task", "desk/trip-1")], &chat(&[user("hi")])).status, 400);
    proxy.stop();
    let labels = labels(&bench, &runs(&bench)[0]);
    assert_eq!((labels[0].executed, labels[0].marks.as_slice()), (None, &[LabelMark::ContextOverflow][..]));
}

#[test]
fn a_call_that_the_teachers_server_left_in_the_text_is_read_and_marked() {
    let bench = Bench::new();
    let student = counting();
    let text = "<tool_call>\n{\"name\": \"go\", \"arguments\": {\"to\": \"north\"}}\n</tool_call>";
    let teacher = scripted(vec![Fault::answer(text)]);
    let proxy = Proxy::start(&bench, &["--upstream", &student.url(), "--teacher", &teacher.model("wise")]);
    let tool =
        json!({ "type": "function", "function": { "name": "go", "parameters": { "type": "object" } } });
    let body = json!({ "model": "toy", "messages": [user("hi")], "tools": [tool] });
    let got = proxy.post(PATH, &[("x-recoup-task", "desk/trip-1")], body.to_string().as_bytes());
    assert_eq!(got.status, 200);
    proxy.stop();
    let labels = labels(&bench, &runs(&bench)[0]);
    assert_eq!(labels[0].marks, [LabelMark::NonParsing]);
    assert_eq!(labels[0].action.as_ref().unwrap().calls[0].name, "go");
}

#[test]
fn a_label_with_a_tool_that_the_student_lacks_is_refused() {
    let bench = Bench::new();
    let student = counting();
    let call = json!([{ "id": "t", "type": "function", "function": { "name": "fly", "arguments": "{}" } }]);
    let answer = json!({ "id": "x", "model": "wise", "choices": [{ "index": 0, "finish_reason": "tool_calls",
        "message": { "role": "assistant", "content": null, "tool_calls": call } }] });
    let teacher = scripted(vec![Fault::Answer(answer.to_string())]);
    let proxy = Proxy::start(&bench, &["--upstream", &student.url(), "--teacher", &teacher.model("wise")]);
    converse(&proxy, "s", 1);
    proxy.stop();
    let run = &runs(&bench)[0];
    let label = &labels(&bench, run)[0];
    assert_eq!(label.refused.as_ref().unwrap().code, RefusalCode::ForeignTool);
}

#[test]
fn modes_say_what_they_need() {
    let bench = Bench::new();
    insta::assert_snapshot!(
        [
            &["proxy", "--upstream", "http://127.0.0.1:9/v1", "--mode", "mix"][..],
            &["proxy", "--upstream", "ftp://127.0.0.1:9/v1"],
            &["proxy", "--upstream", "http://127.0.0.1:9/v1", "--host", "0.0.0.0"],
            &[
                "proxy",
                "--upstream",
                "http://127.0.0.1:9/v1",
                "--teacher",
                "http://127.0.0.1:9/v1#m",
                "--kappa",
                "3"
            ],
        ]
        .map(|arguments| bench.snapshot(arguments))
        .join("\n")
    );
}
