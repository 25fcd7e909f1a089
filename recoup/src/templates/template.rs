//! A chat template: a conversation in, the text that the model sees out.

use std::io;
use std::ops::Range;

use minijinja::{Environment, Error, ErrorKind, Value};

use super::conversation::{Anchors, Conversation, plain};
use super::profile::{self, MARKS, NO_DATE, RAISED};
use super::python::clock::LocalTime;
use super::source::{Generation, rewrite};

/// Bytes of a template's source.
const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a rendering.
const OUTPUT_BYTES_MAX: usize = 64 << 20;
/// First byte of plane 15 in UTF-8, and of planes 12 to 14.
const LEAD: u8 = 0xF3;
/// Name of the one template in its environment.
const NAME: &str = "chat_template";

/// Why a template cannot be used, or a conversation not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The source is no template.
    #[error("the chat template cannot be read: {0}")]
    Syntax(String),
    /// The source is larger than any template.
    #[error("the chat template is larger than {SOURCE_BYTES_MAX} bytes")]
    TooLarge,
    /// The template refused the conversation itself.
    #[error("the chat template refused: {0}")]
    Raised(String),
    /// It does not end, or writes without end.
    #[error("the chat template took too long or wrote too much")]
    Endless,
    /// It asks for the date.
    #[error("{NO_DATE}")]
    NoDate,
    /// Anything else that Python would have raised.
    #[error("the chat template failed: {0}")]
    Failed(String),
    /// The conversation holds every character that could mark a place in it.
    #[error("the conversation leaves no character to mark places with")]
    NoMark,
}

impl From<Error> for TemplateError {
    fn from(error: Error) -> Self {
        let detail = error.detail().unwrap_or_default();
        match error.kind() {
            ErrorKind::OutOfFuel | ErrorKind::WriteFailure => Self::Endless,
            ErrorKind::SyntaxError => Self::Syntax(error.to_string()),
            _ if detail == NO_DATE => Self::NoDate,
            _ => match detail.strip_prefix(RAISED) {
                Some(message) => Self::Raised(message.to_owned()),
                None => Self::Failed(error.to_string()),
            },
        }
    }
}

/// A compiled template, with the variables that a tokenizer gives it.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    generation: Generation,
    variables: Vec<(String, Value)>,
}

/// A conversation as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendering {
    /// What the model sees.
    pub text: String,
    /// Byte ranges that `{% generation %}` says the model writes, in order; empty without the tag.
    pub generated: Vec<Range<usize>>,
}

/// What a rendering is asked for, beside the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// Whether the text ends where the model would begin to answer.
    pub add_generation_prompt: bool,
}

impl ChatTemplate {
    /// Compiles a template. `variables` are the tokenizer's special tokens (`bos_token`) and whatever
    /// else the template reads (`enable_thinking`); `now` is what it prints where it asks for the date.
    ///
    /// # Errors
    /// When the source is no template.
    pub fn new(
        source: &str,
        variables: &[(String, serde_json::Value)],
        now: Option<LocalTime>,
    ) -> Result<Self, TemplateError> {
        if source.len() > SOURCE_BYTES_MAX {
            return Err(TemplateError::TooLarge);
        }
        let rewritten = rewrite(source);
        let mut environment = profile::environment(now)?;
        environment.add_template_owned(NAME, rewritten.source)?;
        let variables = variables.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
        Ok(Self { environment, generation: rewritten.generation, variables })
    }

    /// Whether the template says what the model writes.
    pub fn marks_generation(&self) -> bool {
        self.generation != Generation::Absent
    }

    /// The text of a conversation, with what `{% generation %}` says of it.
    ///
    /// # Errors
    /// When the template refuses, fails or does not end.
    pub fn render(
        &self,
        conversation: &Conversation<'_>,
        options: RenderOptions,
    ) -> Result<Rendering, TemplateError> {
        if self.generation == Generation::Absent {
            let text = self.text(conversation.messages(None), conversation, options, None)?;
            return Ok(Rendering { text, generated: Vec::new() });
        }
        let first = free_characters(conversation, 2).ok_or(TemplateError::NoMark)?;
        let marks: [char; 2] = [first, char::from_u32(u32::from(first) + 1).ok_or(TemplateError::NoMark)?];
        let messages = conversation.messages(None);
        let marked = self.text(messages.clone(), conversation, options, Some(marks))?;
        let rendering = unmarked(&marked, marks);
        // A template that captures a block may see the marks, and write something else because of them.
        if self.generation == Generation::Captured {
            let text = self.text(messages, conversation, options, None)?;
            if text != rendering.text {
                return Ok(Rendering { text, generated: Vec::new() });
            }
        }
        Ok(rendering)
    }

    /// The text of a conversation whose messages carry anchors, anchors included.
    pub(super) fn render_anchored(
        &self,
        conversation: &Conversation<'_>,
        anchors: Anchors,
    ) -> Result<String, TemplateError> {
        self.text(conversation.messages(Some(anchors)), conversation, RenderOptions::default(), None)
    }

