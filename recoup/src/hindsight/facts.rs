//! Outcome facts: what a run established, each an atomic claim with a citation into an observation.
//!
//! A JSON result is flattened to one fact a scalar. A text gives its `key: value` lines, its numbers with
//! their unit and the words before them, its identifiers, its quoted names. What failed or came back
//! empty is a limitation: it may be told, and no goal may rest on it.

use std::collections::BTreeSet;

use super::episode::{Episode, Shown};
use super::spans::scalars;
use super::tokens::{offered, stem, tokens, words};
use crate::trajectory::Citation;

/// Most facts of one run; a longer run is read up to there.
const FACTS_MAX: usize = 4_000;
/// Longest text of one observation that is read, in bytes.
const TEXT_MAX: usize = 64 << 10;
/// Longest quote of a model, in bytes: a name or a short statement.
const QUOTE_MAX: usize = 160;

/// What kind of thing a fact states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// A member of a JSON result or of a `key: value` line.
    Member,
    /// A number in prose.
    Number,
    /// An identifier, a name or a quoted text in prose.
    Entity,
    /// A phrase that a template looked up.
    Phrase,
    /// Words that a model quoted.
    Quoted,
    /// A failure or an empty result.
    Limitation,
}

/// An atomic claim with its citation.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Kind.
    pub kind: FactKind,
    /// The exchange that showed it; `None` for what the run opened with.
    pub exchange: Option<usize>,
    /// What it is about: the keys that lead to it, or the words before it.
    pub path: Vec<String>,
    /// What it states, as it stands there.
    pub value: String,
    /// The bytes.
    pub citation: Citation,
}

/// The facts of one run.
pub struct Facts<'e, 'a> {
    episode: &'e Episode<'a>,
    list: Vec<Fact>,
}

impl Fact {
    /// The fact in one line, for a reader.
    pub fn line(&self) -> String {
        if self.path.is_empty() {
            self.value.clone()
        } else {
            // Keys lead to a member; words of prose are read in a row.
            let joint = if self.kind == FactKind::Member { "/" } else { " " };
            format!("{} = {}", self.path.join(joint), self.value)
        }
    }

    /// What keys and positions stand above it: facts of one record share them.
    pub fn record(&self) -> &[String] {
        self.path.split_last().map_or(&[], |(_, above)| above)
    }

    /// Values that it offers: of what it states, and of the keys above it.
    pub fn offers(&self) -> BTreeSet<String> {
        let mut found = offered(&self.value);
        found.insert(self.value.clone());
        found.extend(self.path.iter().flat_map(|key| offered(key)));
        found
    }

    /// Stems of the words that it holds, keys included.
    pub fn stems(&self) -> BTreeSet<String> {
        let keys = self.path.iter().flat_map(|key| words(key));
        words(&self.value).chain(keys).map(|word| stem(&word)).collect()
    }
}

impl<'e, 'a> Facts<'e, 'a> {
    /// What a run established.
    pub fn of(episode: &'e Episode<'a>) -> Self {
        let mut list = Vec::new();
        for (exchange, shown) in episode.shown() {
            if list.len() >= FACTS_MAX {
                break;
            }
            let text = &shown.text[..shown.text.floor_char_boundary(TEXT_MAX)];
            let is_empty = matches!(text.trim(), "" | "[]" | "{}" | "null" | "None");
            let mut push = |kind, path: Vec<String>, start: usize, end: usize| {
                if start < end && list.len() < FACTS_MAX {
                    let value = text[start..end].to_owned();
                    list.push(Fact { kind, exchange, path, value, citation: shown.cite(start, end) });
                }
            };
            if shown.failed || is_empty {
                let end = text.find('\n').unwrap_or(text.len());
                push(FactKind::Limitation, Vec::new(), 0, end);
                continue;
            }
            let members = scalars(text);
            if members.is_empty() {
                prose(text, &mut push);
            } else {
                for member in members {
                    push(FactKind::Member, member.path, member.range.start, member.range.end);
                }
            }
        }
        Self { episode, list }
    }

    /// All of them, in order.
    pub fn all(&self) -> &[Fact] {
        &self.list
    }

    /// One of them.
    pub fn get(&self, index: usize) -> Option<&Fact> {
        self.list.get(index)
    }

    /// The fact that states a phrase word for word in what an exchange showed, made where the phrase is only a
    /// part of what is stated there. `None` where it does not stand there.
    pub fn cite(&mut self, phrase: &str, exchange: Option<usize>) -> Option<usize> {
        if phrase.is_empty() {
            return None;
        }
        let known = self.list.iter().position(|fact| {
            fact.exchange == exchange && fact.kind != FactKind::Limitation && fact.value == phrase
        });
        if known.is_some() {
            return known;
        }
        let (_, shown) = self.episode.shown().find(|(at, _)| *at == exchange)?;
        self.list.push(stated(FactKind::Phrase, exchange, shown, phrase)?);
        Some(self.list.len() - 1)
    }

    /// The fact that a model quotes: a part of one line of prose, in a message that is named and reports no failure. `None`
    /// where the words do not stand there.
    pub(super) fn quote(&mut self, words: &str, is_named: impl Fn(usize) -> bool) -> Option<usize> {
        if words.len() > QUOTE_MAX || words.contains('\n') || !words.contains(char::is_alphanumeric) {
            return None;
        }
        let named = self.episode.shown().filter(|(_, shown)| is_named(shown.node) && !shown.failed);
        // What stands in JSON has a label, and is a fact with it.
        let mut prose = named.filter(|(_, shown)| scalars(shown.text).is_empty());
        let fact = prose.find_map(|(at, shown)| stated(FactKind::Quoted, at, shown, words))?;
        let is_known = |known: &Fact| {
            known.exchange == fact.exchange && known.kind != FactKind::Limitation && known.value == fact.value
        };
        if let Some(known) = self.list.iter().position(is_known) {
            return Some(known);
        }
        self.list.push(fact);
        Some(self.list.len() - 1)
    }

