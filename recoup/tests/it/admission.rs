//! The admission battery: good packages are admitted, and each fault fails the gates that are about it.
//!
//! A faulty package is the good one with a few words changed, so that nothing else can be the reason.

use recoup::deduplication::HeldOut;
use recoup::environments::package::{Package, PackageFiles};
use recoup::environments::{Environment, ToolSpec, bundled};
use recoup::synthesis::admission::{Admission, AdmissionConfig, admit};

fn dials() -> PackageFiles {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/environments/dials");
    PackageFiles::read(&folder).unwrap()
}

fn config() -> AdmissionConfig {
    AdmissionConfig { seeds: 60, cheater_seeds: 120, threads: 2, ..AdmissionConfig::default() }
}

fn battery(files: &PackageFiles, config: &AdmissionConfig) -> Admission {
    admit(&Package::load(files).unwrap(), config, &mut ())
}

fn failed(admission: &Admission) -> Vec<&'static str> {
    admission.gates.iter().filter(|gate| !gate.passed).map(|gate| gate.name).collect()
}

/// The gates that fail once every `from` has become its `to`.
fn failed_when(changes: &[(&str, &str)]) -> Vec<&'static str> {
    let mut files = dials();
    for (from, to) in changes {
        assert_eq!(files.program.matches(from).count(), 1, "{from}");
        files.program = files.program.replace(from, to);
    }
    let admission = battery(&files, &config());
    assert_eq!(admission.admitted, failed(&admission).is_empty());
    failed(&admission)
}

#[test]
fn a_good_package_is_admitted() {
    let admission = battery(&dials(), &config());
    insta::assert_json_snapshot!(admission.gates);
    assert!(admission.admitted);
    for threads in [1, 3] {
        assert_eq!(battery(&dials(), &AdmissionConfig { threads, ..config() }), admission);
    }
}

#[test]
fn bundled_packages_are_admitted() {
    for name in bundled::names() {
        let package = bundled::open(name).unwrap().unwrap();
        let seeds = AdmissionConfig { seeds: 12, cheater_seeds: 24, ..config() };
        let admission = admit(&*package, &seeds, &mut ());
        assert!(admission.admitted, "{name}: {:#?}", admission.gates);
    }
}

#[test]
fn a_bundled_package_that_tells_its_answer_is_stopped() {
    for (name, from, to) in [
        ("toolchain", "Connected to the office APIs.", "Psst: \" + str(task[\"hidden\"]) + \""),
        ("desk", "\"observation\": ", "\"observation\": str(task[\"hidden\"]) + "),
        // What only a customer tells, and nothing that is marked as hidden.
        (
            "desk",
            "\"Shows an order: status, items, address and payment.\"",
            "\"Shows an order, such as \" + str([task[key] for key in task if key != \"hidden\"])",
        ),
    ] {
        let mut files = bundled::files(name).unwrap();
        assert!(files.program.contains(from), "{name}");
        files.program = files.program.replace(from, to);
        let seeds = AdmissionConfig { seeds: 12, cheater_seeds: 2, ..config() };
        assert!(failed(&battery(&files, &seeds)).contains(&"no-leak"), "{name}");
    }
}

#[test]
fn a_package_that_pays_for_nothing_is_stopped() {
    let paid = [("\"score\": 1.0 if success else 0.0", "\"score\": 1.0 if success else 0.1")];
    assert_eq!(failed_when(&paid), ["no-op", "cheaters"]);
}

#[test]
fn a_package_that_tells_what_is_hidden_is_stopped() {
    let told = [(
        "\"There are six dials, a button and %d cards.\" % CARDS",
        "\"There are six dials. Psst: %s.\" % task[\"hidden\"][\"setting\"]",
    )];
    assert_eq!(failed_when(&told), ["no-leak"]);
}

#[test]
fn a_package_that_counts_the_spaces_of_an_answer_is_stopped() {
    let said = (
        "return shown(state, \"Nobody is here.\", True)",
        "state[\"pressed\"] = action[\"say\"] == \"set\"\n        \
         return shown(state, \"Thanks.\", False, True)",
    );
    let saying = ("    return {\"tool\": \"press\", \"arguments\": {}}\n", "    return {\"say\": \"set\"}\n");
    assert_eq!(failed_when(&[said, saying]), ["alternatives"]);
    let stripped = (said.0, said.1.replace("action[\"say\"]", "action[\"say\"].strip()"));
    assert!(failed_when(&[(stripped.0, &stripped.1), saying]).is_empty());
}

#[test]
fn a_package_whose_teacher_fails_on_some_seeds_is_stopped() {
    let unsolved = [(
        "    return {\"tool\": \"press\", \"arguments\": {}}\n",
        "    if task[\"wanted\"] == 3:\n        return {\"say\": \"I never press after card 4.\"}\n    \
         return {\"tool\": \"press\", \"arguments\": {}}\n",
    )];
    assert_eq!(failed_when(&unsolved), ["solvable", "alternatives"]);
}

