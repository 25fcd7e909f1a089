//! Why a row is refused. A row whose mask cannot be proved is not written.

use super::TemplateError;

/// The first obligation that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The template refused the conversation, or failed on it.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The tokenizer has no token for something in the text.
    #[error("the text cannot be tokenized")]
    NotTokenized,
    /// The row is longer than the model's context.
    #[error("{tokens} tokens, and the context holds {limit}")]
    TooLong {
        /// Tokens of the row.
        tokens: usize,
        /// Tokens that fit.
        limit: usize,
    },
    /// No message is learned from, or nothing of one is rendered.
    #[error("there is nothing to learn from")]
    NothingToLearn,
    /// Only one method of finding a span works with this template on this row: it does not render the
    /// start of a conversation as the start of its rendering, or writes otherwise because of sentinels.
    #[error("only one way of finding the model's words works on this row")]
    OneMethodOnly,
    /// Two methods of finding a span disagree.
    #[error("two ways of finding the model's words disagree")]
    MethodsDisagree,
    /// A token reaches over the edge of a span, and the format is strict.
    #[error("a token reaches over the edge of the model's words")]
    Straddling,
    /// A weighted token lies in no span of a target.
    #[error("a token outside of the model's words would be learned")]
    OutsideOfSpans,
    /// A string that another message holds lies in a span.
    #[error("somebody else's words lie among the model's")]
    ForeignText,
    /// The token that ends the turn would not be learned.
    #[error("the end of the turn would not be learned")]
    EndOfTurn,
    /// The learned tokens do not decode to the span's text.
    #[error("the learned tokens stand for other text")]
    DecodesOtherwise,
    /// The template drops a part of the message.
    #[error("the template leaves out a part of the model's message")]
    NotWhole,
    /// The recorded tokens do not decode to the text.
    #[error("the recorded tokens stand for other text")]
    RecordedOtherwise,
}

impl Refused {
    /// Stable words, by which manifests count.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Template(TemplateError::Raised(_)) => "refused-by-the-template",
            Self::Template(TemplateError::Endless) => "template-does-not-end",
            Self::Template(TemplateError::NoDate) => "template-asks-for-the-date",
            Self::Template(_) => "template-failed",
            Self::NotTokenized => "not-tokenized",
            Self::TooLong { .. } => "longer-than-the-context",
            Self::NothingToLearn => "no-token-to-learn",
            Self::OneMethodOnly => "spans-found-one-way-only",
            Self::MethodsDisagree => "spans-disagree",
            Self::Straddling => "token-over-an-edge",
            Self::OutsideOfSpans => "token-outside-of-spans",
            Self::ForeignText => "foreign-text-in-a-span",
            Self::EndOfTurn => "end-of-turn-not-learned",
            Self::DecodesOtherwise => "tokens-decode-otherwise",
            Self::NotWhole => "template-drops-a-part",
            Self::RecordedOtherwise => "recorded-tokens-decode-otherwise",
        }
    }
}
