//! Contamination: the ids and texts of a benchmark, from which nothing may be learned.
//!
//! A run is contaminated where its task, the last segment of its task's key or its own id is listed, or
//! where thirteen words in a row of it stand in a listed text (what GPT-3's authors compared; fewer words
//! where the text has fewer, but then all of a message). Of an environment that is made to train in, eight
//! words are enough ([`HeldOut`]).

use std::collections::HashSet;

use serde_json::Value;

use super::shingles::{Window, words};
use crate::id::Hash;
use crate::trajectory::{Part, Trajectory};

/// Fields of a JSON line that hold an id.
const ID_FIELDS: [&str; 5] = ["id", "task_id", "instance_id", "question_id", "question_ID"];
/// Fields that hold no text of the benchmark.
const OTHER_FIELDS: [&str; 4] = ["split", "licence", "license", "source"];

/// What runs must not repeat.
pub type Contamination = Listed<13>;

/// What the tasks of an environment must not repeat.
pub type HeldOut = Listed<8>;

/// Listed ids and texts; `WORDS` in a row tell a text.
#[derive(Clone, Debug, Default)]
pub struct Listed<const WORDS: usize> {
    // Only asked for membership, so their order is never seen.
    ids: HashSet<String>,
    grams: HashSet<u64>,
    /// Texts of fewer words than a gram's, whole.
    short: HashSet<u64>,
    /// Hash of every list read, in order.
    hashes: Vec<String>,
}

/// Why a list cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContaminationError {
    /// The list is not text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// A line begins like JSON and is none.
    #[error("line {line} is not JSON: {reason}")]
    Json {
        /// 1-based.
        line: usize,
        /// The parser's words.
        reason: String,
    },
    /// Nothing stands in it.
    #[error("it names no id and no text")]
    Empty,
}

/// Equal lists, in the same order.
impl<const WORDS: usize> PartialEq for Listed<WORDS> {
    fn eq(&self, other: &Self) -> bool {
        self.hashes == other.hashes
    }
}

