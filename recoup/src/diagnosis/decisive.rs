//! The decisive step: which finding decided the run, and the words that explain it.

use super::actions::Action;
use super::effects::Effect;
use super::words::words;
use super::{DiagnosisConfig, Run};
use crate::verdict::Finding;

/// Share of the heaviest finding's weight that an earlier one must have to go before it.
const WEIGHT_SHARE: f64 = 0.6;

/// What is left of the weight of a finding on the path that a successful run shares.
const SHARED_PATH: f64 = 0.4;

/// Detectors of a run that stalls: what used a limit up, where one was reached.
const STALLS: &[&str] = &["loop", "repeated-call", "unaddressed-error"];

/// The detector of a limit that was reached.
const LIMIT: &str = "limit-reached";

/// Index of the decisive finding: the earliest that nothing later made up for, whose object reaches the
/// end, and that is not outweighed. Ties go to the heavier. `None` where nothing weighs enough.
///
/// A finding's weight is its strength, less where a successful run of the same task went the same way
/// up to there: what success shares did not decide. Where a limit ended the run, what it was spent on
/// decides before any single stall, and the end is only where it shows: it decides where no earlier open
/// fault or stall, however light, is known.
pub fn decisive(run: &Run<'_>, findings: &[Finding], config: &DiagnosisConfig) -> Option<usize> {
    let weights: Vec<f64> = findings.iter().map(|finding| weight(run, finding)).collect();
    let open: Vec<usize> = (0..findings.len())
        .filter(|at| findings[*at].resolved_at.is_none() && !is_contradicted(findings, &findings[*at]))
        // What nothing up to it shows cannot be checked.
        .filter(|at| findings[*at].is_cited_in_time())
        .collect();
    let heavy = open.iter().copied().filter(|at| weights[*at] >= config.weight_min);
    let is_limited = findings.iter().any(|finding| finding.detector == LIMIT);
    let is_end =
        |at: &usize| is_limited && run.last_step().is_some_and(|last| last.node == findings[*at].node);
    let (ends, mut faults): (Vec<usize>, Vec<usize>) = heavy.partition(is_end);
    // Where the limit says on what it was spent, it goes before the single stalls, and before what was
    // refused: that cost its turn and no more.
    if faults.iter().any(|at| findings[*at].detector == LIMIT) {
        faults.retain(|at| {
            let finding = &findings[*at];
            finding.detector == LIMIT
                || !(STALLS.contains(&finding.detector.as_str()) || is_refused(run, finding.node))
        });
    }
    let stalls = open
        .iter()
        .copied()
        .filter(|at| is_limited && !is_end(at) && STALLS.contains(&findings[*at].detector.as_str()))
        .collect();
    earliest(run, findings, &weights, faults)
        .or_else(|| earliest(run, findings, &weights, stalls))
        .or_else(|| earliest(run, findings, &weights, ends))
        .map(|at| start_of_repetition(findings, at))
}

/// Whether everything that a turn did was refused.
fn is_refused(run: &Run<'_>, node: usize) -> bool {
    let mut actions = run.actions.iter().filter(|action| action.node == node).peekable();
    actions.peek().is_some() && actions.all(Action::failed)
}

/// The first open repetition in the chain that a repeated call stands in: each cites the call it
/// repeats. Another finding is its own start.
fn start_of_repetition(findings: &[Finding], mut at: usize) -> usize {
    const REPEATED: &str = "repeated-call";
    if findings[at].detector != REPEATED {
        return at;
    }
    // Findings stand in order of node, so one look back over them follows the whole chain.
    for earlier in (0..at).rev() {
        let (one, later) = (&findings[earlier], &findings[at]);
        let is_repeated = later.citations.iter().any(|citation| citation.node == one.node);
        if one.detector == REPEATED && one.resolved_at.is_none() && one.node < later.node && is_repeated {
            at = earlier;
        }
    }
    at
}

