//! Hindsight: goals that are false do not get through, goals that are true do.

mod adversary;
mod families;
mod judging;
mod mutations;
mod runs;

use std::collections::BTreeMap;

use recoup::hindsight::episode::Episode;
use recoup::hindsight::facts::Facts;
use recoup::hindsight::gates::Ground;

use self::adversary::{Dice, asked, done, gate, passes};
use self::families::{FAMILIES, Stated, statement};
use self::runs::failed;

/// Proposals of each family, where the runs give so many.
const EACH: usize = 2_300;
/// Least of the families together that the gates were written against.
const PROPOSALS_MIN: usize = 10_000;
/// Share of all that may be accepted.
const FALSE_ACCEPTS_MAX: f64 = 0.005;
/// Families that were written after the gates were frozen for the last time, and the share of theirs that gets through.
const FURTHER: [&str; 2] = ["denied", "crossed"];
const FURTHER_ACCEPTS_MAX: f64 = 0.02;
/// Share of true goals in the same form that must be.
/// Many of them name their record by a price or a size alone, which is asking for nothing in particular.
const TRUE_ACCEPTS_MIN: f64 = 0.3;

#[test]
fn a_bad_relabeler_before_bad_judges_gets_next_to_nothing_through() {
    let (runs, corpus) = failed(8, 5);
    assert!(runs.len() >= 25, "{} failed runs", runs.len());
    let stated: Vec<Stated> = runs
        .iter()
        .map(|run| {
            let episode = Episode::read(run);
            let facts = Facts::of(&episode);
            let said = facts.all().iter().filter_map(statement);
            (run.task.key.0.clone(), said.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
        })
        .collect();
    let (mut true_goals, mut true_accepts) = (0, 0);
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    let mut accepted: BTreeMap<&str, usize> = BTreeMap::new();
    let mut gates: BTreeMap<&str, usize> = BTreeMap::new();
    let mut examples = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let episode = Episode::read(run);
        // What citing adds must be there before anything is held against it.
        let mut facts = Facts::of(&episode);
        let mut dice = Dice::seeded("control", number);
        let mut control: Vec<_> = (0..6).filter_map(|_| asked(&facts, &mut dice)).collect();
        control.extend((0..6).filter_map(|_| done(&episode, &mut facts, &mut dice)).map(|(draft, _)| draft));
        let mut drafts = Vec::new();
        for family in FAMILIES {
            let known = made.get(family.name).copied().unwrap_or(0);
            let share = (EACH - known).div_ceil(runs.len() - number);
            let found = family.drafts(run, &episode, &mut facts, &stated, number, share);
            *made.entry(family.name).or_default() += found.len();
            drafts.extend(found.into_iter().map(|draft| (family.name, draft)));
        }
        let ground =
            Ground { episode: &episode, facts: &facts, corpus: &corpus, document: Some(number as u32) };
        true_goals += control.len();
        true_accepts += control.iter().filter(|draft| passes(draft, &ground)).count();
        for (family, draft) in drafts {
            if let Some(gate) = gate(&draft, &ground) {
                *gates.entry(gate).or_default() += 1;
            } else {
                *accepted.entry(family).or_default() += 1;
                examples.push(format!("{family}: {} ({})", draft.goal, run.task.goal));
            }
        }
    }
    let total: usize = made.values().sum();
    let false_accepts: usize = accepted.values().sum();
    // The figures of docs/hindsight.md.
    insta::assert_snapshot!(
        "false_goals",
        format!(
            "{false_accepts} of {total} false goals accepted, by family {accepted:#?} of {made:#?}; refused by {gates:#?}; \
             {true_accepts} of {true_goals} true goals accepted"
        )
    );
    let summary = format!("{:#?}", &examples[..examples.len().min(12)]);
    let of_further = |counts: &BTreeMap<&str, usize>| -> f64 {
        FURTHER.iter().filter_map(|family| counts.get(family)).sum::<usize>() as f64
    };
    let (further, further_made) = (of_further(&accepted), of_further(&made));
    assert!(total - further_made as usize >= PROPOSALS_MIN, "{summary}");
    assert!(false_accepts as f64 <= FALSE_ACCEPTS_MAX * total as f64, "{summary}");
    assert!(further <= FURTHER_ACCEPTS_MAX * further_made, "{summary}");
    assert!(true_accepts as f64 >= TRUE_ACCEPTS_MIN * true_goals as f64, "{summary}");
}
