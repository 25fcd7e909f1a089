//! A call of a tool that nobody offered.

use super::{Detector, Run, finding};
use crate::diagnosis::actions::Observation;
use crate::verdict::Finding;

/// What environments answer to a name they do not know, in lower case.
const REFUSALS: &[&str] = &[
    "unknown tool",
    "unknown function",
    "unknown action",
    "no such tool",
    "no such function",
    "tool not found",
    "function not found",
    "is not a valid tool",
    "is not a known tool",
];

/// See the module.
pub(super) struct UnknownTool;

impl Detector for UnknownTool {
    fn name(&self) -> &'static str {
        "unknown-tool"
    }

    fn capability(&self) -> &'static str {
        "tool_selection"
    }

    fn describe(&self) -> &'static str {
        "calls a tool that was not offered"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        let calls = || run.actions.iter().filter(|action| action.is_call);
        let offered = |name: &str| run.trajectory.tool(name).is_some();
        // A list that misses most of what is called and answered is not the list of this agent's tools.
        let (strange, answered) = calls()
            .filter(|call| !offered(call.name))
            .fold((0, 0), |(all, answered), call| (all + 1, answered + usize::from(call.succeeded())));
        let has_list = !run.trajectory.tools.is_empty() && answered * 2 <= strange.max(1);
        for (at, action) in run.actions.iter().enumerate().filter(|(_, action)| action.is_call) {
            let refusal = action.observation.as_ref().filter(|observation| {
                observation.text.len() < 1_000 && {
                    let text = observation.text.to_lowercase();
                    REFUSALS.iter().any(|form| text.contains(form))
                }
            });
            let by_list = has_list && !offered(action.name) && !action.succeeded();
            if !by_list && (refusal.is_none() || offered(action.name)) {
                continue;
            }
            let message = format!("The agent calls `{}`, a tool that was not offered to it.", action.name);
            let citations = action.citation().into_iter().chain(refusal.and_then(Observation::citation));
            let mut found = finding(self, action.node, 0.9, message, citations);
            if found.citations.is_empty() {
                found.citations.extend(action.observation.as_ref().and_then(Observation::citation));
            }
            found.resolved_at = run.actions[at + 1..]
                .iter()
                .find(|later| later.name != action.name && later.succeeded())
                .map(|later| later.node);
            findings.push(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::UnknownTool;
    use crate::diagnosis::fixture::{call, chat, detect, result, user, with_tool};

    #[test]
    fn fires_on_a_tool_outside_the_list_and_sees_the_recovery() {
        let run = |rest: Vec<_>| {
            let mut nodes =
                vec![user("go"), call("serch", r#"{"q":"x"}"#), result("Error: unknown tool serch")];
            nodes.extend(rest);
            with_tool(chat(nodes), "search", r#"{"type":"object"}"#)
        };
        let found = detect(&UnknownTool, &run(vec![]), &[]);
        assert_eq!((found.len(), found[0].node, found[0].resolved_at), (1, 1, None));
        let found = detect(&UnknownTool, &run(vec![call("search", "{\"q\":1}"), result("ok")]), &[]);
        assert_eq!(found[0].resolved_at, Some(3));
    }

    #[test]
    fn silent_without_a_list_or_where_the_tool_answers() {
        let run = chat(vec![user("go"), call("anything", "{}"), result("fine")]);
        assert!(detect(&UnknownTool, &run, &[]).is_empty());
        let run = with_tool(run, "other", r#"{"type":"object"}"#);
        assert!(detect(&UnknownTool, &run, &[]).is_empty());
    }
}
