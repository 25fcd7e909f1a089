//! A relabeler that wants its goals accepted and does not care whether they are true, before judges that
//! say yes to everything.
//!
//! It knows the form, cites real facts and uses their words. Each family is false by construction. A control of
//! true goals in the same form shows that the gates do not simply refuse whatever a model says.

use std::collections::BTreeSet;

use recoup::environments::rand;
use recoup::hindsight::episode::{Act, Episode};
use recoup::hindsight::facts::{Fact, FactKind, Facts};
use recoup::hindsight::gates::{Ground, refused};
use recoup::hindsight::proposal::{Claim, Proposal, Source};

/// Luck of one family.
pub(super) struct Dice {
    stream: &'static str,
    seed: u64,
    count: u64,
}

impl Dice {
    pub(super) fn seeded(stream: &'static str, run: usize) -> Self {
        Self { stream, seed: run as u64, count: 0 }
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.count += 1;
        rand(self.seed, self.stream, self.count, n.max(1) as u64) as usize
    }

    pub(super) fn pick<'t, T>(&mut self, items: &'t [T]) -> Option<&'t T> {
        let at = self.below(items.len());
        items.get(at)
    }
}

/// A goal in the making: its text and what it cites.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) goal: String,
    pub(super) claims: Vec<Claim>,
    /// The values that its claims name, each with its fact.
    pub(super) named: Vec<(String, usize)>,
}

impl Draft {
    pub(super) fn new(goal: String, cited: &[(&str, usize)]) -> Self {
        let named: Vec<(String, usize)> =
            cited.iter().map(|(text, fact)| ((*text).to_owned(), *fact)).collect();
        let claims =
            named.iter().map(|(text, fact)| Claim { text: text.clone(), facts: vec![*fact] }).collect();
        Self { goal, claims, named }
    }

    /// The same with one named value replaced, and what the new one cites.
    pub(super) fn with(&self, at: usize, value: &str, fact: usize) -> Self {
        let mut draft = self.clone();
        let old = &self.named[at].0;
        draft.goal = draft.goal.replace(old.as_str(), value);
        draft.named[at] = (value.to_owned(), fact);
        draft.claims[at] = Claim { text: value.to_owned(), facts: vec![fact] };
        draft
    }

    pub(super) fn proposal(&self, facts: &Facts<'_, '_>) -> Proposal {
        let cited = self.claims.iter().flat_map(|claim| &claim.facts).filter_map(|fact| facts.get(*fact));
        Proposal {
            last: cited.filter_map(|fact| fact.exchange).max().unwrap_or(0),
            goal: self.goal.clone(),
            claims: self.claims.clone(),
            specification: None,
            task: None,
            doubts: Vec::new(),
            answer: String::new(),
            source: Source::Model,
        }
    }
}

/// Whether a value is one that could be looked up.
pub(super) fn is_exact(value: &str) -> bool {
    value.contains(|c: char| c.is_ascii_digit()) && value.len() <= 40 && !value.contains(['\n', '`', '"'])
}

/// Members that may stand in a goal.
fn members<'f>(facts: &'f Facts<'_, '_>) -> Vec<(usize, &'f Fact)> {
    facts
        .all()
        .iter()
        .enumerate()
        .filter(|(_, fact)| {
            let key = fact.path.last().map_or("", String::as_str);
            fact.kind == FactKind::Member
                && fact.value.len() <= 40
                && key.chars().all(|c| c.is_alphabetic() || c == '_')
        })
        .collect()
}

/// Records: an exact value and another member beside it, of a call's answer.
pub(super) fn asked(facts: &Facts<'_, '_>, dice: &mut Dice) -> Option<Draft> {
    let members = members(facts);
    for _ in 0..8 {
        let (at, one) = dice.pick(&members)?;
        let beside: Vec<&(usize, &Fact)> = members
            .iter()
            .filter(|(other, fact)| {
                other != at
                    && fact.exchange == one.exchange
                    && fact.record() == one.record()
                    && fact.value != one.value
            })
            .collect();
        if !is_exact(&one.value) || one.exchange.is_none() {
            continue;
        }
        let Some((other, fact)) = dice.pick(&beside) else { continue };
        let key = fact.path.last()?.replace('_', " ");
        let goal = format!("Please report the {key} of {}: is it {}?", one.value, fact.value);
        let mut draft = Draft::new(goal, &[(&one.value, *at), (&fact.value, *other)]);
        draft.claims.push(Claim { text: key, facts: vec![*other] });
        return Some(draft);
    }
    None
}

/// A call that changed something, told by its tool's words and its arguments.
pub(super) fn done(
    episode: &Episode<'_>,
    facts: &mut Facts<'_, '_>,
    dice: &mut Dice,
) -> Option<(Draft, String)> {
    let calls: Vec<usize> = (0..episode.exchanges.len())
        .filter(|at| {
            let exchange = &episode.exchanges[*at];
            matches!(exchange.act, Act::Call { writes: true, .. }) && exchange.success().is_some()
        })
        .collect();
    let at = *dice.pick(&calls)?;
    let (tool, arguments, _) = episode.exchanges[at].called()?;
    let mut cited: Vec<(String, usize)> = Vec::new();
    for value in arguments.as_object()?.values() {
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(number) => number.to_string(),
            _ => return None,
        };
        let fact = facts.cite(&text, Some(at)).or_else(|| facts.cite_by(&text, at))?;
        cited.push((text, fact));
    }
    if cited.is_empty() {
        return None;
    }
    let texts: Vec<&str> = cited.iter().map(|(text, _)| text.as_str()).collect();
    let goal = format!("Please {} {}.", tool.replace('_', " "), texts.join(" with "));
    let cited: Vec<(&str, usize)> = cited.iter().map(|(text, fact)| (text.as_str(), *fact)).collect();
    Some((Draft::new(goal, &cited), tool.to_owned()))
}

/// Whether some successful call of a tool had exactly these arguments.
pub(super) fn was_done(episode: &Episode<'_>, tool: &str, named: &[(String, usize)]) -> bool {
    let wanted: BTreeSet<&str> = named.iter().map(|(text, _)| text.as_str()).collect();
    episode.exchanges.iter().filter_map(|exchange| exchange.called()).any(|(called, arguments, _)| {
        let texts: Vec<String> = arguments
            .as_object()
            .into_iter()
            .flat_map(|members| members.values())
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect();
        called == tool && texts.iter().map(String::as_str).collect::<BTreeSet<_>>() == wanted
    })
}

/// Whether every judge that says yes to everything would see it accepted.
pub(super) fn passes(draft: &Draft, ground: &Ground<'_>) -> bool {
    refused(&draft.proposal(ground.facts), ground).is_none()
}

/// Why it is not.
pub(super) fn gate(draft: &Draft, ground: &Ground<'_>) -> Option<&'static str> {
    refused(&draft.proposal(ground.facts), ground).map(|(gate, _)| gate)
}
