//! A failed run that cancels the wrong order, and what re-execution from that turn led to.

use super::{Fork, ForkBranch, ViewInput, ViewSettings};
use crate::id::{Hash, TrajectoryId, VerdictId};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{
    ArgumentsForm, Citation, Node, Origin, Outcome, Part, Role, ToolCall, ToolResult, Trajectory,
};
use crate::verdict::{
    Acceptance, Arm, ArmOutcome, Blame, Candidate, Class, ContinuationOutcome, Decision, Diagnosis, Evidence,
    FailureClass, FinalAnswer, Finding, Party, Quote, Relabel, ReplayPair, Review, Side,
};

/// Position of the wrong turn.
pub(super) const WRONG: usize = 3;

pub(super) struct Fixture {
    pub run: Trajectory,
    pub blame: Blame,
    pub diagnosis: Diagnosis,
    pub reviews: Vec<Review>,
    pub forks: Vec<Fork>,
    pub settings: ViewSettings,
}

impl Fixture {
    pub(super) fn input(&self) -> ViewInput<'_> {
        ViewInput {
            blame: Some(&self.blame),
            diagnosis: Some(&self.diagnosis),
            reviews: &self.reviews,
            forks: &self.forks,
            ..ViewInput::new(&self.run, Side::Train, &self.settings)
        }
    }
}

