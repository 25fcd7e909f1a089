//! A script file: a model whose answers are written in a JSONL file, for pipelines without a network.
//!
//! A line is a JSON object with `answer` (a text, or a JSON value that is answered as text) and at most one
//! of `request` (the hash of a question, as [`ScriptFile::question_hash`] gives it) and `contains` (a text
//! that the question holds). A question gets the first line that names its hash, else the first whose text
//! it holds, else the next line that names neither, each of those once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ChatModel, ChatReply, ChatRequest, ModelError, ModelIdentity, family_of};
use crate::id::Hash;
use crate::json::Json;

/// A line as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    answer: Box<RawValue>,
    #[serde(default)]
    request: Option<String>,
    #[serde(default)]
    contains: Option<String>,
}

/// A script file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ScriptFileError {
    path: String,
    message: String,
}

/// Answers that are written in a file.
pub struct ScriptFile {
    identity: ModelIdentity,
    by_hash: BTreeMap<Hash, String>,
    by_text: Vec<(String, String)>,
    /// Answers in order, and how many are given.
    in_order: Mutex<(Vec<String>, usize)>,
}

impl ScriptFile {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ScriptFileError`] with the line that cannot be read.
    pub fn open(path: &Path) -> Result<Self, ScriptFileError> {
        let fail = |message: String| ScriptFileError { path: path.display().to_string(), message };
        let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Self::parse(&name, &text).map_err(fail)
    }

    /// Reads the text of a file that is called `name`.
    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let (mut by_hash, mut by_text, mut in_order) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let at = |message: String| format!("line {}: {message}", index + 1);
            let line: Line = serde_json::from_str(line).map_err(|error| at(error.to_string()))?;
            // Byte for byte, for the order of an answer's keys may mean something.
            let answer =
                serde_json::from_str(line.answer.get()).unwrap_or_else(|_| line.answer.get().to_owned());
            match (line.request, line.contains) {
                (Some(_), Some(_)) => {
                    return Err(at("`request` and `contains` exclude each other".to_owned()));
                }
                (Some(hash), None) => {
                    let hash = Hash::from_hex(&hash)
                        .ok_or_else(|| at("`request` is not 64 hexadecimal digits".to_owned()))?;
                    by_hash.entry(hash).or_insert(answer);
                }
                (None, Some(part)) => by_text.push((part, answer)),
                (None, None) => in_order.push(answer),
            }
        }
        // The content is in the name, so that answers kept of another version of the file do not count.
        let digits = Hash::of(text.as_bytes()).to_string();
        let identity = ModelIdentity {
            provider: "scripted".to_owned(),
            model: format!("{name}@{}", &digits[..8]),
            base_url: String::new(),
            family: family_of(name),
        };
        Ok(Self { identity, by_hash, by_text, in_order: Mutex::new((in_order, 0)) })
    }

    /// The hash that a line names a question by: of its canonical JSON.
    pub fn question_hash(request: &ChatRequest) -> Option<Hash> {
        Json::from_serialize(request).ok().map(|canonical| Hash::of(canonical.as_str().as_bytes()))
    }
}

impl ChatModel for ScriptFile {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let hash = Self::question_hash(request);
        let named = hash.and_then(|hash| self.by_hash.get(&hash)).or_else(|| {
            let holds = |part: &str| request.messages.iter().any(|message| message.content.contains(part));
            self.by_text.iter().find(|(part, _)| holds(part)).map(|(_, answer)| answer)
        });
        let answer = if let Some(answer) = named {
            answer.clone()
        } else {
            let mut in_order = self.in_order.lock().unwrap_or_else(PoisonError::into_inner);
            let (answers, given) = &mut *in_order;
            let answer = answers.get(*given).cloned().ok_or_else(|| {
                let hash = hash.map(|hash| hash.to_string()).unwrap_or_default();
                let name = &self.identity.model;
                ModelError::Unsupported(format!("the script `{name}` has no answer to {hash}"))
            })?;
            *given += 1;
            answer
        };
        Ok(ChatReply { model: self.identity.model.clone(), ..ChatReply::text(answer) })
    }
}

#[cfg(test)]
mod tests {
    use super::ScriptFile;
    use crate::models::{ChatMessage, ChatModel as _, ChatRequest};

    #[test]
    fn a_question_gets_its_own_answer_first() {
        let ask = |text: &str| ChatRequest::new(vec![ChatMessage::user(text)], 10);
        let hash = ScriptFile::question_hash(&ask("the red one")).unwrap();
        let file = format!(
            "{{\"answer\":\"first\"}}\n\n{{\"contains\":\"red\",\"answer\":{{\"step\":1}}}}\n\
             {{\"request\":\"{hash}\",\"answer\":\"by hash\"}}\n{{\"answer\":\"second\"}}\n"
        );
        let model = ScriptFile::parse("toy", &file).unwrap();
        let answer = |text: &str| model.complete(&ask(text)).map(|reply| reply.text);
        assert_eq!(answer("the red one").unwrap(), "by hash");
        assert_eq!(answer("a red one").unwrap(), "{\"step\":1}");
        assert_eq!(answer("other").unwrap(), "first");
        assert_eq!(answer("other").unwrap(), "second");
        assert!(answer("other").unwrap_err().to_string().contains("has no answer to"));
        assert!(model.identity().model.starts_with("toy@"));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        for (text, message) in [
            ("{\"answer\":1}\n{\"anwser\":1}", "line 2: unknown field `anwser`"),
            ("{\"answer\":1,\"request\":\"12\"}", "line 1: `request` is not 64"),
            ("nonsense", "line 1: expected"),
        ] {
            let error = ScriptFile::parse("toy", text).err().unwrap();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
