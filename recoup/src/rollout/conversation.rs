//! A conversation: what a model is shown of an episode, in its own form.
//!
//! Turns are written again from what they mean, whoever took them: a student sees its teacher's turns as if it had
//! written them itself. What its form has no place for is left out there, words before calls.

use crate::environments::{Action, Exchange, ToolSpec};
use crate::json::Json;
use crate::models::{ChatMessage, tokens};
use crate::rollout::forms::{Form, Written};
use crate::rollout::{Situation, Taken, Turn};
use crate::trajectory::{Role, Tool};
use crate::verdict::{CallAst, NoTurn, TurnAst};

/// The tool that stands for a call that nobody could read. Its arguments are the text, and every environment refuses
/// it in words.
pub(super) const UNREADABLE: &str = "unreadable_call";

/// What stands between the goal and what the start has shown, in what a model reads and in the record of it.
pub(crate) const GAP: &str = "\n\n";

/// The messages before a turn.
pub(super) fn messages(situation: &Situation<'_>, form: &dyn Form, tools: &[Tool]) -> Vec<ChatMessage> {
    let mut out = Vec::new();
    let system: Vec<String> =
        situation.rules.map(str::to_owned).into_iter().chain(form.instructions(tools)).collect();
    if !system.is_empty() {
        out.push(ChatMessage::system(system.join("\n\n")));
    }
    let mut opening = situation.goal.to_owned();
    if !situation.first_observation.is_empty() {
        opening.push_str(GAP);
        opening.push_str(situation.first_observation);
    }
    out.push(ChatMessage::user(opening));
    let mut next = 0;
    for taken in situation.turns {
        let exchanges = situation.transcript.get(next..next + taken.exchanges).unwrap_or_default();
        push_turn(&mut out, taken, exchanges, next, form);
        next += taken.exchanges;
    }
    if let Some(advice) = situation.advice {
        push_user(&mut out, ChatMessage::user(advice.text()));
    }
    out
}

/// Tokens that a state likely has in a form.
pub(super) fn likely_tokens(situation: &Situation<'_>, form: &dyn Form, tools: &[Tool]) -> u64 {
    let messages = messages(situation, form, tools);
    let offered =
        if form.is_native() { tools.iter().map(|tool| function(tool).as_str().len()).sum() } else { 0 };
    let calls =
        |message: &ChatMessage| -> usize { message.calls.iter().map(|call| call.arguments.len()).sum() };
    let bytes: usize = messages.iter().map(|message| message.content.len() + calls(message)).sum();
    tokens::text((bytes + offered) as u64)
}

/// A tool in the form of OpenAI's functions.
pub fn function(tool: &Tool) -> Json {
    let parameters = tool.parameters.as_ref().map_or("{\"properties\":{},\"type\":\"object\"}", Json::as_str);
    let (name, description) = (Json::string(&tool.name), Json::string(&tool.description));
    Json::from_foreign(&format!(
        "{{\"type\":\"function\",\"function\":{{\"name\":{},\"description\":{},\"parameters\":{parameters}}}}}",
        name.as_str(),
        description.as_str()
    ))
}

/// Tools as records have them.
pub(super) fn tools(tools: &[ToolSpec]) -> Vec<Tool> {
    tools.iter().map(ToolSpec::to_tool).collect()
}

/// What a turn means.
///
/// # Errors
/// [`NoTurn`], where it says nothing or its calls cannot be read.
pub(super) fn meaning(turn: &Turn) -> Result<TurnAst, NoTurn> {
    meant(turn.said.as_deref(), turn.actions.iter())
}

fn meant<'a>(said: Option<&str>, actions: impl Iterator<Item = &'a Action>) -> Result<TurnAst, NoTurn> {
    let mut turn = TurnAst { text: said.unwrap_or_default().to_owned(), calls: Vec::new() };
    for action in actions {
        match action {
            Action::Call { tool, arguments } => turn.calls.push(CallAst::read(tool, arguments.as_str())?),
            Action::Say(text) => {
                if !turn.text.is_empty() {
                    turn.text.push('\n');
                }
                turn.text.push_str(text);
            }
        }
    }
    if turn.calls.is_empty() && turn.text.trim().is_empty() { Err(NoTurn::Empty) } else { Ok(turn) }
}

fn push_turn(
    out: &mut Vec<ChatMessage>,
    taken: &Taken,
    exchanges: &[Exchange],
    first: usize,
    form: &dyn Form,
) {
    let actions = exchanges.iter().map(|exchange| &exchange.action);
    let whole = meant(taken.said.as_deref(), actions).ok().and_then(|turn| {
        let bare = TurnAst { text: String::new(), calls: turn.calls.clone() };
        form.write(&turn, first).or_else(|_| form.write(&bare, first)).ok()
    });
    if let Some(written) = whole {
        out.push(written.into_message());
        push_results(out, exchanges, first, form);
        return;
    }
    // A form with one call a turn, or a call that nobody could read.
    for (offset, exchange) in exchanges.iter().enumerate() {
        let one = meant(None, std::iter::once(&exchange.action)).ok();
        let written = one.and_then(|turn| form.write(&turn, first + offset).ok());
        let is_call = written.is_some();
        out.push(written.unwrap_or_else(|| as_it_was(&exchange.action)).into_message());
        if is_call {
            push_results(out, std::slice::from_ref(exchange), first + offset, form);
        } else {
            push_user(out, ChatMessage::user(exchange.step.observation.clone()));
        }
    }
}

/// The text of a call that nobody could read.
fn as_it_was(action: &Action) -> Written {
    let content = match action {
        Action::Say(text) => text.to_string(),
        Action::Call { arguments, .. } => unread_text(arguments),
    };
    Written { content, calls: Vec::new() }
}

/// What a model wrote that could not be read.
pub(super) fn unread_text(arguments: &Json) -> String {
    match arguments.to_value() {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

/// The call that stands for a text that could not be read.
pub(crate) fn unread(text: &str) -> Action {
    Action::call(UNREADABLE, Json::string(text))
}

fn push_results(out: &mut Vec<ChatMessage>, exchanges: &[Exchange], first: usize, form: &dyn Form) {
    for (offset, Exchange { action, step }) in exchanges.iter().enumerate() {
        match action {
            Action::Call { .. } => {
                let shown = form.result(&format!("call_{}", first + offset), &step.observation);
                push_user(out, shown);
            }
            Action::Say(_) if step.observation.is_empty() => {}
            Action::Say(_) => push_user(out, ChatMessage::user(step.observation.clone())),
        }
    }
}

/// Adds a message. What users say one after the other is one message: many templates want the roles to take turns.
fn push_user(out: &mut Vec<ChatMessage>, message: ChatMessage) {
    match out.last_mut() {
        Some(last) if last.role == Role::User && message.role == Role::User => {
            last.content.push('\n');
            last.content.push_str(&message.content);
        }
        _ => out.push(message),
    }
}
