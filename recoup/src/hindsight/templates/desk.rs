//! Goals at the service desk: changes that were made as the written policy wants them, else the customer
//! who was found.

use serde_json::{Map, Value, json};

use super::Template;
use crate::hindsight::episode::Episode;
use crate::hindsight::facts::Facts;
use crate::hindsight::proposal::{Proposal, Wording};

/// See the module.
pub(super) struct Desk;

/// Reasons for which an order may be cancelled.
const REASONS: [&str; 2] = ["no longer needed", "ordered by mistake"];
/// Days after its delivery in which an order may be returned or exchanged.
const DAYS: i64 = 30;
/// The day of the policy, counted as [`day_number`] does.
const TODAY: i64 = 2026 * 372 + 2 * 31 + 15;

/// A change of an order that was carried out.
struct Change {
    at: usize,
    /// The change in the desk's own form: kind, order, then what the kind needs.
    entry: Vec<String>,
    doubts: Vec<&'static str>,
}

/// What the agent knew and had agreed at a moment of the chat.
#[derive(Default)]
struct Chat {
    told: String,
    user: Option<(String, usize)>,
    is_told: bool,
    read: Vec<String>,
    orders: Map<String, Value>,
    products: Vec<(String, Value)>,
    agreed: Option<String>,
}

impl Template for Desk {
    fn propose(&self, episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
        let (chat, changes) = follow(episode);
        let mut proposals = Vec::new();
        for many in (1..=changes.len()).rev() {
            let group = &changes[..many];
            let last = group[many - 1].at;
            let mut wording = Wording::new(facts).plain("Please ");
            for (place, change) in group.iter().enumerate() {
                wording = wording.plain(if place == 0 { "" } else { ", then " });
                wording = described(wording, change);
            }
            let Some((user, found)) = &chat.user else { continue };
            let wording = wording.plain(" for the customer ").shown(user, *found).plain(".");
            let entries: Vec<&Vec<String>> = group.iter().map(|change| &change.entry).collect();
            let specified = json!({ "customer": user, "changes": entries });
            let doubts: Vec<&'static str> =
                group.iter().flat_map(|change| change.doubts.iter().copied()).collect();
            let answer = format!("That has been done for order {}.", group[many - 1].entry[1]);
            proposals.push(wording.done(last, answer).specified(specified).doubted(doubts));
        }
        proposals.extend(found(&chat, episode, facts, changes.first().map(|change| change.at)));
        proposals
    }

    fn resolve(&self, specification: &Value, _task: &Value) -> Option<Map<String, Value>> {
        let changes = specification["changes"].as_array()?;
        let line = |change: &Value| json!({ "kind": change[0], "cause": "", "knows_order": true, "insists": false, "phrase": 0 });
        let keys = json!({
            "closing": false,
            "script": changes.iter().map(line).collect::<Vec<_>>(),
            "hidden": {
                "customer": specification["customer"],
                "knows_email": true,
                "wishes": changes.iter().map(wish).collect::<Option<Vec<_>>>()?,
            },
        });
        keys.as_object().cloned()
    }
}

