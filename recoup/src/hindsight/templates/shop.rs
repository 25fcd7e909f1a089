//! Goals in the store: what was bought, as a wish for things of its description.

use serde_json::{Map, Value, json};

use super::Template;
use crate::hindsight::episode::Episode;
use crate::hindsight::facts::Facts;
use crate::hindsight::proposal::{Proposal, Wording};

/// See the module.
pub(super) struct Shop;

/// A line of the receipt, with what its product's page says.
struct Bought {
    id: String,
    noun: String,
    features: Vec<String>,
    options: Vec<(String, String)>,
    page: usize,
}

impl Template for Shop {
    fn propose(&self, episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
        let bought =
            episode.exchanges.iter().enumerate().find_map(|(at, exchange)| match exchange.called() {
                Some(("buy", _, shown)) => Some((at, shown.text)),
                _ => None,
            });
        let Some((at, receipt)) = bought else { return Vec::new() };
        let Some(paid) = receipt.lines().find_map(|line| line.strip_prefix("Paid: $")) else {
            return Vec::new();
        };
        let lines = receipt.lines().filter(|line| line.starts_with('['));
        let Some(things) = lines.map(|line| read(line, episode, at)).collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        let mut doubts = Vec::new();
        if things
            .iter()
            .enumerate()
            .any(|(at, thing)| things[..at].iter().any(|other| other.noun == thing.noun))
        {
            doubts.push("two things of one kind were bought, and a wish for both would be one for either");
        }
        let answer = format!("The order is placed; ${paid} were paid.");
        // More features with every wording.
        let mut proposals = Vec::new();
        for features in [2, 3, 4] {
            let mut text = Wording::new(facts).plain("Please order ");
            let mut needs = Vec::new();
            for (number, thing) in things.iter().enumerate() {
                text = text.plain(match (number, thing.noun.ends_with('s')) {
                    (0, true) => "",
                    (0, false) => "one ",
                    (_, true) => ", and ",
                    (_, false) => ", and one ",
                });
                text = text.shown_by(&thing.noun, thing.page);
                let wanted: Vec<&String> = thing.features.iter().take(features).collect();
                for (place, feature) in wanted.iter().enumerate() {
                    text =
                        text.plain(if place == 0 { " with " } else { " and " }).shown_by(feature, thing.page);
                }
                for (place, (option, value)) in thing.options.iter().enumerate() {
                    text = text.plain(if place == 0 { " (" } else { ", " }).shown_by(option, at);
                    text = text.plain(" ").shown_by(value, at);
                }
                text = text.plain(if thing.options.is_empty() { "" } else { ")" });
                let options: Map<String, Value> =
                    thing.options.iter().map(|(option, value)| (option.clone(), json!(value))).collect();
                needs.push(json!({ "product": thing.id, "noun": thing.noun, "features": wanted, "options": options }));
            }
            let text = text.plain(" for no more than $").shown_by(paid, at).plain(" in all.");
            let specification = json!({ "needs": needs, "limit": cents(paid) });
            proposals.push(text.done(at, answer.clone()).specified(specification).doubted(doubts.clone()));
        }
        proposals
    }

    fn resolve(&self, specification: &Value, _task: &Value) -> Option<Map<String, Value>> {
        let needs = specification["needs"].as_array()?;
        let family = if needs.len() == 1 { "single" } else { "bundle" };
        let need = |need: &Value| json!({ "noun": need["noun"], "features": need["features"], "options": need["options"], "best": "" });
        let keys = json!({
            "family": family,
            "needs": needs.iter().map(need).collect::<Vec<_>>(),
            "limit": specification["limit"].as_u64()?,
            "compare": family == "bundle",
        });
        keys.as_object().cloned()
    }
}

fn cents(paid: &str) -> Option<u64> {
    let (dollars, cents) = paid.split_once('.')?;
    dollars.parse::<u64>().ok()?.checked_mul(100)?.checked_add(cents.parse().ok()?)
}

/// A line such as `[B1] Lumo desk lamp with USB port, color: black, $49.00`, and the page of its product.
fn read(line: &str, episode: &Episode<'_>, until: usize) -> Option<Bought> {
    let (id, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let mark = format!("Product: {id}");
    let mut pages = episode.exchanges[..until].iter().enumerate().rev();
    let (page, text) = pages.find_map(|(at, exchange)| match exchange.called() {
        Some(("open", _, shown)) if shown.text.lines().any(|line| line == mark) => Some((at, shown.text)),
        _ => None,
    })?;
    let title = text.lines().next()?;
    let features = text.lines().find_map(|line| line.strip_prefix("Features: "))?;
    let features: Vec<String> = features.split(", ").map(str::to_owned).collect();
    // `Brand noun with feature`; a brand of several words joins them with `&`.
    let (named, _) = title.split_once(" with ")?;
    let words: Vec<&str> = named.split(' ').collect();
    let brand = if words.get(1) == Some(&"&") { 3 } else { 1 };
    let noun = words.get(brand..).filter(|noun| !noun.is_empty())?.join(" ");
    let chosen = rest.strip_prefix(title)?.rsplit_once(", $")?.0;
    let options = chosen.split(", ").filter(|piece| !piece.is_empty());
    let options = options.map(|piece| {
        let (option, value) = piece.split_once(": ")?;
        Some((option.to_owned(), value.to_owned()))
    });
    Some(Bought { id: id.to_owned(), noun, features, options: options.collect::<Option<_>>()?, page })
}