/// Whether an error is one that the agent later denies: then the denial decides.
fn is_contradicted(findings: &[Finding], error: &Finding) -> bool {
    let denies = |other: &Finding| {
        other.detector == "ignored-error" && other.citations.iter().any(|at| error.citations.contains(at))
    };
    error.detector == "unaddressed-error" && findings.iter().any(denies)
}

/// The earliest of these findings that reaches the end and is not outweighed.
fn earliest(run: &Run<'_>, findings: &[Finding], weights: &[f64], open: Vec<usize>) -> Option<usize> {
    let reaching: Vec<usize> = open.iter().copied().filter(|at| reaches_end(run, &findings[*at])).collect();
    let open = if reaching.is_empty() { open } else { reaching };
    let heaviest = open.iter().map(|at| weights[*at]).fold(0.0, f64::max);
    open.into_iter().filter(|at| weights[*at] >= WEIGHT_SHARE * heaviest).min_by(|left, right| {
        findings[*left].node.cmp(&findings[*right].node).then(weights[*right].total_cmp(&weights[*left]))
    })
}

fn weight(run: &Run<'_>, finding: &Finding) -> f64 {
    let index = run.branch.node_index(finding.node).unwrap_or(usize::MAX);
    match run.divergence() {
        Some(divergence) if index < divergence.index => finding.strength * SHARED_PATH,
        _ => finding.strength,
    }
}

/// Whether what a finding is about is still there at the end: it stands at or behind the last change, or
/// a later change or the last message still holds a name or number it cites.
fn reaches_end(run: &Run<'_>, finding: &Finding) -> bool {
    let last_change = run.mutations().last().map(|action| action.node);
    if last_change.is_none_or(|node| node <= finding.node) {
        return true;
    }
    let mut objects: Vec<u64> = finding
        .citations
        .iter()
        .filter(|citation| citation.node == finding.node)
        .filter_map(|citation| citation.quote(run.trajectory).ok())
        .flat_map(words)
        .filter(|word| word.has_digit || word.range.len() >= 5)
        .map(|word| word.hash)
        .take(256)
        .collect();
    objects.sort_unstable();
    let holds = |text: &str| words(text).any(|word| objects.binary_search(&word.hash).is_ok());
    let later = run.actions.iter().filter(|action| action.node > finding.node);
    later.filter(|action| action.effect != Effect::Read).any(|action| holds(action.raw))
        || run.messages.last().is_some_and(|message| message.node > finding.node && holds(message.text))
}

