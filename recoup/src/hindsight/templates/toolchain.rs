//! Goals among the office APIs: tickets changed, entries posted, a room booked, a total submitted, a
//! customer's records looked up.

use serde_json::{Map, Value, json};

use super::Template;
use crate::hindsight::episode::{Act, Episode};
use crate::hindsight::facts::Facts;
use crate::hindsight::proposal::{Proposal, Wording};

/// See the module.
pub(super) struct Toolchain;

/// The doubt about an entry whose posting nobody has confirmed.
const UNCONFIRMED: &str = "an entry was sent and its answer was lost, so nobody knows whether it was posted";

/// A ticket's field, written.
struct Write {
    at: usize,
    ticket: String,
    field: String,
    value: String,
    subject: String,
    /// Whether it says something else than before.
    changed: bool,
}

/// An entry of an account.
struct Entry {
    account: String,
    cents: i64,
    quote: Option<String>,
    key: String,
    confirmed: bool,
}

impl Template for Toolchain {
    fn propose(&self, episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
        let mut proposals = booked(episode, facts);
        proposals.extend(posted(episode, facts));
        proposals.extend(updated(episode, facts));
        proposals.extend(submitted(episode, facts));
        proposals
    }

    fn resolve(&self, specification: &Value, task: &Value) -> Option<Map<String, Value>> {
        let numbers = task.get("world")?.get("numbers")?;
        let number = |id: &Value| numbers.get(id.as_str()?)?.as_i64();
        let list = |key: &str| specification[key].as_array();
        let (family, wanted) = if let Some(writes) = list("writes") {
            let write = |write: &Value| Some(json!([number(&write[0])?, write[1], write[2]]));
            ("update", json!(writes.iter().map(write).collect::<Option<Vec<_>>>()?))
        } else if let Some(entries) = list("entries") {
            let entry = |entry: &Value| {
                let quote = if entry[2].is_null() { -1 } else { number(&entry[2])? };
                Some(json!([number(&entry[0])?, entry[1], quote]))
            };
            ("transfer", json!(entries.iter().map(entry).collect::<Option<Vec<_>>>()?))
        } else if let Some(booking) = list("booking") {
            let [room, day, start, calendars] = booking.as_slice() else { return None };
            ("schedule", json!([number(room)?, day, start, 60, calendars]))
        } else {
            let [cents, currency, receipts] = list("total")?.as_slice() else { return None };
            let mut receipts = receipts.as_array()?.iter().map(number).collect::<Option<Vec<_>>>()?;
            receipts.sort_unstable();
            ("aggregate", json!([cents, currency, receipts]))
        };
        json!({ "family": family, "wanted": wanted }).as_object().cloned()
    }
}

