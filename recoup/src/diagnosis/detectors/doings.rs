//! Doings: what an agent says in the first person that it has done, by the verb of one of its tools.
//!
//! The tools offered name what can be done: `return_items` gives "returned", `take` gives "taken". A
//! statement "I have returned W12" without a call of such a tool that went through for W12 is made up.

use std::ops::Range;

use super::Run;
use super::claims::claim;
use crate::diagnosis::actions::Action;
use crate::diagnosis::effects::{Effect, effect, words};
use crate::diagnosis::run::Message;
use crate::diagnosis::words::words as words_of;

/// Participles that the rules of spelling do not give.
const IRREGULAR: &[(&str, &str)] = &[
    ("buy", "bought"),
    ("cut", "cut"),
    ("give", "given"),
    ("pay", "paid"),
    ("put", "put"),
    ("run", "run"),
    ("send", "sent"),
    ("set", "set"),
    ("submit", "submitted"),
    ("take", "taken"),
    ("write", "written"),
];

/// Words of what a statement is about that are looked at.
const ABOUT_MAX: usize = 8;

/// A doing that is claimed: where it stands and the verb of the tools that do it.
pub(super) struct Doing {
    pub(super) range: Range<usize>,
    pub(super) verb: String,
    about: Vec<u64>,
}

/// The verbs of the tools offered that do more than look, each with the forms of its participle.
pub(super) fn doers(run: &Run<'_>) -> Vec<(String, Vec<String>)> {
    let tools = run.trajectory.tools.iter().filter(|tool| effect(&tool.name) != Effect::Read);
    let verbs = tools.filter_map(|tool| words(&tool.name).into_iter().next());
    verbs.map(|verb| (verb.clone(), participles(&verb))).collect()
}

/// The first doing of a message, whose text in ASCII lower case is `lower`, that no earlier call did and no
/// observation reports.
pub(super) fn undone(
    run: &Run<'_>,
    message: &Message<'_>,
    lower: &str,
    doers: &[(String, Vec<String>)],
) -> Option<Doing> {
    doers.iter().find_map(|(verb, participles)| {
        let range = participles.iter().find_map(|participle| claim(lower, participle, true))?;
        let doing = Doing { about: about(message.text, range.end), range, verb: verb.clone() };
        let mut before = run.actions.iter().take_while(|action| action.index < message.index);
        (!before.any(|action| doing.is_done_by(action) || doing.is_reported_by(action))).then_some(doing)
    })
}

impl Doing {
    /// Whether a call did this, or may have: a shell can do anything.
    pub(super) fn is_done_by(&self, action: &Action<'_>) -> bool {
        if !action.is_call {
            return true;
        }
        words(action.name).first() == Some(&self.verb)
            && !action.failed()
            && (self.about.is_empty() || words_of(action.raw).any(|word| self.about.contains(&word.hash)))
    }

    /// Whether an answer says that this is so.
    fn is_reported_by(&self, action: &Action<'_>) -> bool {
        let Some(seen) = &action.observation else { return false };
        let text = seen.text.to_lowercase();
        participles(&self.verb).iter().any(|participle| text.contains(participle.as_str()))
            && (self.about.is_empty() || words_of(seen.text).any(|word| self.about.contains(&word.hash)))
    }
}

/// Forms in which a verb's participle is written.
fn participles(verb: &str) -> Vec<String> {
    if let Some((_, participle)) = IRREGULAR.iter().find(|(known, _)| *known == verb) {
        return vec![(*participle).to_owned()];
    }
    let mut forms = Vec::new();
    if let Some(stem) = verb.strip_suffix('e') {
        forms.push(format!("{stem}ed"));
    } else {
        forms.push(format!("{verb}ed"));
        if let Some(last) = verb.chars().last() {
            forms.push(format!("{verb}{last}ed"));
        }
        forms.extend(verb.strip_suffix('y').map(|stem| format!("{stem}ied")));
    }
    forms
}

/// What a statement is about: the names with digits behind its verb, else its longer words.
fn about(text: &str, from: usize) -> Vec<u64> {
    let rest = text.get(from..).unwrap_or_default();
    let sentence = rest.split(['.', '!', '?', '\n', ';']).next().unwrap_or_default();
    let found: Vec<_> = words_of(sentence).take(ABOUT_MAX).collect();
    let named: Vec<u64> = found.iter().filter(|word| word.has_digit).map(|word| word.hash).collect();
    if !named.is_empty() {
        return named;
    }
    found.iter().filter(|word| word.range.len() >= 4).map(|word| word.hash).collect()
}

#[cfg(test)]
mod tests {
    use super::participles;

    #[test]
    fn participles_follow_spelling() {
        assert!(participles("cancel").contains(&"cancelled".to_owned()));
        assert!(participles("exchange").contains(&"exchanged".to_owned()));
        assert!(participles("modify").contains(&"modified".to_owned()));
        assert_eq!(participles("take"), ["taken"]);
    }
}
