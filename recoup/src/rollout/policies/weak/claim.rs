//! Words for what a tool does, as an agent says that it has done it.

/// Verbs that do not take `-ed`.
const IRREGULAR: &[(&str, &str)] = &[
    ("buy", "bought"),
    ("cut", "cut"),
    ("find", "found"),
    ("get", "fetched"),
    ("give", "given"),
    ("go", "gone"),
    ("pay", "paid"),
    ("put", "put"),
    ("read", "read"),
    ("run", "run"),
    ("send", "sent"),
    ("set", "set"),
    ("submit", "submitted"),
    ("take", "taken"),
    ("write", "written"),
];

/// `I have cancelled W123.` for a call of `cancel_order` about it.
pub(super) fn claim(tool: &str, about: Option<&str>) -> String {
    let verb = tool.split(['_', '-', '.']).next().unwrap_or(tool);
    let done = match IRREGULAR.iter().find(|(known, _)| *known == verb) {
        Some((_, participle)) => (*participle).to_owned(),
        None if verb.ends_with('e') => format!("{verb}d"),
        None if verb.ends_with("el") => format!("{verb}led"),
        None if verb.ends_with('y') && !verb.ends_with("oy") => format!("{}ied", &verb[..verb.len() - 1]),
        None => format!("{verb}ed"),
    };
    format!("I have {done} {}.", about.unwrap_or("it"))
}

#[cfg(test)]
mod tests {
    use super::claim;

    #[test]
    fn verbs_take_their_form() {
        let said: Vec<String> = ["cancel_order", "put", "modify-item", "update", "return_items"]
            .iter()
            .map(|tool| claim(tool, Some("W1")))
            .collect();
        assert_eq!(
            said,
            [
                "I have cancelled W1.",
                "I have put W1.",
                "I have modified W1.",
                "I have updated W1.",
                "I have returned W1."
            ]
        );
    }
}