#[test]
fn a_package_without_a_teacher_is_stopped() {
    let failed = failed_when(&[("def expert(", "def nobody(")]);
    assert_eq!(failed, ["solvable", "mutants", "alternatives", "distinct"]);
}

#[test]
fn a_package_where_one_constant_action_wins_is_stopped() {
    let easy = [("    success = right and state[\"pressed\"]", "    success = state[\"pressed\"]")];
    assert_eq!(failed_when(&easy), ["cheaters", "mutants"]);
}

#[test]
fn a_package_that_knows_one_way_only_is_stopped() {
    let strict = [(
        "    success = right and state[\"pressed\"]",
        "    turned = [one[\"action\"][\"arguments\"][\"dial\"] for one in transcript if one[\"action\"].get(\"tool\") == \"turn\"]\n    \
         success = right and state[\"pressed\"] and turned == sorted(turned)",
    )];
    assert_eq!(failed_when(&strict), ["alternatives"]);
}

#[test]
fn a_package_that_accepts_one_path_of_several_as_short_is_stopped() {
    // How many dials are turned shows in which order: no two neighbors are independent.
    let counting = (
        "\"Dial %s shows %d.\" % (arguments[\"dial\"], arguments[\"to\"])",
        "\"%d dials are turned.\" % len([name for name in DIALS if state[\"dials\"][name] != 0])",
    );
    assert!(failed_when(&[counting]).is_empty());
    let strict = (
        "    success = right and state[\"pressed\"]",
        "    turned = [one[\"action\"][\"arguments\"][\"dial\"] for one in transcript if one[\"action\"].get(\"tool\") == \"turn\"]\n    \
         success = right and state[\"pressed\"] and turned == sorted(turned)",
    );
    assert_eq!(failed_when(&[counting, strict]), ["alternatives"]);
}

#[test]
fn a_package_that_repeats_a_held_out_task_is_stopped() {
    let with = |text: &str| {
        let mut held_out = HeldOut::default();
        held_out.add(text.as_bytes()).unwrap();
        failed(&battery(&dials(), &AdmissionConfig { held_out, ..config() }))
    };
    assert_eq!(with("Now set the dials as card 3 says and press the button, please."), ["no-leak"]);
    assert_eq!(with("Set the clocks as card 3 says and press the bell, please."), Vec::<&str>::new());
}

#[test]
fn a_package_whose_state_shares_its_parts_is_stopped() {
    // Two names of one list: in memory both would grow, in a restored copy one. The host refuses such a state, so
    // there is no run for any gate.
    let shared = [
        (
            "        \"state\": {\"dials\": {name: 0 for name in DIALS}, \"pressed\": False},\n",
            "        \"state\": twice({\"dials\": {name: 0 for name in DIALS}, \"pressed\": False}, []),\n",
        ),
        (
            "def start(task):",
            "def twice(state, log):\n    state[\"log\"] = log\n    state[\"copy\"] = log\n    return state\n\ndef start(task):",
        ),
        (
            "        state[\"dials\"][arguments[\"dial\"]] =",
            "        state[\"log\"].append(arguments[\"dial\"])\n        state[\"dials\"][arguments[\"dial\"]] =",
        ),
    ];
    assert_eq!(failed_when(&shared).len(), 10);
}

#[test]
fn a_package_with_one_task_for_all_seeds_is_stopped() {
    let same = [
        ("rand(seed, stream, at, len(left))", "rand(7, stream, at, len(left))"),
        ("rand(seed, name, number, 9 * difficulty)", "rand(7, name, number, 9)"),
        ("rand(seed, \"card\", 0, CARDS)", "rand(7, \"card\", 0, CARDS)"),
    ];
    assert_eq!(failed_when(&same), ["cheaters", "distinct"]);
}

#[test]
fn a_package_with_large_states_is_stopped() {
    let large = [("\"pressed\": False},\n", "\"pressed\": False, \"map\": \"x\" * 4000},\n")];
    assert_eq!(failed_when(&large), ["loads"]);
}

#[test]
fn a_package_that_fails_while_it_runs_fails_every_gate_with_the_reason() {
    let mut files = dials();
    files.program = files.program.replace("    state[\"pressed\"] = True", "    state[\"pressed\"] = 1 // 0");
    let admission = battery(&files, &config());
    assert!(!admission.admitted);
    for gate in &admission.gates {
        assert!(gate.figure.contains("environment `dials`: environment.star:"), "{gate:?}");
    }
}

#[test]
fn tools_must_be_those_of_the_target() {
    let package = Package::load(&dials()).unwrap();
    let tools = package.open(&package.generate(0, 1).unwrap()).unwrap().tools().to_vec();
    let with_target = |target: Vec<ToolSpec>| {
        failed(&battery(&dials(), &AdmissionConfig { target: Some(target), ..config() }))
    };
    assert_eq!(with_target(tools.clone()), Vec::<&str>::new());
    let mut others = tools;
    others[1].parameters[0].name = "knob".to_owned();
    assert_eq!(with_target(others), ["interface"]);
}
