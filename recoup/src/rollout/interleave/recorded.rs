//! Labels of recorded conversations: what a teacher said in the states that a log shows, read and marked as labels that are
//! collected are.

use crate::importers::recoup_proxy::Visit;
use crate::interleaving::{Reading, goes_in_circles};
use crate::json_schema::violation;
use crate::models::{ModelCall, tokens};
use crate::rollout::forms::{self, Native, Read, ToolTypes, Written};
use crate::trajectory::{Branch, Call, Node, Part, Role, Trajectory};
use crate::verdict::{Actor, LabelCost, LabelMark, LabelRefusal, RefusalCode, StateLabel, TurnAst, Unscored};

use super::labels::has_a_place;

/// The label of a visited state. The run need not be sealed yet; what its outcome says is asked where labels are used.
pub fn recorded_label(run: &Trajectory, visit: &Visit) -> StateLabel {
    let taught = visit.taught.as_ref().map_err(Clone::clone);
    let read = taught.and_then(|taught| whole(taught.call.as_ref()).and_then(|()| read(&taught.parts, run)));
    let executed = visit.executed.and_then(|node| run.nodes.get(node));
    let did = executed.and_then(|node| Some(TurnAst::of_parts(&node.parts).ok()?.0));
    let mut marks = Vec::new();
    let (action, reasoning, refused) = match read {
        Ok(Taught { turn, reasoning, is_lenient }) => {
            marks.extend(is_lenient.then_some(LabelMark::NonParsing));
            (Some(turn), reasoning, None)
        }
        Err(refused) => (None, None, Some(refused)),
    };
    if action.is_some() {
        marks.extend(is_beyond(run, visit).then_some(LabelMark::ContextOverflow));
        marks.extend(goes_round(run, visit.state).then_some(LabelMark::Loop));
    }
    let call = visit.taught.as_ref().ok().and_then(|taught| taught.call.as_ref());
    let usage = call.and_then(|call| call.usage).unwrap_or_default();
    StateLabel {
        state: visit.state,
        executed: visit.executed,
        turn: visit.turn,
        round: visit.round,
        actor: visit.actor,
        teacher: visit.teacher.clone(),
        agrees: action.as_ref().map(|label| did.is_some_and(|did| did.does_the_same(label))),
        action,
        reasoning,
        refused,
        marks,
        verified: None,
        cost: LabelCost {
            prompt_tokens: usage.input,
            completion_tokens: usage.output,
            usd: call.and_then(|call| call.cost),
        },
        shift: None,
        unscored: (visit.actor == Actor::Student).then_some(Unscored::Recorded),
    }
}

struct Taught {
    turn: TurnAst,
    reasoning: Option<String>,
    is_lenient: bool,
}

/// Whether an answer came to its end: half a turn is none.
fn whole(call: Option<&Call>) -> Result<(), LabelRefusal> {
    match call.and_then(|call| call.finish_reason.as_deref()) {
        Some("length" | "max_tokens" | "max_output_tokens" | "incomplete") => {
            Err(LabelRefusal::unreadable("the answer is cut at its limit of tokens"))
        }
        Some("content_filter" | "refusal") => {
            Err(LabelRefusal::unreadable("the provider withheld the answer"))
        }
        _ => Ok(()),
    }
}

/// Reads a teacher's message as a turn that the student could take.
fn read(parts: &[Part], run: &Trajectory) -> Result<Taught, LabelRefusal> {
    if run.tools.is_empty() {
        // Where the harness takes its actions out of the text, the text is the turn.
        let (turn, reasoning) = TurnAst::of_parts(parts).map_err(LabelRefusal::unreadable)?;
        return match turn.calls.first() {
            Some(call) => Err(foreign(format!("the student has no tool `{}`", call.name))),
            None => Ok(Taught { turn, reasoning, is_lenient: false }),
        };
    }
    let (written, beside) = written(parts);
    let Read { turn, reasoning, reading } = forms::read(&Native, &written, &ToolTypes::of(&run.tools));
    let turn = turn.map_err(LabelRefusal::unreadable)?;
    for call in &turn.calls {
        let Some(tool) = run.tool(&call.name) else {
            return Err(foreign(format!("the student has no tool `{}`", call.name)));
        };
        let schema = tool.parameters.as_ref().map(crate::json::Json::to_value);
        let misfit = schema.and_then(|schema| violation(&schema, &call.arguments.to_value()));
        if let Some(misfit) = misfit {
            return Err(foreign(format!("the tool `{}` does not take that: {misfit}", call.name)));
        }
    }
    has_a_place(&turn, &run.tools, &Native)?;
    Ok(Taught { turn, reasoning: beside.or(reasoning), is_lenient: reading == Reading::Lenient })
}

