//! Forms: how a model writes a turn, one file a form.
//!
//! A turn is kept as what it means ([`TurnAst`]); a form writes it for a model that learned that form, and reads what
//! such a model writes. Reading is strict first: exactly what the form's own writer could have written. What only
//! lenient rules can read (single quotes, a missing end, words in a wrong place) is a turn too, and is counted apart.
//! A turn whose writing does not read back as the same turn has no place in the form ([`written`]).
//!
//! Adding a form is one file here and its line in [`FORMS`], the one list.

mod hermes;
mod llama;
mod loose;
mod native;
mod qwen;
mod react;
mod reasoning;
mod tools;

use crate::interleaving::Reading;

pub use self::hermes::Hermes;
pub use self::llama::Llama;
pub use self::native::Native;
pub use self::qwen::Qwen;
pub use self::react::React;
pub use self::tools::ToolTypes;
use crate::models::{ChatMessage, ModelCall};
use crate::trajectory::{Role, Tool};
use crate::verdict::TurnAst;

/// A way to write turns.
pub trait Form: Send + Sync {
    /// Its name on the command line and in records.
    fn name(&self) -> &'static str;

    /// Whether tools are offered and calls are given by the provider's own fields, not in the text.
    fn is_native(&self) -> bool {
        false
    }

    /// What tells a model of its tools and of the form; nothing for the native one.
    fn instructions(&self, tools: &[Tool]) -> Option<String>;

    /// Writes a turn. `first` numbers its first call.
    ///
    /// # Errors
    /// Why the form has no place for it.
    fn write(&self, turn: &TurnAst, first: usize) -> Result<Written, NoPlace>;

    /// Reads what [`Form::write`] could have written.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn strict(&self, written: &Written, tools: &ToolTypes) -> Result<TurnAst, String>;

    /// Reads what people would still understand.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn lenient(&self, written: &Written, tools: &ToolTypes) -> Result<TurnAst, String>;

    /// How the model is shown what a call gave.
    fn result(&self, call_id: &str, text: &str) -> ChatMessage;
}

/// Every form.
pub const FORMS: &[&dyn Form] = &[&Native, &Hermes, &Qwen, &Llama, &React];

/// The form of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Form> {
    FORMS.iter().copied().find(|form| form.name() == name)
}

/// An assistant's message as a model writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Text.
    pub content: String,
    /// Calls that stand beside the text, in the native form.
    pub calls: Vec<ModelCall>,
}

/// A form has no place for a turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// Several calls in one turn.
    #[error("the form `{0}` has one call a turn")]
    SeveralCalls(&'static str),
    /// Words beside a call.
    #[error("the form `{0}` has no words beside a call")]
    WordsBesideCall(&'static str),
    /// What was written reads as something else.
    #[error("written in the form `{form}` it does not read back: {reason}")]
    ReadsOtherwise {
        /// The form.
        form: &'static str,
        /// What it reads as, or why it does not.
        reason: String,
    },
}

/// What a model's answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The turn, or why there is none.
    pub turn: Result<TurnAst, String>,
    /// Reasoning that stands in the text before the turn.
    pub reasoning: Option<String>,
    /// By which rules.
    pub reading: Reading,
}

/// Reads an answer, strictly where that is possible.
pub fn read(form: &dyn Form, written: &Written, tools: &ToolTypes) -> Read {
    let (reasoning, content) = reasoning::split(&written.content);
    let reasoning = reasoning.map(str::to_owned);
    let rest = Written { content: content.to_owned(), calls: written.calls.clone() };
    if let Ok(turn) = form.strict(&rest, tools) {
        return Read { turn: Ok(turn), reasoning, reading: Reading::Strict };
    }
    let turn = form.lenient(&rest, tools);
    let reading = if turn.is_ok() { Reading::Lenient } else { Reading::Unreadable };
    Read { turn, reasoning, reading }
}

