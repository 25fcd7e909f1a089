//! How an OpenHands run ended: the evaluation's report where there is one, else the resolver's own
//! flag; and the error or the agent's last state.

use crate::importers::object::Object;
use crate::json::Json;
use crate::trajectory::{Outcome, TerminationKind};

/// The outcome of a run and what it rests on.
pub(in crate::importers) struct Scored {
    /// How it ended.
    pub outcome: Outcome,
    /// Who scored it.
    pub verifier: Option<&'static str>,
    /// What the scorer reported.
    pub output: Option<Json>,
}

/// Takes outcome, error and the scorer's report from a record. `last_state` is the state of the agent
/// that the events note last.
pub(in crate::importers) fn read(output: &mut Object, last_state: Option<&str>) -> Scored {
    let report = output.take("report");
    let test_result = output.take("test_result");
    let mut tests = test_result.and_then(Object::of).unwrap_or_default();
    let mut resolved = report.and_then(Object::of).and_then(|mut report| report.read("resolved"));
    resolved =
        resolved.or_else(|| tests.object("report").read("resolved")).or_else(|| tests.read("resolved"));
    let guess: Option<bool> = output.read("success");
    let (outcome, verifier) = match (resolved, guess) {
        (Some(passed), _) => (Outcome::from_flag(passed, "report resolved"), Some("swe-bench")),
        (None, Some(passed)) => (Outcome::from_flag(passed, "success"), Some("openhands-resolver")),
        (None, None) => (Outcome::unknown(), None),
    };
    let reported = [
        ("report", report),
        ("test_result", test_result),
        ("result_explanation", output.take("result_explanation")),
        ("comment_success", output.take("comment_success")),
    ];
    let reported: std::collections::BTreeMap<&str, Json> =
        reported.into_iter().filter_map(|(key, raw)| Some((key, Json::from(raw?)))).collect();
    let error = output.text("error").filter(|error| !error.is_empty());
    Scored {
        outcome: match (error, last_state) {
            (Some(error), _) => outcome.ended(termination(&error), error),
            (None, Some(state)) => outcome.ended(state_termination(state), state),
            (None, None) => outcome,
        },
        verifier,
        output: if reported.is_empty() { None } else { Json::from_serialize(&reported).ok() },
    }
}

/// The kind of end that the harness's error text names.
fn termination(error: &str) -> TerminationKind {
    let text = error.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["maximum iteration", "max iteration", "maximum number of iterations"]) {
        TerminationKind::StepLimit
    } else if says(&["stuck in a loop", "agentstuckinloop"]) {
        TerminationKind::TooManyErrors
    } else if says(&["maximum budget", "budget exceeded", "max budget"]) {
        TerminationKind::BudgetExceeded
    } else if says(&["contextwindow", "context window", "context length"]) {
        TerminationKind::ContextOverflow
    } else if says(&[
        "litellm",
        "ratelimit",
        "apierror",
        "apiconnection",
        "runtime failed",
        "disconnected",
        "docker",
    ]) {
        TerminationKind::InfrastructureError
    } else if says(&["timeout", "timed out"]) {
        TerminationKind::Timeout
    } else {
        TerminationKind::Other
    }
}

/// The kind of end in the agent's last state.
fn state_termination(state: &str) -> TerminationKind {
    match state {
        "finish" | "finished" | "awaiting_user_input" => TerminationKind::Completed,
        "error" => TerminationKind::AgentError,
        "stopped" => TerminationKind::Cancelled,
        "rate_limited" => TerminationKind::InfrastructureError,
        _ => TerminationKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::importers::object::Object;
    use crate::trajectory::{Status, TerminationKind};

    #[test]
    fn a_report_counts_more_than_the_resolvers_flag() {
        let text = br#"{"success":true,"test_result":{"git_patch":"x","report":{"resolved":false}}}"#;
        let scored = read(&mut serde_json::from_slice::<Object<'_>>(text).unwrap(), None);
        assert_eq!(scored.outcome.status, Status::Failure);
        assert_eq!(scored.outcome.evidence, "report resolved = false");
    }

    #[test]
    fn an_error_is_an_end_and_no_outcome() {
        let text = br#"{"error":"RuntimeError: Agent reached maximum iteration in headless mode"}"#;
        let outcome =
            read(&mut serde_json::from_slice::<Object<'_>>(text).unwrap(), Some("finished")).outcome;
        assert_eq!(outcome.status, Status::Unknown);
        assert_eq!(outcome.termination_kind(), Some(TerminationKind::StepLimit));
    }
}
