//! What the detectors see of each bad habit: weak policies fail, and their failures are diagnosed.

use std::collections::{BTreeMap, BTreeSet};

use recoup::diagnosis::{DiagnosisConfig, diagnose};
use recoup::environments::{Environment, bundled};
use recoup::rollout::policies::{self, STYLES};
use recoup::rollout::{Conditions, EpisodeLimits, Keep, Policy, Recording, record, run};
use recoup::trajectory::{Status, Trajectory};

/// Runs of each style in each package.
const RUNS: u64 = 20;
/// Failed runs of a style that a package must show before its share counts.
const FAILED_MIN: usize = 5;

/// What shows each habit: at least one of these, in at least this share of its failed runs.
const SIGNS: &[(&str, &[&str], f64)] = &[
    (
        "skip-step",
        &[
            "unaddressed-error",
            "repeated-call",
            "deviating-mutation",
            "wrong-order",
            "mutation-without-lookup",
            "ungrounded-argument",
            "premature-stop",
            "missing-submission",
            "unverified-mutation",
        ],
        0.7,
    ),
    ("ungrounded-id", &["ungrounded-argument", "unaddressed-error", "deviating-mutation"], 0.7),
    ("wrong-variant", &["deviating-mutation", "unaddressed-error", "repeated-call", "limit-reached"], 0.7),
    ("premature-stop", &["premature-stop", "missing-submission"], 0.7),
    ("ignored-error", &["repeated-call", "unaddressed-error"], 0.9),
    ("budget-overrun", &["repeated-call", "loop", "limit-reached"], 0.7),
    ("lost-state", &["repeated-call", "deviating-mutation", "unaddressed-error", "limit-reached"], 0.7),
    ("hallucinated-tool", &["unknown-tool"], 0.95),
    ("malformed-call", &["schema-violation"], 0.95),
    ("false-claim", &["claimed-action", "premature-stop", "missing-submission"], 0.7),
    ("loop", &["loop", "repeated-call"], 0.9),
];

fn recorded(environment: &dyn Environment, policy: &str, seed: u64) -> Trajectory {
    let policy = policies::parse(policy).unwrap();
    let policy: &dyn Policy = &*policy;
    let task = environment.generate(seed, 1 + (seed % 2) as u8).unwrap();
    let mut instance = environment.open(&task).unwrap();
    let identity = environment.identity();
    let conditions =
        Conditions { seed, rules: identity.policy.as_deref(), keep: Keep::Hashes, ..Conditions::default() };
    let episode = run(&mut *instance, &task, policy, conditions);
    let tools = instance.tools();
    let recording = Recording {
        identity,
        task: &task,
        tools,
        policy,
        seed,
        trial: 0,
        limits: EpisodeLimits::default(),
        origin: None,
        advice: None,
    };
    record(&episode, &recording).0
}

#[test]
fn detectors_see_every_habit() {
    let mut missed = Vec::new();
    let mut shown = BTreeSet::new();
    for name in bundled::names() {
        let environment = bundled::open(name).unwrap().unwrap();
        let experts: Vec<Trajectory> =
            (0..RUNS).map(|seed| recorded(&*environment, "expert", seed)).collect();
        for style in STYLES {
            let (_, signs, share) = SIGNS.iter().find(|(known, ..)| *known == style.name()).unwrap();
            let (mut failed, mut seen) = (0, 0);
            let mut fired: BTreeMap<String, usize> = BTreeMap::new();
            for seed in 0..RUNS {
                let run = recorded(&*environment, &format!("weak:{}@0.7", style.name()), seed);
                if run.outcome().status != Status::Failure {
                    continue;
                }
                let sibling = &experts[seed as usize];
                let found = diagnose(&run, &[sibling], &DiagnosisConfig::default());
                let names: BTreeSet<String> =
                    found.findings.into_iter().map(|finding| finding.detector).collect();
                failed += 1;
                seen += usize::from(signs.iter().any(|sign| names.contains(*sign)));
                for name in names {
                    *fired.entry(name).or_default() += 1;
                }
            }
            let line = format!("{name} {}: {seen} of {failed} failed runs; {fired:?}", style.name());
            eprintln!("{line}");
            if failed < FAILED_MIN {
                continue;
            }
            shown.insert(style.name());
            if (seen as f64) < share * failed as f64 {
                missed.push(line);
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
    for style in STYLES {
        assert!(shown.contains(style.name()), "no package shows `{}`", style.name());
    }
}
