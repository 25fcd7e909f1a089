//! Tools and the check of an action's arguments, before the environment sees it.

use serde_json::{Map, Value};

use super::{EnvironmentError, Fault};
use crate::json::Json;
use crate::trajectory::Tool;

/// A tool of an environment.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name that calls use.
    pub name: String,
    /// What it does.
    pub description: String,
    /// True where calls change nothing but what the agent has seen or where it looks; absent where the
    /// environment does not say.
    pub read_only: Option<bool>,
    /// Its parameters, in the order of the schema.
    pub parameters: Vec<Parameter>,
    /// Arguments without which a call is refused.
    pub required: Vec<String>,
    /// The schema of its arguments as the environment wrote it.
    pub schema: Json,
}

/// A parameter of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name of the argument.
    pub name: String,
    /// What a value must be.
    pub kind: ArgumentKind,
    /// The values allowed, where they are listed.
    pub options: Option<Vec<Value>>,
}

/// The JSON types of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// `string`
    String,
    /// `integer`: 64 bits.
    Integer,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
    /// `array`
    Array,
    /// `object`
    Object,
}

impl ArgumentKind {
    const ALL: [Self; 6] =
        [Self::String, Self::Integer, Self::Number, Self::Boolean, Self::Array, Self::Object];

    /// The type's word in a schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// A value of the type; a string is the given text.
    pub fn example(self, text: &str) -> Value {
        match self {
            Self::String => Value::from(text),
            Self::Integer | Self::Number => Value::from(1),
            Self::Boolean => Value::from(true),
            Self::Array => Value::Array(vec![Value::from(text)]),
            Self::Object => Value::Object(Map::new()),
        }
    }
}

/// An argument where it stands: as parsed JSON, or on the heap of an interpreter.
pub(crate) trait Argument<'a>: Copy {
    /// Names and values of an object; `None` for anything else.
    fn members(self) -> Option<Vec<(&'a str, Self)>>;

    /// Whether it is of a type.
    fn is(self, kind: ArgumentKind) -> bool;

    /// Whether it is a listed value.
    fn equals(self, option: &Value) -> bool;
}

impl<'a> Argument<'a> for &'a Value {
    fn members(self) -> Option<Vec<(&'a str, Self)>> {
        Some(self.as_object()?.iter().map(|(name, value)| (name.as_str(), value)).collect())
    }

    fn is(self, kind: ArgumentKind) -> bool {
        match kind {
            ArgumentKind::String => self.is_string(),
            ArgumentKind::Integer => self.is_i64(),
            ArgumentKind::Number => self.is_number(),
            ArgumentKind::Boolean => self.is_boolean(),
            ArgumentKind::Array => self.is_array(),
            ArgumentKind::Object => self.is_object(),
        }
    }

    fn equals(self, option: &Value) -> bool {
        self == option
    }
}

impl ToolSpec {
    /// Reads the list that an environment's `tools` returns.
    ///
    /// # Errors
    /// A [`Fault::Contract`] that names the tool and the field.
    pub fn read_all(environment: &str, json: &str) -> Result<Vec<Self>, EnvironmentError> {
        let broken =
            |what: String| EnvironmentError::new(environment, Fault::Contract, format!("tools: {what}"));
        let value: Value = serde_json::from_str(json).map_err(|error| broken(error.to_string()))?;
        let list = value.as_array().ok_or_else(|| broken("not a list".to_owned()))?;
        let mut tools: Vec<Self> = Vec::with_capacity(list.len());
        for tool in list {
            let tool = Self::read(tool).map_err(broken)?;
            if tools.iter().any(|known| known.name == tool.name) {
                return Err(broken(format!("`{}` is there twice", tool.name)));
            }
            tools.push(tool);
        }
        Ok(tools)
    }

