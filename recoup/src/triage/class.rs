//! Failure class: what kind of failure a run was, how severe, and how much it may teach.

use crate::trajectory::{Part, Role, Status, TerminationKind, Trajectory};
use crate::verdict::{Class, FailureClass, Finding};

/// Severity above which a failure teaches nothing.
pub const SEVERITY_MAX_TRAINED: f64 = 0.7;

/// What a detector's finding says about the class: detector, class, mode, severity. Hallucinated
/// observations, contradictions and destructive misuse stand above [`SEVERITY_MAX_TRAINED`].
const SIGNS: &[(&str, Class, &str, f64)] = &[
    ("unknown-tool", Class::ToolError, "unknown_tool", 0.4),
    ("schema-violation", Class::ToolError, "schema_violation", 0.35),
    ("unparsable-arguments", Class::ToolError, "syntax_or_runtime_error", 0.4),
    ("broken-fence", Class::ToolError, "syntax_or_runtime_error", 0.4),
    ("unaddressed-error", Class::ToolError, "unaddressed_error", 0.5),
    ("ignored-error", Class::Hallucination, "contradicted_error", 0.85),
    ("ungrounded-argument", Class::Hallucination, "ungrounded_argument", 0.65),
    ("unsupported-answer", Class::Hallucination, "unsupported_answer", 0.75),
    ("claimed-action", Class::Hallucination, "claimed_action", 0.85),
    ("admitted-mistake", Class::WrongResult, "wrong_mutation", 0.6),
    ("repeated-call", Class::Incomplete, "repetitive_loop", 0.3),
    ("loop", Class::Incomplete, "repetitive_loop", 0.45),
    ("mutation-without-lookup", Class::ConstraintViolation, "missing_lookup", 0.6),
    ("wrong-order", Class::ConstraintViolation, "wrong_order", 0.5),
    ("deviating-mutation", Class::WrongResult, "wrong_mutation", 0.6),
    ("unverified-mutation", Class::ConstraintViolation, "missing_verification", 0.3),
    ("missing-submission", Class::Incomplete, "no_submission", 0.3),
    ("premature-stop", Class::Incomplete, "premature_stop", 0.4),
    ("limit-reached", Class::Incomplete, "step_limit", 0.4),
];

/// Whether the class of a detector's findings is known: diagnosis checks that its detectors' are.
#[cfg(test)]
pub(crate) fn knows_detector(name: &str) -> bool {
    SIGNS.iter().any(|sign| sign.0 == name)
}

/// `1 − severity` up to 0.7, else 0: never larger for a more severe failure. Severity is taken
/// between 0 and 1; what is no number weighs 0.
pub fn loss_weight(severity: f64) -> f64 {
    if severity.is_nan() || severity > SEVERITY_MAX_TRAINED { 0.0 } else { 1.0 - severity.max(0.0) }
}

/// The class of a run that did not succeed. `None` where the outcome is unknown and neither the harness
/// nor an open finding says that anything went wrong.
///
/// A limit that the harness names goes first, for it is a fact. Else the first finding that nothing
/// later made up for decides, so callers put the decisive one in front; without any, the run
/// is off topic where the agent never touched what the goal names, and its result wrong otherwise.
pub fn failure_class(run: &Trajectory, findings: &[Finding]) -> Option<FailureClass> {
    let open: Vec<&Finding> = findings.iter().filter(|finding| finding.resolved_at.is_none()).collect();
    let sign = harness_sign(run).or_else(|| {
        open.iter().find_map(|finding| {
            SIGNS.iter().find(|sign| sign.0 == finding.detector).map(|sign| (sign.1, sign.2, sign.3))
        })
    });
    let (class, mode, base) = match sign {
        Some((class, mode, severity)) => (class, Some(mode.to_owned()), severity),
        None if run.outcome().status == Status::Unknown => return None,
        None if is_off_topic(run) => (Class::OffTopic, None, 0.7),
        None => (Class::WrongResult, None, 0.5),
    };
    let severity = severity(run, base, &open);
    let decisive = open.first().map(|finding| finding.node);
    Some(FailureClass {
        class,
        mode,
        recoverable: severity <= SEVERITY_MAX_TRAINED
            && decisive.is_none_or(|node| has_later_step(run, node)),
        severity,
        loss_weight: loss_weight(severity),
    })
}

/// Whether the harness's own word for the end says what kind of failure it was: no judge overrules that.
pub(crate) fn is_class_explicit(run: &Trajectory) -> bool {
    harness_sign(run).is_some()
}

fn harness_sign(run: &Trajectory) -> Option<(Class, &'static str, f64)> {
    Some(match run.outcome().termination_kind()? {
        TerminationKind::StepLimit => (Class::Incomplete, "step_limit", 0.4),
        TerminationKind::BudgetExceeded => (Class::Incomplete, "budget_exceeded", 0.4),
        TerminationKind::ContextOverflow => (Class::Incomplete, "context_overflow", 0.5),
        TerminationKind::TooManyErrors => (Class::ToolError, "too_many_errors", 0.6),
        TerminationKind::AgentError => (Class::ToolError, "syntax_or_runtime_error", 0.6),
        _ => return None,
    })
}

