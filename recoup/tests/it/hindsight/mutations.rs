//! Two families of false goals that were written after the gates were frozen.
//!
//! * `swapped`: two true goals of one run, each with a value of the other in the place of its own. Everything that
//!   is said was shown, and cited where it was shown; only not together.
//! * `inverted`: a true goal with its outcome turned around: what was done is to be undone, what is so is asked for as
//!   not so, an amount comes in another unit.

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