/// Writes a turn that reads back as itself. `first` numbers its first call.
///
/// # Errors
/// [`NoPlace`].
pub fn written(form: &dyn Form, turn: &TurnAst, tools: &ToolTypes, first: usize) -> Result<Written, NoPlace> {
    let written = form.write(turn, first)?;
    let otherwise = |reason: String| NoPlace::ReadsOtherwise { form: form.name(), reason };
    // What looks like reasoning at the start would be taken for it.
    if reasoning::split(&written.content).0.is_some() {
        return Err(otherwise("it begins like reasoning".to_owned()));
    }
    match form.strict(&written, tools) {
        Ok(back) if back == *turn => Ok(written),
        Ok(_) => Err(otherwise("it says something else".to_owned())),
        Err(reason) => Err(otherwise(reason)),
    }
}

impl Written {
    /// The message in a conversation.
    pub fn into_message(self) -> ChatMessage {
        ChatMessage { role: Role::Assistant, content: self.content, calls: self.calls, call_id: None }
    }
}

/// What asks for words or calls, for forms that are told in words.
fn offered(tools: &[Tool]) -> String {
    let line = |tool: &Tool| {
        let parameters = tool.parameters.as_ref().map_or("{}", |schema| schema.as_str());
        let description = serde_json::Value::from(tool.description.as_str());
        let name = serde_json::Value::from(tool.name.as_str());
        format!("{{\"name\": {name}, \"description\": {description}, \"parameters\": {parameters}}}")
    };
    tools.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Words without a call: empty ones are no turn.
fn words(text: &str) -> Result<TurnAst, String> {
    if text.trim().is_empty() {
        return Err("it says nothing and calls nothing".to_owned());
    }
    Ok(TurnAst { text: text.to_owned(), calls: Vec::new() })
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
    use serde_json::{Value, json};

    use super::{FORMS, NoPlace, Reading, ToolTypes, Written, by_name, read, written};
    use crate::json::Json;
    use crate::trajectory::Tool;
    use crate::verdict::{CallAst, TurnAst};

    fn tools() -> Vec<Tool> {
        let schema = json!({"type": "object", "properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"},
            "b": {"type": "boolean"}, "a": {"type": "array"}, "o": {"type": "object"},
        }});
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: "does it".to_owned(),
            parameters: Json::parse(&schema.to_string()).ok(),
            read_only: None,
        };
        vec![tool("go"), tool("open_door")]
    }

    fn value(name: &str) -> impl Strategy<Value = Value> + use<> {
        let texts = || {
            prop_oneof![
                "[a-z <>/=\"'{}\n\\\\]{0,12}",
                ".{0,8}",
                Just("</tool_call>".to_owned()),
                Just("1".to_owned())
            ]
        };
        match name {
            "s" => texts().prop_map(Value::from).boxed(),
            "i" => any::<i64>().prop_map(Value::from).boxed(),
            "n" => (-1e6_f64..1e6).prop_map(Value::from).boxed(),
            "b" => any::<bool>().prop_map(Value::from).boxed(),
            "a" => vec(texts(), 0..3).prop_map(|list| json!(list)).boxed(),
            _ => btree_map(texts(), texts(), 0..3).prop_map(|map| json!(map)).boxed(),
        }
    }

    fn call() -> impl Strategy<Value = CallAst> {
        let argument = prop_oneof![Just("s"), Just("i"), Just("n"), Just("b"), Just("a"), Just("o")];
        let argument = argument.prop_flat_map(|name| (Just(name.to_owned()), value(name)));
        (prop_oneof![Just("go"), Just("open_door")], vec(argument, 0..4)).prop_map(|(name, arguments)| {
            let map: serde_json::Map<String, Value> = arguments.into_iter().collect();
            CallAst::read(name, &Value::Object(map).to_string()).unwrap()
        })
    }

    fn turn() -> impl Strategy<Value = TurnAst> {
        // Plain words, and texts that look like markup.
        let text = prop_oneof![
            Just(String::new()),
            "[a-zA-Z .,!]{1,20}(\n[a-z ]{1,9})?",
            ".{0,16}",
            Just("<tool_call>".to_owned()),
            Just("{\"name\": \"go\"}".to_owned()),
            Just("x\nAction: go".to_owned()),
            Just("<think>a</think>b".to_owned()),
        ];
        (text, vec(call(), 0..3)).prop_map(|(text, calls)| TurnAst { text, calls })
    }

    proptest! {
        #[test]
        fn what_has_a_place_reads_back_as_itself(turn in turn()) {
            let types = ToolTypes::of(&tools());
            for form in FORMS {
                if let Ok(text) = written(*form, &turn, &types, 0) {
                    let back = read(*form, &text, &types);
                    prop_assert_eq!(back.turn.as_ref(), Ok(&turn), "{}: {:?}", form.name(), text);
                    prop_assert_eq!(back.reading, Reading::Strict);
                    prop_assert_eq!(back.reasoning, None);
                }
            }
        }

        #[test]
        fn plain_turns_have_a_place(text in "[a-z]{1,9}( [a-z]{1,9}){0,3}", calls in vec(call(), 1..3)) {
            let types = ToolTypes::of(&tools());
            let is_plain = |call: &CallAst| !call.arguments.as_str().contains('<');
            let several = TurnAst { text: text.clone(), calls: calls.clone() };
            for name in ["native", "hermes"] {
                assert!(written(by_name(name).unwrap(), &several, &types, 3).is_ok(), "{name}");
            }
            if calls.iter().all(is_plain) {
                assert!(written(by_name("qwen-xml").unwrap(), &several, &types, 3).is_ok());
            }
            let alone = TurnAst { text: String::new(), calls: calls.clone() };
            assert!(written(by_name("llama-json").unwrap(), &alone, &types, 0).is_ok());
            let one = TurnAst { text, calls: calls.into_iter().take(1).collect() };
            assert!(written(by_name("react").unwrap(), &one, &types, 0).is_ok());
        }

        #[test]
        fn nothing_makes_a_reader_panic(content in ".{0,200}", pieces in vec(prop_oneof![
            Just("<tool_call>"), Just("</tool_call>"), Just("<function=go>"), Just("</function>"),
            Just("<parameter=s>"), Just("</parameter>"), Just("{\"name\":"), Just("'go'"), Just("Action:"),
            Just("Action Input:"), Just("\n"), Just("{"), Just("}"), Just("["), Just("\\u12"), Just("<|python_tag|>"),
        ], 0..20)) {
            let types = ToolTypes::of(&tools());
            for text in [content, pieces.concat()] {
                for form in FORMS {
                    let answer = Written { content: text.clone(), calls: Vec::new() };
                    read(*form, &answer, &types);
                }
            }
        }
    }

    #[test]
    fn what_a_form_has_no_place_for_is_refused() {
        let types = ToolTypes::of(&tools());
        let go = CallAst::read("go", "{}").unwrap();
        let both = TurnAst { text: "so".to_owned(), calls: vec![go.clone(), go] };
        let refused =
            |name: &str, turn: &TurnAst| written(by_name(name).unwrap(), turn, &types, 0).unwrap_err();
        assert!(matches!(refused("react", &both), NoPlace::SeveralCalls(_)));
        assert!(matches!(refused("llama-json", &both), NoPlace::WordsBesideCall(_)));
        let markup = TurnAst { text: "<tool_call>".to_owned(), calls: Vec::new() };
        assert!(matches!(refused("hermes", &markup), NoPlace::ReadsOtherwise { .. }));
        assert!(written(by_name("react").unwrap(), &markup, &types, 0).is_ok());
        let untyped = CallAst::read("fly", r#"{"i":1}"#).unwrap();
        let untyped = TurnAst { text: String::new(), calls: vec![untyped] };
        assert!(matches!(refused("qwen-xml", &untyped), NoPlace::ReadsOtherwise { .. }), "1 or \"1\"?");
    }
}
