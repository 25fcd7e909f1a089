//! What goes wrong, at either end and in between.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::stream::{chat_events, stream};
use super::{ARGUMENTS, Proxy, assistant, chat, counting, runs, scripted, told, user};
use crate::bench::Bench;
use crate::fault_server::{Fault, FaultServer};

const PATH: &str = "/v1/chat/completions";

fn streaming(text: &str) -> Vec<u8> {
    json!({ "model": "toy", "stream": true, "messages": [{ "role": "user", "content": text }] })
        .to_string()
        .into_bytes()
}

#[test]
fn a_project_has_one_proxy_at_a_time() {
    let bench = Bench::new();
    let server = counting();
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let second = bench.output(&["proxy", "--port", "0", "--upstream", &server.url(), "--json"]);
    assert!(!second.status.success());
    let said = [second.stdout, second.stderr].concat();
    assert!(String::from_utf8_lossy(&said).contains("project-in-use"), "{}", String::from_utf8_lossy(&said));
    assert_eq!(proxy.post(PATH, &[], &chat(&[user("hi")])).status, 200);
    proxy.stop();
    assert_eq!(runs(&bench).len(), 1);
}

#[test]
fn an_error_without_a_body_is_the_upstreams() {
    let bench = Bench::new();
    let raw = Fault::Raw { status: 503, headers: "Retry-After: 1".to_owned(), body: String::new() };
    let server = scripted(vec![raw, Fault::answer("fine")]);
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let history = chat(&[user("hi")]);
    assert_eq!(proxy.post(PATH, &[], &history).status, 503);
    assert_eq!(proxy.post(PATH, &[], &history).status, 200);
    proxy.stop();
    let runs = runs(&bench);
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!(run.extra["failed_requests"].to_value()[0]["code"], "upstream-status");
}

#[test]
fn entries_that_cannot_be_read_are_counted_and_kept() {
    let bench = Bench::new();
    let server = counting();
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let history = [user("hi"), assistant("answer 1"), user("more")];
    assert_eq!(proxy.post(PATH, &[], &chat(&history[..1])).status, 200);
    assert_eq!(proxy.post(PATH, &[], &chat(&history)).status, 200);
    proxy.kill();
    // The line of the first answer is lost, so the second request goes on from nothing.
    let journal = || {
        let files = std::fs::read_dir(bench.path(".recoup/proxy")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
        files.sort();
        files
    };
    let file = journal().remove(0);
    let log = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    // What the last answer was may not have been written when the proxy was killed.
    let kept = [&lines[..1], &lines[2..]].concat().join("\n");
    std::fs::write(&file, kept + "\n").unwrap();
    let proxy = Proxy::start(&bench, &["--upstream", &server.url(), "--rest", "1s"]);
    let begun = std::time::Instant::now();
    while proxy.metric("recoup_proxy_damaged_total") == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing is said of the damage");
        std::thread::sleep(Duration::from_millis(50));
    }
    proxy.stop();
    assert!(journal().contains(&file), "the journal keeps what the project does not hold");
}

#[test]
fn requests_at_once_are_all_kept() {
    let bench = Bench::new();
    let server = counting();
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let named = [("x-recoup-session", "s")];
    std::thread::scope(|scope| {
        for name in 0..8 {
            let proxy = &proxy;
            scope.spawn(move || {
                for turn in 0..8 {
                    let asked = chat(&[user(&format!("{name} {turn}"))]);
                    assert_eq!(proxy.post(PATH, &named, &asked).status, 200);
                }
            });
        }
    });
    proxy.stop();
    let runs = runs(&bench);
    let [run] = &runs[..] else { panic!("{}", runs.len()) };
    assert_eq!(run.nodes.iter().filter(|node| node.occurrence.sampled).count(), 64);
}

