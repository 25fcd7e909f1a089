//! Windows: a long example as several that fit, cut between turns, never inside of what is learned.
//!
//! The first window is the conversation's start, as far as it fits. A later one begins with the system's
//! messages and goes on with whole turns; where those are the model's, the first message behind the system's
//! stays too, since it holds the task. Half of a window is there for what came before, so that a message is
//! never learned without its history where there is room for some. Each message is learned in one window.

use std::ops::Range;
use std::sync::Arc;

use crate::trajectory::{Part, Role};
use crate::views::{Example, Message, Objective, Segment};

/// Cuts an example into windows of at most `limit` tokens, as `tokens` measures them. A message that does not
/// fit with the least of its history is a window of its own, longer than the limit.
///
/// `None` where windows would not teach the same: a pair must share its context, and a mean is taken over the
/// whole example.
pub(super) fn windows(
    example: &Example,
    limit: usize,
    tokens: &dyn Fn(&Example) -> usize,
) -> Option<Vec<Example>> {
    if example.objective != Objective::TokenSum || example.pair.is_some() {
        return None;
    }
    let targets: Vec<usize> =
        (0..example.context.len()).filter(|index| example.segments_of(*index).next().is_some()).collect();
    let begins = begins(example);
    let mut out = Vec::new();
    let mut rest = targets.as_slice();
    while let Some(first) = rest.first() {
        let reachable = begins.partition_point(|begin| begin <= first);
        let reachable = begins.get(..reachable).unwrap_or_default();
        let fits = |begin: usize, last: usize, most: usize| {
            tokens(&window(example, begin, rest.first().copied().unwrap_or(0)..last + 1)) <= most
        };
        // Later begins leave less before the message.
        let begin_within = |most: usize| {
            let at = reachable.partition_point(|begin| !fits(*begin, *first, most));
            reachable.get(at).copied()
        };
        let whole = reachable.first().copied().filter(|begin| fits(*begin, *first, limit));
        let begin = match whole.or_else(|| begin_within(limit / 2)).or_else(|| begin_within(limit)) {
            Some(begin) => begin,
            None => reachable.last().copied().unwrap_or(0),
        };
        let learned = rest.partition_point(|last| fits(begin, *last, limit)).max(1);
        let (now, later) = rest.split_at(learned);
        out.push(window(example, begin, *first..now.last().copied().unwrap_or(*first) + 1));
        rest = later;
    }
    Some(out)
}

/// Messages that a window may begin with: the first of all, and each that answers none before it.
fn begins(example: &Example) -> Vec<usize> {
    let is_answer = |message: &Message| {
        message.role == Role::Tool || message.parts.iter().any(|part| matches!(part, Part::ToolResult(_)))
    };
    let begins = |(index, message): (usize, &Arc<Message>)| {
        (index == 0 || message.role != Role::System && !is_answer(message)).then_some(index)
    };
    example.context.iter().enumerate().filter_map(begins).collect()
}

/// The messages from `begin` to the last that is learned, behind the conversation's head.
fn window(example: &Example, begin: usize, learned: Range<usize>) -> Example {
    let is_system = |message: &&Arc<Message>| message.role == Role::System;
    let mut head = example.context.iter().take_while(is_system).count();
    let begins_with_model = example.context.get(begin).is_some_and(|message| message.role == Role::Assistant);
    if begins_with_model && example.context.get(head).is_some_and(|message| message.role != Role::Assistant) {
        head += 1;
    }
    let kept = (0..head.min(begin)).chain(begin..learned.end);
    let kept: Vec<usize> = kept.filter(|index| *index < example.context.len()).collect();
    let place = |segment: &Segment| kept.binary_search(&segment.message).ok();
    let segments = example.segments.iter().filter(|segment| learned.contains(&segment.message));
    let segments =
        segments.filter_map(|segment| Some(Segment { message: place(segment)?, ..segment.clone() }));
    Example {
        objective: example.objective,
        group: example.group.clone(),
        desirable: example.desirable,
        ..Example::new(
            kept.iter().filter_map(|index| example.context.get(*index).cloned()).collect(),
            Arc::clone(&example.tools),
            segments.collect(),
            example.lineage.clone(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::windows;
    use crate::task::Task;
    use crate::trajectory::{Part, Role, Trajectory};
    use crate::verdict::Side;
    use crate::views::{Example, Lineage, Message, Objective};

    /// Messages by their first letter: system, user, assistant, tool; each as long as its text.
    fn example(texts: &[&str]) -> Example {
        let message = |text: &&str| {
            let role = match text.as_bytes()[0] {
                b's' => Role::System,
                b'u' => Role::User,
                b'a' => Role::Assistant,
                _ => Role::Tool,
            };
            Arc::new(Message::written(role, "x", vec![Part::text(*text)]))
        };
        let context: Vec<Arc<Message>> = texts.iter().map(message).collect();
        let learned = context.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant);
        let segments =
            learned.flat_map(|(index, message)| message.segments(index).collect::<Vec<_>>()).collect();
        let run = Trajectory::new("test", Task::from_goal("test"));
        let lineage = Lineage::new("test", &run, Side::Train);
        Example::new(context, Arc::from([]), segments, lineage)
    }

    fn text(message: &Message) -> &str {
        match &message.parts[..] {
            [Part::Text(part)] => &part.text,
            _ => "",
        }
    }

    fn tokens(example: &Example) -> usize {
        example.context.iter().map(|message| text(message).len()).sum()
    }

    /// Each window's messages; `*` behind what is learned.
    fn cut(texts: &[&str], limit: usize) -> Vec<String> {
        let shown = |window: &Example| {
            let messages = window.context.iter().enumerate().map(|(index, message)| {
                let mark = if window.segments_of(index).next().is_some() { "*" } else { "" };
                format!("{}{mark}", text(message))
            });
            messages.collect::<Vec<_>>().join(" ")
        };
        windows(&example(texts), limit, &tokens).unwrap().iter().map(shown).collect()
    }

    #[test]
    fn each_message_is_learned_once_behind_whole_turns() {
        let run = ["s0", "u0", "a1", "t1", "a2", "t2", "a3", "t3", "a4"];
        assert_eq!(cut(&run, 18), ["s0 u0 a1* t1 a2* t2 a3* t3 a4*"]);
        assert_eq!(cut(&run, 12), ["s0 u0 a1* t1 a2*", "s0 u0 a3* t3 a4*"]);
        assert_eq!(
            cut(&["s0", "u1", "a1", "u2", "a2", "u3", "a3"], 8),
            ["s0 u1 a1*", "s0 u2 a2*", "s0 u3 a3*"]
        );
    }

    #[test]
    fn what_fits_with_nothing_before_it_stands_alone_and_is_too_long() {
        assert_eq!(cut(&["s0", "u0", "a1", "t1", "a2222222"], 8), ["s0 u0 a1*", "s0 u0 a2222222*"]);
    }

    #[test]
    fn what_is_averaged_or_paired_is_not_cut() {
        let mut mean = example(&["u0", "a1"]);
        mean.objective = Objective::MeanPerExample;
        assert_eq!(windows(&mean, 1, &tokens), None);
    }
}
