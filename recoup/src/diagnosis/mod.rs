//! Diagnosis: which decision of a run went wrong, why, and the exact bytes that show it.
//!
//! Without a model: [`DETECTORS`] each look for one kind of fault and cite it; the decisive step is the
//! earliest fault that nothing later made up for and whose object reaches the end
//! ([`decisive`]); successful runs of the same task show where a run left their path; the gates
//! ([`gates`]) then check the result as they would check a judge's.

mod actions;
mod candidate;
pub mod decisive;
mod detectors;
mod effects;
#[cfg(test)]
pub(crate) mod fixture;
pub mod gates;
mod idle;
mod judging;
mod panel;
mod run;
mod siblings;
mod suspect;
mod text_actions;
mod words;

pub use self::actions::{Action, Observation};
pub use self::detectors::DETECTORS;
pub(crate) use self::effects::effect_of;
pub use self::effects::{Effect, effect};
pub use self::gates::GateReview;
pub use self::judging::{JUDGE_VERSION, JUDGE_WITH_GROUND_TRUTH, JudgingConfig, is_judged, judging_verdicts};
pub use self::panel::{Answered, Judged, Known, RETRIES, REVIEWS_MAX, Tried, judge, restored};
pub use self::run::{Message, Run, Step};
pub use self::siblings::Divergence;
pub use self::suspect::{Blamed, blamed};
use crate::id::TrajectoryId;
use crate::trajectory::{Citation, Status, Trajectory};
use crate::triage;
use crate::verdict::{
    Blame, Content, Decision, Diagnosis, FailureClass, Finding, Party, Producer, Quote, Review, Verdict,
};

/// Version of the rules; raised when they would decide otherwise on the same run.
pub const RULES_VERSION: u32 = 5;

/// Looks for one kind of fault.
pub trait Detector: Sync {
    /// Name in records (`unknown-tool`).
    fn name(&self) -> &'static str;

    /// The capability whose lack its findings show.
    fn capability(&self) -> &'static str;

    /// What it looks for, in a sentence for the report.
    fn describe(&self) -> &'static str;

    /// Appends what it finds. A fault that a later node made up for is found too, and says which.
    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>);
}

/// Knobs of [`diagnose`].
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnosisConfig {
    /// Successful runs of the same task that a run is compared with, at most.
    pub siblings_max: usize,
    /// Least weight, between 0 and 1, of a finding that may be decisive.
    pub weight_min: f64,
}

impl Default for DiagnosisConfig {
    fn default() -> Self {
        Self { siblings_max: 6, weight_min: 0.2 }
    }
}

/// All that the rules say of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosed {
    /// Whose failure it was; `None` for a run that succeeded.
    pub blame: Option<Blame>,
    /// What the blame rests on.
    pub blame_evidence: Vec<Citation>,
    /// What kind of failure it was, where it was the agent's or something shows that it may have been.
    pub class: Option<FailureClass>,
    /// Where it went wrong, where a finding says so.
    pub diagnosis: Option<Diagnosis>,
    /// The gates' words on the diagnosis, S1 to S9.
    pub reviews: Vec<GateReview>,
    /// Everything found, in order of node, on successful runs too.
    pub findings: Vec<Finding>,
}