/// A change as the wish that it fulfills.
fn wish(change: &Value) -> Option<Value> {
    let change: Vec<&str> = change.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    let mut wish = json!({ "order": change.get(1)?, "items": [], "later": 0, "new": [], "payment": "", "reason": -1,
                           "address": null });
    match change.as_slice() {
        ["cancel", _, reason] => wish["reason"] = json!(REASONS.iter().position(|known| known == reason)?),
        ["address", _, street, city, state, zip] => {
            wish["address"] = json!({ "address1": street, "city": city, "state": state, "zip": zip });
        }
        ["return", _, payment, items @ ..] => {
            wish["payment"] = json!(payment);
            wish["items"] = json!(items);
        }
        ["exchange", _, payment, pairs @ ..] => {
            let pairs: Vec<(&str, &str)> =
                pairs.iter().map(|pair| pair.split_once('>')).collect::<Option<_>>()?;
            wish["payment"] = json!(payment);
            wish["items"] = json!(pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
            wish["new"] = json!(pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
        }
        _ => return None,
    }
    Some(wish)
}

/// A change in words.
fn described<'f, 'e, 'a>(wording: Wording<'f, 'e, 'a>, change: &Change) -> Wording<'f, 'e, 'a> {
    let (at, entry) = (change.at, &change.entry);
    let mut wording = match entry[0].as_str() {
        "cancel" => {
            return wording
                .plain("cancel order ")
                .shown_by(&entry[1], at)
                .plain(" as ")
                .shown_by(&entry[2], at);
        }
        "address" => {
            let mut wording =
                wording.plain("change the address of order ").shown_by(&entry[1], at).plain(" to ");
            for (place, part) in entry[2..].iter().enumerate() {
                wording = wording.plain(if place == 0 { "" } else { ", " }).shown_by(part, at);
            }
            return wording;
        }
        "return" => wording.plain("return "),
        _ => wording.plain("exchange "),
    };
    for (place, item) in entry[3..].iter().enumerate() {
        wording = wording.plain(if place == 0 { "item " } else { " and item " });
        wording = match item.split_once('>') {
            Some((old, new)) => wording.shown_by(old, at).plain(" for item ").shown_by(new, at),
            None => wording.shown_by(item, at),
        };
    }
    wording.plain(" of order ").shown_by(&entry[1], at).plain(" with ").shown_by(&entry[2], at)
}

/// The customer's account and, where it was read, one of their orders.
fn found(
    chat: &Chat,
    episode: &Episode<'_>,
    facts: &mut Facts<'_, '_>,
    before: Option<usize>,
) -> Vec<Proposal> {
    let Some((user, at)) = &chat.user else { return Vec::new() };
    let end = before.unwrap_or(episode.exchanges.len());
    if *at >= end {
        return Vec::new();
    }
    let read = episode.exchanges[..end].iter().enumerate().rev().find_map(|(at, exchange)| {
        let (_, arguments, shown) = exchange.called().filter(|(tool, ..)| *tool == "get_order_details")?;
        let order: Value = serde_json::from_str(shown.text).ok()?;
        (order["user_id"].as_str() == Some(user)).then(|| (at, arguments["order_id"].as_str(), order.clone()))
    });
    let specified = json!({ "customer": user, "changes": [] });
    let mut proposals = Vec::new();
    if let Some((read, Some(name), order)) = &read {
        let status = order["status"].as_str().unwrap_or_default();
        let method = order["payment_method_id"].as_str().unwrap_or_default();
        let total = order["total"].as_str().unwrap_or_default();
        for with_method in [false, true] {
            let wording =
                Wording::new(facts).plain("Please find the account of the customer ").shown(user, *at);
            let mut wording = wording.plain(" and look up their order ").shown_by(name, *read);
            if with_method {
                wording = wording.plain(", which was paid with ").shown_by(method, *read);
            }
            let wording = wording.plain(": what is its status and its total? Change nothing.");
            let answer = format!("Order {name} is {status}; its total is {total}.");
            let end = (*read).max(*at);
            proposals.push(wording.done(end, answer).specified(specified.clone()));
        }
    }
    let told = episode.exchanges[..*at].iter().enumerate().rev().find_map(|(at, exchange)| {
        let (_, shown) = exchange.said()?;
        let line = shown.text;
        let word =
            line.split_whitespace().map(|word| word.trim_end_matches('.')).find(|word| word.contains('@'));
        let zip = || line.split_once("zip code ").map(|(_, zip)| zip.split(['.', ' ']).next().unwrap_or(zip));
        word.or_else(zip).map(|word| (at, word))
    });
    if let Some((when, word)) = told {
        let wording =
            Wording::new(facts).plain("Please find the account of the customer with ").shown_by(word, when);
        let wording = wording.plain(": it should be ").shown_by(user, *at).plain(". Change nothing.");
        let answer = format!("The account is {user}.");
        proposals.push(wording.done(*at, answer).specified(specified));
    }
    proposals
}

