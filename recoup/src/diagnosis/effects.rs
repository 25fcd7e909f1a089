//! Effects: whether an action looks, changes something, submits or hands over, by its tool's name.

use crate::trajectory::Tool;

/// What an action does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only looks.
    Read,
    /// It changes something that stays changed.
    Mutate,
    /// It hands in the result.
    Submit,
    /// It gives the case to a person.
    Handoff,
    /// The name does not say (a shell, a browser click).
    Unclear,
}

const READS: &[&str] = &[
    "get",
    "list",
    "search",
    "find",
    "read",
    "view",
    "show",
    "look",
    "lookup",
    "fetch",
    "query",
    "check",
    "calculate",
    "think",
    "open",
    "cat",
    "grep",
    "ls",
    "describe",
    "count",
    "retrieve",
    "browse",
    "verify",
    "inspect",
    "scroll",
    "goto",
    "retrieval",
    "plan",
    "info",
    "details",
];

const MUTATIONS: &[&str] = &[
    "book", "cancel", "update", "create", "delete", "modify", "send", "exchange", "return", "add", "remove",
    "pay", "write", "edit", "insert", "replace", "set", "place", "order", "buy", "purchase", "refund",
    "enable", "disable", "toggle", "grant", "revoke", "reset", "apply", "patch", "change", "put", "post",
    "upload", "move", "rename", "reboot", "suspend", "resume", "refuel", "schedule", "register", "assign",
];

const SUBMISSIONS: &[&str] = &["submit", "finish", "complete", "answer", "done", "submission"];

const HANDOFFS: &[&str] = &["transfer", "escalate", "handoff"];

/// The participle by which an agent claims to have made a change, and the verbs of tools that make it.
pub(crate) const CLAIMS: &[(&str, &[&str])] = &[
    ("booked", &["book", "reserve", "purchase", "order", "create"]),
    ("cancelled", &["cancel", "delete", "modify"]),
    ("canceled", &["cancel", "delete", "modify"]),
    ("exchanged", &["exchange", "modify"]),
    ("refunded", &["refund", "cancel", "return"]),
    ("upgraded", &["update", "upgrade", "modify", "change"]),
    ("updated", &["update", "modify", "change", "set", "edit"]),
    ("modified", &["modify", "update", "change", "edit"]),
    ("transferred", &["transfer", "send", "move", "pay"]),
    ("issued", &["send", "issue", "create", "refund", "grant"]),
    ("deleted", &["delete", "remove"]),
    ("purchased", &["purchase", "buy", "order", "book", "place"]),
    ("emailed", &["send", "email", "mail"]),
];

/// The words of a tool's name: `bookFlight` and `book_flight` both give `book`, `flight`.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous = ' ';
    for c in name.chars() {
        if !c.is_alphanumeric() {
            previous = ' ';
            continue;
        }
        if previous == ' ' || (c.is_uppercase() && previous.is_lowercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
        previous = c;
    }
    words
}

/// What a tool is for: its name without the way it goes about it, so that `find_user_by_email` and
/// `find_user_by_name` serve one purpose.
pub(crate) fn purpose(name: &str) -> &str {
    match name.find("_by_").or_else(|| name.find("By")) {
        Some(way) if way > 0 => &name[..way],
        _ => name,
    }
}

/// What an action of this name does. The first word that says something decides, so `get_order`
/// reads and `order_status_update`, whose first verb orders, changes.
pub fn effect(name: &str) -> Effect {
    for word in words(name) {
        let word = word.as_str();
        if HANDOFFS.contains(&word) && name.to_lowercase().contains("human") {
            return Effect::Handoff;
        }
        if READS.contains(&word) {
            return Effect::Read;
        }
        if SUBMISSIONS.contains(&word) {
            return Effect::Submit;
        }
        if MUTATIONS.contains(&word) || HANDOFFS.contains(&word) {
            return Effect::Mutate;
        }
    }
    Effect::Unclear
}

/// What a call of a tool does: as who offers it declares, else by its name. One that is said to change
/// something and whose name only looks (`open` a door) changes something.
pub(crate) fn effect_of(name: &str, tools: &[Tool]) -> Effect {
    let by_name = effect(name);
    let declared = tools.iter().find(|tool| tool.name == name).and_then(|tool| tool.read_only);
    match (declared, by_name) {
        (Some(true), _) => Effect::Read,
        (Some(false), Effect::Read | Effect::Unclear) => Effect::Mutate,
        _ => by_name,
    }
}

#[cfg(test)]
mod tests {
    use super::{Effect, effect, effect_of, purpose, words};
    use crate::trajectory::Tool;

    #[test]
    fn the_way_to_find_something_is_not_the_purpose() {
        assert_eq!(purpose("find_user_id_by_email"), purpose("find_user_id_by_name_zip"));
        assert_eq!(purpose("getUserByMail"), purpose("getUserByName"));
        assert_ne!(purpose("get_order"), purpose("get_user"));
    }

    #[test]
    fn what_is_declared_goes_before_the_name() {
        let tool = |name: &str, read_only| Tool {
            name: name.to_owned(),
            description: String::new(),
            parameters: None,
            read_only,
        };
        let tools = [
            tool("unlock", Some(false)),
            tool("open", Some(false)),
            tool("update_view", Some(true)),
            tool("submit_total", Some(false)),
            tool("take", None),
        ];
        let effects = ["unlock", "open", "update_view", "submit_total", "take", "get_x"]
            .map(|name| effect_of(name, &tools));
        let [unlock, open, view, submit, take, get] = effects;
        assert_eq!([unlock, open, view], [Effect::Mutate, Effect::Mutate, Effect::Read]);
        assert_eq!([submit, take, get], [Effect::Submit, Effect::Unclear, Effect::Read]);
    }

    #[test]
    fn names_tell_what_a_tool_does() {
        assert_eq!(words("bookFlight_now"), ["book", "flight", "now"]);
        assert_eq!(effect("get_reservation_details"), Effect::Read);
        assert_eq!(effect("update_reservation_flights"), Effect::Mutate);
        assert_eq!(effect("transfer_to_human_agents"), Effect::Handoff);
        assert_eq!(effect("transfer_funds"), Effect::Mutate);
        assert_eq!(effect("Finish"), Effect::Submit);
        assert_eq!(effect("bash"), Effect::Unclear);
    }
}