    /// Writes the list that [`ToolSpec::read_all`] reads.
    pub fn write_all(tools: &[Self]) -> String {
        let tool = |tool: &Self| {
            // The schema is kept with sorted keys; the parameters know the order in which they were written.
            let mut schema = tool.schema.to_value();
            if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                let ordered = tool.parameters.iter().filter_map(|known| properties.remove_entry(&known.name));
                *properties = ordered.collect();
            }
            serde_json::json!({
                "name": tool.name,
                "description": tool.description,
                "read_only": tool.read_only,
                "parameters": schema,
            })
        };
        tools.iter().map(tool).collect::<Value>().to_string()
    }

    fn read(value: &Value) -> Result<Self, String> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = text("name");
        let is_name = !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        if !is_name {
            return Err(format!("{name:?} is no name of a tool"));
        }
        let schema = value.get("parameters").ok_or_else(|| format!("`{name}` has no `parameters`"))?;
        let required: Vec<String> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default();
        let mut parameters = Vec::new();
        for (parameter, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let word = property.get("type").and_then(Value::as_str).unwrap_or_default();
            let kind = ArgumentKind::ALL.into_iter().find(|kind| kind.as_str() == word);
            parameters.push(Parameter {
                name: parameter.clone(),
                kind: kind.ok_or_else(|| format!("`{name}`, parameter `{parameter}`: type {word:?}"))?,
                options: property.get("enum").and_then(Value::as_array).cloned(),
            });
        }
        if let Some(unknown) = required.iter().find(|known| parameters.iter().all(|p| p.name != **known)) {
            return Err(format!("`{name}` requires {unknown:?}, which it does not have"));
        }
        Ok(Self {
            description: text("description"),
            read_only: value.get("read_only").and_then(Value::as_bool),
            parameters,
            required,
            schema: Json::from_foreign(&schema.to_string()),
            name,
        })
    }

    /// The tool as trajectories record it.
    pub fn to_tool(&self) -> Tool {
        Tool {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: Some(self.schema.clone()),
            read_only: self.read_only,
        }
    }

    /// Whether the environment says that calls change nothing.
    pub fn only_looks(&self) -> bool {
        self.read_only == Some(true)
    }

    fn misfit<'a, A: Argument<'a>>(&self, arguments: &[(&'a str, A)]) -> Option<String> {
        let name = &self.name;
        let absent = |required: &&String| arguments.iter().all(|(given, _)| given != *required);
        if let Some(absent) = self.required.iter().find(absent) {
            return Some(format!("Error: {name} needs the argument \"{absent}\"."));
        }
        for (argument, value) in arguments {
            let Some(parameter) = self.parameters.iter().find(|known| known.name == *argument) else {
                return Some(format!("Error: {name} has no argument \"{argument}\"."));
            };
            if !value.is(parameter.kind) {
                let kind = parameter.kind.as_str();
                return Some(format!("Error: the argument \"{argument}\" of {name} must be of type {kind}."));
            }
            let listed = |options: &&Vec<Value>| options.iter().any(|option| value.equals(option));
            if let Some(options) = parameter.options.as_ref().filter(|options| !listed(options)) {
                let options: Vec<String> = options.iter().map(plain).collect();
                let options = options.join(", ");
                return Some(format!(
                    "Error: the argument \"{argument}\" of {name} must be one of: {options}."
                ));
            }
        }
        None
    }
}

/// Why a call fits none of the tools, in words for the agent; `None` where it fits.
pub(crate) fn refusal<'a>(tools: &[ToolSpec], tool: &str, arguments: impl Argument<'a>) -> Option<String> {
    let Some(spec) = tools.iter().find(|known| known.name == tool) else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        return Some(format!("Error: there is no tool \"{tool}\". The tools are: {}.", names.join(", ")));
    };
    match arguments.members() {
        Some(arguments) => spec.misfit(&arguments),
        None => Some(format!("Error: the arguments of {tool} are no JSON object.")),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{ToolSpec, refusal};

    #[test]
    fn a_call_that_fits_no_tool_is_refused_in_words() {
        let tools = ToolSpec::read_all(
            "test",
            r#"[{"name":"go","description":"","parameters":{"type":"object","properties":
                {"to":{"type":"string","enum":["north","south"]},"far":{"type":"integer"}},"required":["to"]}}]"#,
        )
        .unwrap();
        assert_eq!(ToolSpec::read_all("test", &ToolSpec::write_all(&tools)).unwrap(), tools);
        let refused = |tool: &str, arguments: &str| {
            refusal(&tools, tool, &serde_json::from_str(arguments).unwrap()).unwrap_or_default()
        };
        assert_eq!(refused("go", r#"{"to":"north","far":2}"#), "");
        assert_eq!(refused("fly", "{}"), r#"Error: there is no tool "fly". The tools are: go."#);
        assert_eq!(refused("go", "{}"), r#"Error: go needs the argument "to"."#);
        assert_eq!(
            refused("go", r#"{"to":"up"}"#),
            r#"Error: the argument "to" of go must be one of: north, south."#
        );
        assert_eq!(
            refused("go", r#"{"to":"north","far":1.5}"#),
            r#"Error: the argument "far" of go must be of type integer."#
        );
        assert_eq!(refused("go", r#"{"to":"north","how":1}"#), r#"Error: go has no argument "how"."#);
        assert_eq!(refused("go", "[]"), "Error: the arguments of go are no JSON object.");
    }
}
