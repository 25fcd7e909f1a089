//! Families of false goals that were each written after the gates had been frozen, two at a time.
//!
//! * `swapped`: two true goals of one run, each with a value of the other in the place of its own. Everything that
//!   is said was shown, and cited where it was shown; only not together.
//! * `inverted`: a true goal with its outcome turned around: what was done is to be undone, what is so is asked for as
//!   not so, an amount comes in another unit.
//!
//! Words of exclusion, addition, comparison and time count since then:
//!
//! * `widened`: a true goal that asks for more than was done: for others too, more often, in full.
//! * `conditioned`: a true goal that was to be done only in some case or at some time.
//!
//! All words count since then but a few of asking:
//!
//! * `denied`: a true goal turned around by a word that the run has shown somewhere, and that is cited from there.
//! * `crossed`: the value of one member of a record asked for under the name of another, each cited from its own place.

use super::adversary::{Dice, Draft, asked, done, was_done};
use super::families::{Scene, is_said};

/// A value of another true goal of the run in the place of one of this goal.
pub(super) fn swapped(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    let (one, other, tool) = if dice.below(2) == 0 {
        (asked(scene.facts, dice)?, asked(scene.facts, dice)?, None)
    } else {
        let (one, tool) = done(scene.episode, scene.facts, dice)?;
        (one, done(scene.episode, scene.facts, dice)?.0, Some(tool))
    };
    let at = dice.below(one.named.len());
    let (value, fact) = other.named.get(at).or_else(|| other.named.first())?.clone();
    if one.named.iter().any(|(known, _)| *known == value) {
        return None;
    }
    let swapped = one.with(at, &value, fact);
    let is_true = match &tool {
        Some(tool) => was_done(scene.episode, tool, &swapped.named),
        None => is_said(scene.facts, &swapped),
    };
    (!is_true).then_some(swapped)
}

/// Words in front of a goal that turn what it asks for around.
const AROUND: &[&str] = &[
    "Please do not ",
    "Please undo: ",
    "Never ",
    "Please make sure that nobody can ",
    "Please refuse to ",
    "Without a trace, please delete and then ",
    "Please reverse, do not ",
];

/// Words that a true question has and that of its opposite.
const OPPOSITES: &[(&str, &str)] = &[
    ("is it ", "is it not "),
    ("is it ", "is it anything but "),
    ("is it ", "is it less than "),
    ("is it ", "is it twice "),
    ("Please report the ", "Please delete the "),
    ("Please report the ", "Please change the "),
    ("?", " percent?"),
    ("?", " kilograms?"),
    ("?", " thousand?"),
    ("?", " minutes?"),
];

/// A true goal whose outcome, or the unit of whose amount, is another one.
pub(super) fn inverted(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    let mut draft = if dice.below(2) == 0 {
        let mut draft = asked(scene.facts, dice)?;
        let (from, to) = dice.pick(OPPOSITES)?;
        draft.goal = draft.goal.replace(from, to);
        draft
    } else {
        let (mut draft, _) = done(scene.episode, scene.facts, dice)?;
        draft.goal = draft.goal.replacen("Please ", dice.pick(AROUND)?, 1);
        draft
    };
    // A liar cites something for the words it added too.
    let cited = draft.named.first()?.1;
    if dice.below(2) == 0 {
        let added = ["not", "undo", "delete", "change", "percent", "thousand", "less than", "twice"];
        if let Some(word) = added.into_iter().find(|word| draft.goal.contains(word)) {
            let claim = recoup::hindsight::proposal::Claim { text: word.to_owned(), facts: vec![cited] };
            draft.claims.push(claim);
        }
    }
    Some(draft)
}

/// What a true goal becomes when it asks for more.
const WIDER: &[(&str, &str)] = &[
    ("Please ", "Please, for each of them, "),
    ("Please ", "Please keep on to "),
    ("Please ", "Please as often as possible "),
    (".", " and do the same to everything like it."),
    (".", " and so on for all of the others."),
    (".", " and for whatever else there is."),
    ("?", " And what of the rest of them?"),
    ("?", " Tell me the same of every one."),
    (": is it ", " and of those listed with it: are they "),
    (": is it ", ", in full and in detail: is it "),
];

/// A true goal that asks for more than was done.
pub(super) fn widened(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    changed(WIDER, scene, dice)
}

/// What a true goal becomes when it depends on something.
const CONDITIONS: &[(&str, &str)] = &[
    ("Please ", "If that is not so already, please "),
    ("Please ", "Please wait until I say so, then "),
    ("Please ", "Only where nobody minds, please "),
    ("Please ", "As soon as it is possible again, please "),
    ("Please ", "Once I have said yes, please "),
    ("Please ", "Should it still be needed, please "),
    (".", " unless it was done before."),
    (".", ", but let me know first."),
    ("?", " If it is, say so to nobody."),
    ("?", " Ask me again before you do."),
];

/// A true goal that was to be done only in some case.
pub(super) fn conditioned(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    changed(CONDITIONS, scene, dice)
}

/// A true goal with one change; a liar cites something for the words that it adds, half of the times.
fn changed(changes: &[(&str, &str)], scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    let mut draft = if dice.below(2) == 0 {
        asked(scene.facts, dice)?
    } else {
        done(scene.episode, scene.facts, dice)?.0
    };
    let (from, to) = dice.pick(changes)?;
    let at = if *from == "Please " { draft.goal.find(from)? } else { draft.goal.rfind(from)? };
    draft.goal.replace_range(at..at + from.len(), to);
    let cited = draft.named.first()?.1;
    if dice.below(2) == 0 {
        let added = to.split_whitespace().filter(|word| word.len() > 4);
        let claims = added.map(|word| recoup::hindsight::proposal::Claim {
            text: word.trim_matches(['.', ',', '?', ':']).to_owned(),
            facts: vec![cited],
        });
        draft.claims.extend(claims);
    }
    Some(draft)
}

/// Words of denial that observations hold now and then.
const DENIALS: &[&str] =
    &["not", "no", "none", "never", "without", "false", "failed", "cancelled", "closed", "denied"];

/// A true goal with a word of denial that some fact holds.
pub(super) fn denied(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    let mut draft = if dice.below(2) == 0 {
        asked(scene.facts, dice)?
    } else {
        done(scene.episode, scene.facts, dice)?.0
    };
    let word = *dice.pick(DENIALS)?;
    let last = scene.episode.exchanges.len().saturating_sub(1);
    let fact = scene.facts.cite_by(word, last)?;
    let places = [(": is it ", format!(": is it {word} ")), ("Please ", format!("Please {word} "))];
    let (from, to) = places.into_iter().find(|(from, _)| draft.goal.contains(from))?;
    draft.goal = draft.goal.replacen(from, &to, 1);
    draft.claims.push(recoup::hindsight::proposal::Claim { text: word.to_owned(), facts: vec![fact] });
    Some(draft)
}

/// A record's value under the name of another of its members.
pub(super) fn crossed(scene: &mut Scene<'_, '_, '_>, dice: &mut Dice) -> Option<Draft> {
    let (one, other) = (asked(scene.facts, dice)?, asked(scene.facts, dice)?);
    let (key, other_key) = (one.claims.last()?.clone(), other.claims.last()?.clone());
    let crossed = one.goal.replacen(&key.text, &other_key.text, 1);
    if one.named.first()?.0 != other.named.first()?.0 || key.text == other_key.text {
        return None;
    }
    let mut draft = one;
    draft.goal = crossed;
    *draft.claims.last_mut()? = other_key;
    (!is_said(scene.facts, &draft)).then_some(draft)
}