    fn text(
        &self,
        messages: Value,
        conversation: &Conversation<'_>,
        options: RenderOptions,
        marks: Option<[char; 2]>,
    ) -> Result<String, TemplateError> {
        let variables = self.variables.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let context = [
            ("messages", messages),
            ("tools", conversation.tools()),
            ("documents", Value::from(())),
            ("add_generation_prompt", Value::from(options.add_generation_prompt)),
        ];
        let marks = marks.map(|marks| (MARKS, Value::from(String::from_iter(marks))));
        let context = Value::from_pairs(context.into_iter().chain(variables).chain(marks));
        let mut out = Capped(Vec::new());
        self.environment.get_template(NAME)?.render_captured_to(context, &mut out)?;
        String::from_utf8(out.0).map_err(|error| TemplateError::Failed(error.to_string()))
    }
}

/// The first of `count` private-use characters in a row of which none is in the conversation.
pub(super) fn free_characters(conversation: &Conversation<'_>, count: usize) -> Option<char> {
    /// Private-use plane 15: code points that are nobody's text.
    const PLANE: Range<u32> = 0xF_0000..0xF_FFFE;
    let mut used: Vec<u32> = Vec::new();
    conversation.strings(&mut |text| {
        if memchr::memchr(LEAD, text.as_bytes()).is_some() {
            used.extend(text.chars().map(u32::from).filter(|code| PLANE.contains(code)));
        }
    });
    used.sort_unstable();
    used.push(PLANE.end);
    let mut start = PLANE.start;
    for code in used {
        if u32::try_from(count).is_ok_and(|count| code.saturating_sub(start) >= count) {
            return char::from_u32(start);
        }
        start = start.max(code + 1);
    }
    None
}

/// Where the first character of plane 15 stands that is wanted. Text hardly holds bytes that begin one.
pub(super) fn find_private(text: &str, is_wanted: impl Fn(char) -> bool) -> Option<usize> {
    memchr::memchr_iter(LEAD, text.as_bytes())
        .find(|at| text.get(*at..).and_then(|rest| rest.chars().next()).is_some_and(&is_wanted))
}

/// Takes the marks out and says where they stood. A mark that its partner lost marks nothing.
fn unmarked(marked: &str, marks: [char; 2]) -> Rendering {
    let mut rendering = Rendering { text: String::with_capacity(marked.len()), generated: Vec::new() };
    let mut open = None;
    let mut rest = marked;
    while let Some(at) = find_private(rest, |c| marks.contains(&c)) {
        let (before, after) = rest.split_at(at);
        rendering.text.push_str(before);
        let place = rendering.text.len();
        if after.starts_with(marks[0]) {
            open = Some(place);
        } else if let Some(start) = open.take() {
            rendering.generated.push(start..place);
        }
        rest = &after[marks[0].len_utf8()..];
    }
    rendering.text.push_str(rest);
    rendering
}

/// A buffer that refuses to grow without end.
struct Capped(Vec<u8>);

impl io::Write for &mut Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_BYTES_MAX {
            return Err(io::Error::other("too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ChatTemplate, RenderOptions, TemplateError};
    use crate::templates::Conversation;

    const CHATML: &str = "{%- for m in messages %}\n{{- '<|im_start|>' + m.role + '\\n' }}\n\
        {%- if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}\n\
        {%- else %}{{ m.content }}<|im_end|>{% endif %}\n{{ '\\n' }}\n{%- endfor %}";

    fn render(source: &str, content: &str) -> Result<super::Rendering, TemplateError> {
        let messages =
            [json!({"role": "user", "content": "hi"}), json!({"role": "assistant", "content": content})];
        let conversation = Conversation { messages: &messages, tools: None };
        ChatTemplate::new(source, &[], None)?.render(&conversation, RenderOptions::default())
    }

    #[test]
    fn generated_text_is_found() {
        for content in ["hello", "", "\u{f0000}\u{f0001}"] {
            let rendering = render(CHATML, content).unwrap();
            let expected =
                format!("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n{content}<|im_end|>\n");
            assert_eq!(rendering.text, expected);
            let [range] = rendering.generated.as_slice() else { panic!("{rendering:?}") };
            assert_eq!(rendering.text[range.clone()], format!("{content}<|im_end|>"));
        }
    }

    #[test]
    fn a_template_that_sees_the_marks_renders_without_them() {
        let source = "{% set x %}{% generation %}{{ messages[1].content }}{% endgeneration %}{% endset %}{{ x | length }}{{ x }}";
        let rendering = render(source, "abc").unwrap();
        assert_eq!((rendering.text.as_str(), rendering.generated.as_slice()), ("3abc", [].as_slice()));
    }

    #[test]
    fn what_cannot_be_rendered_says_why() {
        assert!(matches!(render("{% if %}", ""), Err(TemplateError::Syntax(_))));
        assert_eq!(
            render("{{ raise_exception('only users') }}", ""),
            Err(TemplateError::Raised("only users".to_owned()))
        );
        assert_eq!(render("{{ strftime_now('%Y') }}", ""), Err(TemplateError::NoDate));
        let endless = "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}";
        assert_eq!(render(endless, ""), Err(TemplateError::Endless));
        assert!(matches!(render("{{ messages[0].content + none }}", ""), Err(TemplateError::Failed(_))));
    }
}