#[test]
fn an_upstreams_errors_pass_unchanged() {
    let bench = Bench::new();
    let limited = Fault::Raw {
        status: 429,
        headers: "Content-Type: application/json\nRetry-After: 7\nX-Request-Id: r9".to_owned(),
        body: "{\"error\": {\"message\": \"slow down\" }}".to_owned(),
    };
    let server = scripted(vec![
        limited,
        Fault::Hangup,
        Fault::Cut("{\"choices\": []}".to_owned()),
        Fault::answer("fine"),
    ]);
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let history = chat(&[user("hi")]);
    let got = proxy.post(PATH, &[], &history);
    assert_eq!((got.status, got.body.as_slice()), (429, &b"{\"error\": {\"message\": \"slow down\" }}"[..]));
    assert!(got.head.contains("retry-after: 7") && got.head.contains("x-request-id: r9"), "{}", got.head);
    let got = proxy.post(PATH, &[], &history);
    assert_eq!((got.status, &got.json()["error"]["code"]), (502, &"upstream-unreachable".into()));
    let cut = proxy.post(PATH, &[], &history);
    assert!(cut.body.len() < 15, "{}", cut.text());
    assert_eq!(proxy.post(PATH, &[], &history).status, 200);
    let done = proxy.stop();
    assert_eq!(
        (&done["requests"], &done["ended"]["aborted"], &done["ended"]["pure_student"]),
        (&4.into(), &3.into(), &1.into())
    );
    // Four tries of one request are one run; what failed is on its record.
    let runs = runs(&bench);
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!(told(run), [("user", "hi".to_owned()), ("assistant", "fine".to_owned())]);
    let failed = run.extra["failed_requests"].to_value();
    let codes: Vec<&str> =
        failed.as_array().unwrap().iter().map(|failed| failed["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["upstream-status", "upstream-unreachable", "upstream-cut"]);
}

#[test]
fn a_stream_that_breaks_off_breaks_off_for_the_client_too() {
    let bench = Bench::new();
    let events = chat_events("one two three");
    let half: String = events.chars().take(events.len() / 2).collect();
    let server = scripted(vec![stream(&half, true)]);
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let got = proxy.post(PATH, &[], &streaming("hi"));
    assert_eq!(String::from_utf8(got.body).unwrap(), half);
    proxy.stop();
    let runs = runs(&bench);
    assert_eq!(told(&runs[0]), [("user", "hi".to_owned())], "half an answer is no turn");
    assert_eq!(runs[0].extra["failed_requests"].to_value()[0]["code"], "upstream-cut");
}

#[test]
fn a_client_that_leaves_is_noticed() {
    let bench = Bench::new();
    let pieces =
        (0..40).map(|_| (Duration::from_millis(50), "data: {\"choices\":[]}\n\n".to_owned())).collect();
    let server = scripted(vec![Fault::Stream { pieces, cut: false }]);
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let mut client = TcpStream::connect(&proxy.address).unwrap();
    let body = streaming("hi");
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        proxy.address,
        body.len()
    );
    client.write_all(&[head.as_bytes(), &body].concat()).unwrap();
    let mut some = [0; 400];
    assert!(client.read(&mut some).unwrap() > 0);
    drop(client);
    let deadline = std::time::Instant::now() + Duration::from_secs(5);
    while proxy.metric("recoup_proxy_ended_total{ended=\"aborted\"}") == 0 {
        assert!(std::time::Instant::now() < deadline, "nobody noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(proxy.metric("recoup_proxy_in_flight"), 0);
    proxy.stop();
    assert_eq!(runs(&bench)[0].extra["failed_requests"].to_value()[0]["code"], "client-gone");
}

#[test]
fn bad_requests_are_refused_in_the_clients_own_form() {
    let bench = Bench::new();
    let server = counting();
    let proxy = Proxy::start(&bench, &["--upstream", &server.url(), "--max-body", "1KiB"]);
    let openai = proxy.post(PATH, &[], b"{\"model\": \"toy\", \"messages\": [\xff]}");
    assert_eq!((openai.status, &openai.json()["error"]["type"]), (400, &"invalid_request_error".into()));
    let anthropic = proxy.post("/v1/messages", &[], b"{\"model\": \"toy\"}");
    assert_eq!((anthropic.status, &anthropic.json()["type"]), (400, &"error".into()));
    assert_eq!(anthropic.json()["error"]["message"], "recoup: `messages` is missing or not a list");
    let huge = proxy.post("/v1/messages", &[], &vec![b' '; 2000]);
    assert_eq!((huge.status, &huge.json()["error"]["type"]), (413, &"request_too_large".into()));
    let named = proxy.post(PATH, &[("x-recoup-episode", "two")], &chat(&[user("hi")]));
    assert_eq!(
        (named.status, &named.json()["error"]["message"]),
        (400, &"recoup: `x-recoup-episode` is no number".into())
    );
    assert_eq!(proxy.post(PATH, &[("Origin", "http://evil.example")], &chat(&[user("hi")])).status, 403);
    let text = format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    assert!(proxy.send(text.as_bytes()).0.starts_with("HTTP/1.1 415 "));
    let elsewhere = "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert!(proxy.send(elsewhere.as_bytes()).0.starts_with("HTTP/1.1 403 "));
    assert!(server.asked().is_empty());
    let done = proxy.stop();
    let ended = done["ended"].as_object().unwrap();
    let sum: u64 = ended.values().filter_map(Value::as_u64).sum();
    assert_eq!((sum, &ended["capped"]), (done["requests"].as_u64().unwrap(), &1.into()), "{done}");
}

#[test]
fn a_token_is_asked_for_and_never_sent_on() {
    let bench = Bench::new();
    let server = counting();
    let proxy = Proxy::start_with(
        &bench,
        &["--upstream", &server.url(), "--token", "tok"],
        &[("RECOUP_API_KEY", "sk-up")],
    );
    let ask = |headers: &[(&str, &str)]| proxy.post(PATH, headers, &chat(&[user("hi")])).status;
    assert_eq!(ask(&[]), 401);
    assert_eq!(ask(&[("Authorization", "Bearer wrong")]), 401);
    assert_eq!(ask(&[("Authorization", "Bearer tok")]), 200);
    assert_eq!(ask(&[("x-recoup-token", "tok"), ("Authorization", "Bearer own")]), 200);
    let keys: Vec<_> =
        server.asked().iter().map(|asked| asked.header("authorization").map(str::to_owned)).collect();
    assert_eq!(keys, [Some("Bearer sk-up".to_owned()), Some("Bearer own".to_owned())]);
}

#[test]
fn a_full_disk_refuses_requests_and_loses_none_that_was_answered() {
    let bench = Bench::new();
    let server = counting();
    let flags = ["--upstream", &server.url()];
    let proxy = Proxy::run(bench.on_small_disk(2048, &[ARGUMENTS, &flags].concat()));
    let ask = |proxy: &Proxy, number: u32| {
        proxy.post(PATH, &[], &chat(&[user(&format!("{number} {}", "x".repeat(100_000)))]))
    };
    let mut answered = 0;
    let refusal = loop {
        assert!(answered < 100, "the disk is never full");
        let got = ask(&proxy, answered);
        if got.status != 200 {
            break got;
        }
        answered += 1;
    };
    assert!(answered > 0);
    assert_eq!(refusal.status, 503, "{}", refusal.text());
    assert_eq!(refusal.json()["error"]["code"], "disk");
    assert_eq!(proxy.get("/healthz").status, 200);
    assert!(proxy.metric("recoup_proxy_unwritten_total") > 0);
    proxy.kill();
    let proxy = Proxy::start(&bench, &flags);
    assert_eq!(ask(&proxy, answered).status, 200, "there is room again");
    proxy.stop();
    let kept = runs(&bench).into_iter().filter(|run| run.nodes.iter().any(|node| node.occurrence.sampled));
    assert_eq!(kept.count(), answered as usize + 1, "every answer that was given, each once");
}

#[test]
fn a_proxy_that_is_killed_goes_on_where_it_was() {
    let bench = Bench::new();
    let server = FaultServer::start(|_, asked| {
        let shown = asked.json()["messages"].as_array().map_or(0, Vec::len);
        let answer = Fault::answer(&format!("answer {shown}"));
        if asked.body.contains("wait") {
            Fault::Slow(Duration::from_secs(20), Box::new(answer))
        } else {
            answer
        }
    });
    let flags = ["--upstream", &server.url()];
    let proxy = Proxy::start(&bench, &flags);
    proxy.post(PATH, &[], &chat(&[user("one")]));
    // Three more turns: each is durable before the next is forwarded.
    let mut history = vec![user("one"), assistant("answer 1")];
    for turn in 0..3 {
        history.push(user(&format!("turn {turn}")));
        assert_eq!(proxy.post(PATH, &[], &chat(&history)).status, 200);
        history.push(assistant(&format!("answer {}", history.len())));
    }
    let mut hanging = TcpStream::connect(&proxy.address).unwrap();
    let body = chat(&[user("wait")]);
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        proxy.address,
        body.len()
    );
    hanging.write_all(&[head.as_bytes(), &body].concat()).unwrap();
    while proxy.metric("recoup_proxy_in_flight") == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    proxy.kill();
    let proxy = Proxy::start(&bench, &flags);
    history.push(user("after the crash"));
    assert_eq!(proxy.post(PATH, &[], &chat(&history)).status, 200);
    proxy.stop();
    let mut runs = runs(&bench);
    runs.sort_by_key(|run| run.nodes.len());
    let [lost, run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((run.nodes.len(), run.leaves.len()), (10, 1));
    assert!(run.nodes.iter().filter(|node| node.occurrence.sampled).count() == 5, "no turn was lost");
    assert_eq!(
        lost.extra["failed_requests"].to_value()[0]["code"],
        "stopped",
        "the one under way is accounted for"
    );
    assert!(
        std::fs::read_dir(bench.path(".recoup/proxy")).unwrap().count() <= 2,
        "the journal is empty again"
    );
}
