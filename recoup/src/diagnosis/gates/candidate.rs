//! S6: the repair that a diagnosis proposes.

use serde_json::Value;

use super::{Word, abstain, admit, reject};
use crate::diagnosis::Run;
use crate::diagnosis::actions::text_key;
use crate::diagnosis::text_actions::text_action;
use crate::json::Json;
use crate::json_schema::violation;
use crate::trajectory::{ArgumentsForm, Part, ToolCall, same_action};
use crate::verdict::Diagnosis;

/// The candidate parses as an action that the tools allow, or in a run that acts in text as such an action, and
/// is another action than the original.
pub(super) fn s6_candidate(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    let Some(candidate) = &diagnosis.candidate else { return abstain("no candidate is proposed") };
    if let Some(text) = said(&candidate.action) {
        return s6_said(run, diagnosis.decisive_node, &text);
    }
    let Some(call) = call_of(&candidate.action) else {
        return reject("the candidate is not a call with a name and arguments");
    };
    let Some(tool) = run.trajectory.tool(&call.name) else {
        return reject(format!("`{}` is not an offered tool", call.name));
    };
    let schema = tool.parameters.as_ref().map_or(Value::Null, Json::to_value);
    if call.arguments().is_some_and(|arguments| violation(&schema, &arguments).is_some()) {
        return reject("the candidate's arguments break the tool's schema");
    }
    let original = run.trajectory.nodes.get(diagnosis.decisive_node);
    let same = original.is_some_and(|node| {
        node.parts.iter().any(|part| matches!(part, Part::ToolCall(made) if same_action(made, &call)))
    });
    if same { reject("the candidate is the original action") } else { admit() }
}

fn s6_said(run: &Run<'_>, decisive: usize, text: &str) -> Word {
    let Some(action) = text_action(text) else {
        return reject("the candidate's text holds no action: neither a block of code nor an `Action:` line");
    };
    let mut in_text = run.actions.iter().filter(|action| !action.is_call).peekable();
    if in_text.peek().is_none() {
        return reject("the candidate is text, and the run's agents act by calls");
    }
    let key = text_key(&text[action.body]);
    let same = in_text.any(|made| made.node == decisive && made.key == key);
    if same { reject("the candidate is the original action") } else { admit() }
}

/// What a turn says that acts in text.
pub(super) fn said(action: &Json) -> Option<String> {
    Some(action.to_value().get("say")?.as_str()?.to_owned())
}

fn call_of(action: &Json) -> Option<ToolCall> {
    let value = action.to_value();
    let arguments = value.get("arguments").filter(|arguments| arguments.is_object())?;
    Some(ToolCall {
        call_id: None,
        name: value.get("name")?.as_str()?.to_owned(),
        arguments_raw: arguments.to_string(),
        arguments_form: ArgumentsForm::Object,
    })
}
