//! A request as it is logged: a list of messages, or an object with one under `messages`, read from its
//! beginning or from behind one of its messages.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::importers::object::{Object, Text};
use crate::importers::value::{elements, is_object};

/// Members beside which the messages are not all that is said.
const APART: [&str; 6] = ["role", "lc", "system", "instructions", "systemInstruction", "system_instruction"];

/// What a request holds.
pub(super) struct Request<'t> {
    /// The messages, each with the place behind it in the text.
    pub(super) messages: Vec<(&'t RawValue, usize)>,
    /// Tools that it offers.
    pub(super) tools: Option<&'t RawValue>,
    /// The list stands in an object.
    pub(super) in_object: bool,
}

impl<'t> Request<'t> {
    /// Reads a request; `None` for anything else.
    pub(super) fn read(text: &'t str) -> Option<Self> {
        let mut reader = Reader { text, at: 0 };
        if reader.takes(b'[') {
            return reader.list(false, None).filter(|request| !request.messages.is_empty());
        }
        if !reader.takes(b'{') {
            return None;
        }
        let mut tools = None;
        loop {
            let key: Text<'t> = reader.value()?;
            if !reader.takes(b':') {
                return None;
            }
            match &*key.0 {
                "messages" => {
                    let is_list = reader.takes(b'[');
                    return if is_list { reader.list(true, tools) } else { None };
                }
                "tools" => tools = Some(reader.value()?),
                apart if APART.contains(&apart) => return None,
                _ => reader.value::<&RawValue>().map(drop)?,
            }
            if !reader.takes(b',') {
                return None;
            }
        }
    }

    /// Reads a batch of one request: a list of one list, perhaps in an object.
    pub(super) fn of_batch(raw: &'t RawValue) -> Option<Self> {
        let held = |object: Object<'t>| {
            if APART.iter().any(|key| object.has(key)) { None } else { object.get("messages") }
        };
        let list = elements(raw).or_else(|| elements(Object::of(raw).and_then(held)?))?;
        if let [only] = list.as_slice() { Self::read(only.get()) } else { None }
    }

    /// Reads the rest of a request from behind one of its messages.
    pub(super) fn read_on(text: &'t str, in_object: bool) -> Option<Self> {
        let mut reader = Reader { text, at: 0 };
        if reader.takes(b']') {
            return reader.end(Self { messages: Vec::new(), tools: None, in_object });
        }
        if reader.takes(b',') { reader.list(in_object, None) } else { None }
    }
}

/// Reads JSON step by step.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    /// Passes a mark, if it is the next one.
    fn takes(&mut self, mark: u8) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let space = rest.len() - rest.trim_ascii_start().len();
        let is_next = rest.as_bytes().get(space) == Some(&mark);
        self.at += if is_next { space + 1 } else { 0 };
        is_next
    }

    fn value<T: Deserialize<'t>>(&mut self) -> Option<T> {
        let mut values = serde_json::Deserializer::from_str(self.text.get(self.at..)?).into_iter::<T>();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(value)
    }

    /// The messages up to the end of their list, and what stands behind it.
    fn list(mut self, in_object: bool, tools: Option<&'t RawValue>) -> Option<Request<'t>> {
        let mut messages: Vec<(&RawValue, usize)> = Vec::new();
        loop {
            let message: &RawValue = self.value()?;
            if !is_object(message) {
                return None;
            }
            messages.push((message, self.at));
            if self.takes(b']') {
                return self.end(Request { messages, tools, in_object });
            }
            if !self.takes(b',') {
                return None;
            }
        }
    }

    /// Reads what stands behind the list.
    fn end(mut self, mut request: Request<'t>) -> Option<Request<'t>> {
        while request.in_object && !self.takes(b'}') {
            if !self.takes(b',') {
                return None;
            }
            let key: Text<'t> = self.value()?;
            if !self.takes(b':') || key.0 == "messages" || APART.contains(&&*key.0) {
                return None;
            }
            let value: &RawValue = self.value()?;
            if key.0 == "tools" {
                request.tools = Some(value);
            }
        }
        let is_whole = self.text.get(self.at..).is_some_and(|rest| rest.trim_ascii().is_empty());
        is_whole.then_some(request)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::Request;

    fn read(text: &str) -> Option<(Vec<&str>, Option<&str>)> {
        let request = Request::read(text)?;
        for (message, end) in &request.messages {
            assert!(text[..*end].ends_with(message.get()));
            let rest = Request::read_on(&text[*end..], request.in_object).unwrap();
            assert!(rest.messages.len() < request.messages.len());
        }
        let messages = request.messages.into_iter().map(|(message, _)| message.get());
        Some((messages.collect(), request.tools.map(RawValue::get)))
    }

    #[test]
    fn a_request_is_read_from_anywhere_between_its_messages() {
        assert_eq!(read("[{\"a\":1} ,{}] "), Some((vec!["{\"a\":1}", "{}"], None)));
        let object = r#"{"model":"m","messages" : [{"a":[1]}], "n" :1,"tools":[2]}"#;
        assert_eq!(read(object), Some((vec![r#"{"a":[1]}"#], Some("[2]"))));
        assert_eq!(read(r#"{"tools":[2],"messages":[{}]}"#), Some((vec!["{}"], Some("[2]"))));
    }

    #[test]
    fn what_says_more_than_messages_or_is_broken_is_none() {
        for text in [
            "",
            "7",
            "[]",
            "[1]",
            "[{}",
            "[{}] x",
            "[[{}]]",
            r#"{"messages":[{}]"#,
            r#"{"messages":[{}],"messages":[{}]}"#,
            r#"{"messages":[{}],"system":"s"}"#,
            r#"{"role":"user","messages":[{}]}"#,
            r#"{"messages":"x"}"#,
            r#"{"a":1}"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