/// Diagnoses a run by rules. `siblings` are the other runs of its task, of any outcome.
///
/// A successful run has findings and no more. One that failed by somebody else's fault has a blame. One
/// whose outcome is unknown is diagnosed as suspected.
pub fn diagnose(run: &Trajectory, siblings: &[&Trajectory], config: &DiagnosisConfig) -> Diagnosed {
    let index = Run::new(run, siblings, config);
    let findings = find(&index);
    let status = run.outcome().status;
    if status == Status::Success {
        return Diagnosed {
            blame: None,
            blame_evidence: Vec::new(),
            class: None,
            diagnosis: None,
            reviews: Vec::new(),
            findings,
        };
    }
    let (blame, blame_evidence) = triage::blame(run);
    let is_agents =
        blame.party == Party::Agent || (blame.party == Party::Unknown && triage::has_agent_turn(run));
    let decisive = if is_agents { decisive::decisive(&index, &findings, config) } else { None };
    let class = is_agents.then_some(()).and_then(|()| {
        let first = decisive.map(|at| findings[at].clone());
        let rest = findings.iter().enumerate().filter(|(at, _)| Some(*at) != decisive);
        let ordered: Vec<Finding> =
            first.into_iter().chain(rest.map(|(_, finding)| finding.clone())).collect();
        triage::failure_class(run, &ordered)
    });
    let mut reviews = Vec::new();
    let diagnosis = decisive.map(|at| {
        let mut diagnosis = record(&index, &findings, at);
        reviews = gates::review(&index, &diagnosis);
        diagnosis.admitted = reviews.iter().all(|review| review.decision != Decision::Reject);
        diagnosis
    });
    Diagnosed { blame: Some(blame), blame_evidence, class, diagnosis, reviews, findings }
}

/// Findings kept of one detector on one run: the first ones. More say nothing new.
const FINDINGS_MAX: usize = 32;

/// Runs every detector; findings come in order of node, then detector. Each cites something at or before
/// its node, where the run holds a line to cite.
fn find(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for detector in DETECTORS {
        let before = findings.len();
        detector.detect(run, &mut findings);
        findings.truncate(before + FINDINGS_MAX);
    }
    for finding in findings.iter_mut().filter(|finding| !finding.is_cited_in_time()) {
        finding.citations.splice(0..0, run.cite_up_to(finding.node));
    }
    findings.sort_by(|left, right| (left.node, &left.detector).cmp(&(right.node, &right.detector)));
    findings
}

fn record(run: &Run<'_>, findings: &[Finding], decisive: usize) -> Diagnosis {
    let finding = &findings[decisive];
    let citations = finding
        .citations
        .iter()
        .filter_map(|at| Some(Quote { at: at.clone(), quote: at.quote(run.trajectory).ok()?.to_owned() }))
        .collect();
    Diagnosis {
        decisive_node: finding.node,
        responsible_agent: run.trajectory.nodes[finding.node].agent.clone(),
        explanation: decisive::explanation(run, findings, decisive),
        citations,
        candidate: candidate::candidate(run, finding),
        rank: 0,
        findings: findings.to_vec(),
        admitted: false,
        suspected: run.trajectory.outcome().status == Status::Unknown,
    }
}

/// A finding of a detector, not yet made up for.
fn finding(
    detector: &dyn Detector,
    node: usize,
    strength: f64,
    message: impl Into<String>,
    citations: impl IntoIterator<Item = Citation>,
) -> Finding {
    Finding {
        detector: detector.name().to_owned(),
        node,
        message: message.into(),
        strength,
        capability: detector.capability().to_owned(),
        citations: citations.into_iter().collect(),
        resolved_at: None,
    }
}

