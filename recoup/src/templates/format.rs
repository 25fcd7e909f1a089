//! A chat format: a model's template and tokenizer, and what short probes tell of them.
//!
//! What prompts the model to answer, and which tokens end its turn, is nowhere declared; it is read off
//! renderings of conversations of a few words.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value as Json, json};

use super::conversation::Anchors;
use super::proved::is_proved;
use super::spans::trace;
use super::template::{ChatTemplate, RenderOptions, Rendering, TemplateError};
use super::tokenizer::{Tokenizer, TokenizerError};
use super::{Conversation, LocalTime};
use crate::id::Hash;

/// Why a template and a tokenizer make no chat format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The template cannot be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The tokenizer cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The settings name several templates.
    #[error("tokenizer_config.json names several chat templates and none of them is the only one")]
    SeveralTemplates,
    /// There is no template.
    #[error(
        "there is no chat template: neither a file chat_template.jinja nor a key in tokenizer_config.json"
    )]
    NoTemplate,
    /// The template writes a special token that the tokenizer does not have.
    #[error("the tokenizer does not match the template: it has no token `{token}`")]
    UnknownToken {
        /// The token's text.
        token: String,
    },
    /// No special token stands behind the model's turn.
    #[error("no special token of the tokenizer ends the model's turn in this template")]
    NoEndOfTurn,
}

/// What a model directory holds, as bytes.
#[derive(Clone, Debug, Default)]
pub struct ModelFiles {
    /// `tokenizer.json`.
    pub tokenizer: Vec<u8>,
    /// `tokenizer_config.json`, where there is one.
    pub config: Option<Vec<u8>>,
    /// `chat_template.jinja`, or the template to use in its place.
    pub template: Option<String>,
}

/// What a caller may decide about a format.
#[derive(Clone, Debug, Default)]
pub struct FormatOptions {
    /// The date for templates that ask for it.
    pub now: Option<LocalTime>,
    /// Variables for the template (`enable_thinking`).
    pub variables: Vec<(String, Json)>,
    /// Most tokens of a row; the tokenizer's own limit where it is `None`.
    pub tokens_max: Option<usize>,
    /// Refuses rows in which a token reaches over the edge of what is learned; else they are counted.
    pub is_strict: bool,
}

/// A template and a tokenizer that belong together.
#[derive(Debug)]
pub struct ChatFormat {
    template: ChatTemplate,
    tokenizer: Tokenizer,
    /// What stands before the model's answer: to a user, and, where that is something else, to a tool.
    prompts: Vec<String>,
    /// Tokens that end the model's turn.
    turn_ends: BTreeSet<u32>,
    tokens_max: Option<usize>,
    is_strict: bool,
    /// Whether the golden corpus has proved what the template says is generated.
    is_proved: bool,
    hash: Hash,
}

impl ChatFormat {
    /// Reads a model's files and probes them.
    ///
    /// # Errors
    /// When a file cannot be used, or they do not belong together.
    pub fn new(files: &ModelFiles, options: &FormatOptions) -> Result<Self, FormatError> {
        let tokenizer = Tokenizer::new(&files.tokenizer, files.config.as_deref())?;
        let source = match &files.template {
            Some(template) => template.clone(),
            None => template_of(files.config.as_deref())?,
        };
        let mut variables = tokenizer.named_tokens().to_vec();
        variables.extend(options.variables.iter().cloned());
        let mut format = Self {
            template: ChatTemplate::new(&source, &variables, options.now)?,
            tokens_max: options.tokens_max.or(tokenizer.tokens_max()),
            tokenizer,
            prompts: Vec::new(),
            is_proved: is_proved(&source),
            turn_ends: BTreeSet::new(),
            is_strict: options.is_strict,
            hash: hash(files, options),
        };
        format.probe()?;
        Ok(format)
    }

