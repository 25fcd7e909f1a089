//! Goals in the house of rooms: things that were put, posted, made or found.

use serde_json::{Map, Value, json};

use super::Template;
use crate::hindsight::episode::{Act, Episode};
use crate::hindsight::facts::Facts;
use crate::hindsight::proposal::{Proposal, Wording};

/// See the module.
pub(super) struct Quest;

/// What a food's name carries in front of it.
const LOOKS: &[&str] =
    &["sliced", "chopped", "diced", "raw", "fried", "roasted", "grilled", "boiled", "burnt"];

/// Something that was done to a thing.
enum Deed {
    /// It lies there now; a slot took it.
    Put { item: String, holder: String, room: String, slot: bool },
    /// It is held.
    Taken { item: String, room: String },
    /// It was made.
    Made { dish: String, room: String },
    /// It is gone.
    Lost { item: String },
}

impl Template for Quest {
    fn propose(&self, episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
        let deeds = deeds(episode);
        let mut proposals = Vec::new();
        for (at, deed) in deeds.iter().rev() {
            if let Deed::Made { dish, room } = deed {
                let wanted = json!({ "made": dish });
                let text = Wording::new(facts).plain("Make the ").shown_by(dish, *at).plain(" in the ");
                let text =
                    text.shown(room, *at).plain(" by the recipe in the ").shown("cookbook", *at).plain(".");
                proposals.push(text.done(*at, format!("The {dish} is made.")).specified(wanted));
            }
        }
        proposals.extend(placed(&deeds, facts));
        proposals.extend(held(&deeds, episode, facts));
        proposals
    }

    fn resolve(&self, specification: &Value, task: &Value) -> Option<Map<String, Value>> {
        // A key is shown with the mark on it, which its name leaves out.
        let number = |list: &str, name: &str| {
            let is_it = |entry: &Value| {
                entry["name"] == name
                    || entry["shown"].as_str().is_some_and(|shown| self::name(shown) == name)
            };
            task.get(list)?.as_array()?.iter().position(is_it)
        };
        let (family, wanted) = if let Some(dish) = specification["made"].as_str() {
            ("cook", vec![json!([number("items", dish)?, -1])])
        } else {
            let pairs = specification["placed"].as_array()?.iter();
            let wanted = pairs.map(|pair| {
                let (item, holder) = (pair[0].as_str()?, pair[1].as_str()?);
                let holder = if holder == HANDS { 0 } else { number("holders", holder)? };
                Some(json!([number("items", item)?, holder]))
            });
            ("fetch", wanted.collect::<Option<Vec<_>>>()?)
        };
        let keys = json!({ "family": family, "wanted": wanted });
        keys.as_object().cloned()
    }
}

/// The holder that a specification calls the hands.
const HANDS: &str = "hands";

/// Things put somewhere, the last first, those that lie together in one goal.
fn placed(deeds: &[(usize, Deed)], facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (last, (at, deed)) in deeds.iter().enumerate().rev() {
        let Deed::Put { item, holder, room, slot } = deed else { continue };
        let answer = format!("The {item} is {} the {holder} in the {room}.", if *slot { "in" } else { "at" });
        // What else lies there since it was put there.
        let mut others: Vec<(usize, &String)> = Vec::new();
        for (before, deed) in deeds[..last].iter().enumerate() {
            if let (when, Deed::Put { item: other, holder: place, .. }) = deed
                && place == holder
                && other != item
                && !deeds[before + 1..last].iter().any(|(_, later)| moves(later, other))
            {
                others.retain(|(_, known)| *known != other);
                others.push((*when, other));
            }
        }
        let wanted = |others: &[(usize, &String)]| {
            let items = others.iter().map(|(_, other)| *other).chain([item]);
            json!({ "placed": items.map(|item| json!([item, holder])).collect::<Vec<_>>() })
        };
        let mut wordings = Vec::new();
        if !others.is_empty() {
            wordings.push((others.clone(), false));
        }
        wordings.push((Vec::new(), false));
        wordings.push((Vec::new(), true));
        for (others, with_origin) in wordings {
            let mut text = Wording::new(facts).plain("Please bring ");
            for (when, other) in &others {
                text = text.plain("the ").shown_by(other, *when).plain(" and ");
            }
            text = text.plain("the ").shown_by(item, *at);
            if with_origin && let Some((from, origin)) = origin(deeds, last, item) {
                text = text.plain(" from the ").shown(origin, from);
            }
            text = text.plain(" to the ").shown_by(holder, *at).plain(" in the ").shown(room, *at).plain(".");
            let specification = wanted(&others);
            proposals.push(text.done(*at, answer.clone()).specified(specification));
        }
    }
    proposals
}

