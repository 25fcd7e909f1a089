//! The words and figures that the page and the Markdown share, so that they cannot disagree.

use std::fmt::Write as _;

use super::model::{Breakdown, Group, Headline, Outcomes, Rate, Replays, Report};
use crate::exporters::TokenCounts;
use crate::replay::{self, Comparison};
use crate::trajectory::Status;
use crate::verdict::{Arm, Class, Party};
use crate::views::Tally;

/// `12,345`.
pub(super) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 run`, `12,345 runs`.
pub(super) fn runs(n: u64) -> String {
    counted(n, "run", "runs")
}

/// A number with its noun.
pub(super) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { many })
}

/// `12 kB`, in thousands.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => counted(bytes, "byte", "bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// How much of a view's text is learned.
pub(super) fn learned(built: &Tally) -> String {
    if built.learned_bytes == 0 {
        return "nothing of it imitated".to_owned();
    }
    let share = built.learned_bytes as f64 / built.bytes.max(1) as f64;
    format!("{} of it learned ({})", size(built.learned_bytes), percent(share))
}

/// `402,557 tokens, 31,204 of them learned (8%)`, and how many rows are windows of longer examples.
pub(super) fn tokens(counts: &TokenCounts) -> String {
    let share = counts.trained_tokens as f64 / counts.tokens.max(1) as f64;
    let learned = number(counts.trained_tokens);
    let mut said = format!(
        "{}, {learned} of them learned ({})",
        counted(counts.tokens, "token", "tokens"),
        percent(share)
    );
    if counts.windows > 0 {
        let _ = write!(said, "; {} of longer examples", counted(counts.windows, "window", "windows"));
    }
    said
}

/// `62%`; one decimal near the ends, where a whole percent would lie.
pub(super) fn percent(share: f64) -> String {
    let near_end = (share > 0.0 && share < 0.01) || (share > 0.99 && share < 1.0);
    let percent = share * 100.0;
    if near_end { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

/// `55–69%`.
pub(super) fn interval(rate: &Rate) -> String {
    format!("{}–{}", percent(rate.low).trim_end_matches('%'), percent(rate.high))
}

/// `62% (55–69%)`.
pub(super) fn rate(rate: &Rate) -> String {
    format!("{} ({})", percent(rate.rate), interval(rate))
}

/// `62% (55–69%)`, or why there is none.
pub(super) fn rate_or_none(value: Option<&Rate>) -> String {
    value.map_or_else(|| "not scored".to_owned(), rate)
}

/// `+32.7 points`.
pub(super) fn points(points: f64) -> String {
    format!("{points:+.1}").replace('-', "−")
}

/// A difference with its interval, or why there is none.
pub(super) fn difference(difference: &Comparison) -> String {
    match (difference.low, difference.high) {
        (Some(low), Some(high)) => {
            format!("{} points ({} to {})", points(difference.points), points(low), points(high))
        }
        _ => format!("{} points; fewer than ten tasks, so no interval", points(difference.points)),
    }
}

/// `p = 0.012` after Holm.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// What an arm of a group does first.
pub(super) fn arm(group: &replay::Group, arm: Arm, synthetic: bool) -> String {
    let what = match arm {
        Arm::Retry => "the original action again",
        Arm::Resample => "what the policy does there now",
        Arm::Reconsider => "told to reconsider",
        Arm::Guided => "told the diagnosis",
        Arm::Repair => return format!("what {} proposed", candidates(group)),
    };
    if synthetic { format!("{what}; takes advice by a written rule") } else { what.to_owned() }
}

/// Who proposed the repairs of a group.
pub(super) fn candidates(group: &replay::Group) -> String {
    let words: Vec<&str> = group
        .candidates
        .iter()
        .map(|source| match source.as_str() {
            "rules" => "the rules",
            "sibling" => "a successful run",
            "expert" => "the expert",
            "file" => "a file",
            other => other,
        })
        .collect();
    if words.is_empty() { "nobody".to_owned() } else { words.join(" or ") }
}

/// What was replayed, in a sentence or two.
pub(super) fn replayed(replays: &Replays) -> String {
    let pairs: u64 = replays.groups.iter().map(|group| group.pairs).sum();
    let mut text = format!("{} replayed.", runs(pairs));
    if !replays.unsupported.is_empty() {
        let reasons: Vec<String> =
            replays.unsupported.iter().map(|(code, count)| format!("{} {code}", number(*count))).collect();
        let _ = write!(text, " Not replayed: {}.", reasons.join(", "));
    }
    if !replays.claims.is_empty() {
        let claims: Vec<String> = replays
            .claims
            .iter()
            .map(|(rung, count)| format!("{} {}", number(*count), rung.replace('_', " ")))
            .collect();
        let _ = write!(text, " Diagnoses by what is proved: {}.", claims.join(", "));
    }
    text
}

/// A number between 0 and 1 with two decimals.
pub(super) fn two_decimals(value: f64) -> String {
    format!("{value:.2}")
}

/// What the report found, in one sentence.
pub(super) fn verdict(headline: &Headline) -> String {
    let Outcomes { success, failure, unknown } = headline.outcomes;
    let all = headline.runs;
    if all == 0 {
        "No runs to report on.".to_owned()
    } else if failure == 0 && unknown == 0 {
        format!("{} passed.", if all == 1 { "The only run".to_owned() } else { format!("All {}", runs(all)) })
    } else if success + failure == 0 {
        let (subject, verb) = if all == 1 { ("The outcome", "is") } else { ("The outcomes", "are") };
        format!("{subject} of {} {verb} unknown.", runs(all))
    } else if unknown > success + failure {
        let of_the_others = match success + failure {
            1 => format!("the other {}", if failure == 1 { "failed" } else { "passed" }),
            scored => format!("{} of the other {} failed", number(failure), number(scored)),
        };
        format!("{} of {} have no outcome; {of_the_others}.", number(unknown), runs(all))
    } else if failure == 0 {
        format!("None of {} failed.", counted(success, "scored run", "scored runs"))
    } else {
        let own = match headline.agent_failures {
            0 => "none of them by the agent’s own fault".to_owned(),
            own if own == failure && own == 1 => "by the agent’s own fault".to_owned(),
            own if own == failure => "all by the agent’s own fault".to_owned(),
            own => format!("{} by the agent’s own fault", number(own)),
        };
        format!(
            "{} of {} failed, {own}.",
            number(failure),
            counted(headline.outcomes.scored(), "scored run", "scored runs")
        )
    }
}

/// The paragraph beneath it; empty where there is nothing to add.
pub(super) fn verdict_details(report: &Report) -> String {
    let headline = &report.headline;
    let mut sentences = Vec::new();
    if let Some(success) = &headline.success_rate {
        sentences.push(format!(
            "{} succeeded, with a 95% interval of {}.",
            percent(success.rate),
            interval(success)
        ));
    }
    if headline.outcomes.unknown > 0 && headline.outcomes.unknown <= headline.outcomes.scored() {
        let be = if headline.outcomes.unknown == 1 { "has" } else { "have" };
        sentences.push(format!("{} {be} no outcome yet.", runs(headline.outcomes.unknown)));
    }
    if headline.diagnosed > 0 {
        let of = headline.outcomes.failure;
        sentences.push(format!(
            "A decisive step was found in {} of {}.",
            number(headline.diagnosed),
            counted(of, "failure", "failures")
        ));
    }
    if headline.suspected > 0 {
        let look = if headline.suspected == 1 { "looks like a failure" } else { "look like failures" };
        sentences.push(format!("{} without an outcome {look}.", runs(headline.suspected)));
    }
    if let (Some(failed), Some(passed)) = (headline.median_steps_failure, headline.median_steps_success) {
        sentences.push(format!(
            "The median failure took {}, the median success {}.",
            counted(failed, "step", "steps"),
            number(passed)
        ));
    }
    sentences.join(" ")
}

/// The outcome as a word of prose.
pub(super) fn outcome(status: Status) -> &'static str {
    match status {
        Status::Success => "passed",
        Status::Failure => "failed",
        Status::Unknown => "unknown",
    }
}

/// The party as the subject of "failed".
pub(super) fn party(party: Party) -> &'static str {
    match party {
        Party::Agent => "The agent",
        Party::Infrastructure => "Infrastructure",
        Party::UserSimulator => "The simulated user",
        Party::Verifier => "The scorer",
        Party::Environment => "The environment",
        Party::Task => "The task",
        Party::Unknown => "Undecided",
    }
}

/// What blaming the party means.
pub(super) fn party_meaning(party: Party) -> &'static str {
    match party {
        Party::Agent => "its own decisions; the only failures that teach",
        Party::Infrastructure => "provider, network, container or harness broke",
        Party::UserSimulator => "the simulated user broke its instructions",
        Party::Verifier => "the scorer crashed or contradicted itself",
        Party::Environment => "a tool contradicted its own contract",
        Party::Task => "unsolvable, or its gold answer is wrong",
        Party::Unknown => "nobody can say",
    }
}

/// The class as a heading.
pub(super) fn class(class: Class) -> &'static str {
    match class {
        Class::Incomplete => "Incomplete",
        Class::ConstraintViolation => "Constraint violation",
        Class::WrongResult => "Wrong result",
        Class::ToolError => "Tool error",
        Class::Hallucination => "Hallucination",
        Class::OffTopic => "Off topic",
    }
}

/// What the class means.
pub(super) fn class_meaning(class: Class) -> &'static str {
    match class {
        Class::Incomplete => "the goal was left open",
        Class::ConstraintViolation => "a rule of the task or of a tool was broken",
        Class::WrongResult => "finished, with a wrong result",
        Class::ToolError => "failing tool calls decided it",
        Class::Hallucination => "it states or uses what no observation holds",
        Class::OffTopic => "it worked on something else",
    }
}

/// Column heading of a breakdown.
pub(super) fn dimension(by: &str) -> &'static str {
    match by {
        "task" => "Task",
        "agent" => "Agent",
        "model" => "Model",
        "harness" => "Harness",
        _ => "Format",
    }
}

/// Plural of the same.
fn dimensions(by: &str) -> &'static str {
    match by {
        "task" => "tasks",
        "agent" => "agents",
        "model" => "models",
        "harness" => "harnesses",
        _ => "formats",
    }
}

/// `101 tasks`; nothing for a single one.
pub(super) fn distinct(breakdown: &Breakdown) -> String {
    match breakdown.values {
        0 | 1 => String::new(),
        values => format!("{} {}", number(values), dimensions(breakdown.by)),
    }
}

/// A group's own words where it has no name: the pooled rest, or runs that do not say.
pub(super) fn unnamed(group: &Group, pooled: Option<(u64, &str)>) -> Option<String> {
    match (pooled, &group.name) {
        (Some((others, by)), _) => Some(format!("{} other {}", number(others), dimensions(by))),
        (None, None) => Some("not recorded".to_owned()),
        (None, Some(_)) => None,
    }
}

/// `node 12 · step 4`, both 0-based as in `recoup show`.
pub(super) fn place(node: usize, step: Option<usize>) -> String {
    match step {
        Some(step) => format!("node {node} · step {step}"),
        None => format!("node {node}"),
    }
}

/// The text's first characters, and how many more there are.
pub(super) fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => {
            let (head, tail) = text.split_at(end);
            format!("{head}… (+{} characters)", number(tail.chars().count() as u64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{clip, number, percent};

    #[test]
    fn figures_read_well() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(percent(0.004), "0.4%");
        assert_eq!(percent(0.0), "0%");
        assert_eq!(percent(1.0), "100%");
        assert_eq!(percent(0.625), "62%");
    }

    #[test]
    fn clipping_counts_characters() {
        assert_eq!(clip("äöü", 3), "äöü");
        assert_eq!(clip("äöüß", 3), "äöü… (+1 characters)");
    }
}