/// Follows the chat: who the customer is, what was read and agreed, and which changes were made how.
fn follow(episode: &Episode<'_>) -> (Chat, Vec<Change>) {
    let mut chat = Chat::default();
    let mut changes: Vec<Change> = Vec::new();
    let mut is_spoiled = false;
    for (at, exchange) in episode.exchanges.iter().enumerate() {
        if let Some((said, shown)) = exchange.said() {
            let reply = shown.text;
            if reply.contains("My e-mail address is") || reply.contains("My name is") {
                chat.is_told = true;
            }
            if reply.contains("Yes, please go ahead.") {
                chat.agreed = Some(said.to_owned());
            } else if reply.contains("No, that isn't what I want")
                || reply.contains("I can't say yes to that")
            {
                chat.agreed = None;
            }
            chat.told.push_str(reply);
            chat.told.push('\n');
            continue;
        }
        let Some((tool, arguments, shown)) = exchange.called() else { continue };
        match tool {
            "find_user_id_by_email" | "find_user_id_by_name_zip" => {
                if let Ok(user) = serde_json::from_str::<String>(shown.text)
                    && chat.is_told
                {
                    chat.user = Some((user, at));
                }
            }
            "get_user_details" | "get_order_details" | "get_product_details" => {
                let body: Value = serde_json::from_str(shown.text).unwrap_or_default();
                let name = arguments.as_object().and_then(|it| it.values().next()).and_then(Value::as_str);
                let Some(name) = name.map(str::to_owned) else { continue };
                match tool {
                    "get_order_details" => drop(chat.orders.insert(name.clone(), body)),
                    "get_product_details" => chat.products.push((name.clone(), body)),
                    _ => {}
                }
                chat.read.push(name);
            }
            // It ends the chat, and whoever hands over what is not to be handed over has broken the policy.
            "transfer_to_human" => return (chat, changes),
            _ => {
                if let Some(entry) = entry(tool, arguments) {
                    let after: Value = serde_json::from_str(shown.text).unwrap_or_default();
                    let mut doubts = doubts(&chat, &entry, &after);
                    if is_spoiled {
                        doubts.push("an earlier change was not made as the policy wants it");
                    }
                    is_spoiled |= !doubts.is_empty();
                    chat.agreed = None;
                    changes.push(Change { at, entry, doubts });
                }
            }
        }
    }
    (chat, changes)
}

/// A call in the desk's form of a change.
fn entry(tool: &str, arguments: &Value) -> Option<Vec<String>> {
    let text = |name: &str| arguments.get(name)?.as_str().map(str::to_owned);
    let list = |name: &str| {
        let items = arguments.get(name)?.as_array()?.iter();
        items.map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    };
    let order = text("order_id")?;
    match tool {
        "cancel_pending_order" => Some(vec!["cancel".to_owned(), order, text("reason")?]),
        "modify_pending_order_address" => {
            let part = |name| text(name).map(|part| part.trim_matches(' ').to_owned());
            Some(vec![
                "address".to_owned(),
                order,
                part("address1")?,
                part("city")?,
                part("state")?,
                part("zip")?,
            ])
        }
        "return_delivered_order_items" => {
            let mut items = list("item_ids")?;
            items.sort_unstable();
            Some([vec!["return".to_owned(), order, text("payment_method_id")?], items].concat())
        }
        "exchange_delivered_order_items" => {
            let pairs = list("item_ids")?.into_iter().zip(list("new_item_ids")?);
            let mut pairs: Vec<String> = pairs.map(|(old, new)| format!("{old}>{new}")).collect();
            pairs.sort_unstable();
            Some([vec!["exchange".to_owned(), order, text("payment_method_id")?], pairs].concat())
        }
        _ => None,
    }
}

