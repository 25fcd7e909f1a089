//! `related`: what a model's goal puts together stood together in the run.
//!
//! * A goal that does something (it uses the verb of a tool) needs a call of that tool that succeeded, and each
//!   clause of it must fit one such call: its values are arguments of the call, its words stand in the
//!   arguments, in the tool's name or in a short answer.
//! * A goal that only asks must rest on one observation: its facts stand in one record, its values are
//!   theirs or arguments of the call that showed them, and a number is what the words beside it are about.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::grounded::name_stems;
use super::{Gate, Ground};
use crate::hindsight::episode::{Act, Exchange};
use crate::hindsight::facts::{Fact, FactKind};
use crate::hindsight::proposal::{Proposal, Source};
use crate::hindsight::tokens::{canonical, is_plain, offered, stem, stems, tokens, values, words};

/// See the module.
pub(super) struct Related;

/// Longest answer whose words a clause may use beside the arguments.
const SHORT_ANSWER: usize = 200;

impl Gate for Related {
    fn name(&self) -> &'static str {
        "related"
    }

    fn check(&self, proposal: &Proposal, ground: &Ground<'_>) -> Result<(), String> {
        if proposal.source != Source::Model {
            return Ok(());
        }
        let verbs = verbs(ground);
        let used: Vec<&String> = {
            let goal: BTreeSet<String> = words(&proposal.goal).map(|word| stem(&word)).collect();
            verbs.iter().filter(|verb| goal.contains(*verb)).collect()
        };
        if used.is_empty() {
            return asked(proposal, ground);
        }
        let done: Vec<&Exchange<'_>> = ground.episode.exchanges[..=last(proposal, ground)]
            .iter()
            .filter(|exchange| {
                exchange
                    .called()
                    .is_some_and(|(tool, ..)| verb(tool).is_some_and(|verb| used.contains(&&verb)))
            })
            .collect();
        for verb in &used {
            if !done.iter().any(|exchange| {
                exchange.called().and_then(|(tool, ..)| self::verb(tool)).as_ref() == Some(verb)
            }) {
                return Err(format!("the run has not done `{verb}` with success"));
            }
        }
        // A clause without a verb goes on about the calls of the one before it.
        let mut meant: Vec<&Exchange<'_>> = Vec::new();
        for clause in clauses(&proposal.goal) {
            let opens = words(&clause).any(|word| used.contains(&&stem(&word)));
            let calls = if opens || meant.is_empty() { &done } else { &meant };
            let fitting: Vec<&Exchange<'_>> =
                calls.iter().copied().filter(|exchange| fits(&clause, exchange)).collect();
            if fitting.is_empty() {
                return Err(format!("no call that was made fits `{}`", clause.trim()));
            }
            meant = fitting;
        }
        Ok(())
    }
}

fn last(proposal: &Proposal, ground: &Ground<'_>) -> usize {
    proposal.last.min(ground.episode.exchanges.len().saturating_sub(1))
}

/// Verbs of the tools that were offered or called: the first words of their names, unless they only ask.
fn verbs(ground: &Ground<'_>) -> BTreeSet<String> {
    let offered = ground.episode.run.tools.iter().map(|tool| tool.name.as_str());
    let called = ground.episode.exchanges.iter().filter_map(|exchange| match &exchange.act {
        Act::Call { tool, .. } => Some(*tool),
        Act::Say(_) => None,
    });
    offered.chain(called).filter_map(verb).collect()
}

fn verb(tool: &str) -> Option<String> {
    let spaced: String = tool.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let word = words(&spaced).next()?;
    (!is_plain(&word)).then(|| name_stems(tool).first().cloned()).flatten()
}

/// A goal's clauses.
fn clauses(goal: &str) -> Vec<String> {
    let mut clauses = vec![goal.to_owned()];
    for joint in [". ", "; ", ", ", " and ", " then ", " or ", "\n"] {
        clauses = clauses.iter().flat_map(|clause| clause.split(joint)).map(str::to_owned).collect();
    }
    clauses.retain(|clause| clause.contains(char::is_alphanumeric));
    clauses
}

/// Whether all that a clause says stands in one call.
fn fits(clause: &str, exchange: &Exchange<'_>) -> bool {
    let Some((tool, arguments, shown)) = exchange.called() else { return false };
    let mut texts = Vec::new();
    collect(arguments, &mut texts);
    let is_bare = texts.is_empty();
    let short = is_bare || shown.text.len() <= SHORT_ANSWER;
    // An argument says one thing once: `10` is not the start of `10:00`, and one name is not two parties.
    let mut exact: BTreeMap<String, usize> = BTreeMap::new();
    for value in texts.iter().flat_map(|text| whole(text)) {
        *exact.entry(value).or_default() += 1;
    }
    if is_bare {
        exact.extend(offered(shown.text).into_iter().map(|value| (value, usize::MAX)));
    }
    let mut held: BTreeSet<String> = name_stems(tool).into_iter().collect();
    held.extend(texts.iter().flat_map(|text| words(text)).map(|word| stem(&word)));
    if let Some(members) = arguments.as_object() {
        held.extend(members.keys().flat_map(|key| name_stems(key)));
    }
    if short {
        held.extend(words(shown.text).map(|word| stem(&word)));
    }
    let said = whole(clause);
    values(clause).iter().all(|value| {
        let times = said.iter().filter(|said| *said == value).count();
        exact.get(value).is_some_and(|held| times <= *held)
    }) && stems(clause).iter().all(|word| held.contains(word))
}