/// Where a thing was taken before a deed.
fn origin<'d>(deeds: &'d [(usize, Deed)], before: usize, thing: &str) -> Option<(usize, &'d str)> {
    deeds[..before].iter().rev().find_map(|(at, deed)| match deed {
        Deed::Taken { item, room } if item == thing => Some((*at, room.as_str())),
        _ => None,
    })
}

/// Things taken: the longest ways first, which are the last.
fn held(deeds: &[(usize, Deed)], episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (last, (at, deed)) in deeds.iter().enumerate().rev() {
        let Deed::Taken { item, room } = deed else { continue };
        let mut also: Vec<(usize, &String, &String)> = Vec::new();
        for (before, deed) in deeds[..last].iter().enumerate() {
            if let (when, Deed::Taken { item: other, room }) = deed
                && other != item
                && !deeds[before + 1..last].iter().any(|(_, later)| moves(later, other))
            {
                also.retain(|(_, known, _)| *known != other);
                also.push((*when, other, room));
            }
        }
        let answer = format!("I have the {item} now.");
        let spot = spot(episode, *at, item);
        let wordings = [
            (None, &also[..0]),
            (spot.as_ref(), &also[..0]),
            (spot.as_ref(), &also[also.len().saturating_sub(1)..]),
            (spot.as_ref(), &also[..]),
        ];
        for (spot, also) in wordings {
            let mut text = Wording::new(facts).plain("Find the ").shown_by(item, *at);
            if let Some(holder) = spot {
                text = text.plain(" at the ").shown(holder, *at);
            }
            text = text.plain(" in the ").shown(room, *at);
            for (when, other, room) in also {
                text = text.plain(" and the ").shown_by(other, *when).plain(" in the ").shown(room, *when);
            }
            let text = text.plain(", and keep what you find in your hands.");
            let items = also.iter().map(|(_, other, _)| *other).chain([item]);
            let placed: Vec<Value> = items.map(|item| json!([item, HANDS])).collect();
            proposals.push(text.done(*at, answer.clone()).specified(json!({ "placed": placed })));
        }
    }
    proposals
}

/// What a thing lay on or in when it was last seen before it was taken.
fn spot(episode: &Episode<'_>, taken: usize, thing: &str) -> Option<String> {
    let shown = episode.shown().filter(|(at, shown)| at.is_none_or(|at| at < taken) && !shown.failed);
    let text = shown.filter(|(_, shown)| shown.text.contains(thing)).last()?.1.text;
    let before = &text[..text.find(thing)?];
    let on = before.rfind(" On the ").map(|start| start + " On the ".len());
    let inside = before.rfind(". In it: ");
    let holder = match (on, inside) {
        (on, Some(end)) if on.is_none_or(|on| on < end) => {
            let start = before[..end].rfind("open ").map(|start| start + "open ".len())?;
            before[start..end].trim_start_matches("the ")
        }
        (Some(start), _) => before[start..].split(':').next()?,
        _ => return None,
    };
    (!holder.is_empty() && !holder.contains(['.', ':', ','])).then(|| holder.to_owned())
}

/// Whether a deed moves a thing away from where it was.
fn moves(deed: &Deed, thing: &str) -> bool {
    match deed {
        Deed::Put { item, .. } | Deed::Taken { item, .. } => item == thing,
        // What an argument calls a thing leaves out the mark on it.
        Deed::Lost { item } => thing
            .strip_prefix(item.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(" marked ")),
        Deed::Made { .. } => false,
    }
}

