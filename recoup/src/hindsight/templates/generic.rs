//! Goals that any tool allows: a record that was looked up, and what it says.

use serde_json::Value;

use crate::hindsight::episode::Episode;
use crate::hindsight::facts::{FactKind, Facts};
use crate::hindsight::proposal::{Proposal, Wording, listed};
use crate::hindsight::tokens::values;

/// Calls of one run that are tried, the last first.
const CALLS_MAX: usize = 4;
/// Members of a record that a goal asks for.
const ASKED_MAX: usize = 3;
/// Longest value that a goal or an answer repeats, in bytes.
const VALUE_MAX: usize = 60;

/// A member of a record.
struct Member {
    key: String,
    value: String,
}

/// Goals of the last calls that looked something up.
pub(super) fn propose(episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    let mut tried = 0;
    for (at, exchange) in episode.exchanges.iter().enumerate().rev() {
        let Some((_, arguments, _)) = exchange.called() else { continue };
        let asked: Vec<String> = texts(arguments);
        let members = members(facts, at);
        if asked.is_empty() || members.len() < 2 || tried >= CALLS_MAX {
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
                .filter(|member| !asked.contains(&member.value))
                .filter(|member| !given.iter().any(|given| given.key == member.key))
                .take(ASKED_MAX)
                .collect();
            if wanted.is_empty() {
                continue;
            }
            let mut wording = Wording::new(facts).plain("Please look up ");
            for (place, text) in asked.iter().enumerate() {
                wording = wording.plain(if place == 0 { "" } else { " and " }).shown(text, at);
            }
            for (place, member) in given.iter().enumerate() {
                wording = wording
                    .plain(if place == 0 { " (" } else { ", " })
                    .plain(&spoken(&member.key))
                    .plain(" ");
                wording = wording.shown_by(&member.value, at);
            }
            let keys: Vec<String> = wanted.iter().map(|member| spoken(&member.key)).collect();
            let wording = wording.plain("), and tell me its ").plain(&listed(&keys)).plain(".");
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

/// Members at the top of what an exchange showed, each key once.
fn members(facts: &Facts<'_, '_>, exchange: usize) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    for fact in facts.all().iter().filter(|fact| fact.exchange == Some(exchange)) {
        let [key] = fact.path.as_slice() else { continue };
        let is_name = key.contains(char::is_alphabetic);
        if fact.kind == FactKind::Member
            && is_name
            && fact.value.len() <= VALUE_MAX
            && !members.iter().any(|known| known.key == *key)
        {
            members.push(Member { key: key.clone(), value: fact.value.clone() });
        }
    }
    members
}

/// A key as words.
fn spoken(key: &str) -> String {
    key.replace(['_', '-'], " ")
}
