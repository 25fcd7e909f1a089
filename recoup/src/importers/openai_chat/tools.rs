//! Tool definitions as OpenAI writes them, and the flat and stringified forms that data sets made of
//! them.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::importers::object::Object;
use crate::importers::value::{elements, is_object, text};
use crate::trajectory::Tool;
use crate::warning::Loss;

/// Names of the schema of a tool's arguments.
const SCHEMAS: [&str; 4] = ["parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"];

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

    use super::tools;

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
}
