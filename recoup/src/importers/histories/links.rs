//! Which records of a file belong to one run, found from hashes of their messages.

use std::collections::{HashMap, VecDeque};

use super::Exchange;
use super::fingerprint::{chain, start};
use crate::id::Hash;
use crate::importers::slice::Place;

/// A record that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staged {
    pub(super) place: Place,
    /// How many equal records stand before it.
    pub(super) ordinal: u64,
}

/// The records so far and what joins them.
#[derive(Default)]
pub(super) struct Links {
    staged: Vec<Staged>,
    /// The record that each record's run is known by: the first, or one before it.
    joined: Vec<usize>,
    /// Records by the hash of all their messages, answer included.
    ends: HashMap<Hash, Ends>,
    /// The first record that passes through a thread on its way to more.
    passing: HashMap<Hash, usize>,
    /// What a record ends in, by the provider's id of its response.
    responses: HashMap<String, (usize, Hash)>,
    /// The first record of a conversation that the source names.
    named: HashMap<String, usize>,
}

/// The records that end in one thread.
#[derive(Default)]
struct Ends {
    /// Those that nothing continues yet.
    open: VecDeque<usize>,
    /// The last one with an answer, which may be continued in several ways; a failed request is only
    /// tried again once.
    last: Option<usize>,
}

impl Links {
    /// Takes a record in.
    pub(super) fn add(&mut self, staged: Staged, exchange: &Exchange<'_>) {
        let record = self.staged.len();
        self.staged.push(staged);
        self.joined.push(record);
        if exchange.alone {
            return;
        }
        let previous = exchange.previous.as_ref().and_then(|id| self.responses.get(id)).copied();
        let known = if previous.is_some() { exchange.instructions() } else { 0 };
        let context = chain(previous.map_or_else(start, |(_, end)| end), exchange.context.iter().skip(known));
        if let Some((earlier, _)) = previous {
            self.join(earlier, record);
        } else if let Some(earlier) = self.continued(longer(&context, exchange)) {
            self.join(earlier, record);
        }
        let last = context.last().copied().or(previous.map(|(_, end)| end)).unwrap_or_else(start);
        let end = chain(last, &exchange.answer).last().copied().unwrap_or(last);
        // Logs are not always in order: this record may be the beginning of an earlier one.
        if let Some(longer) = self.passing.get(&end).copied() {
            self.join(longer, record);
        }
        if let Some(name) = &exchange.conversation {
            let first = *self.named.entry(name.clone()).or_insert(record);
            self.join(first, record);
        }
        for hash in context {
            // Where a failed request ends, nothing was passed.
            if hash != end {
                self.passing.entry(hash).or_insert(record);
            }
        }
        let ends = self.ends.entry(end).or_default();
        ends.open.push_back(record);
        if !exchange.answer.is_empty() {
            ends.last = Some(record);
        }
        if let Some(id) = &exchange.id {
            self.responses.insert(id.clone(), (record, end));
        }
    }

    /// The record that a thread continues furthest: of several equal ones the first that nothing
    /// continues yet, else the last.
    fn continued(&mut self, context: &[Hash]) -> Option<usize> {
        let nothing = start();
        context.iter().rev().filter(|hash| **hash != nothing).find_map(|hash| {
            let ends = self.ends.get_mut(hash)?;
            ends.open.pop_front().or(ends.last)
        })
    }

    fn root(&self, mut record: usize) -> usize {
        while self.joined[record] != record {
            record = self.joined[record];
        }
        record
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        let (first, later) = (one.min(other), one.max(other));
        self.joined[later] = first;
    }

    /// The records of each run, in file order; runs in the order in which they begin.
    pub(super) fn groups(self) -> Vec<Vec<Staged>> {
        let mut groups: Vec<Vec<Staged>> = vec![Vec::new(); self.staged.len()];
        for (record, staged) in self.staged.iter().enumerate() {
            let root = self.root(record);
            groups[root].push(*staged);
        }
        groups.retain(|group| !group.is_empty());
        groups
    }
}

/// The threads that a record may go on from. One that only holds messages says more than what it goes
/// on from; a request may be a failed one tried again.
fn longer<'c>(context: &'c [Hash], exchange: &Exchange<'_>) -> &'c [Hash] {
    let asked = !exchange.answer.is_empty() || exchange.error.is_some();
    let shorter = context.split_last().map_or(context, |(_, before)| before);
    if asked { context } else { shorter }
}

#[cfg(test)]
mod tests {
    use super::{Exchange, Links, Place, Staged};
    use crate::trajectory::{Node, Part, Role};
    use crate::warning::ByteSpan;

    /// Each record is `context>answer`, a letter a message; the runs as lists of records.
    fn runs(records: &[&str]) -> Vec<Vec<u64>> {
        let mut links = Links::default();
        for (index, record) in records.iter().enumerate() {
            let (context, answer) = record.split_once('>').unwrap();
            let node = |role| move |letter: char| Node::new(role, "x", vec![Part::text(letter.to_string())]);
            let role = |letter: char| if letter.is_uppercase() { Role::Assistant } else { Role::User };
            let nodes = |text: &str| text.chars().map(|letter| node(role(letter))(letter)).collect();
            let exchange = Exchange { context: nodes(context), answer: nodes(answer), ..Exchange::default() };
            let span = ByteSpan { start: index as u64, end: index as u64 + 1 };
            let place = Place { span, line: 1, row: None, held: span };
            links.add(Staged { place, ordinal: 0 }, &exchange);
        }
        let starts = |group: Vec<Staged>| group.iter().map(|staged| staged.place.span.start).collect();
        links.groups().into_iter().map(starts).collect()
    }

    #[test]
    fn requests_that_repeat_an_answered_one_are_one_run() {
        assert_eq!(runs(&["a>B", "aBc>D", "aBcDe>F"]), [[0, 1, 2]]);
        assert_eq!(runs(&["a>B", "aBcDe>F"]), [[0, 1]], "a record between is missing");
        assert_eq!(runs(&["a>B", "aBc>D", "aBx>Y"]), [[0, 1, 2]], "a branch");
        assert_eq!(runs(&["aBc>D", "a>B"]), [[0, 1]], "out of order");
    }

    #[test]
    fn a_prompt_asked_again_is_another_run() {
        assert_eq!(runs(&["a>B", "a>C"]), [[0], [1]]);
        assert_eq!(runs(&["a>B", "a>B", "aBc>D", "aBc>E"]), [[0, 2], [1, 3]], "equal samples go on apart");
        assert_eq!(runs(&["a>B", "x>B"]), [[0], [1]]);
    }

    #[test]
    fn a_failed_request_belongs_to_the_one_that_tries_again() {
        assert_eq!(runs(&["a>", "a>B", "a>C"]), [vec![0, 1], vec![2]]);
        assert_eq!(runs(&["aBc>", "aBc>", "aBcD>"]), [vec![0, 2], vec![1]], "equal lists of messages");
    }
}