/// What a call answered, where it did.
fn body(episode: &Episode<'_>, at: usize) -> Option<(String, Value, Value)> {
    let exchange = episode.exchanges.get(at)?;
    let Act::Call { tool, arguments, .. } = &exchange.act else { return None };
    let body: Value = serde_json::from_str(exchange.shown.as_ref()?.text).ok()?;
    Some(((*tool).to_owned(), arguments.clone(), body))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn updated(episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
    let mut writes: Vec<Write> = Vec::new();
    let mut tickets: Map<String, Value> = Map::new();
    for at in 0..episode.exchanges.len() {
        let Some((tool, arguments, body)) = body(episode, at) else { continue };
        if body["status"] != 200 || !body["ticket"].is_object() {
            continue;
        }
        let ticket = &body["ticket"];
        let Some(id) = text(&ticket["id"]) else { continue };
        if tool == "update_ticket" {
            let (Some(field), Some(value)) = (text(&arguments["field"]), text(&arguments["value"])) else {
                continue;
            };
            // What is not known to have been something else may have been this already.
            let before = tickets.get(&id).and_then(|known| known.get(&field)).and_then(Value::as_str);
            let changed = before.is_some_and(|before| before != value);
            let subject = text(&ticket["subject"]).unwrap_or_default();
            writes.push(Write { at, ticket: id.clone(), field, value, subject, changed });
        }
        tickets.insert(id, ticket.clone());
    }
    let mut proposals = Vec::new();
    let changed: Vec<&Write> = writes.iter().filter(|write| write.changed).collect();
    for many in (1..=changed.len()).rev() {
        let group = &changed[..many];
        let twice = |(at, write): (usize, &&Write)| {
            group[..at].iter().any(|other| (&other.ticket, &other.field) == (&write.ticket, &write.field))
        };
        if group.iter().enumerate().any(twice) {
            continue;
        }
        let last = group[many - 1].at;
        let mut wording = Wording::new(facts).plain("Please set ");
        for (place, write) in group.iter().enumerate() {
            wording = wording.plain(if place == 0 { "the " } else { " and the " });
            wording = wording
                .shown_by(&write.field, write.at)
                .plain(" of ticket ")
                .shown_by(&write.ticket, write.at);
            if !write.subject.is_empty() {
                wording = wording.plain(" (").shown_by(&write.subject, write.at).plain(")");
            }
            wording = wording.plain(" to ").shown_by(&write.value, write.at);
        }
        let specified: Vec<Value> =
            group.iter().map(|write| json!([write.ticket, write.field, write.value])).collect();
        let last_write = group[many - 1];
        let answer = format!("Done: {} of {} is {}.", last_write.field, last_write.ticket, last_write.value);
        let proposal = wording.plain(". Change no other ticket.").done(last, answer);
        proposals.push(proposal.specified(json!({ "writes": specified })));
    }
    proposals
}

fn posted(episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
    let mut entries: Vec<Entry> = Vec::new();
    // After each exchange that posted or confirmed something: how many entries there are, and whether all are sure.
    let mut moments: Vec<(usize, usize, bool)> = Vec::new();
    for at in 0..episode.exchanges.len() {
        let Some((tool, arguments, body)) = body(episode, at) else { continue };
        match (tool.as_str(), body["status"].as_i64()) {
            ("post_entry", Some(status @ (200 | 201 | 504))) => {
                let Some(account) = text(&arguments["account"]) else { continue };
                let key = text(&arguments["idempotency_key"]).unwrap_or_default();
                let Some(cents) = arguments["cents"].as_i64() else { continue };
                let cents = if arguments["direction"] == "debit" { -cents } else { cents };
                let known = entries.iter_mut().find(|entry| !key.is_empty() && entry.key == key);
                if let Some(entry) = known {
                    entry.confirmed |= status != 504;
                } else {
                    let quote = text(&arguments["quote"]).filter(|quote| !quote.is_empty());
                    entries.push(Entry { account, cents, quote, key, confirmed: status != 504 });
                }
            }
            ("get_account", Some(200)) => {
                let account = text(&body["id"]);
                for entry in entries.iter_mut().filter(|entry| Some(&entry.account) == account.as_ref()) {
                    entry.confirmed = true;
                }
            }
            _ => continue,
        }
        moments.push((at, entries.len(), entries.iter().all(|entry| entry.confirmed)));
    }
    let mut proposals = Vec::new();
    for (at, count, sure) in moments.iter().rev().filter(|(_, count, _)| *count > 0) {
        let group = &entries[..*count];
        let mut wording = Wording::new(facts).plain("Please post ");
        for (place, entry) in group.iter().enumerate() {
            let side = if entry.cents < 0 { "a debit of " } else { "a credit of " };
            wording = wording.plain(if place == 0 { "" } else { " and " }).plain(side);
            let cents = entry.cents.abs().to_string();
            wording = wording.shown(&cents, *at).plain(" cents to account ").shown(&entry.account, *at);
        }
        let specified: Vec<Value> =
            group.iter().map(|entry| json!([entry.account, entry.cents, entry.quote])).collect();
        let proposal = wording.plain(", each once, and nothing else.").done(*at, "The entries are posted.");
        let doubts = if *sure { Vec::new() } else { vec![UNCONFIRMED] };
        proposals.push(proposal.specified(json!({ "entries": specified })).doubted(doubts));
    }
    proposals
}

fn booked(episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
    for at in 0..episode.exchanges.len() {
        let Some((tool, arguments, body)) = body(episode, at) else { continue };
        if tool != "book_room" || body["status"] != 201 {
            continue;
        }
        let booking = &body["booked"];
        let (Some(room), Some(day), Some(start)) =
            (text(&booking["room"]), text(&booking["day"]), text(&booking["start_utc"]))
        else {
            continue;
        };
        let calendars = arguments["calendars"].as_array().into_iter().flatten();
        let mut calendars: Vec<String> = calendars.filter_map(text).collect();
        calendars.sort_unstable();
        let mut wording =
            Wording::new(facts).plain("Please book the room ").shown_by(&room, at).plain(" on ");
        wording =
            wording.shown_by(&day, at).plain(" at ").shown_by(&start, at).plain(" UTC for the calendars ");
        for (place, calendar) in calendars.iter().enumerate() {
            let joint = match place {
                0 => "",
                place if place + 1 == calendars.len() => " and ",
                _ => ", ",
            };
            wording = wording.plain(joint).shown(calendar, at);
        }
        let answer = format!("The room {room} is booked on {day} at {start} UTC.");
        let specified = json!({ "booking": [arguments["room"], day, start, calendars] });
        // Only the first booking is one that a goal can ask for: a second one adds to it.
        return vec![wording.plain(".").done(at, answer).specified(specified)];
    }
    Vec::new()
}

fn submitted(episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
    for at in 0..episode.exchanges.len() {
        let Some((tool, arguments, body)) = body(episode, at) else { continue };
        if tool != "submit_total" || body["status"] != 201 {
            continue;
        }
        let (Some(cents), Some(currency)) = (arguments["cents"].as_i64(), text(&arguments["currency"]))
        else {
            continue;
        };
        let receipts = arguments["receipts"].as_array().into_iter().flatten();
        let receipts: Vec<String> = receipts.filter_map(text).collect();
        let doubts =
            if receipts.is_empty() { vec!["a total without a receipt proves nothing"] } else { Vec::new() };
        let wording = Wording::new(facts).plain("Please submit a total of ").shown_by(&cents.to_string(), at);
        let mut wording = wording.plain(" cents in ").shown_by(&currency, at).plain(", with the receipts ");
        for (place, receipt) in receipts.iter().enumerate() {
            wording = wording.plain(if place == 0 { "" } else { ", " }).shown(receipt, at);
        }
        let answer = format!("A total of {cents} cents in {currency} is submitted.");
        let specified = json!({ "total": [cents, currency, receipts] });
        return vec![wording.plain(".").done(at, answer).specified(specified).doubted(doubts)];
    }
    Vec::new()
}