/// What speaks against a change having been made as the policy wants it.
fn doubts(chat: &Chat, entry: &[String], after: &Value) -> Vec<&'static str> {
    let mut doubts = Vec::new();
    let owner = after["user_id"].as_str().unwrap_or_default();
    match &chat.user {
        Some((user, _)) if user == owner => {}
        _ => doubts.push("the order is not known to be the authenticated customer's"),
    }
    let has_read = |name: &str| chat.read.iter().any(|read| read == name);
    let kind = entry[0].as_str();
    let uses_payment = matches!(kind, "return" | "exchange");
    let pairs = entry.iter().skip(3).filter_map(|pair| pair.split_once('>'));
    let new: Vec<&str> = pairs.map(|(_, new)| new).collect();
    let products_read =
        new.iter().all(|new| chat.products.iter().any(|(_, product)| variant(product, new).is_some()));
    if !has_read(&entry[1]) || (uses_payment && !has_read(owner)) || !products_read {
        doubts.push("something was changed that had not been read");
    }
    let names: Vec<&str> = match kind {
        "address" => vec![&entry[1], &entry[2]],
        _ => entry[1..].iter().flat_map(|part| part.split('>')).collect(),
    };
    match &chat.agreed {
        Some(proposal) if names.iter().all(|name| proposal.to_lowercase().contains(&name.to_lowercase())) => {
            // One yes is for one change, made as it was put.
            let is_item = |word: &&str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_digit());
            let others = proposal.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_item);
            if others.into_iter().any(|item| !names.contains(&item)) {
                doubts.push("the customer agreed to something else");
            }
        }
        _ => doubts.push("the customer had not agreed to the change as it was made"),
    }
    let before = chat.orders.get(&entry[1]);
    if before.is_some_and(|order| !allowed(order, entry, chat)) {
        doubts.push("the policy does not allow the change");
    }
    doubts
}

fn variant<'v>(product: &'v Value, item: &str) -> Option<&'v Value> {
    product["variants"].as_array()?.iter().find(|variant| variant["item_id"].as_str() == Some(item))
}

/// Whether the policy allows a change, as far as the order before it and the chat show.
fn allowed(order: &Value, entry: &[String], chat: &Chat) -> bool {
    if !order["changed_on"].is_null() {
        return false;
    }
    if entry[0] == "cancel" {
        let reasons = ["I simply don't need it any more.", "I ordered it by mistake."];
        let at = REASONS.iter().position(|reason| *reason == entry[2]);
        return at.is_some_and(|at| chat.told.contains(reasons[at]));
    }
    if entry[0] == "address" {
        return true;
    }
    let delivered = order["delivered_on"].as_str().and_then(day_number);
    let items: Vec<&str> = entry[3..].iter().map(|item| item.split('>').next().unwrap_or(item)).collect();
    let bought = order["items"].as_array().into_iter().flatten();
    let bought: Vec<&Value> =
        bought.filter(|item| item["item_id"].as_str().is_some_and(|id| items.contains(&id))).collect();
    let is_final = bought.iter().any(|item| item["final_sale"] != false);
    if is_final || delivered.is_none_or(|day| days_until_today(day) > DAYS) {
        return false;
    }
    match entry[0].as_str() {
        "return" => {
            entry[2].starts_with("gift_card") || order["payment_method_id"].as_str() == Some(&entry[2])
        }
        _ => entry[3..].iter().filter_map(|pair| pair.split_once('>')).all(|(old, new)| {
            let product = bought.iter().find(|item| item["item_id"].as_str() == Some(old));
            let product = product.and_then(|item| item["product_id"].as_str());
            let known = chat.products.iter().find(|(name, _)| Some(name.as_str()) == product);
            known.and_then(|(_, product)| variant(product, new)).is_some_and(|new| new["available"] == true)
        }),
    }
}

/// A date as a number that grows by the day; months count as 31 days.
fn day_number(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    Some(year * 372 + (month - 1) * 31 + day)
}

/// Days from a date to the policy's day: dates of the February before it, which has 28, count three too many.
fn days_until_today(day: i64) -> i64 {
    let days = TODAY - day;
    if day < TODAY - 14 { days - 3 } else { days }
}