    fn probe(&mut self) -> Result<(), FormatError> {
        let user = json!({"role": "user", "content": "ping"});
        let text = json!({"role": "assistant", "content": "pong"});
        let reasoned = json!({"role": "assistant", "content": "pong", "reasoning_content": "hm"});
        let called = |id: &str| json!({"type": "function", "id": id, "function": {"name": "ping", "arguments": {"q": "pong"}}});
        let calls = |calls: &[Json]| json!({"role": "assistant", "content": "", "tool_calls": calls});
        let result =
            |id: &str| json!({"role": "tool", "name": "ping", "tool_call_id": id, "content": "pong"});
        let call = calls(&[called("call_0000")]);
        // Two calls tell what closes each from what ends the turn; a template may take one a turn.
        let both = calls(&[called("call_0000"), called("call_0001")]);
        let several = [user.clone(), both, result("call_0000"), result("call_0001"), text.clone()];
        let one = [user.clone(), call.clone(), result("call_0000"), text.clone()];
        let answered = if self.is_rendered(&several) { several.to_vec() } else { one.to_vec() };
        let parts = |text: &str| json!([{"type": "text", "text": text}]);
        let user_parts = json!({"role": "user", "content": parts("ping")});
        let text_parts = json!({"role": "assistant", "content": parts("pong")});
        let conversations = [
            vec![user.clone(), text.clone()],
            vec![user.clone(), text.clone(), user.clone(), text.clone()],
            vec![user.clone(), reasoned],
            answered.iter().take(2).cloned().collect(),
            answered,
            vec![user_parts.clone(), text_parts.clone()],
            vec![user_parts.clone(), text_parts.clone(), user_parts, text_parts],
        ];
        let (mut refused, mut is_rendered) = (None, false);
        for messages in &conversations {
            match self.probe_one(messages) {
                Ok(()) => is_rendered = true,
                Err(error @ FormatError::Template(TemplateError::Endless)) => return Err(error),
                Err(FormatError::Template(error)) => refused = refused.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        // A template may refuse a conversation with a tool.
        if let Err(TemplateError::Endless) = self.probe_answer_to_tool(&one) {
            return Err(TemplateError::Endless.into());
        }
        match refused {
            Some(error) if !is_rendered => Err(error.into()),
            _ if self.turn_ends.is_empty() => Err(FormatError::NoEndOfTurn),
            _ => Ok(()),
        }
    }

    fn is_rendered(&self, messages: &[Json]) -> bool {
        self.render(&Conversation { messages, tools: None }, RenderOptions::default()).is_ok()
    }

    /// Learns from a conversation whose second message is the model's.
    fn probe_one(&mut self, messages: &[Json]) -> Result<(), FormatError> {
        let conversation = Conversation { messages, tools: None };
        let text = self.render(&conversation, RenderOptions::default())?.text;
        for token in special_looking(&text) {
            if self.tokenizer.id(token).is_none() {
                return Err(FormatError::UnknownToken { token: token.to_owned() });
            }
        }
        if self.prompts.is_empty() {
            let start = Conversation { messages: messages.get(..1).unwrap_or_default(), tools: None };
            let bare = self.render(&start, RenderOptions::default())?.text;
            let prompted = self.render(&start, RenderOptions { add_generation_prompt: true })?.text;
            self.prompts.extend(prompted.strip_prefix(&bare).map(str::to_owned));
        }
        let places = trace(self, &conversation, &text)?.unwrap_or_default();
        let own = places.of(1);
        let (Some(first), Some(last)) = (own.first(), own.last()) else { return Ok(()) };
        let written = self.tokenizer.specials(&text, *first..places.after(*last).unwrap_or(text.len()));
        let written: Vec<(Range<usize>, u32)> = written.collect();
        let behind = || written.iter().filter(|(range, _)| range.start >= *last);
        // Tokens before one that is known to end a turn close a call, not the turn.
        if behind().any(|(_, id)| self.turn_ends.contains(id)) {
            return Ok(());
        }
        // What is written twice closes a string or a call.
        let is_single = |id: u32| written.iter().filter(|(_, other)| *other == id).count() == 1;
        if let Some((range, id)) = behind().find(|(_, id)| is_single(*id))
            // What begins the next turn does not end this one.
            && !text.get(range.clone()).is_some_and(|token| self.prompts.iter().any(|prompt| prompt.contains(token)))
        {
            self.turn_ends.insert(*id);
        }
        Ok(())
    }

    /// Learns what prompts the answer to a tool, where it is not what prompts the answer to a user: what
    /// stands between a tool's result and the answer, but for what closes every result.
    fn probe_answer_to_tool(&mut self, one: &[Json; 4]) -> Result<(), TemplateError> {
        let gap = |last: &Json| -> Result<Option<String>, TemplateError> {
            let [user, call, result, _] = one;
            let messages = [user.clone(), call.clone(), result.clone(), last.clone()];
            let conversation = Conversation { messages: &messages, tools: None };
            let text = self.render(&conversation, RenderOptions::default())?.text;
            let traced = trace(self, &conversation, &text)?.unwrap_or_default();
            let (from, to) = (traced.of(2).into_iter().next_back(), traced.of(3).into_iter().next());
            Ok(from.zip(to).and_then(|(from, to)| text.get(from..to)).map(str::to_owned))
        };
        let [_, _, result, text] = one;
        let (Some(answered), Some(followed)) = (gap(text)?, gap(result)?) else { return Ok(()) };
        if self.prompt_in(&answered).is_some() {
            return Ok(());
        }
        let specials = self.tokenizer.specials(&answered, 0..answered.len()).map(|(range, _)| range.end);
        let closes = |end: &usize| answered.get(..*end).is_some_and(|start| followed.starts_with(start));
        let closed = specials.take_while(closes).last().unwrap_or(0);
        let prompt = answered.get(closed..).unwrap_or_default().trim_start();
        if self.tokenizer.first_added_end(prompt).is_some() {
            self.prompts.push(prompt.to_owned());
        }
        Ok(())
    }

    /// Whether a token ends the model's turn.
    pub(super) fn ends_turn(&self, id: u32) -> bool {
        self.turn_ends.contains(&id)
    }

    /// Where a prompt stands in what precedes the model's text: its longest start that does, at least its
    /// first token. A template may leave the rest of it to the message.
    pub(super) fn prompt_in(&self, gap: &str) -> Option<Range<usize>> {
        self.prompts.iter().find_map(|prompt| {
            let least = self.tokenizer.first_added_end(prompt).unwrap_or(prompt.len());
            if least == 0 {
                return None;
            }
            let ends = prompt.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
            let starts = ends.take_while(|end| *end >= least).filter_map(|end| prompt.get(..end));
            starts.into_iter().find_map(|start| gap.rfind(start).map(|at| at..at + start.len()))
        })
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Whether the template says what the model writes.
    pub fn marks_generation(&self) -> bool {
        self.template.marks_generation()
    }

    /// The text of a conversation.
    ///
    /// # Errors
    /// When the template refuses, fails or does not end.
    pub fn render(
        &self,
        conversation: &Conversation<'_>,
        options: RenderOptions,
    ) -> Result<Rendering, TemplateError> {
        self.template.render(conversation, options)
    }

    pub(super) fn render_anchored(
        &self,
        conversation: &Conversation<'_>,
        anchors: Anchors,
    ) -> Result<String, TemplateError> {
        self.template.render_anchored(conversation, anchors)
    }

    /// Whether the golden corpus has proved what the template says is generated.
    pub(super) fn is_proved(&self) -> bool {
        self.is_proved
    }

    /// Most tokens of a row.
    pub fn tokens_max(&self) -> Option<usize> {
        self.tokens_max
    }

    /// Hash of the files and options that it was made of.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// Whether rows in which a token reaches over an edge are refused.
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }
}

fn hash(files: &ModelFiles, options: &FormatOptions) -> Hash {
    let ModelFiles { tokenizer, config, template } = files;
    let template = template.as_deref().unwrap_or_default();
    let said = format!("{options:?}");
    Hash::of_all(&[tokenizer, config.as_deref().unwrap_or_default(), template.as_bytes(), said.as_bytes()])
}

/// The template that the settings hold.
fn template_of(config: Option<&[u8]>) -> Result<String, FormatError> {
    let config: Json = config.and_then(|config| serde_json::from_slice(config).ok()).unwrap_or_default();
    match config.get("chat_template") {
        Some(Json::String(source)) => Ok(source.clone()),
        Some(Json::Array(named)) => match named.as_slice() {
            [only] => only
                .get("template")
                .and_then(Json::as_str)
                .map_or(Err(FormatError::NoTemplate), |source| Ok(source.to_owned())),
            _ => Err(FormatError::SeveralTemplates),
        },
        _ => Err(FormatError::NoTemplate),
    }
}

/// Pieces that look like special tokens: `<|…|>`, with either bar.
fn special_looking(text: &str) -> impl Iterator<Item = &str> {
    static PATTERN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"<[|｜][^<>|｜\s]{1,60}[|｜]>").ok());
    PATTERN.as_ref().into_iter().flat_map(|pattern| pattern.find_iter(text)).map(|found| found.as_str())
}
