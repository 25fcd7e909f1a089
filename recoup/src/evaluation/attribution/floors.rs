//! Floors: what guesses reach that read nothing of a run but its length and its speakers.
//!
//! They are computed on exactly the runs that are scored. `majority-agent` alone looks at the labels: it
//! says what one constant answer could reach at best on this very set.

use std::collections::BTreeMap;

use super::{Case, Expected, Floor, Margins, Speaker, margin, of_agents};
use crate::trajectory::folded;

/// Constant message indices that are tried, 0-based: 0 to this one.
const CONSTANT_MAX: usize = 5;

/// A guess with its chance of being right on each run, in the order of the runs.
pub(super) struct Guess {
    pub(super) name: String,
    exact: Option<Vec<f64>>,
    agent: Vec<f64>,
}

/// Every floor.
pub(super) fn floors(cases: &[Case]) -> Vec<Guess> {
    let mut floors: Vec<Guess> =
        (0..=CONSTANT_MAX).map(|at| Guess::step(format!("constant-{at}"), cases, |_| Some(at))).collect();
    floors.push(Guess::step("first".to_owned(), cases, |case| turns(case).next()));
    floors.push(Guess::step("last".to_owned(), cases, |case| turns(case).last()));
    floors.push(uniform(cases));
    let everyone = |case| most_frequent(case, |_| true);
    floors.push(Guess::agent("most-frequent-agent", cases, everyone));
    let acting = |case| most_frequent(case, |speaker| speaker.sampled);
    floors.push(Guess::agent("most-frequent-in-turns", cases, acting));
    let majority = majority(cases);
    floors.push(Guess::agent("majority-agent", cases, |_| majority.as_deref()));
    floors
}

/// Indices of the turns of the policy.
fn turns(case: &Case) -> impl Iterator<Item = usize> + '_ {
    case.speakers.iter().enumerate().filter(|(_, speaker)| speaker.sampled).map(|(index, _)| index)
}

/// A turn at random, its author to blame.
fn uniform(cases: &[Case]) -> Guess {
    let chance = |case: &Case, is_right: &dyn Fn(usize) -> bool| {
        let (right, all) =
            turns(case).fold((0, 0), |(right, all), at| (right + u32::from(is_right(at)), all + 1));
        f64::from(right) / f64::from(all.max(1))
    };
    Guess {
        name: "uniform".to_owned(),
        exact: Some(cases.iter().map(|case| chance(case, &|at| case.truth.index == Some(at))).collect()),
        agent: of_agents(cases)
            .map(|case| chance(case, &|at| case.blames(&case.speakers[at].agent)))
            .collect(),
    }
}

/// The author of most messages that count, tools and the first message included where all do; of
/// several the first to speak.
fn most_frequent(case: &Case, counting: fn(&Speaker) -> bool) -> Option<&str> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for speaker in case.speakers.iter().filter(|speaker| counting(speaker)) {
        let agent = speaker.agent.as_str();
        match counts.iter_mut().find(|(known, _)| *known == agent) {
            Some((_, count)) => *count += 1,
            None => counts.push((agent, 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max()?;
    counts.iter().find(|(_, count)| *count == most).map(|(agent, _)| *agent)
}

/// The agent that most labels blame.
fn majority(cases: &[Case]) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for agent in cases.iter().filter_map(|case| case.truth.agent.as_deref()) {
        *counts.entry(folded(agent)).or_default() += 1;
    }
    let most = *counts.values().max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(agent, _)| agent)
}

impl Guess {
    /// A message of each run, its author to blame.
    fn step(name: String, cases: &[Case], choose: impl Fn(&Case) -> Option<usize>) -> Self {
        let exact = cases.iter().map(|case| {
            let said = choose(case);
            f64::from(said.is_some() && said == case.truth.index)
        });
        let agent = of_agents(cases).map(|case| {
            let speaker = choose(case).and_then(|at| case.speakers.get(at));
            f64::from(speaker.is_some_and(|speaker| case.blames(&speaker.agent)))
        });
        Self { exact: Some(exact.collect()), agent: agent.collect(), name }
    }

    /// An agent of each run.
    fn agent<'a>(name: &str, cases: &'a [Case], choose: impl Fn(&'a Case) -> Option<&'a str>) -> Self {
        let agent = of_agents(cases)
            .map(|case| f64::from(choose(case).is_some_and(|agent| case.blames(agent))))
            .collect();
        Self { name: name.to_owned(), exact: None, agent }
    }

    /// What it reaches.
    pub(super) fn scored(&self) -> Floor {
        let expected = |chances: &Vec<f64>| {
            let (k, n) = (chances.iter().sum::<f64>(), chances.len() as u64);
            Expected { k, n, rate: if n == 0 { 0.0 } else { k / n as f64 } }
        };
        let agent = Some(&self.agent).filter(|chances| !chances.is_empty());
        Floor { exact: self.exact.as_ref().map(expected), agent: agent.map(expected) }
    }

    /// What the predictions gain over it.
    pub(super) fn margins(&self, cases: &[Case], seed: u64) -> Margins {
        let over = |cases: &mut dyn Iterator<Item = &Case>, chances: &[f64], is_right: fn(&Case) -> bool| {
            let pairs = cases.zip(chances);
            margin(pairs.map(|(case, chance)| (case.task.as_str(), f64::from(is_right(case)), *chance)), seed)
        };
        Margins {
            exact: self.exact.as_ref().and_then(|chances| over(&mut cases.iter(), chances, Case::is_exact)),
            agent: over(&mut of_agents(cases), &self.agent, Case::is_agent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::tests::case;
    use super::floors;

    #[test]
    fn guesses_are_scored_on_the_same_runs() {
        // Turns stand at messages 1 (a), 3 and 4 (b).
        let cases = [case(1, "a", None), case(4, "b", None), case(3, "B", None)];
        let found: Vec<(String, Option<f64>, Option<f64>)> = floors(&cases)
            .iter()
            .map(|guess| {
                let floor = guess.scored();
                (guess.name.clone(), floor.exact.map(|it| it.k), floor.agent.map(|it| it.k))
            })
            .collect();
        let of = |name: &str| {
            found.iter().find(|(known, ..)| known == name).map(|(_, exact, agent)| (*exact, *agent))
        };
        assert_eq!(of("constant-1"), Some((Some(1.0), Some(1.0))));
        assert_eq!(of("constant-0"), Some((Some(0.0), Some(0.0))));
        assert_eq!(of("first"), of("constant-1"));
        assert_eq!(of("last"), Some((Some(1.0), Some(2.0))));
        assert_eq!(of("most-frequent-agent"), Some((None, Some(2.0))));
        assert_eq!(of("most-frequent-in-turns"), of("most-frequent-agent"));
        assert_eq!(of("majority-agent"), Some((None, Some(2.0))));
        let (exact, agent) = of("uniform").unwrap();
        assert!((exact.unwrap() - 1.0).abs() < 1e-12 && (agent.unwrap() - 5.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_margin_is_paired_and_needs_tasks_for_its_interval() {
        let cases: Vec<_> = (0..3).map(|_| case(1, "a", None)).collect();
        let first = floors(&cases).into_iter().find(|guess| guess.name == "first").unwrap();
        let margin = first.margins(&cases, 7).exact.unwrap();
        assert_eq!((margin.points, margin.low), (-100.0, None));
    }
}