pub(super) fn call(name: &str, id: &str) -> Node {
    let call = ToolCall {
        call_id: Some("call_0".to_owned()),
        name: name.to_owned(),
        arguments_raw: format!(r#"{{"id":"{id}"}}"#),
        arguments_form: ArgumentsForm::Object,
    };
    Node::new(Role::Assistant, "assistant", vec![Part::ToolCall(call)]).sampled()
}

pub(super) fn answer(text: &str, is_error: bool) -> Node {
    let result = ToolResult {
        call_id: Some("call_0".to_owned()),
        parts: vec![Part::text(text)],
        is_error: Some(is_error),
        exit_code: None,
    };
    Node::new(Role::Tool, "get", vec![Part::ToolResult(result)])
}

pub(super) fn say(text: &str) -> Node {
    Node::new(Role::Assistant, "assistant", vec![Part::text(text)]).sampled()
}

fn line(nodes: Vec<Node>, passed: bool) -> Trajectory {
    let mut run = Trajectory::new("test", Task::named("test/1", "cancel A1"));
    for node in nodes {
        run.push(node);
    }
    run.finish(Outcome::from_flag(passed, "resolved"));
    run
}

/// What stands before the wrong turn.
fn prefix() -> Vec<Node> {
    vec![
        Node::new(Role::User, "user", vec![Part::text("Cancel A1.")]),
        call("get", "A1"),
        answer("A1 is open", false),
    ]
}

/// A continuation: the prefix as context, advice where the arm has it, then its own turns.
fn branch(arm: Arm, own: Vec<Node>, passed: bool) -> ForkBranch {
    let mut nodes = prefix();
    nodes.iter_mut().skip(1).for_each(|node| node.occurrence.copied_context = true);
    if arm == Arm::Reconsider {
        nodes.push(Node::new(Role::User, "user", vec![Part::text("Reconsider.")]));
    }
    nodes.extend(own);
    let mut run = line(nodes, passed);
    run.id = TrajectoryId(Hash::of(arm.as_str().as_bytes()));
    run.origin = Some(Origin {
        trajectory: TrajectoryId(Hash::of(b"run")),
        node: WRONG,
        arm: arm.as_str().to_owned(),
        continuation: 0,
    });
    ForkBranch { arm, run }
}

fn outcome(arm: Arm, passed: [bool; 3]) -> ArmOutcome {
    let one = |passed| ContinuationOutcome { trajectory: None, passed: Some(passed), error: None };
    ArmOutcome { arm, synthetic: false, continuations: passed.map(one).to_vec() }
}

pub(super) fn fixture() -> Fixture {
    let end = [call("cancel", "B2"), answer("no such order", true), say("Done.")];
    let mut run = line(prefix().into_iter().chain(end.clone()).collect(), false);
    run.id = TrajectoryId(Hash::of(b"run"));
    let repaired = vec![call("cancel", "A1"), answer("cancelled", false), say("A1 is cancelled.")];
    let zero = Hash([0; 32]);
    let diagnosed = VerdictId(Hash::of(b"diagnosis"));
    let candidate = Candidate {
        action: Json::parse(r#"{"name":"cancel","arguments":{"id":"A1"}}"#).unwrap(),
        rationale: "`A1` is the order that was asked about.".to_owned(),
    };
    let at = Citation { node: WRONG, part_path: vec![0], start: 7, end: 9 };
    let pair = ReplayPair {
        node: WRONG,
        step: 1,
        environment: "test 1".to_owned(),
        policy: "test".to_owned(),
        config_hash: zero,
        plan_hash: zero,
        diagnosis: Some(diagnosed),
        candidate: Some(candidate.clone()),
        proposed_by: Some("rules".to_owned()),
        injected: false,
        arms: vec![
            outcome(Arm::Retry, [false, false, false]),
            outcome(Arm::Reconsider, [true, false, false]),
            outcome(Arm::Repair, [true, true, true]),
        ],
        unsupported: None,
    };
    let admits = |gate: &str| Review {
        of: diagnosed,
        gate: gate.to_owned(),
        verdict: if gate == "S8" { Decision::Abstain } else { Decision::Admit },
        reason: String::new(),
    };
    Fixture {
        blame: Blame {
            party: Party::Agent,
            rule: "test".to_owned(),
            reason: String::new(),
            suspected: false,
        },
        diagnosis: Diagnosis {
            decisive_node: WRONG,
            responsible_agent: "assistant".to_owned(),
            explanation: "It cancels `B2`, which nobody asked about.".to_owned(),
            citations: vec![Quote { at: at.clone(), quote: "B2".to_owned() }],
            candidate: Some(candidate),
            rank: 0,
            findings: vec![Finding {
                detector: "ungrounded-argument".to_owned(),
                node: WRONG,
                message: String::new(),
                strength: 1.0,
                capability: "state_tracking".to_owned(),
                citations: vec![at],
                resolved_at: None,
            }],
            admitted: true,
            suspected: false,
        },
        reviews: ["S1", "S4", "S8"].map(admits).to_vec(),
        forks: vec![Fork {
            id: VerdictId(Hash::of(b"pair")),
            repair: Some(VerdictId(Hash::of(b"repair"))),
            rationale: pair.candidate.as_ref().map(|candidate| candidate.rationale.clone()),
            pair,
            branches: vec![
                branch(Arm::Retry, end.to_vec(), false),
                branch(Arm::Reconsider, vec![say("Shall I?")], true),
                branch(Arm::Repair, repaired, true),
            ],
        }],
        run,
        settings: ViewSettings::default(),
    }
}

/// A failure that is learned from with a weight of 0.4.
pub(super) fn class() -> FailureClass {
    FailureClass { class: Class::WrongResult, mode: None, recoverable: true, severity: 0.6, loss_weight: 0.4 }
}

/// The goal that the run did achieve with its first call, by judges that say 1.0 and 0.8.
pub(super) fn achieved(evidence: Evidence, answer: FinalAnswer) -> (VerdictId, Relabel) {
    let acceptance =
        Acceptance { evidence, relabeler_confidence: 1.0, judge_confidence: 0.8, cut_node: 2, answer };
    let relabel = Relabel {
        goal: "Is order A1 open?".to_owned(),
        claims: Vec::new(),
        specification: None,
        accepted: Some(acceptance),
        rejected: None,
        attempt: 0,
        background: false,
        blind: false,
        verified: None,
    };
    (VerdictId(Hash::of(b"relabel")), relabel)
}