fn foreign(reason: String) -> LabelRefusal {
    LabelRefusal { code: RefusalCode::ForeignTool, reason }
}

/// A message as its model wrote it, with the reasoning that its provider gives apart.
fn written(parts: &[Part]) -> (Written, Option<String>) {
    let (mut texts, mut thoughts, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text.text.as_str()),
            Part::Reasoning { text, .. } => thoughts.push(text.as_str()),
            Part::ToolCall(call) => calls.push(ModelCall::from(call)),
            Part::ToolResult(_) | Part::Media(_) | Part::Opaque { .. } => {}
        }
    }
    let thought = Some(thoughts.join("\n")).filter(|text| !text.is_empty());
    (Written { content: texts.join("\n"), calls }, thought)
}

/// Whether a state is longer than the student's context: its upstream said so, or counted that many tokens, or has not
/// counted and the text is likely as long.
fn is_beyond(run: &Trajectory, visit: &Visit) -> bool {
    let Some(most) = visit.context else { return visit.overflowed };
    let by_student = visit.executed.filter(|_| visit.actor == Actor::Student);
    let counted = by_student.and_then(|node| run.nodes.get(node)?.occurrence.call.as_ref()?.usage);
    visit.overflowed || counted.map_or_else(|| likely_tokens(run, visit.state), |usage| usage.input) > most
}

fn likely_tokens(run: &Trajectory, state: usize) -> u64 {
    let length = |part: &Part| match part {
        Part::ToolCall(call) => call.name.len() + call.arguments_raw.len(),
        Part::ToolResult(result) => result.parts.iter().filter_map(Part::as_text).map(str::len).sum(),
        part => part.as_text().map_or(0, str::len),
    };
    let branch = Branch::to(run, Some(state));
    let said: usize = branch.nodes().flat_map(|(_, node)| &node.parts).map(length).sum();
    let tools = run.tools.iter().map(|tool| {
        let schema = tool.parameters.as_ref().map_or(0, |schema| schema.as_str().len());
        tool.name.len() + tool.description.len() + schema
    });
    tokens::text((said + tools.sum::<usize>()) as u64)
}

/// Whether the conversation goes in circles at a state: the same turn with the same reply, over and over.
fn goes_round(run: &Trajectory, state: usize) -> bool {
    let mut exchanges: Vec<(Option<TurnAst>, String)> = Vec::new();
    for (_, node) in Branch::to(run, Some(state)).nodes() {
        match (node.role, exchanges.last_mut()) {
            (Role::Assistant, _) => exchanges.push((done(node), String::new())),
            (_, Some((_, shown))) => {
                shown.push('\n');
                shown.push_str(&node.text());
            }
            (_, None) => {}
        }
    }
    goes_in_circles(exchanges.iter().rev())
}

/// What a turn did; words beside calls do not tell two apart.
fn done(node: &Node) -> Option<TurnAst> {
    let (turn, _) = TurnAst::of_parts(&node.parts).ok()?;
    Some(if turn.calls.is_empty() { turn } else { TurnAst { text: String::new(), ..turn } })
}

#[cfg(test)]
mod tests {
    use super::{recorded_label, whole};
    use crate::importers::recoup_proxy::{Taught, Visit};
    use crate::json::Json;
    use crate::task::Task;
    use crate::trajectory::{
        ArgumentsForm, Call, Node, Outcome, Part, Role, Tool, ToolCall, Trajectory, Usage,
    };
    use crate::verdict::{Actor, LabelMark, LabelRefusal, RefusalCode, StateLabel};

    fn call(arguments: &str) -> Part {
        Part::ToolCall(ToolCall {
            call_id: Some("c".to_owned()),
            name: "go".to_owned(),
            arguments_raw: arguments.to_owned(),
            arguments_form: ArgumentsForm::Object,
        })
    }

