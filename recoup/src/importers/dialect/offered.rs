//! The tools that a request offers, in the forms of every provider.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::Aside;
use crate::importers::object::Object;
use crate::importers::openai_chat::tool;
use crate::importers::value::elements;
use crate::trajectory::Tool;

/// Reads a list of tools: functions in OpenAI's and Anthropic's form, Google's lists of declarations, and
/// the providers' own tools, which have a name or a type and no schema. What is none of these is left out
/// and named in `aside`.
pub(in crate::importers) fn offered(raw: &RawValue, aside: &mut Aside) -> Vec<Tool> {
    let mut found = Vec::new();
    for raw in elements(raw).unwrap_or_default() {
        let Some(mut fields) = Object::of(raw) else {
            aside.lose("tools[]", "no definition of a tool");
            continue;
        };
        let declarations = ["functionDeclarations", "function_declarations"];
        if let Some(list) = declarations.into_iter().find_map(|key| fields.list(key)) {
            found.extend(list.into_iter().filter_map(|raw| one(raw, aside)));
        } else if let Some(tool) = one(raw, aside) {
            found.push(tool);
        } else {
            let word = fields.text("type").or_else(|| fields.keys().next().map(str::to_owned));
            let name = word.unwrap_or_else(|| "untyped".to_owned());
            found.push(Tool { name, description: String::new(), parameters: None, read_only: None });
            aside.left(fields, "tools[]");
        }
    }
    found
}

fn one(raw: &RawValue, aside: &mut Aside) -> Option<Tool> {
    let mut losses = BTreeSet::new();
    let found = tool(raw, "", &mut losses)?;
    for loss in losses {
        aside.lose(loss.field, "a tool has no place for it");
    }
    Some(found)
}
