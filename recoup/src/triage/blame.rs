//! Blame: who failed, by rules in order; the first that holds decides.

use super::transport::{transport_form, transport_text};
use crate::trajectory::{Citation, Part, Status, TerminationKind, Trajectory};
use crate::verdict::{Blame, Party};

/// A rule: who it blames and why, or `None` where it does not hold.
type Rule = fn(&Trajectory) -> Option<Ruling>;

/// What a rule found.
struct Ruling {
    party: Party,
    reason: String,
    evidence: Vec<Citation>,
}

/// The rules by name, in the order in which they are tried.
const RULES: [(&str, Rule); 7] = [
    ("success", success),
    ("termination", termination),
    ("transport-error", transport_error),
    ("no-agent-action", no_agent_action),
    ("contradictory-outcome", contradiction),
    ("unknown-outcome", unknown_outcome),
    ("agent", agent),
];

/// Whose failure a run was, with what says so.
///
/// The harness's own word for the end goes first, then provider and transport errors in the last
/// three nodes, records that hold no turn of the agent (nobody is blamed), and outcomes that are missing or contradict themselves.
/// What remains is the agent's. A run that succeeded has nobody to blame: `unknown`, by rule
/// `success`. A run whose outcome is unknown is `suspected`.
pub fn blame(run: &Trajectory) -> (Blame, Vec<Citation>) {
    let suspected = run.outcome().status == Status::Unknown;
    for (name, rule) in RULES {
        if let Some(Ruling { party, reason, evidence }) = rule(run) {
            return (Blame { party, rule: name.to_owned(), reason, suspected }, evidence);
        }
    }
    let reason = "no rule holds".to_owned();
    (Blame { party: Party::Unknown, rule: "none".to_owned(), reason, suspected }, Vec::new())
}

fn success(run: &Trajectory) -> Option<Ruling> {
    (run.outcome().status == Status::Success).then(|| Ruling {
        party: Party::Unknown,
        reason: "the run succeeded".to_owned(),
        evidence: Vec::new(),
    })
}

fn termination(run: &Trajectory) -> Option<Ruling> {
    let termination = run.outcome().termination.as_ref()?;
    let (party, reason) = match termination.kind {
        TerminationKind::UserError => (Party::UserSimulator, "the simulated user failed"),
        TerminationKind::InfrastructureError => {
            (Party::Infrastructure, "provider, network, container or harness failed")
        }
        TerminationKind::Timeout => (Party::Infrastructure, "the harness's wall time ran out"),
        TerminationKind::Cancelled => (Party::Infrastructure, "the run was stopped from outside"),
        TerminationKind::ContextOverflow => (Party::Agent, "the agent overran its context window"),
        TerminationKind::StepLimit => (Party::Agent, "the agent used up its steps"),
        TerminationKind::BudgetExceeded => (Party::Agent, "the agent used up its budget"),
        TerminationKind::TooManyErrors => (Party::Agent, "the agent made too many errors"),
        TerminationKind::AgentError => (Party::Agent, "the agent's own program failed"),
        TerminationKind::Completed | TerminationKind::UserStop | TerminationKind::Other => return None,
    };
    // Steps, tokens and errors are used up by turns: without one the word explains nothing.
    let is_by_turns = party == Party::Agent && termination.kind != TerminationKind::AgentError;
    if is_by_turns && !has_agent_turn(run) {
        return None;
    }
    let reason = format!("{reason} (termination `{}`)", termination.native);
    Some(Ruling { party, reason, evidence: Vec::new() })
}

fn transport_error(run: &Trajectory) -> Option<Ruling> {
    let branch = run.main_branch();
    for (position, node) in branch.nodes().rev().take(3) {
        let error = node.occurrence.call.as_ref().and_then(|call| call.error.as_deref());
        if let Some(error) = error.filter(|error| transport_form(error)) {
            let reason = format!("the model call failed: {}", clip(error));
            return Some(Ruling { party: Party::Infrastructure, reason, evidence: Vec::new() });
        }
        if let Some(citation) = transport_text(node, position) {
            let reason = "a provider or transport error ends the run".to_owned();
            return Some(Ruling { party: Party::Infrastructure, reason, evidence: vec![citation] });
        }
    }
    None
}

fn no_agent_action(run: &Trajectory) -> Option<Ruling> {
    (!has_agent_turn(run)).then(|| Ruling {
        party: Party::Unknown,
        reason: "the record holds no turn of the agent".to_owned(),
        evidence: Vec::new(),
    })
}

/// Whether the main branch holds a turn in which the agent itself says or calls something. What was
/// put into its context (memories, copied turns) is none.
pub(crate) fn has_agent_turn(run: &Trajectory) -> bool {
    run.main_branch().nodes().any(|(_, node)| {
        node.occurrence.sampled
            && !node.occurrence.copied_context
            && node.parts.iter().any(|part| match part {
                Part::Text(text) => !text.text.trim().is_empty(),
                Part::ToolCall(_) => true,
                _ => false,
            })
    })
}

