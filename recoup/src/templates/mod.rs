//! Chat templates, tokens, and masks that are proved: exactly what the policy wrote is trained, token for
//! token.
//!
//! A row is rendered as Hugging Face renders it ([`ChatTemplate`]), tokenized by the model's own
//! [`Tokenizer`], and masked by [`mask()`]: two methods that know nothing of one another must agree on the
//! bytes of each message that is learned from, and every obligation is checked on the finished row. A row
//! that fails one is [`Refused`].
//!
//! Templates and tokenizers are foreign files: a template gets fuel and a bound on its output, and
//! nothing that reaches outside.

mod conversation;
#[cfg(test)]
mod fixture;
mod format;
mod mask;
mod metered;
mod profile;
mod proof;
mod proved;
mod python;
mod refused;
mod source;
mod spans;
mod template;
mod tokenizer;
mod words;

pub use self::conversation::Conversation;
pub use self::format::{ChatFormat, FormatError, FormatOptions, ModelFiles};
pub use self::mask::{MaskedRow, MaskedSpan, Target, mask};
pub use self::python::clock::LocalTime;
pub use self::refused::Refused;
pub use self::spans::Method;
pub use self::template::{ChatTemplate, RenderOptions, Rendering, TemplateError};
pub use self::tokenizer::{Encoded, Tokenizer, TokenizerError};
