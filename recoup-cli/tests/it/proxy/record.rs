//! Recording: conversations, branches, outcomes.

use serde_json::{Value, json};

use super::{Proxy, assistant, chat, runs, user};
use crate::bench::Bench;
use crate::fault_server::{Fault, FaultServer, completion};

fn upstream() -> FaultServer {
    FaultServer::start(|_, asked| {
        let last = asked.json()["messages"].as_array().map_or(0, Vec::len);
        Fault::answer(&format!("answer {last}"))
    })
}

fn url(server: &FaultServer) -> String {
    server.model("x").trim_end_matches("#x").to_owned()
}

#[test]
fn a_conversation_is_a_run() {
    let bench = Bench::new();
    let server = upstream();
    let proxy = Proxy::start(&bench, &["--upstream", &url(&server)]);
    let first = proxy.post("/v1/chat/completions", &[("Authorization", "Bearer k")], &chat(&[user("one")]));
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(first.body, completion("answer 1", "toy", Some((9, 3))).into_bytes());
    let history = [user("one"), assistant("answer 1"), user("two")];
    let second = proxy.post("/v1/chat/completions", &[("Authorization", "Bearer k")], &chat(&history));
    assert_eq!(second.body, completion("answer 3", "toy", Some((9, 3))).into_bytes());
    let done = proxy.stop();
    assert_eq!((&done["requests"], &done["ended"]["pure_student"]), (&2.into(), &2.into()));
    let runs = runs(&bench);
    assert_eq!(runs.len(), 1, "{runs:?}");
    let run: &Value = &runs[0];
    println!("{}", serde_json::to_string_pretty(run).unwrap());
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer k"));
}
