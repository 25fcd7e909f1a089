//! Goals that any tool allows: a record that was looked up, and what it says.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::diagnosis::{Effect, effect_of};
use crate::hindsight::episode::Episode;
use crate::hindsight::facts::{Fact, FactKind, Facts};
use crate::hindsight::proposal::{Proposal, Wording, listed};
use crate::hindsight::tokens::values;

/// Calls of one run that are tried, the last first.
const CALLS_MAX: usize = 4;
/// Members of a record that a goal asks for.
const ASKED_MAX: usize = 3;
/// Longest value that a goal or an answer repeats, in bytes.
const VALUE_MAX: usize = 60;
/// Members that are about the call, not about what was looked up.
const ABOUT_THE_CALL: &[&str] = &[
    "status",
    "success",
    "ok",
    "error",
    "code",
    "message",
    "etag",
    "cursor",
    "next_cursor",
    "page",
    "next_page",
    "has_more",
    "count",
    "total_pages",
    "request_id",
    "receipt",
    "replayed",
    "remaining",
    "limit",
    "offset",
    "type",
    "kind",
    "object",
    "url",
    "href",
];

/// A member of a record.
#[derive(Clone, Debug, PartialEq)]
struct Member {
    key: String,
    value: String,
}

/// Goals of the last calls that looked something up.
pub(super) fn propose(episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    let mut tried = 0;
    for (at, exchange) in episode.exchanges.iter().enumerate().rev() {
        let Some((name, arguments, _)) = exchange.called() else { continue };
        // What a change answers cannot have been asked before it; and what was asked twice was answered once.
        let effect = effect_of(name, &episode.run.tools);
        let changes = matches!(effect, Effect::Mutate | Effect::Submit | Effect::Handoff);
        let repeats = episode.exchanges[..at].iter().any(|earlier| {
            earlier.called().is_some_and(|(known, given, _)| known == name && given == arguments)
        });
        if changes || repeats {
            continue;
        }
        let asked: Vec<String> = texts(arguments);
        let Some(members) = record(facts, at, &asked) else { continue };
        if asked.is_empty() || tried >= CALLS_MAX {
            continue;
        }
        tried += 1;
        // What tells the record from others is given; the rest is asked for.
        let tells = |member: &&Member| !values(&member.value).is_empty() && !asked.contains(&member.value);
        let given: Vec<&Member> = members.iter().filter(tells).collect();
        for many in 1..=given.len().min(2) {
            let given = &given[..many];
            let wanted: Vec<&Member> = members
                .iter()
                .filter(|member| !asked.contains(&member.value) && !given.contains(member))
                .take(ASKED_MAX)
                .collect();
            if wanted.is_empty() {
                continue;
            }
            let mut wording = Wording::new(facts).plain("Please look up ");
            for (place, text) in asked.iter().enumerate() {
                wording = wording.plain(if place == 0 { "" } else { " and " }).shown(text, at);
            }
            wording = wording.plain(": what does the entry with ");
            for (place, member) in given.iter().enumerate() {
                wording = wording
                    .plain(if place == 0 { "" } else { " and " })
                    .plain(&spoken(&member.key))
                    .plain(" ");
                wording = wording.shown_by(&member.value, at);
            }
            let keys: Vec<String> = wanted.iter().map(|member| spoken(&member.key)).collect();
            let wording = wording.plain(" say of ").plain(&listed(&keys)).plain("?");
            let answer: Vec<String> =
                wanted.iter().map(|member| format!("{}: {}", spoken(&member.key), member.value)).collect();
            proposals.push(wording.done(at, format!("{}.", answer.join("; "))));
        }
    }
    proposals
}

/// The texts among arguments.
fn texts(arguments: &Value) -> Vec<String> {
    let members = arguments.as_object().into_iter().flat_map(|members| members.values());
    let texts = members.filter_map(Value::as_str).filter(|text| (2..=VALUE_MAX).contains(&text.len()));
    texts.map(str::to_owned).collect()
}

/// One record of what an exchange showed: of several, the first that holds an argument, else the one that says
/// most.
fn record(facts: &Facts<'_, '_>, exchange: usize, asked: &[String]) -> Option<Vec<Member>> {
    let mut records: BTreeMap<&[String], Vec<Member>> = BTreeMap::new();
    for fact in facts.all().iter().filter(|fact| fact.exchange == Some(exchange)) {
        if let Some(key) = key(fact) {
            let members = records.entry(fact.record()).or_default();
            if !members.iter().any(|known| known.key == key) {
                members.push(Member { key: key.to_owned(), value: fact.value.clone() });
            }
        }
    }
    records.retain(|_, members| members.len() > 1);
    let holds = |members: &Vec<Member>| members.iter().any(|member| asked.contains(&member.value));
    let named = records.values().find(|members| holds(members));
    let first = records.values().fold(None::<&Vec<Member>>, |most, members| match most {
        Some(most) if most.len() >= members.len() => Some(most),
        _ => Some(members),
    });
    named.or(first).cloned()
}

/// The name of a member that says something of what was looked up.
fn key(fact: &Fact) -> Option<&str> {
    let key = fact.path.last()?;
    let is_name =
        key.chars().all(|c| c.is_alphabetic() || "_- ".contains(c)) && key.contains(char::is_alphabetic);
    let is_about = ABOUT_THE_CALL.contains(&key.as_str()) && fact.path.len() == 1;
    let is_short = fact.value.len() <= VALUE_MAX;
    (fact.kind == FactKind::Member && is_name && is_short && !is_about).then_some(key)
}

/// A key as words.
fn spoken(key: &str) -> String {
    key.replace(['_', '-'], " ")
}
