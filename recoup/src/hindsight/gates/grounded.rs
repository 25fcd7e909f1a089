//! `grounded`: every claim of a goal rests on facts, and nothing that must be exact stands outside the claims.
//!
//! A number or an identifier counts only where a cited fact states exactly it. In a model's goal every word counts
//! that could mean something: it stands in the facts that its claim cites, or belongs to a tool that the
//! run called, or says nothing about any run.

use std::collections::BTreeSet;

use super::{Gate, Ground, outside_claims};
use crate::hindsight::episode::Act;
use crate::hindsight::facts::{Fact, FactKind};
use crate::hindsight::proposal::{Claim, Proposal, Source};
use crate::hindsight::tokens::{stem, stems, values, words};

/// See the module.
pub(super) struct Grounded;

impl Gate for Grounded {
    fn name(&self) -> &'static str {
        "grounded"
    }

    fn check(&self, proposal: &Proposal, ground: &Ground<'_>) -> Result<(), String> {
        if proposal.source == Source::Environment {
            return Ok(());
        }
        if proposal.claims.is_empty() {
            return Err("the goal claims nothing".to_owned());
        }
        for claim in &proposal.claims {
            claimed(claim, proposal, ground)?;
        }
        let outside = outside_claims(proposal);
        let is_models = proposal.source == Source::Model;
        let loose = values(&outside);
        let exact = |value: &&String| is_models || value.contains(|c: char| c.is_ascii_digit());
        if let Some(value) = loose.iter().find(exact) {
            return Err(format!("`{value}` stands in no claim"));
        }
        let known = called_words(ground);
        if let Some(word) = stems(&outside).into_iter().find(|word| is_models && !known.contains(word)) {
            return Err(format!("nothing in the run stands for `{word}`"));
        }
        Ok(())
    }
}

/// Whether one claim rests on what it cites.
fn claimed(claim: &Claim, proposal: &Proposal, ground: &Ground<'_>) -> Result<(), String> {
    let text = &claim.text;
    if text.trim().is_empty() || !proposal.goal.contains(text.as_str()) {
        return Err(format!("the claim `{text}` does not stand in the goal"));
    }
    let cited: Option<Vec<&Fact>> = claim.facts.iter().map(|fact| ground.facts.get(*fact)).collect();
    let cited = cited.filter(|cited| !cited.is_empty()).ok_or(format!("`{text}` cites no fact"))?;
    if cited.iter().any(|fact| fact.kind == FactKind::Limitation) {
        return Err(format!("`{text}` rests on a failure"));
    }
    if cited.iter().any(|fact| fact.exchange.is_some_and(|at| at > proposal.last)) {
        return Err(format!("`{text}` rests on what was shown only later"));
    }
    let offered: BTreeSet<String> = cited.iter().flat_map(|fact| fact.offers()).collect();
    if let Some(value) = values(text).into_iter().find(|value| !offered.contains(value)) {
        return Err(format!("no cited fact states exactly `{value}`"));
    }
    let held: BTreeSet<String> = cited.iter().flat_map(|fact| fact.stems()).collect();
    let mut named = stems(text);
    // A template's claim is a quotation: its filling words are quoted too.
    if proposal.source == Source::Template {
        named = words(text).map(|word| stem(&word)).collect();
    }
    match named.into_iter().find(|word| !held.contains(word)) {
        Some(word) => Err(format!("no cited fact holds `{word}`")),
        None => Ok(()),
    }
}

/// Stems of the names and parameters of the tools that were called with success.
pub(super) fn called_words(ground: &Ground<'_>) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for exchange in &ground.episode.exchanges {
        if let (Act::Call { tool, arguments, .. }, Some(_)) = (&exchange.act, exchange.success()) {
            known.extend(name_stems(tool));
            let keys = arguments.as_object().into_iter().flat_map(|members| members.keys());
            known.extend(keys.flat_map(|key| name_stems(key)));
        }
    }
    known
}

/// Stems of a name's words: those of `cancelOrder` and `cancel_order`.
pub(super) fn name_stems(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() {
            spaced.push(' ');
        }
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    words(&spaced).map(|word| stem(&word)).collect()
}
