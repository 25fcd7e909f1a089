//! Which bytes of a rendering a message's author wrote, found by methods that know nothing of one another.
//!
//! * [`generation`]: the template says so itself, with `{% generation %}`;
//! * [`sentinels`]: every string of the conversation is rendered between characters that occur nowhere
//!   else, and the message's bytes run from what prompts it to the token that ends it;
//! * [`prefix`]: a message's bytes are what its prompt's rendering gains when the message is appended.
//!
//! A message's bytes are certain where two methods agree, or where the template's own word was compared
//! with that of `transformers` over the golden corpus; nowhere else.

mod generation;
mod prefix;
mod sentinels;

use std::ops::Range;

pub(super) use self::generation::{by_corpus, by_generation};
pub(super) use self::prefix::by_prefix;
pub(super) use self::sentinels::{Traced, trace};

/// How a span was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// The template's own `{% generation %}`.
    Generation,
    /// Sentinels around every string.
    Sentinels,
    /// What a rendering gains by the message.
    Prefix,
    /// The golden corpus, which has proved the template's own spans.
    Corpus,
}

/// Where a message's bytes are: at least `core`, at most `outer`.
///
/// The core runs from the end of what prompts the message to the end of the token that ends the turn. A
/// template that says what is generated may count the prompt in, and white space behind the turn's end;
/// nothing else lies between the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub core: Range<usize>,
    pub outer: Range<usize>,
}

impl Extent {
    /// Whether ranges that another method found are this extent.
    pub(super) fn admits(&self, ranges: &[Range<usize>]) -> bool {
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return false };
        (self.outer.start..=self.core.start).contains(&first.start)
            && (self.core.end..=self.outer.end).contains(&last.end)
    }
}