impl<const WORDS: usize> Listed<WORDS> {
    /// Adds a list: JSON lines, each an object (`id`, `task_id`, `instance_id` or `question_id` and any
    /// other strings as texts) or a string; or plain lines, each an id where it has no space, else a text.
    ///
    /// # Errors
    /// [`ContaminationError`]; nothing is added then.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), ContaminationError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ContaminationError::NotText)?;
        let mut list = Self::default();
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            match line.bytes().next() {
                None => {}
                Some(b'{' | b'"') => {
                    let row: Value = serde_json::from_str(line).map_err(|error| {
                        // A line is parsed alone: the parser's own number for it is always 1.
                        let reason = error.to_string();
                        let reason = reason.rsplit_once(" at line ").map_or(&*reason, |(reason, _)| reason);
                        let reason = format!("{reason} at column {}", error.column());
                        ContaminationError::Json { line: index + 1, reason }
                    })?;
                    list.row(&row);
                }
                Some(_) => list.name(line),
            }
        }
        if list.is_empty() {
            return Err(ContaminationError::Empty);
        }
        self.ids.extend(list.ids);
        self.grams.extend(list.grams);
        self.short.extend(list.short);
        self.hashes.push(Hash::of(bytes).to_string());
        Ok(())
    }

    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty() && !self.has_texts()
    }

    /// Whether a text is listed, and not ids alone.
    pub fn has_texts(&self) -> bool {
        !self.grams.is_empty() || !self.short.is_empty()
    }

    /// Hashes of the lists, in the order they were added: they decide content.
    pub fn hashes(&self) -> &[String] {
        &self.hashes
    }

    /// Why nothing may be learned from a run: `contaminated-id` or `contaminated-text`. `native_id` is the
    /// run's own id in its source.
    pub fn reason(&self, run: &Trajectory, native_id: Option<&str>) -> Option<&'static str> {
        if self.is_empty() {
            return None;
        }
        let key = run.task.key.0.as_str();
        let segment = key.rsplit_once('/').map(|(_, last)| last);
        if [Some(key), segment, native_id].into_iter().flatten().any(|name| self.ids.contains(name)) {
            return Some("contaminated-id");
        }
        let in_messages = || run.nodes.iter().any(|node| self.has_any(&node.parts));
        (self.has(&run.task.goal) || in_messages()).then_some("contaminated-text")
    }

    fn has_any(&self, parts: &[Part]) -> bool {
        parts.iter().any(|part| match part {
            Part::ToolResult(result) => self.has_any(&result.parts),
            part => part.cited_text().is_some_and(|text| self.has(text)),
        })
    }

    /// Whether words of a listed text stand in this one.
    pub fn has(&self, text: &str) -> bool {
        if !self.has_texts() {
            return false;
        }
        let (grams, whole) = grams::<WORDS>(text);
        whole.is_some_and(|whole| self.short.contains(&whole))
            || grams.iter().any(|gram| self.grams.contains(gram))
    }

    fn row(&mut self, row: &Value) {
        match row {
            Value::String(text) => self.name(text),
            Value::Object(members) => {
                for (key, value) in members {
                    match value {
                        Value::String(id) if ID_FIELDS.contains(&key.as_str()) => {
                            self.ids.insert(id.clone());
                        }
                        Value::Number(id) if ID_FIELDS.contains(&key.as_str()) => {
                            self.ids.insert(id.to_string());
                        }
                        value if !OTHER_FIELDS.contains(&key.as_str()) => self.texts(value),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn texts(&mut self, value: &Value) {
        match value {
            // A word or two says too little: an answer `yes`, a name of a topic.
            Value::String(text) if text.split_whitespace().nth(2).is_some() => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.texts(item)),
            Value::Object(members) => members.values().for_each(|value| self.texts(value)),
            _ => {}
        }
    }

    fn name(&mut self, line: &str) {
        if line.contains(char::is_whitespace) {
            self.text(line);
        } else {
            self.ids.insert(line.to_owned());
        }
    }

    fn text(&mut self, text: &str) {
        let (grams, whole) = grams::<WORDS>(text);
        self.grams.extend(grams);
        self.short.extend(whole);
    }
}

/// The grams of a text, or what stands for all of a text that is too short for one.
fn grams<const WORDS: usize>(text: &str) -> (Vec<u64>, Option<u64>) {
    let mut window = Window::<WORDS>::default();
    let mut grams = Vec::new();
    words(text).for_each(|word| window.push(word, &mut grams));
    let mut short = Vec::new();
    window.finish(&mut short);
    (grams, short.pop())
}

#[cfg(test)]
mod tests {
    use super::{Contamination, ContaminationError, HeldOut};
    use crate::task::Task;
    use crate::trajectory::{Node, Part, Role, Trajectory};

    const QUESTION: &str =
        "A train leaves Rome at nine and drives to Milan, which is six hundred kilometers away.";

    fn list(text: &str) -> Contamination {
        let mut list = Contamination::default();
        list.add(text.as_bytes()).unwrap();
        list
    }

    fn run(task: &str, text: &str) -> Trajectory {
        let mut run = Trajectory::new("test", Task::named(task, ""));
        run.push(Node::new(Role::User, "user", vec![Part::text(text)]));
        run
    }

    #[test]
    fn ids_and_texts_are_found() {
        let list = list(&format!(
            "{{\"task_id\": 7, \"question\": \"{QUESTION}\"}}\nlonely-id\nwhat is the capital\n"
        ));
        let reason = |task: &str, text: &str| list.reason(&run(task, text), Some("native"));
        assert_eq!(reason("bench/7", ""), Some("contaminated-id"));
        assert_eq!(reason("lonely-id", ""), Some("contaminated-id"));
        assert_eq!(reason("bench/8", "hello"), None);
        assert_eq!(
            reason("t", &format!("Solve this. {}", QUESTION.to_uppercase())),
            Some("contaminated-text")
        );
        assert_eq!(reason("t", "What is the capital?"), Some("contaminated-text"), "all of a short text");
        assert_eq!(reason("t", "What is the capital of France?"), None, "a short text within another");
        let twelve = QUESTION.split(' ').take(12).collect::<Vec<_>>().join(" ");
        assert_eq!(reason("t", &twelve), None);
    }

    #[test]
    fn of_held_out_tasks_eight_words_tell() {
        let mut held_out = HeldOut::default();
        held_out.add(QUESTION.as_bytes()).unwrap();
        assert!(held_out.has("To Milan, which is six hundred kilometers away, drives nobody."));
        assert!(!held_out.has("To Milan, which is six hundred miles away."));
    }

    #[test]
    fn a_list_that_says_nothing_is_refused() {
        let add = |bytes: &[u8]| Contamination::default().add(bytes).unwrap_err();
        assert_eq!(add(b"\n\n"), ContaminationError::Empty);
        assert_eq!(add(b"{\"split\": \"test\"}"), ContaminationError::Empty);
        assert_eq!(add(&[0xff, 0xfe]), ContaminationError::NotText);
        assert!(matches!(add(b"ok\n{broken"), ContaminationError::Json { line: 2, .. }));
    }
}