/// The tokens of a text, none taken apart, in the form in which values are compared.
fn whole(text: &str) -> Vec<String> {
    tokens(text).iter().map(|token| canonical(&text[token.range.clone()])).collect()
}

/// The scalars of a value as texts.
fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect(member, texts)),
        Value::Bool(_) | Value::Null => {}
    }
}

/// A goal that only asks.
fn asked(proposal: &Proposal, ground: &Ground<'_>) -> Result<(), String> {
    let cited: Vec<&Fact> = proposal
        .claims
        .iter()
        .flat_map(|claim| &claim.facts)
        .filter_map(|fact| ground.facts.get(*fact))
        .collect();
    let Some(Some(at)) = cited.first().map(|fact| fact.exchange) else {
        return Err("nothing was done for it".to_owned());
    };
    if cited.iter().any(|fact| fact.exchange != Some(at)) {
        return Err("its facts come from several observations".to_owned());
    }
    for (place, one) in cited.iter().enumerate() {
        if let Some(other) = cited[..place].iter().find(|other| !together(one, other, ground)) {
            return Err(format!("`{}` and `{}` stand in different records", other.value, one.value));
        }
    }
    let Some((tool, arguments, _)) = ground.episode.exchanges.get(at).and_then(Exchange::called) else {
        return Err("its facts answer no call".to_owned());
    };
    let mut texts = Vec::new();
    collect(arguments, &mut texts);
    let about: BTreeSet<String> = name_stems(tool).into_iter().collect();
    let exact: BTreeSet<String> = cited
        .iter()
        .flat_map(|fact| fact.offers())
        .chain(texts.iter().flat_map(|text| offered(text)))
        .collect();
    if let Some(value) = values(&proposal.goal).into_iter().find(|value| !exact.contains(value)) {
        return Err(format!("`{value}` is not what the call was about"));
    }
    let held: BTreeSet<String> = cited.iter().flat_map(|fact| fact.stems()).collect();
    let named = stems(&proposal.goal);
    let arguments: BTreeSet<String> =
        texts.iter().flat_map(|text| words(text)).map(|word| stem(&word)).collect();
    if let Some(word) = named
        .iter()
        .find(|word| !(held.contains(*word) || about.contains(*word) || arguments.contains(*word)))
    {
        return Err(format!("`{word}` is not what the call was about"));
    }
    unlabeled(proposal, ground, &texts)?;
    for claim in &proposal.claims {
        let named = stems(&claim.text);
        for value in values(&claim.text) {
            let states = |fact: &Fact| {
                let held = fact.stems();
                fact.offers().contains(&value)
                    && named.iter().all(|word| held.contains(word) || about.contains(word))
            };
            let mut own = claim.facts.iter().filter_map(|fact| ground.facts.get(*fact));
            if !own.any(states) {
                return Err(format!("`{value}` is not what `{}` says it is", claim.text));
            }
        }
    }
    Ok(())
}

/// One value may stand for the record; any other is told by its label, in a claim that cites it. A number stands
/// for nothing, unless it is what the call asked about.
fn unlabeled(proposal: &Proposal, ground: &Ground<'_>, arguments: &[String]) -> Result<(), String> {
    let stated = values(&proposal.goal);
    let cited: BTreeSet<usize> =
        proposal.claims.iter().flat_map(|claim| claim.facts.iter().copied()).collect();
    let mut bare: BTreeSet<&str> = BTreeSet::new();
    for number in cited {
        let Some(fact) = ground.facts.get(number) else { continue };
        if offered(&fact.value).iter().any(|value| stated.contains(value))
            && !is_labeled(number, fact, proposal)
        {
            bare.insert(&fact.value);
        }
    }
    let mut bare = bare.into_iter();
    match (bare.next(), bare.next()) {
        (Some(one), Some(other)) => Err(format!("nothing says what `{one}` and `{other}` are")),
        (Some(one), None) if !one.contains(char::is_alphabetic) && !arguments.iter().any(|it| it == one) => {
            Err(format!("nothing says what `{one}` is"))
        }
        _ => Ok(()),
    }
}

/// Whether a claim that cites a fact says what it is about: the key above it, or in prose a word beside it.
fn is_labeled(number: usize, fact: &Fact, proposal: &Proposal) -> bool {
    let citing = proposal.claims.iter().filter(|claim| claim.facts.contains(&number));
    let said: BTreeSet<String> =
        citing.flat_map(|claim| words(&claim.text)).map(|word| stem(&word)).collect();
    let mut keys = fact.path.iter().rev().map(|key| name_stems(key)).filter(|words| !words.is_empty());
    if fact.kind == FactKind::Member {
        return keys.next().is_some_and(|key| key.iter().all(|word| said.contains(word)));
    }
    keys.flatten().any(|word| !is_plain(&word) && said.contains(&word))
}

/// Whether two facts of one observation are about one thing: in one record; in
/// prose, on one line.
fn together(one: &Fact, other: &Fact, ground: &Ground<'_>) -> bool {
    let is_member = |fact: &Fact| fact.kind == FactKind::Member;
    if is_member(one) && is_member(other) {
        let (one, other) = (one.record(), other.record());
        return one == other;
    }
    let (from, to) = if one.citation.start <= other.citation.start {
        (&one.citation, &other.citation)
    } else {
        (&other.citation, &one.citation)
    };
    let mut shown = ground.episode.shown().filter(|(at, _)| *at == one.exchange);
    shown.next().is_some_and(|(_, shown)| {
        shown.text.get(from.start..to.end.max(from.start)).is_some_and(|between| !between.contains('\n'))
    })
}
