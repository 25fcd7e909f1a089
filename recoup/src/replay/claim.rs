//! Claims: how far a diagnosis is proved, and the repairs that pairs prove.

use crate::id::VerdictId;
use crate::verdict::{Arm, Claim, Content, Diagnosis, Repair, ReplayPair, Rung, Verdict};

/// The repair that a pair proves: its candidate, where the first continuation of it passed. This is the
/// only way to one.
pub fn repair(id: VerdictId, pair: &ReplayPair) -> Option<Repair> {
    Repair::proved(id, pair)
}

/// Whether another judge has looked at the reasons of a diagnosis (M1 to M4). Nobody does where rules or
/// one judge alone made it.
pub fn is_reviewed(of: VerdictId, verdicts: &[Verdict]) -> bool {
    verdicts.iter().any(|verdict| match &verdict.content {
        Content::Review(review) => review.of == of && verdict.producer.model.is_some(),
        _ => false,
    })
}

/// The rung of a diagnosis after a pair has tested it. `reviewed` says whether other judges have looked at
/// it, `transfers` whether repairs of the same fault beat the original action on other tasks.
///
/// A rung above `reviewed` needs the diagnosis's own repair: its mean over the continuations must exceed
/// that of the arm it beats, and its first continuation must have passed. The claim is about these
/// conditions; it does not say that the cause was the only one.
pub fn claim(
    of: VerdictId,
    diagnosis: &Diagnosis,
    reviewed: bool,
    tested: Option<(VerdictId, &ReplayPair)>,
    transfers: bool,
) -> Claim {
    let base = match (diagnosis.admitted, reviewed) {
        (true, true) => (Rung::Reviewed, "every gate and every other judge admitted it"),
        (true, false) => (Rung::Reviewed, "the gates S1 to S9 admitted it, and no other judge was asked"),
        (false, _) => (Rung::Grounded, "it cites what stands in the run"),
    };
    let stays = |(rung, reason): (Rung, &str)| Claim { of, rung, pair: None, reason: reason.to_owned() };
    let Some((id, pair)) = tested else { return stays(base) };
    let beats = |rival| Some(pair.arm(Arm::Repair)?.rate()? > pair.arm(rival)?.rate()?);
    let first = pair.arm(Arm::Repair).and_then(|repair| repair.continuations.first());
    if first.and_then(|first| first.passed) != Some(true) || beats(Arm::Retry) != Some(true) {
        return stays(base);
    }
    let (rung, reason) = match beats(Arm::Reconsider) {
        Some(true) if transfers => {
            (Rung::Transfers, "its repair passed, and repairs of this fault pass on other tasks")
        }
        Some(true) => (Rung::BeatsReconsider, "its repair passed more often than reconsidering"),
        _ => (Rung::BeatsRetry, "its repair passed more often than the original action"),
    };
    Claim { of, rung, pair: Some(id), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{claim, repair};
    use crate::id::{Hash, TrajectoryId, VerdictId};
    use crate::json::Json;
    use crate::verdict::{Arm, ArmOutcome, Candidate, ContinuationOutcome, Diagnosis, ReplayPair, Rung};

    fn pair(arms: &[(Arm, &[bool])]) -> ReplayPair {
        let outcome = |passed: &bool| ContinuationOutcome {
            trajectory: Some(TrajectoryId(Hash::of(b"run"))),
            passed: Some(*passed),
            error: None,
        };
        let zero = Hash([0; 32]);
        ReplayPair {
            node: 1,
            step: 0,
            environment: "quest 1".to_owned(),
            policy: "weak".to_owned(),
            config_hash: zero,
            plan_hash: zero,
            diagnosis: None,
            candidate: Some(Candidate { action: Json::string("x"), rationale: String::new() }),
            proposed_by: Some("rules".to_owned()),
            injected: false,
            arms: arms
                .iter()
                .map(|(arm, passed)| ArmOutcome {
                    arm: *arm,
                    synthetic: false,
                    continuations: passed.iter().map(outcome).collect(),
                })
                .collect(),
            unsupported: None,
        }
    }

    #[test]
    fn a_rung_is_climbed_by_beating_the_arm_it_names() {
        let diagnosis = Diagnosis {
            decisive_node: 1,
            responsible_agent: "assistant".to_owned(),
            explanation: String::new(),
            citations: Vec::new(),
            candidate: None,
            rank: 0,
            findings: Vec::new(),
            admitted: true,
            suspected: false,
        };
        let id = VerdictId(Hash::of(b"verdict"));
        let rung = |arms: &[(Arm, &[bool])], transfers| {
            claim(id, &diagnosis, true, Some((id, &pair(arms))), transfers).rung
        };
        let (won, lost): (&[bool], &[bool]) = (&[true, true], &[false, true]);
        let untested = |reviewed| claim(id, &diagnosis, reviewed, None, true);
        assert_eq!((untested(true).rung, untested(false).rung), (Rung::Reviewed, Rung::Reviewed));
        assert!(untested(true).reason.contains("every other judge"));
        assert!(untested(false).reason.contains("no other judge was asked"));
        assert_eq!(rung(&[(Arm::Repair, won), (Arm::Retry, won)], true), Rung::Reviewed);
        assert_eq!(rung(&[(Arm::Repair, won), (Arm::Retry, lost)], true), Rung::BeatsRetry);
        let all = [(Arm::Repair, won), (Arm::Retry, lost), (Arm::Reconsider, lost)];
        assert_eq!(rung(&all, false), Rung::BeatsReconsider);
        assert_eq!(rung(&all, true), Rung::Transfers);
        assert_eq!(rung(&[(Arm::Repair, lost), (Arm::Retry, &[false, false])], true), Rung::Reviewed);
    }

    #[test]
    fn only_a_pair_that_passed_proves_a_repair() {
        let id = VerdictId(Hash::of(b"pair"));
        assert!(repair(id, &pair(&[(Arm::Repair, &[false, true])])).is_none());
        assert!(repair(id, &pair(&[(Arm::Retry, &[true])])).is_none());
        let repair = repair(id, &pair(&[(Arm::Repair, &[true, false])])).unwrap();
        assert_eq!((repair.pair(), repair.passed()), (id, (1, 2)));
    }
}