/// The class's own severity, worse for the worst thing that stands in the run and for every further
/// open finding, milder for a partial score. What lies above the line stays above it.
fn severity(run: &Trajectory, base: f64, open: &[&Finding]) -> f64 {
    let worst = open
        .iter()
        .filter(|finding| finding.strength >= 0.6)
        .filter_map(|finding| SIGNS.iter().find(|sign| sign.0 == finding.detector))
        .map(|sign| sign.3)
        .fold(base, f64::max);
    let others = open.len().saturating_sub(1).min(4) as f64;
    let raised = if worst > SEVERITY_MAX_TRAINED {
        worst + 0.025 * others
    } else {
        (worst + 0.025 * others).min(SEVERITY_MAX_TRAINED)
    };
    let partial = run.outcome().score.filter(|score| *score > 0.0 && *score < 1.0).unwrap_or(0.0);
    let severity = if raised > SEVERITY_MAX_TRAINED { raised } else { raised * (1.0 - 0.5 * partial) };
    severity.clamp(0.0, 1.0)
}

fn has_later_step(run: &Trajectory, node: usize) -> bool {
    run.main_branch().steps().last().is_some_and(|last| *last > node)
}

/// The goal names at least three things by name or number and no turn of the agent holds one.
fn is_off_topic(run: &Trajectory) -> bool {
    if run.outcome().status != Status::Failure {
        return false;
    }
    let names: Vec<String> = run
        .task
        .goal
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .skip(1)
        .filter(|word| word.len() >= 4 && word.chars().any(|c| c.is_ascii_digit() || c.is_uppercase()))
        .map(str::to_lowercase)
        .collect();
    names.len() >= 3
        && !run.main_branch().nodes().filter(|(_, node)| node.role == Role::Assistant).any(|(_, node)| {
            node.parts.iter().filter_map(Part::cited_text).any(|text| {
                let text = text.to_lowercase();
                names.iter().any(|name| text.contains(name.as_str()))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::{SIGNS, loss_weight};
    use crate::task::Task;
    use crate::trajectory::{Node, Outcome, Part, Role, TerminationKind, Trajectory};
    use crate::verdict::{Class, FailureClass, Finding};

    fn failure_class(run: &Trajectory, findings: &[Finding]) -> FailureClass {
        super::failure_class(run, findings).unwrap()
    }

    fn run(goal: &str, answer: &str, outcome: Outcome) -> Trajectory {
        let mut run = Trajectory::new("test", Task::from_goal(goal));
        run.push(Node::new(Role::User, "user", vec![Part::text(goal)]));
        run.push(Node::new(Role::Assistant, "assistant", vec![Part::text(answer)]).sampled());
        run.finish(outcome);
        run
    }

    fn finding(detector: &str, resolved_at: Option<usize>) -> Finding {
        Finding {
            detector: detector.to_owned(),
            node: 1,
            message: String::new(),
            strength: 0.8,
            capability: String::new(),
            citations: Vec::new(),
            resolved_at,
        }
    }

    fn failed() -> Outcome {
        Outcome::from_score(0.0, 1.0, "reward")
    }

    #[test]
    fn worse_failures_never_weigh_more() {
        let mut last = 1.0;
        for step in 0..=1_000 {
            let weight = loss_weight(f64::from(step) / 1_000.0);
            assert!(weight <= last, "weight rises at {step}");
            last = weight;
        }
        assert!((loss_weight(0.7) - 0.3).abs() < 1e-12);
        assert_eq!(loss_weight(0.0).to_bits(), 1.0_f64.to_bits());
        assert_eq!(loss_weight(0.71).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn classes_keep_that_direction() {
        let run = run("x", "y", failed());
        let mut classes: Vec<_> =
            SIGNS.iter().map(|sign| failure_class(&run, &[finding(sign.0, None)])).collect();
        classes.sort_by(|left, right| left.severity.total_cmp(&right.severity));
        assert!(classes.windows(2).all(|pair| pair[0].loss_weight >= pair[1].loss_weight));
    }

    #[test]
    fn hallucinations_and_contradictions_teach_nothing() {
        let run = run("x", "y", failed());
        for detector in ["unsupported-answer", "claimed-action", "ignored-error"] {
            let class = failure_class(&run, &[finding(detector, None)]);
            assert!(class.severity > 0.7 && class.loss_weight == 0.0 && !class.recoverable, "{detector}");
        }
        let mild = failure_class(&run, &[finding("claimed-action", Some(1)), finding("loop", None)]);
        assert_eq!((mild.class, mild.loss_weight > 0.0), (Class::Incomplete, true));
    }

    #[test]
    fn the_harness_names_the_limit() {
        let run = run("x", "y", failed().ended(TerminationKind::StepLimit, "max_steps"));
        let class = failure_class(&run, &[finding("unaddressed-error", None)]);
        assert_eq!((class.class, class.mode.as_deref()), (Class::Incomplete, Some("step_limit")));
    }

    #[test]
    fn an_unknown_outcome_needs_a_sign() {
        let unknown = run("x", "y", Outcome::unknown());
        assert_eq!(super::failure_class(&unknown, &[]), None);
        assert_eq!(super::failure_class(&unknown, &[finding("loop", Some(1))]), None);
        assert_eq!(failure_class(&unknown, &[finding("loop", None)]).class, Class::Incomplete);
    }

    #[test]
    fn without_findings_the_goal_decides() {
        let goal = "Compare hotels Aurora, Bellevue and Castor7 in Lisbon";
        assert_eq!(failure_class(&run(goal, "I like tea.", failed()), &[]).class, Class::OffTopic);
        assert_eq!(failure_class(&run(goal, "Aurora is best.", failed()), &[]).class, Class::WrongResult);
    }
}