fn contradiction(run: &Trajectory) -> Option<Ruling> {
    let outcome = run.outcome();
    let scored = outcome.score.is_some_and(|score| !score.is_finite());
    let reason = if scored {
        "the score is not a number".to_owned()
    } else if outcome.status == Status::Failure && outcome.score.is_none() && outcome.evidence.is_empty() {
        "a failure that no scorer's field supports".to_owned()
    } else {
        return None;
    };
    Some(Ruling { party: Party::Unknown, reason, evidence: Vec::new() })
}

fn unknown_outcome(run: &Trajectory) -> Option<Ruling> {
    (run.outcome().status == Status::Unknown).then(|| Ruling {
        party: Party::Unknown,
        reason: "no scorer's verdict is known".to_owned(),
        evidence: Vec::new(),
    })
}

fn agent(run: &Trajectory) -> Option<Ruling> {
    let outcome = run.outcome();
    (outcome.status == Status::Failure).then(|| Ruling {
        party: Party::Agent,
        reason: format!("the run ended normally and failed its check ({})", outcome.evidence),
        evidence: Vec::new(),
    })
}

fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(200)]
}

#[cfg(test)]
mod tests {
    use super::{RULES, blame};
    use crate::task::Task;
    use crate::trajectory::{Call, Node, Outcome, Part, Role, TerminationKind, Trajectory};
    use crate::verdict::Party;

    fn run(last: &str, outcome: Outcome) -> Trajectory {
        let mut run = Trajectory::new("test", Task::from_goal("book"));
        run.push(Node::new(Role::User, "user", vec![Part::text("book a flight")]));
        run.push(Node::new(Role::Assistant, "assistant", vec![Part::text(last)]).sampled());
        run.finish(outcome);
        run
    }

    fn failed() -> Outcome {
        Outcome::from_score(0.0, 1.0, "reward")
    }

    fn verdict(run: &Trajectory) -> (Party, String) {
        let (blame, _) = blame(run);
        (blame.party, blame.rule)
    }

    #[test]
    fn the_harness_speaks_first() {
        for (kind, party) in [
            (TerminationKind::UserError, Party::UserSimulator),
            (TerminationKind::InfrastructureError, Party::Infrastructure),
            (TerminationKind::Timeout, Party::Infrastructure),
            (TerminationKind::ContextOverflow, Party::Agent),
            (TerminationKind::StepLimit, Party::Agent),
        ] {
            let run = run("429 Too Many Requests", failed().ended(kind, "word"));
            assert_eq!(verdict(&run), (party, RULES[1].0.to_owned()), "{kind:?}");
        }
    }

    #[test]
    fn a_rate_limit_is_not_the_agents() {
        for text in [
            "429 Too Many Requests",
            "litellm.RateLimitError: quota",
            "Error: HTTP 503 Service Unavailable",
            "Error code: 429 - {'error': {}}",
        ] {
            let run = run(text, failed());
            let (blame, evidence) = blame(&run);
            assert_eq!((blame.party, blame.rule.as_str()), (Party::Infrastructure, RULES[2].0), "{text}");
            assert_eq!(evidence[0].quote(&run), Ok(text));
        }
        let mut run = run("fine", failed());
        run.nodes[1].occurrence.call =
            Some(Box::new(Call { error: Some("RateLimitError: slow down".to_owned()), ..Call::default() }));
        assert_eq!(verdict(&run).0, Party::Infrastructure);
    }

    #[test]
    fn nobody_is_blamed_for_a_run_that_holds_no_turn_of_the_agent() {
        let mut memories = Trajectory::new("test", Task::from_goal("book"));
        memories.push(Node::new(Role::User, "user", vec![Part::text("book a flight")]));
        memories.push(Node::new(Role::Assistant, "memory", vec![Part::text("I should book earlier.")]));
        let unknown = (Party::Unknown, RULES[3].0.to_owned());
        for outcome in [failed(), failed().ended(TerminationKind::StepLimit, "max_steps")] {
            memories.finish(outcome);
            assert_eq!(verdict(&memories), unknown);
        }
        memories.finish(failed().ended(TerminationKind::InfrastructureError, "crashed"));
        assert_eq!(verdict(&memories).0, Party::Infrastructure);
        assert_eq!(blame(&run(" ", failed())).0.reason, "the record holds no turn of the agent");
    }

    #[test]
    fn numbers_and_talk_of_limits_are_the_agents() {
        for text in ["429 is the answer", "500 rooms are free", "You asked about rate limits.", "Done."] {
            assert_eq!(verdict(&run(text, failed())), (Party::Agent, RULES[6].0.to_owned()), "{text}");
        }
    }

    #[test]
    fn silence_contradiction_and_missing_outcomes() {
        assert_eq!(verdict(&run(" ", failed())), (Party::Unknown, RULES[3].0.to_owned()));
        let mut bare = failed();
        (bare.score, bare.evidence) = (None, String::new());
        assert_eq!(verdict(&run("done", bare)), (Party::Unknown, RULES[4].0.to_owned()));
        let unknown = run("done", Outcome::unknown());
        assert_eq!(verdict(&unknown), (Party::Unknown, RULES[5].0.to_owned()));
        assert!(blame(&unknown).0.suspected);
        assert_eq!(verdict(&run("done", Outcome::from_flag(true, "ok"))).1, RULES[0].0);
    }
}