/// What was done to things, each with its exchange.
fn deeds(episode: &Episode<'_>) -> Vec<(usize, Deed)> {
    let mut room = episode.opening.as_ref().and_then(|shown| room_of(shown.text)).unwrap_or_default();
    let mut deeds = Vec::new();
    for (at, exchange) in episode.exchanges.iter().enumerate() {
        if let Act::Call { tool: "unlock", .. } = exchange.act
            && exchange.shown.as_ref().is_some_and(|shown| shown.text.contains("it snaps in two"))
            && let Some(key) = exchange.argument("key")
        {
            deeds.push((at, Deed::Lost { item: name(key) }));
        }
        let Some((tool, _, shown)) = exchange.called() else { continue };
        if let Some(entered) = room_of(shown.text) {
            room = entered;
        }
        let here = || room.clone();
        if tool == "unlock"
            && let Some(key) = exchange.argument("key")
        {
            deeds.push((at, Deed::Lost { item: name(key) }));
        }
        let Some(sentence) = shown.text.strip_prefix("You ") else { continue };
        let deed = match tool {
            "take" => sentence
                .strip_prefix("take ")
                .map(|item| Deed::Taken { item: name(item.trim_end_matches('.')), room: here() }),
            "put" => put(sentence, &here()),
            "eat" => sentence
                .strip_prefix("eat ")
                .and_then(|rest| rest.split_once('.'))
                .map(|(item, _)| Deed::Lost { item: name(item) }),
            "combine" => sentence.split_once("It becomes the ").and_then(|(_, rest)| {
                let (dish, _) = rest.split_once(", and it smells right")?;
                Some(Deed::Made { dish: dish.to_owned(), room: here() })
            }),
            _ => None,
        };
        // Whatever is combined is used up.
        if tool == "combine" {
            let held: Vec<String> = deeds.iter().filter_map(|(_, deed)| taken(deed)).collect();
            deeds.extend(held.into_iter().map(|item| (at, Deed::Lost { item })));
        }
        deeds.extend(deed.map(|deed| (at, deed)));
    }
    deeds
}

fn taken(deed: &Deed) -> Option<String> {
    match deed {
        Deed::Taken { item, .. } => Some(item.clone()),
        _ => None,
    }
}

fn put(sentence: &str, room: &str) -> Option<Deed> {
    if let Some((item, rest)) = sentence.strip_prefix("push ").and_then(|rest| rest.split_once(" into the "))
    {
        let (slot, _) = rest.split_once(". ")?;
        return Some(Deed::Put {
            item: name(item),
            holder: slot.to_owned(),
            room: room.to_owned(),
            slot: true,
        });
    }
    let lost = sentence
        .strip_prefix("let go of ")
        .or_else(|| sentence.strip_prefix("set "))
        .map(|rest| rest.split(['.', ',']).next().unwrap_or(rest))
        .map(|item| item.strip_suffix(" down").unwrap_or(item));
    if let Some(item) = lost {
        return Some(Deed::Lost { item: name(item) });
    }
    let rest = sentence.strip_prefix("put ")?.strip_suffix('.')?;
    let (item, holder) = rest.split_once(" on the ").or_else(|| rest.split_once(" into the "))?;
    if holder == "floor" {
        return Some(Deed::Lost { item: name(item) });
    }
    Some(Deed::Put { item: name(item), holder: holder.to_owned(), room: room.to_owned(), slot: false })
}

/// The room that a view shows: `-= Hall =-`, then `You are in the hall.`
fn room_of(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("=-\nYou are in the ")?;
    Some(rest.split_once('.')?.0.to_owned())
}

/// A thing's name without its article and, for food, without how it is prepared.
fn name(shown: &str) -> String {
    let mut name = shown.trim();
    for article in ["the ", "an ", "a "] {
        name = name.strip_prefix(article).unwrap_or(name);
    }
    while let Some((word, rest)) = name.split_once(' ')
        && LOOKS.contains(&word)
    {
        name = rest;
    }
    name.to_owned()
}