    /// A run in which the student goes north `times` times, to no avail; the last turn is the executed one.
    fn run(times: usize) -> Trajectory {
        let mut run = Trajectory::new("test", Task::from_goal("q"));
        let schema = r#"{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}"#;
        run.tools.push(Tool {
            name: "go".to_owned(),
            description: String::new(),
            parameters: Json::parse(schema).ok(),
            read_only: None,
        });
        run.push(Node::new(Role::User, "user", vec![Part::text("q")]));
        for turn in 0..times {
            let said = Part::text(format!("turn {turn}"));
            run.push(
                Node::new(Role::Assistant, "assistant", vec![said, call(r#"{"to":"north"}"#)]).sampled(),
            );
            run.push(Node::new(Role::Tool, "go", vec![Part::text_result(Some("c".to_owned()), "a wall")]));
        }
        let mut last = Node::new(Role::Assistant, "assistant", vec![call(r#"{"to":"south"}"#)]).sampled();
        let usage = Usage { input: 900, ..Usage::default() };
        last.occurrence.call = Some(Box::new(Call { usage: Some(usage), ..Call::default() }));
        run.push(last);
        run.finish(Outcome::unknown());
        run
    }

    fn label(run: &Trajectory, parts: Vec<Part>, context: Option<u64>) -> StateLabel {
        let executed = run.nodes.len() - 1;
        let visit = Visit {
            state: executed - 1,
            executed: Some(executed),
            turn: 0,
            round: 1,
            actor: Actor::Student,
            teacher: "t".to_owned(),
            taught: Ok(Taught { parts, call: None }),
            context,
            overflowed: false,
        };
        recorded_label(run, &visit)
    }

    #[test]
    fn a_label_is_marked_by_its_state() {
        let north = || vec![call(r#"{"to":"north"}"#)];
        let (short, long) = (run(2), run(3));
        assert_eq!(label(&short, north(), None).marks, []);
        assert_eq!(label(&long, north(), None).marks, [LabelMark::Loop], "words beside a call do not count");
        assert_eq!(label(&short, north(), Some(899)).marks, [LabelMark::ContextOverflow]);
        assert_eq!(label(&short, north(), Some(900)).marks, []);
        let mut uncounted = run(2);
        uncounted.nodes.last_mut().unwrap().occurrence.call = None;
        assert_eq!(label(&uncounted, north(), Some(10)).marks, [LabelMark::ContextOverflow]);
        assert_eq!(label(&short, vec![call(r#"{"to":"south"}"#)], None).agrees, Some(true));
    }

    #[test]
    fn what_only_lenient_rules_read_is_marked() {
        for parts in [
            vec![call("{'to': 'north',}")],
            vec![Part::text(
                "<tool_call>\n{\"name\": \"go\", \"arguments\": {\"to\": \"north\"}}\n</tool_call>",
            )],
        ] {
            let label = label(&run(1), parts, None);
            assert_eq!(label.marks, [LabelMark::NonParsing], "{label:?}");
            assert_eq!(label.action.unwrap().calls[0].arguments.as_str(), r#"{"to":"north"}"#);
        }
        // A harness that takes actions out of the text has them there.
        let mut text_only = run(1);
        text_only.tools.clear();
        let label = label(&text_only, vec![Part::text("<tool_call>\ngo\n</tool_call>")], None);
        assert_eq!((label.marks, label.refused), (Vec::new(), None));
    }

    #[test]
    fn what_the_student_could_not_do_is_no_label() {
        let run = run(1);
        let refused = |parts: Vec<Part>| label(&run, parts, None).refused.unwrap();
        let LabelRefusal { code, reason } = refused(vec![call(r#"{"too":1}"#)]);
        assert_eq!((code, reason.contains("`to`")), (RefusalCode::ForeignTool, true), "{reason}");
        assert_eq!(refused(vec![call("north")]).code, RefusalCode::Unreadable);
        assert_eq!(refused(vec![Part::text(" ")]).code, RefusalCode::Unreadable);
        for (word, said) in [("length", "cut"), ("max_tokens", "cut"), ("refusal", "withheld")] {
            let call = Call { finish_reason: Some(word.to_owned()), ..Call::default() };
            assert!(whole(Some(&call)).unwrap_err().reason.contains(said));
        }
        assert_eq!(whole(Some(&Call::default())), Ok(()));
    }
}
