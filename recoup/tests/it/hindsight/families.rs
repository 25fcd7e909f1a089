//! Families of false goals, each false by construction.

use std::collections::BTreeSet;

use recoup::hindsight::episode::Episode;
use recoup::hindsight::facts::{Fact, FactKind, Facts};
use recoup::trajectory::Trajectory;

use super::adversary::{Dice, Draft, asked, done, is_exact, was_done};
use super::mutations::{conditioned, crossed, denied, inverted, swapped, widened};

/// What a family has to work with.
pub(super) struct Scene<'s, 'e, 'a> {
    pub(super) run: &'s Trajectory,
    pub(super) episode: &'e Episode<'a>,
    pub(super) facts: &'s mut Facts<'e, 'a>,
    /// What each run states, with its task.
    pub(super) stated: &'s [Stated],
    pub(super) number: usize,
}

/// A run's task, and each key with a value that the run was shown.
pub(super) type Stated = (String, BTreeSet<(String, String)>);

/// One kind of false goal.
pub(super) struct Family {
    pub(super) name: &'static str,
    make: fn(&mut Scene<'_, '_, '_>, &mut Dice) -> Option<Draft>,
}

/// All of them.
pub(super) const FAMILIES: &[Family] = &[
    Family { name: "vague", make: vague },
    Family { name: "wrong number", make: wrong_number },
    Family { name: "hallucinated entity", make: hallucinated },
    Family { name: "paraphrase", make: paraphrase },
    Family { name: "any run", make: any_run },
    Family { name: "swapped", make: swapped },
    Family { name: "inverted", make: inverted },
    Family { name: "widened", make: widened },
    Family { name: "conditioned", make: conditioned },
    // Written after the gates were frozen for the last time.
    Family { name: "denied", make: denied },
    Family { name: "crossed", make: crossed },
];

impl Family {
    /// So many goals about a run.
    pub(super) fn drafts<'e, 'a>(
        &self,
        run: &Trajectory,
        episode: &'e Episode<'a>,
        facts: &mut Facts<'e, 'a>,
        stated: &[Stated],
        number: usize,
        count: usize,
    ) -> Vec<Draft> {
        let mut dice = Dice::seeded(self.name, number);
        let mut scene = Scene { run, episode, facts, stated, number };
        // A family that has nothing to say of a run leaves its share to the others of its kind.
        let tries = 0..count * 40;
        tries.filter_map(|_| (self.make)(&mut scene, &mut dice)).take(count).collect()
    }
}

/// A few facts, whatever they are.
fn any_facts(facts: &Facts<'_, '_>, dice: &mut Dice, count: usize) -> Vec<usize> {
    let usable: Vec<usize> = (0..facts.all().len())
        .filter(|at| facts.get(*at).is_some_and(|fact| fact.kind != FactKind::Limitation))
        .collect();
    (0..count).filter_map(|_| dice.pick(&usable).copied()).collect()
}

const VAGUE: &[&str] = &[
    "Please look into {} and report the result.",
    "Find some information about {} for me.",
    "Could you see what {} says?",
    "Please use {} and tell me what it shows.",
    "I would like to know more about {}.",
    "Please make sure that {} is done.",
    "Report {} and another thing like it.",
];

/// Asks for something that nobody could say was not done; cites facts for its filling words.
fn vague(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    const WHAT: &[&str] = &[
        "the system",
        "the request",
        "the records",
        "it",
        "the data",
        "the account",
        "the items",
        "everything",
        "the page",
        "the tools",
        "the available information",
        "the order",
        "the room",
        "the contact",
        "the product",
    ];
    let what = *dice.pick(WHAT)?;
    let mut goal = dice.pick(VAGUE)?.replace("{}", what);
    if dice.below(3) == 0 {
        goal.push_str(" Take care.");
    }
    let cited = any_facts(scene.facts, dice, 2);
    let words: Vec<&str> = goal.split([' ', '.', ',', '?']).filter(|word| word.len() > 2).collect();
    let named: Vec<(&str, usize)> =
        cited.iter().filter_map(|fact| Some((*dice.pick(&words)?, *fact))).collect();
    Some(Draft::new(goal.clone(), &named))
}

/// Changes one exact value of a true goal: a digit, or for another value of the same run, which it then cites.
fn wrong_number(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    let (draft, tool) = if dice.below(2) == 0 {
        (asked(scene.facts, dice)?, None)
    } else {
        let (draft, tool) = done(scene.episode, scene.facts, dice)?;
        (draft, Some(tool))
    };
    let exact: Vec<usize> = (0..draft.named.len()).filter(|at| is_exact(&draft.named[*at].0)).collect();
    let at = *dice.pick(&exact)?;
    let (old, fact) = draft.named[at].clone();
    let (value, cited) = if dice.below(2) == 0 {
        (bent(&old, dice)?, fact)
    } else {
        let others: Vec<(usize, String)> = scene
            .facts
            .all()
            .iter()
            .enumerate()
            .filter(|(_, other)| {
                other.kind != FactKind::Limitation && is_exact(&other.value) && other.value != old
            })
            .map(|(at, other)| (at, other.value.clone()))
            .collect();
        let (at, value) = dice.pick(&others)?.clone();
        (value, at)
    };
    let wrong = draft.with(at, &value, cited);
    let is_true = match &tool {
        Some(tool) => was_done(scene.episode, tool, &wrong.named),
        None => is_said(scene.facts, &wrong),
    };
    (!is_true).then_some(wrong)
}

/// Whether a record says both values of a goal that asks, the second one of the very key.
pub(super) fn is_said(facts: &Facts<'_, '_>, draft: &Draft) -> bool {
    let [one, other] = draft.named.as_slice() else { return false };
    let key = draft.claims.last().map(|claim| claim.text.replace(' ', "_"));
    facts.all().iter().filter(|fact| fact.value == one.0).any(|fact| {
        facts.all().iter().any(|beside| {
            beside.exchange == fact.exchange
                && (beside.record() == fact.record() || fact.path.starts_with(beside.record()))
                && beside.value == other.0
                && beside.path.last() == key.as_ref()
        })
    })
}

/// A value with one digit changed.
fn bent(value: &str, dice: &mut Dice) -> Option<String> {
    let digits: Vec<usize> =
        value.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();
    let at = *dice.pick(&digits)?;
    let digit = value[at..].chars().next()?.to_digit(10)?;
    let other = (digit as usize + 1 + dice.below(9)) % 10;
    Some(format!("{}{other}{}", &value[..at], &value[at + 1..]))
}

/// Names things that the run never saw, in a form that looks like its own.
fn hallucinated(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    const NAMES: &[&str] = &[
        "golden scepter",
        "Helga Winter",
        "platinum member",
        "crystal ball",
        "the Zanzibar office",
        "velvet curtain",
        "Quentin Marsh",
        "loyalty voucher",
        "titanium mug",
        "express courier",
        "moon chamber",
        "legal department",
    ];
    let base = if dice.below(2) == 0 {
        asked(scene.facts, dice)?
    } else {
        done(scene.episode, scene.facts, dice)?.0
    };
    let name = *dice.pick(NAMES)?;
    let seen = scene.episode.shown().any(|(_, shown)| shown.text.contains(name));
    if seen {
        return None;
    }
    let at = dice.below(base.named.len());
    match dice.below(3) {
        // In place of what was there, with its citation.
        0 => Some(base.with(at, name, base.named[at].1)),
        // As a claim of its own, with any citation.
        1 => {
            let mut draft = base.clone();
            draft.goal = format!("{} for the {name}.", base.goal.trim_end_matches(['.', '?']));
            let cited = any_facts(scene.facts, dice, 1);
            let claim = recoup::hindsight::proposal::Claim { text: name.to_owned(), facts: cited };
            draft.claims.push(claim);
            Some(draft)
        }
        // In no claim at all.
        _ => {
            let mut draft = base.clone();
            draft.goal = format!("{} Do it for the {name}.", base.goal);
            Some(draft)
        }
    }
}

/// The original goal, put in other words; the run did not reach it.
fn paraphrase(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    const FRONT: &[&str] =
        &["", "Please: ", "I would like this: ", "Could you do this for me? ", "Here is what I need: "];
    const SWAPS: &[(&str, &str)] = &[
        ("Please bring", "Carry"),
        ("Please", "Kindly"),
        ("bring", "carry"),
        ("buy", "purchase"),
        ("order", "purchase"),
        ("cheapest", "least expensive"),
        ("Find", "Look for"),
        ("set", "change"),
        ("cancel", "call off"),
        ("need", "want"),
        ("I'd like to", "I want to"),
        ("return", "send back"),
        ("exchange", "swap"),
        ("transfer", "move"),
    ];
    let mut goal = scene.run.task.goal.clone();
    for (from, to) in SWAPS {
        if dice.below(2) == 0 {
            goal = goal.replace(from, to);
        }
    }
    if dice.below(3) == 0 {
        // Sentences in another order.
        let mut sentences: Vec<&str> = goal.split_inclusive(". ").collect();
        sentences.reverse();
        goal = sentences.join(" ");
    }
    let goal = format!("{}{goal}", dice.pick(FRONT)?);
    // Whatever of it the run has shown is cited.
    let mut named: Vec<(String, usize)> = Vec::new();
    let words: Vec<&str> = goal
        .split([' ', ',', '.', '(', ')', '"', '?', '!', ':', ';'])
        .filter(|word| word.len() > 2)
        .collect();
    for pair in words.windows(2) {
        let phrase = format!("{} {}", pair[0], pair[1]);
        let last = scene.episode.exchanges.len().saturating_sub(1);
        if goal.contains(&phrase)
            && let Some(fact) = scene.facts.cite_by(&phrase, last)
        {
            named.push((phrase, fact));
        }
    }
    for word in &words {
        let last = scene.episode.exchanges.len().saturating_sub(1);
        if let Some(fact) = scene.facts.cite_by(word, last) {
            named.push(((*word).to_owned(), fact));
        }
    }
    let named: Vec<(&str, usize)> = named.iter().map(|(text, fact)| (text.as_str(), *fact)).collect();
    (!named.is_empty()).then(|| Draft::new(goal, &named))
}

/// Something true of this run that is true of many runs of the environment: five of other tasks at least state
/// the same of the same key.
fn any_run(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    let numbers: Vec<usize> = (0..scene.facts.all().len()).collect();
    let at = *dice.pick(&numbers)?;
    let (key, value) = statement(scene.facts.get(at)?)?;
    let task = &scene.stated[scene.number].0;
    let stated = (key.to_owned(), value.to_owned());
    let others = scene.stated.iter().filter(|(other, said)| other != task && said.contains(&stated));
    if others.take(5).count() < 5 {
        return None;
    }
    let key = key.replace('_', " ");
    let goal = match dice.below(4) {
        0 => format!("Please report whether the {key} is {value}."),
        1 => format!("Find something with the {key} {value}."),
        2 => format!("Tell me where the {key} is {value}, please."),
        _ => format!("Is there anything whose {key} is {value}?"),
    };
    let mut draft = Draft::new(goal, &[(value, at)]);
    draft.claims.push(recoup::hindsight::proposal::Claim { text: key, facts: vec![at] });
    Some(draft)
}

/// What a fact states of what, where a goal could say it.
pub(super) fn statement(fact: &Fact) -> Option<(&str, &str)> {
    let key = fact.path.last()?;
    let is_word = key.chars().all(|c| c.is_alphabetic() || c == '_');
    let is_short = (2..=20).contains(&fact.value.len()) && !fact.value.contains(['"', '\n']);
    let is_shown = fact.kind != FactKind::Limitation && fact.exchange.is_some();
    (is_word && is_short && is_shown).then_some((key, fact.value.as_str()))
}
