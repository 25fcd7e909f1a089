//! What a round came to in words, the same on a terminal, on a page and in Markdown.

use std::fmt::Display;

use super::{Arm, Rate, RoundReport};
use crate::interleaving::Readings;
use crate::statistics::Bounds;

/// One thing that is said of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is about.
    pub name: &'static str,
    /// The figures. How runs ended is in the words of their environments.
    pub value: String,
}

/// Everything that is said of a round.
pub fn lines(round: &RoundReport) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut say = |name, value: String| lines.push(Line { name, value });
    let outcomes = counts(round.outcomes.iter().map(|(outcome, count)| (outcome.as_str(), count)));
    say("runs", format!("{}: {outcomes}", round.runs));
    for (name, arm) in
        [("student alone", &round.student), ("teacher alone", &round.teacher), ("mixture", &round.mixture)]
    {
        let Some(Arm { success, end_modes }) = arm else { continue };
        let passed =
            if success.n == 0 { "none scored".to_owned() } else { format!("{} passed", share(success)) };
        say(name, format!("{passed}; ended: {}", counts(end_modes)));
    }
    if let Some(fraction) = round.delivered_teacher_fraction {
        say("delivered teacher fraction", format!("{:.1} % of the turns", 100.0 * fraction));
    }
    let Readings { strict, lenient, unreadable } = round.readings;
    if !round.readings.is_empty() {
        say(
            "student's turns",
            format!("read strictly {strict} times, leniently {lenient}, not at all {unreadable}"),
        );
    }
    let labels = &round.labels;
    say("labels", format!("{} of {} visited states have an accepted one", labels.accepted, labels.states));
    if !labels.refused.is_empty() {
        say("labels refused", counts(labels.refused.iter().map(|(rule, count)| (rule.as_str(), count))));
    }
    if !labels.marked.is_empty() {
        let marked = counts(labels.marked.iter().map(|(filter, count)| (filter.as_str(), count)));
        say("labels marked", format!("{marked}; {} held back by filters that are on", labels.held_back));
    }
    if let (tried @ 1.., passed) = labels.verified {
        say("labels executed", format!("{tried}, of which {passed} passed"));
    }
    if let Some(disagreement) = &round.shift.disagreement {
        say("action disagreement", format!("{} where the student acted", share(disagreement)));
    }
    let divergence = match (round.shift.reverse_kl, round.shift.unavailable()) {
        (Some(kl), _) => {
            let left_out = match round.shift.unscored.values().sum::<u64>() {
                0 => String::new(),
                turns => format!("; {turns} turns could not be compared"),
            };
            format!("{kl:.4} nats a token over {} tokens{left_out}", round.shift.tokens)
        }
        (None, why) => format!("not available: {}", why.unwrap_or_default()),
    };
    if labels.states > 0 {
        say("reverse KL", divergence);
    }
    if let Some(tokens) = labels.tokens_per_accepted.filter(|tokens| *tokens > 0.0) {
        let cost = labels.cost_per_accepted_usd.map_or_else(String::new, |cost| format!(", ${cost:.6}"));
        say("an accepted label took", format!("{tokens:.0} tokens{cost}"));
    }
    lines
}

fn counts<'c, W: Display>(counts: impl IntoIterator<Item = (W, &'c u64)>) -> String {
    let said: Vec<String> = counts.into_iter().map(|(word, count)| format!("{count} {word}")).collect();
    said.join(", ")
}

/// A share with its interval.
fn share(rate: &Rate) -> String {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let interval = rate.interval.map_or_else(
        || format!(" (no interval from {} {})", rate.tasks, if rate.tasks == 1 { "task" } else { "tasks" }),
        |Bounds { low, high }| format!(" [{}, {}]", percent(low), percent(high)),
    );
    format!("{} % of {}{interval}", percent(rate.rate), rate.n)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{LabelCounts, Shift};
    use super::{RoundReport, lines};
    use crate::verdict::Unscored;

    #[test]
    fn a_divergence_that_nobody_knows_is_said_with_its_reason() {
        let said = |shift: Shift| {
            let labels = LabelCounts { states: 1, ..LabelCounts::default() };
            let lines = lines(&RoundReport { labels, shift, ..RoundReport::default() });
            lines.into_iter().find(|line| line.name == "reverse KL").unwrap().value
        };
        assert_eq!(said(Shift::default()), "not available: it was not asked for");
        let unscored = BTreeMap::from([(Unscored::Teacher, 3), (Unscored::Tokens, 1)]);
        assert_eq!(
            said(Shift { unscored: unscored.clone(), ..Shift::default() }),
            "not available: the teacher does not score given tokens (3 turns); student and teacher cut the turn into \
             different tokens (1 turn)"
        );
        let known = Shift { reverse_kl: Some(0.5), tokens: 8, unscored, ..Shift::default() };
        assert_eq!(said(known), "0.5000 nats a token over 8 tokens; 4 turns could not be compared");
    }
}