    /// The same, in the latest of the exchanges up to one that holds the phrase.
    pub fn cite_by(&mut self, phrase: &str, last: usize) -> Option<usize> {
        let shown: Vec<Option<usize>> =
            self.episode.shown().map(|(at, _)| at).filter(|at| at.is_none_or(|at| at <= last)).collect();
        shown.into_iter().rev().find_map(|at| self.cite(phrase, at))
    }
}

/// The fact that a phrase states where it stands in what an exchange showed.
fn stated(kind: FactKind, exchange: Option<usize>, shown: &Shown<'_>, phrase: &str) -> Option<Fact> {
    let (start, end) = find_whole(shown.text, phrase)?;
    let value = shown.text[start..end].to_owned();
    Some(Fact { kind, exchange, path: Vec::new(), value, citation: shown.cite(start, end) })
}

/// Where a phrase stands in a text with no letter or digit joined to it, case kept.
fn find_whole(text: &str, phrase: &str) -> Option<(usize, usize)> {
    let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    memchr::memmem::find_iter(text.as_bytes(), phrase.as_bytes()).find_map(|start| {
        let end = start + phrase.len();
        let (first, last) = (phrase.chars().next(), phrase.chars().next_back());
        let before = joins(first) && joins(text[..start].chars().next_back());
        let after = joins(last) && joins(text[end..].chars().next());
        (!before && !after).then_some((start, end))
    })
}

/// The facts of prose, line by line.
fn prose(text: &str, push: &mut impl FnMut(FactKind, Vec<String>, usize, usize)) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end();
        if let Some((key, value)) = body.split_once(": ")
            && key.split_whitespace().count() <= 4
            && !value.trim().is_empty()
        {
            let from = start + key.len() + 2;
            push(FactKind::Member, vec![key.trim().to_lowercase()], from, start + body.len());
        }
        let found = tokens(body);
        for (at, token) in found.iter().enumerate().filter(|(_, token)| token.is_value) {
            let word = &body[token.range.clone()];
            let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || b".,%".contains(&byte));
            // The words around a number say what it counts: up to three before it, its unit after it.
            let before: Vec<String> = found[at.saturating_sub(3)..at]
                .iter()
                .filter(|before| !before.is_value)
                .map(|before| body[before.range.clone()].to_lowercase())
                .collect();
            let mut path = before;
            if let Some(unit) = found.get(at + 1).filter(|next| is_number && !next.is_value) {
                path.push(body[unit.range.clone()].to_lowercase());
            }
            let kind = if is_number { FactKind::Number } else { FactKind::Entity };
            push(kind, path, start + token.range.start, start + token.range.end);
        }
        quoted(body, &mut |from, to| push(FactKind::Entity, Vec::new(), start + from, start + to));
        start += line.len();
    }
}

/// Texts between quotes of one kind, within a line.
fn quoted(line: &str, push: &mut impl FnMut(usize, usize)) {
    for quote in ['"', '`'] {
        let marks: Vec<usize> = line.match_indices(quote).map(|(at, _)| at).collect();
        for pair in marks.chunks_exact(2) {
            if pair[1] > pair[0] + 1 {
                push(pair[0] + 1, pair[1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FactKind, Facts};
    use crate::diagnosis::fixture::{call, chat, result, user};
    use crate::hindsight::episode::Episode;

    #[test]
    fn every_fact_cites_its_bytes() {
        let run = chat(vec![
            user("go"),
            call("get_order", r##"{"id":"#W1"}"##),
            result(r##"{"order":{"id":"#W1","total":12.50},"gone":null}"##),
            call("look", "{}"),
            result("Rating: 4.2 of 5\nThe \"blue vase\" weighs 3 kg at most."),
            call("get_order", r##"{"id":"#W2"}"##),
            result("Error: order #W2 not found"),
        ]);
        let episode = Episode::read(&run);
        let mut facts = Facts::of(&episode);
        for fact in facts.all() {
            assert_eq!(fact.citation.quote(&run), Ok(fact.value.as_str()));
        }
        let lines: Vec<String> = facts.all().iter().map(super::Fact::line).collect();
        assert_eq!(lines[..3], ["order/id = #W1", "order/total = 12.50", "rating = 4.2 of 5"]);
        assert!(lines.contains(&"blue vase weighs kg = 3".to_owned()), "{lines:?}");
        assert!(lines.contains(&"blue vase".to_owned()));
        assert_eq!(facts.all().last().unwrap().kind, FactKind::Limitation);
        let cited = facts.cite("weighs 3 kg", Some(1)).unwrap();
        assert_eq!(facts.get(cited).unwrap().citation.quote(&run), Ok("weighs 3 kg"));
        assert_eq!(facts.cite("eighs 3", Some(1)), None);
        let node = facts.all().iter().find(|fact| fact.exchange == Some(1)).unwrap().citation.node;
        let quoted = facts.quote("weighs 3 kg at most", |at| at == node).unwrap();
        assert_eq!(facts.get(quoted).unwrap().kind, FactKind::Quoted);
        assert_eq!(facts.quote("weighs 3 kg at most", |at| at == node), Some(quoted));
        for (words, at) in
            [("weighs 4 kg", node), ("weighs 3 kg", node + 1), ("not found", node + 2), ("#W1", node - 2)]
        {
            assert_eq!(facts.quote(words, |other| other == at), None, "{words}");
        }
        assert_eq!(facts.cite_by("#W1", 2).and_then(|at| facts.get(at)).unwrap().exchange, Some(0));
    }
}