impl Diagnosed {
    /// The same as verdicts on `subject`, in the order blame, class, diagnosis, reviews; findings by
    /// themselves where there is no diagnosis to hold them. `now` is the caller's clock, in RFC 3339.
    pub fn verdicts(&self, subject: TrajectoryId, now: &str) -> Vec<Verdict> {
        let producer = || Producer::rules("rules", RULES_VERSION);
        let verdict =
            |evidence: Vec<Citation>, content| Verdict::new(subject, producer(), evidence, content, now);
        let mut verdicts = Vec::new();
        if let Some(blame) = &self.blame {
            verdicts.push(verdict(self.blame_evidence.clone(), Content::Blame(blame.clone())));
        }
        if let Some(class) = &self.class {
            verdicts.push(verdict(Vec::new(), Content::FailureClass(class.clone())));
        }
        let Some(diagnosis) = &self.diagnosis else {
            if !self.findings.is_empty() {
                verdicts.push(verdict(Vec::new(), Content::Findings(self.findings.clone())));
            }
            return verdicts;
        };
        let evidence = diagnosis.citations.iter().map(|quote| quote.at.clone()).collect();
        let stored = verdict(evidence, Content::Diagnosis(diagnosis.clone()));
        let of = stored.id;
        verdicts.push(stored);
        verdicts.extend(self.reviews.iter().map(|review| {
            let content = Content::Review(Review {
                of,
                gate: review.gate.to_owned(),
                verdict: review.decision,
                reason: review.reason.clone(),
            });
            verdict(Vec::new(), content)
        }));
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{call, chat, ended, result, say, succeeded, user};
    use super::{DETECTORS, DiagnosisConfig, diagnose};
    use crate::trajectory::{Outcome, TerminationKind};
    use crate::triage::knows_detector;
    use crate::verdict::Party;

    fn broken() -> crate::trajectory::Trajectory {
        chat(vec![
            user("cancel order 77120"),
            call("cancel_order", r#"{"id":"ZZ9931"}"#),
            result("Error: no such order"),
            say("Your order is closed."),
        ])
    }

    #[test]
    fn every_detector_has_a_class_and_a_name_of_its_own() {
        let mut names: Vec<&str> = DETECTORS.iter().map(|detector| detector.name()).collect();
        assert!(names.iter().all(|name| knows_detector(name)), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), DETECTORS.len());
    }

    #[test]
    fn a_failed_run_is_diagnosed_admitted_and_put_into_verdicts() {
        let run = broken();
        let diagnosed = diagnose(&run, &[], &DiagnosisConfig::default());
        let diagnosis = diagnosed.diagnosis.as_ref().unwrap();
        assert_eq!(diagnosis.decisive_node, 1);
        assert!(diagnosis.admitted, "{:?}", diagnosed.reviews);
        let verdicts = diagnosed.verdicts(run.id, "2026-01-01T00:00:00Z");
        let kinds: Vec<&str> = verdicts.iter().map(|verdict| verdict.content.kind()).collect();
        assert_eq!(kinds[..3], ["blame", "failure_class", "diagnosis"]);
        assert_eq!(kinds.len(), 3 + 9);
        assert_eq!(verdicts, diagnosed.verdicts(run.id, "2026-01-01T00:00:00Z"));
    }

    #[test]
    fn only_the_agents_failures_are_diagnosed() {
        let success = diagnose(&succeeded(broken()), &[], &DiagnosisConfig::default());
        assert!(success.blame.is_none() && success.diagnosis.is_none() && !success.findings.is_empty());
        let nothing = chat(vec![user("cancel order 77120"), say(" ")]);
        let nothing = diagnose(&nothing, &[], &DiagnosisConfig::default());
        assert_eq!(nothing.blame.unwrap().rule, "no-agent-action");
        assert!(nothing.diagnosis.is_none() && nothing.class.is_none());
        let infrastructure = ended(broken(), TerminationKind::InfrastructureError);
        let infrastructure = diagnose(&infrastructure, &[], &DiagnosisConfig::default());
        assert_eq!(infrastructure.blame.unwrap().party, Party::Infrastructure);
        assert!(infrastructure.diagnosis.is_none() && infrastructure.class.is_none());
        let mut unknown = broken();
        unknown.finish(Outcome::unknown());
        let unknown = diagnose(&unknown, &[], &DiagnosisConfig::default());
        assert!(unknown.diagnosis.is_some_and(|diagnosis| diagnosis.suspected));
    }

    #[test]
    fn an_unknown_run_without_a_finding_has_no_class() {
        let mut run = chat(vec![user("hi"), say("Hello, how can I help?")]);
        assert!(diagnose(&run, &[], &DiagnosisConfig::default()).class.is_some());
        run.finish(Outcome::unknown());
        assert_eq!(diagnose(&run, &[], &DiagnosisConfig::default()).class, None);
    }
}