/// The decisive finding in words, with what else stands open behind it. Holds no name, number or quote
/// that is not in the run.
pub fn explanation(run: &Run<'_>, findings: &[Finding], decisive: usize) -> String {
    let finding = &findings[decisive];
    let mut text = finding.message.clone();
    let is_last = run.last_step().is_some_and(|last| last.node == finding.node);
    text.push_str(if finding.detector == LIMIT && is_last {
        " No earlier fault is known."
    } else if run.branch.positions().last() == Some(&finding.node) {
        " The run ends here."
    } else {
        " Nothing later in the run makes up for it."
    });
    let mut others: Vec<&Finding> = Vec::new();
    for other in findings.iter().skip(decisive + 1) {
        let is_new =
            other.detector != finding.detector && others.iter().all(|one| one.detector != other.detector);
        if other.resolved_at.is_none() && other.node > finding.node && other.strength >= 0.4 && is_new {
            others.push(other);
        }
    }
    for other in others.into_iter().take(2) {
        text.push_str(" Later: ");
        text.push_str(&other.message);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::decisive;
    use crate::diagnosis::fixture::{call, chat, result, say, succeeded, user};
    use crate::diagnosis::{DiagnosisConfig, Run};
    use crate::trajectory::{Citation, Trajectory};
    use crate::verdict::Finding;

    fn finding(node: usize, strength: f64, resolved_at: Option<usize>) -> Finding {
        Finding {
            detector: format!("at-{node}-{strength}"),
            node,
            message: String::new(),
            strength,
            capability: String::new(),
            citations: vec![Citation { node, part_path: vec![0], start: 0, end: 9 }],
            resolved_at,
        }
    }

    fn run() -> Trajectory {
        chat(vec![
            user("go"),
            call("get_order", r#"{"id":"AAA11"}"#),
            result("ok"),
            call("get_order", r#"{"id":"BBB22"}"#),
            result("ok"),
            call("cancel_order", r#"{"id":"BBB22"}"#),
            result("ok"),
            say("Done with it."),
        ])
    }

    fn chosen(findings: &[Finding], siblings: &[&Trajectory]) -> Option<usize> {
        let run = run();
        let config = DiagnosisConfig::default();
        decisive(&Run::new(&run, siblings, &config), findings, &config)
    }

    #[test]
    fn earliest_open_finding_decides_and_ties_go_to_the_stronger() {
        assert_eq!(chosen(&[finding(5, 0.5, None), finding(7, 0.5, None)], &[]), Some(0));
        assert_eq!(chosen(&[finding(5, 0.5, None), finding(5, 0.6, None)], &[]), Some(1));
        assert_eq!(chosen(&[finding(5, 0.5, Some(6)), finding(7, 0.5, None)], &[]), Some(1));
        assert_eq!(chosen(&[finding(5, 0.1, None)], &[]), None);
        assert_eq!(chosen(&[finding(5, 0.3, None), finding(7, 0.9, None)], &[]), Some(1));
    }

    #[test]
    fn what_does_not_reach_the_end_does_not_decide() {
        let mut dropped = finding(1, 0.5, None);
        dropped.citations[0].start = 7;
        dropped.citations[0].end = 12;
        assert_eq!(chosen(&[dropped.clone(), finding(7, 0.5, None)], &[]), Some(1));
        let mut kept = finding(3, 0.5, None);
        kept.citations[0] = Citation { node: 3, part_path: vec![0], start: 7, end: 12 };
        assert_eq!(chosen(&[kept, finding(7, 0.5, None)], &[]), Some(0));
    }

    #[test]
    fn a_limit_decides_only_where_nothing_before_it_is_open() {
        let named = |detector: &str, node, strength, resolved_at| Finding {
            detector: detector.to_owned(),
            ..finding(node, strength, resolved_at)
        };
        let limit = || named("limit-reached", 7, 0.4, None);
        let repeat = |resolved_at| named("repeated-call", 3, 0.1, resolved_at);
        assert_eq!(chosen(&[repeat(None), limit()], &[]), Some(0));
        assert_eq!(chosen(&[repeat(Some(5)), limit()], &[]), Some(1));
        assert_eq!(chosen(&[repeat(None), finding(7, 0.5, None)], &[]), Some(1));
        let error = || named("unaddressed-error", 1, 0.5, None);
        let spent = named("limit-reached", 5, 0.4, None);
        assert_eq!(chosen(&[repeat(None), spent], &[]), Some(1), "it says on what it was spent");
        let submission = || named("missing-submission", 7, 0.9, None);
        assert_eq!(chosen(&[error(), limit(), submission()], &[]), Some(0));
    }

    #[test]
    fn a_repetition_decides_where_it_starts() {
        let mut repeats = [finding(3, 0.1, None), finding(5, 0.5, None), finding(7, 0.5, None)];
        for (at, repeat) in repeats.iter_mut().enumerate() {
            repeat.detector = "repeated-call".to_owned();
            repeat.citations[0].node = 1 + 2 * at;
        }
        assert_eq!(chosen(&repeats, &[]), Some(0));
        repeats[0].resolved_at = Some(4);
        assert_eq!(chosen(&repeats, &[]), Some(1));
    }

    #[test]
    fn a_path_that_success_shares_weighs_less() {
        let mut success = run();
        success.nodes.truncate(5);
        let success = succeeded(success);
        let findings = [finding(3, 0.5, None), finding(5, 0.5, None)];
        assert_eq!(chosen(&findings, &[&success]), Some(1));
    }
}
