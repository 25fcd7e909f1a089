//! Types of tools' parameters, for forms that write values without quotes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::trajectory::Tool;

/// What kind of value each parameter of each tool takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolTypes(BTreeMap<String, BTreeMap<String, bool>>);

impl ToolTypes {
    /// Of tools with JSON schemas.
    pub fn of(tools: &[Tool]) -> Self {
        let types = |tool: &Tool| {
            let schema = tool.parameters.as_ref().map(crate::json::Json::to_value).unwrap_or_default();
            let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
            let types = properties.into_iter().map(|(name, property)| (name, is_string(&property)));
            (tool.name.clone(), types.collect())
        };
        Self(tools.iter().map(types).collect())
    }

    /// Whether a parameter takes text and nothing else; unknown parameters do.
    pub fn is_text(&self, tool: &str, parameter: &str) -> bool {
        self.0.get(tool).and_then(|tool| tool.get(parameter)).copied().unwrap_or(true)
    }

    /// Whether there is such a tool.
    pub fn has(&self, tool: &str) -> bool {
        self.0.contains_key(tool)
    }
}

fn is_string(property: &Value) -> bool {
    match property.get("type") {
        Some(Value::String(word)) => word == "string",
        Some(_) => false,
        None => match property.get("enum").and_then(Value::as_array) {
            Some(options) => options.iter().all(Value::is_string),
            None => false,
        },
    }
}
