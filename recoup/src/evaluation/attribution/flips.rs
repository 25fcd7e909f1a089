//! Agreement with flip labels: how near a diagnosis comes to the turn whose correction saves the run.
//!
//! The label is the strongest there is: a sweep re-executed the run and found the earliest turn at which
//! another action changes the outcome. Runs are grouped by environment, and by policy within it, so that
//! it shows on which habits a diagnosis fails, and whether it comes too early, too late or not at all.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Score;

/// One run with a flip label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flipped {
    /// Name of the environment.
    pub environment: String,
    /// The policy that acted.
    pub policy: String,
    /// The decisive turn by experiment, 0-based.
    pub turn: usize,
    /// The diagnosed turn and the detector behind it.
    pub diagnosed: Option<(usize, String)>,
    /// The turn that is suspected where nothing is diagnosed.
    pub suspected: Option<usize>,
}

/// How near diagnoses come, in one environment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Agreement {
    /// The environment.
    pub environment: String,
    /// Runs with a flip label: the denominator.
    pub runs: u64,
    /// Runs that are diagnosed.
    pub diagnosed: Score,
    /// Diagnosed at the very turn.
    pub exact: Score,
    /// Diagnosed at most one turn away.
    pub within_1: Score,
    /// Diagnosed at most three turns away.
    pub within_3: Score,
    /// The same with the suspected turn where nothing is diagnosed.
    pub with_suspects: Located,
    /// By policy.
    pub policies: BTreeMap<String, Habit>,
}

/// How near the predicted turns come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Located {
    /// At the very turn.
    pub exact: Score,
    /// At most one turn away.
    pub within_1: Score,
    /// At most three turns away.
    pub within_3: Score,
}

/// How near diagnoses of one policy's runs come, and what becomes of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Habit {
    /// Runs with a flip label.
    pub runs: u64,
    /// Diagnosed at the very turn.
    pub exact: u64,
    /// Diagnosed at most one turn away, the very turn included.
    pub within_1: u64,
    /// Diagnosed at most three turns away.
    pub within_3: u64,
    /// Diagnosed more than one turn too early.
    pub early: u64,
    /// Diagnosed more than one turn too late.
    pub late: u64,
    /// Not diagnosed.
    pub undiagnosed: u64,
    /// Detectors behind the diagnoses that are more than one turn away.
    pub misled_by: BTreeMap<String, u64>,
}

/// Groups flip labels by environment.
pub fn agreement(flipped: &[Flipped]) -> Vec<Agreement> {
    let mut groups: BTreeMap<&str, Vec<&Flipped>> = BTreeMap::new();
    for run in flipped {
        groups.entry(&run.environment).or_default().push(run);
    }
    groups.into_iter().map(|(environment, runs)| group(environment, &runs)).collect()
}

fn group(environment: &str, runs: &[&Flipped]) -> Agreement {
    let n = runs.len() as u64;
    let diagnosed = |run: &Flipped| run.diagnosed.as_ref().map(|(turn, _)| *turn);
    let predicted = |run: &Flipped| diagnosed(run).or(run.suspected);
    let near = |said: &dyn Fn(&Flipped) -> Option<usize>, most: usize| {
        let is_near = |run: &&&Flipped| said(run).is_some_and(|turn| turn.abs_diff(run.turn) <= most);
        Score::new(runs.iter().filter(is_near).count() as u64, n)
    };
    let mut policies: BTreeMap<String, Habit> = BTreeMap::new();
    for run in runs {
        policies.entry(run.policy.clone()).or_default().add(run);
    }
    Agreement {
        environment: environment.to_owned(),
        runs: n,
        diagnosed: Score::new(runs.iter().filter(|run| run.diagnosed.is_some()).count() as u64, n),
        exact: near(&diagnosed, 0),
        within_1: near(&diagnosed, 1),
        within_3: near(&diagnosed, 3),
        with_suspects: Located {
            exact: near(&predicted, 0),
            within_1: near(&predicted, 1),
            within_3: near(&predicted, 3),
        },
        policies,
    }
}

impl Habit {
    fn add(&mut self, run: &Flipped) {
        self.runs += 1;
        let Some((turn, detector)) = &run.diagnosed else {
            self.undiagnosed += 1;
            return;
        };
        let away = turn.abs_diff(run.turn);
        self.exact += u64::from(away == 0);
        self.within_1 += u64::from(away <= 1);
        self.within_3 += u64::from(away <= 3);
        if away > 1 {
            let side = if *turn < run.turn { &mut self.early } else { &mut self.late };
            *side += 1;
            *self.misled_by.entry(detector.clone()).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Flipped, agreement};

    fn run(turn: usize, diagnosed: Option<usize>, suspected: Option<usize>) -> Flipped {
        Flipped {
            environment: "desk".to_owned(),
            policy: "weak".to_owned(),
            turn,
            diagnosed: diagnosed.map(|turn| (turn, "loop".to_owned())),
            suspected,
        }
    }

    #[test]
    fn misses_are_told_apart() {
        let runs = [
            run(3, Some(3), None),
            run(3, Some(2), None),
            run(3, Some(6), None),
            run(6, Some(1), None),
            run(3, None, Some(4)),
        ];
        let found = agreement(&runs);
        let [desk] = found.as_slice() else { panic!("one environment") };
        assert_eq!((desk.runs, desk.exact.k, desk.within_1.k, desk.within_3.k), (5, 1, 2, 3));
        assert_eq!((desk.diagnosed.k, desk.with_suspects.within_1.k), (4, 3));
        let habit = &desk.policies["weak"];
        assert_eq!((habit.early, habit.late, habit.undiagnosed, habit.misled_by["loop"]), (1, 1, 1, 2));
    }
}
