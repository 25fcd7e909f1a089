//! Tool definitions as OpenAI writes them, and the flat and stringified forms that data sets made of
//! them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;

use crate::importers::object::Object;
use crate::importers::value::{elements, is_object, text};
use crate::trajectory::Tool;
use crate::warning::Loss;

/// Names of the schema of a tool's arguments.
const SCHEMAS: [&str; 4] = ["parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"];

/// The list of tools that was read last. The runs of a harness offer the same one again and again.
#[derive(Default)]
pub(super) struct LastTools(Mutex<Option<Known>>);

struct Known {
    raw: Box<RawValue>,
    tools: Vec<Tool>,
    losses: BTreeSet<Loss>,
}

impl LastTools {
    /// As [`tools`] reads them.
    pub(super) fn read(
        &self,
        raw: &RawValue,
        format: &str,
        losses: &mut BTreeSet<Loss>,
    ) -> Option<Vec<Tool>> {
        if let Some(known) = self.lock().as_ref().filter(|known| known.raw.get() == raw.get()) {
            losses.extend(known.losses.iter().cloned());
            return Some(known.tools.clone());
        }
        let mut lost = BTreeSet::new();
        let read = tools(raw, format, &mut lost);
        losses.extend(lost.iter().cloned());
        let tools = read?;
        *self.lock() = Some(Known { raw: raw.to_owned(), tools: tools.clone(), losses: lost });
        Some(tools)
    }

    /// Held to compare and to keep, not while a list is read.
    fn lock(&self) -> MutexGuard<'_, Option<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a list of definitions, or a JSON string that holds one. `None` where it is something else;
/// members that a [`Tool`] has no place for are losses.
pub(in crate::importers) fn tools(
    raw: &RawValue,
    format: &str,
    losses: &mut BTreeSet<Loss>,
) -> Option<Vec<Tool>> {
    if let Some(inner) = text(raw) {
        let inner: &RawValue = serde_json::from_str(&inner).ok()?;
        return list(inner, format, losses);
    }
    list(raw, format, losses)
}

fn list(raw: &RawValue, format: &str, losses: &mut BTreeSet<Loss>) -> Option<Vec<Tool>> {
    elements(raw)?.into_iter().map(|raw| tool(raw, format, losses)).collect()
}

/// Reads one definition; `None` for one that names nothing.
pub(in crate::importers) fn tool(raw: &RawValue, format: &str, losses: &mut BTreeSet<Loss>) -> Option<Tool> {
    let mut outer = Object::of(raw)?;
    let wrapped = outer.get("function").is_some_and(is_object);
    let mut inner = if wrapped { outer.object("function") } else { std::mem::take(&mut outer) };
    let name = inner.text("name")?;
    let description = inner.text("description").unwrap_or_default();
    let schema = SCHEMAS.into_iter().find_map(|key| inner.take(key));
    outer.take("type");
    inner.take("type");
    // What recoup's own exports say beside OpenAI's form.
    let read_only = [&mut outer, &mut inner].into_iter().find_map(|form| form.read::<bool>("read_only"));
    for key in inner.keys().chain(outer.keys()) {
        losses.insert(Loss::new(format, format!("tools[].{key}"), "a tool has no place for it"));
    }
    Some(Tool { name, description, parameters: schema.map(Into::into), read_only })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{LastTools, tools};
    use crate::importers::object::Object;
    use crate::importers::openai_chat::take_tools_with;
    use crate::task::Task;
    use crate::trajectory::Trajectory;

    fn names(text: &str) -> Option<Vec<String>> {
        let raw = serde_json::from_str(text).unwrap();
        Some(tools(raw, "test", &mut BTreeSet::new())?.into_iter().map(|tool| tool.name).collect())
    }

    #[test]
    fn nested_flat_and_stringified_definitions_are_read() {
        let nested = r#"[{"type":"function","function":{"name":"a","parameters":{}}}]"#;
        assert_eq!(names(nested), Some(vec!["a".to_owned()]));
        assert_eq!(names(r#"[{"name":"b","input_schema":{}}]"#), Some(vec!["b".to_owned()]));
        assert_eq!(names(&serde_json::to_string(nested).unwrap()), Some(vec!["a".to_owned()]));
        assert_eq!(names(r#""use the tools wisely""#), None);
        assert_eq!(names(r#"[{"type":"web_search"}]"#), None);
    }

    #[test]
    fn a_list_that_comes_again_is_the_same_and_another_is_not() {
        let last = LastTools::default();
        let read = |text: &str| {
            let mut row: Object<'_> = serde_json::from_str(text).unwrap();
            let mut run = Trajectory::new("test", Task::from_goal("goal"));
            let mut losses = BTreeSet::new();
            take_tools_with(&mut row, "tools", &mut run, &mut losses, |raw, format, losses| {
                last.read(raw, format, losses)
            });
            (run.tools, losses, row.has("tools"))
        };
        let offered = r#"{"tools":[{"name":"b","input_schema":{},"strict":true}]}"#;
        let first = read(offered);
        assert_eq!((first.0[0].name.as_str(), first.1.len(), first.2), ("b", 1, false));
        assert_eq!(read(offered), first);
        assert_eq!(read(r#"{"tools":["shell"]}"#), (Vec::new(), BTreeSet::new(), true));
        assert_eq!(read(r#"{"tools":[{"name":"c"}]}"#).0[0].name, "c");
        assert_eq!(read(offered), first);
    }
}
