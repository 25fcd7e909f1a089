//! Gates S1 to S9: what a diagnosis must satisfy, whoever gave it. Structural and deterministic.

use serde_json::Value;

use super::Run;
use super::actions::text_key;
use super::text_actions::text_action;
use super::words::words;
use crate::json::Json;
use crate::json_schema::violation;
use crate::trajectory::{ArgumentsForm, Part, ToolCall, folded, same_action};
use crate::verdict::{Decision, Diagnosis};

/// One gate's word on a diagnosis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateReview {
    /// Gate (`S4`).
    pub gate: &'static str,
    /// The decision; a gate that does not apply abstains.
    pub decision: Decision,
    /// Why.
    pub reason: String,
}

/// What a gate says: a decision and its reason.
type Word = (Decision, String);

/// A gate: whether a diagnosis of a run satisfies it.
type Gate = fn(&Run<'_>, &Diagnosis) -> Word;

fn admit() -> Word {
    (Decision::Admit, String::new())
}

fn reject(reason: impl Into<String>) -> Word {
    (Decision::Reject, reason.into())
}

fn abstain(reason: &str) -> Word {
    (Decision::Abstain, reason.to_owned())
}

/// Runs every gate, in order.
pub fn review(run: &Run<'_>, diagnosis: &Diagnosis) -> Vec<GateReview> {
    let gates: [(&'static str, Gate); 9] = [
        ("S1", s1_schema),
        ("S2", s2_policy_step),
        ("S3", s3_author),
        ("S4", s4_quotes),
        ("S5", s5_evidence_in_time),
        ("S6", s6_candidate),
        ("S7", s7_nothing_hidden),
        ("S8", s8_no_leak),
        ("S9", s9_grounded_words),
    ];
    gates
        .into_iter()
        .map(|(gate, decide)| {
            let (decision, reason) = decide(run, diagnosis);
            GateReview { gate, decision, reason }
        })
        .collect()
}

/// The record is complete: an explanation, an agent, finite strengths.
fn s1_schema(_: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    if diagnosis.explanation.trim().is_empty() {
        return reject("the explanation is empty");
    }
    if diagnosis.responsible_agent.trim().is_empty() {
        return reject("no responsible agent is named");
    }
    if diagnosis.findings.iter().any(|finding| !(0.0..=1.0).contains(&finding.strength)) {
        return reject("a finding's strength is not between 0 and 1");
    }
    admit()
}

/// The decisive step is one of the branch's and the policy's.
fn s2_policy_step(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    if run.branch.node_index(diagnosis.decisive_node).is_none() {
        return reject("the decisive node is not on the run's branch");
    }
    if run.steps.iter().any(|step| step.node == diagnosis.decisive_node) {
        admit()
    } else {
        reject("the decisive node is not a turn of the policy")
    }
}

/// The responsible agent wrote that node, after NFKC and case folding.
fn s3_author(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    let Some(node) = run.trajectory.nodes.get(diagnosis.decisive_node) else {
        return reject("there is no such node");
    };
    if folded(&node.agent) == folded(&diagnosis.responsible_agent) {
        admit()
    } else {
        reject(format!("the node's author is `{}`", node.agent))
    }
}

/// At least one citation, and every quote is exactly the bytes it points at.
fn s4_quotes(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    if diagnosis.citations.is_empty() {
        return reject("nothing is cited");
    }
    for citation in &diagnosis.citations {
        match citation.at.quote(run.trajectory) {
            Ok(text) if text == citation.quote => {}
            Ok(_) => return reject(format!("node {} does not hold the quoted bytes", citation.at.node)),
            Err(error) => return reject(error.to_string()),
        }
    }
    admit()
}

/// At least one citation stands at or before the decisive step.
fn s5_evidence_in_time(_: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    if diagnosis.citations.iter().any(|citation| citation.at.node <= diagnosis.decisive_node) {
        admit()
    } else {
        reject("every citation stands after the decisive step")
    }
}

/// The candidate parses as an action that the tools allow, or in a run that acts in text as such an action, and
/// is another action than the original.
fn s6_candidate(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
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
fn said(action: &Json) -> Option<String> {
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

/// No citation into what the agents could not see.
fn s7_nothing_hidden(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    let hidden = diagnosis.citations.iter().find(|citation| {
        let node = run.trajectory.nodes.get(citation.at.node);
        let part = node.and_then(|node| node.part(&citation.at.part_path));
        part.is_none_or(|part| matches!(part, Part::Opaque { .. } | Part::Media(_)))
    });
    hidden.map_or_else(admit, |citation| reject(format!("node {} cites a hidden part", citation.at.node)))
}

/// Words of a gold answer from which on it is compared by pieces.
const LONG_ANSWER: usize = 8;

/// No gold answer, nor eight of its words in a row, that the visible trace does not hold.
fn s8_no_leak(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    let hidden = &run.trajectory.hidden;
    let mut answers = Vec::new();
    for gold in [&hidden.gold, &hidden.reference, &hidden.verifier_output].into_iter().flatten() {
        collect_answers(&gold.to_value(), &mut answers);
    }
    if answers.is_empty() {
        return abstain("no gold answer is known");
    }
    let said = format!(" {} ", normalized(&told(diagnosis)).join(" "));
    for answer in answers {
        let tokens = normalized(&answer);
        let pieces: Vec<String> = if tokens.len() < LONG_ANSWER {
            vec![tokens.join(" ")]
        } else {
            tokens.windows(LONG_ANSWER).map(|window| window.join(" ")).collect()
        };
        let leaked = pieces
            .iter()
            .any(|piece| !piece.is_empty() && said.contains(&format!(" {piece} ")) && !run.is_visible(piece));
        if leaked {
            return reject("the text holds a gold answer that the trace does not");
        }
    }
    admit()
}

fn collect_answers(value: &Value, answers: &mut Vec<String>) {
    match value {
        // Bounded: a gold record of thousands of values is a state, not an answer.
        _ if answers.len() >= 256 => {}
        Value::String(text) => answers.push(text.clone()),
        Value::Number(number) => answers.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect_answers(item, answers)),
        Value::Object(members) => members.values().for_each(|member| collect_answers(member, answers)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Words in lower case after NFKC.
fn normalized(text: &str) -> Vec<String> {
    let folded = folded(text);
    folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Words by which a text would speak of what the agent could not know.
const OUTSIDE: &[&str] = &[
    "sibling",
    "other run",
    "other runs",
    "successful run",
    "successful runs",
    "reference solution",
    "gold answer",
    "ground truth",
    "replay",
    "verifier",
];

/// Words after which a number counts nodes, and those that may stand between two such numbers.
const COUNTED: &[&str] = &["node", "nodes", "step", "steps", "turn", "turns", "message", "messages"];
const JOINING: &[&str] = &["and", "or", "to", "through"];

/// Explanation and candidate hold no identifier, number or quote that the trace and the tools do not,
/// and name no other run.
fn s9_grounded_words(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    let text = told(diagnosis);
    let lower = text.to_lowercase();
    if let Some(word) = OUTSIDE.iter().find(|word| lower.contains(*word) && !run.is_visible(word)) {
        return reject(format!("the text speaks of `{word}`"));
    }
    let mut counts_nodes = false;
    let names = words(&text).filter(|word| {
        let written = &text[word.range.clone()];
        counts_nodes = counts_nodes && (word.has_digit || JOINING.contains(&written))
            || COUNTED.contains(&written.to_lowercase().as_str());
        // A node's number is where to look, not something that the run holds.
        let is_place = counts_nodes && written.parse::<usize>().is_ok_and(|number| number < run.branch.len());
        !is_place && (word.has_digit || written.contains('_') || is_camel(written))
    });
    let strange =
        names.map(|word| text[word.range].to_owned()).chain(quotes(&text)).find(|name| !run.is_visible(name));
    strange.map_or_else(admit, |name| reject(format!("`{name}` does not stand in the trace")))
}

/// What a diagnosis tells in words or proposes.
fn told(diagnosis: &Diagnosis) -> String {
    let mut text = diagnosis.explanation.clone();
    if let Some(candidate) = &diagnosis.candidate {
        text.push('\n');
        text.push_str(&candidate.rationale);
        let mut values = Vec::new();
        if let Some(arguments) = candidate.action.to_value().get("arguments") {
            collect_answers(arguments, &mut values);
        }
        // The fence around code quotes nothing.
        values.extend(said(&candidate.action).map(|text| match text_action(&text) {
            Some(action) => text[action.body].to_owned(),
            None => text,
        }));
        text.push('\n');
        text.push_str(&values.join("\n"));
    }
    text
}

fn is_camel(word: &str) -> bool {
    word.chars().zip(word.chars().skip(1)).any(|(left, right)| left.is_lowercase() && right.is_uppercase())
}

/// What stands between quotation marks or backticks.
fn quotes(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for mark in ['"', '`'] {
        found.extend(text.split(mark).skip(1).step_by(2).map(str::to_owned));
    }
    found.retain(|quote| !quote.trim().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::{GateReview, review};
    use crate::diagnosis::fixture::{call, chat, result, say, user, with_tool};
    use crate::diagnosis::{DiagnosisConfig, Run, diagnose};
    use crate::json::Json;
    use crate::trajectory::{Part, Trajectory};
    use crate::verdict::{Candidate, Decision, Diagnosis};

    fn run() -> Trajectory {
        let nodes = vec![
            user("take 3 of ABC12"),
            call("take_itme", r#"{"n":3}"#),
            result("Error: unknown tool"),
            say("I could not."),
        ];
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
        let mut run = with_tool(chat(nodes), "take_item", schema);
        run.hidden.gold = Some(Json::parse(r#"{"answer":"forty seven"}"#).unwrap());
        run
    }

    /// The gate's word after a change to an admitted diagnosis.
    fn word(gate: &str, change: impl FnOnce(&mut Trajectory, &mut Diagnosis)) -> Decision {
        let mut run = run();
        let mut diagnosis = diagnose(&run, &[], &DiagnosisConfig::default()).diagnosis.unwrap();
        change(&mut run, &mut diagnosis);
        let reviews: Vec<GateReview> = review(&Run::new(&run, &[], &DiagnosisConfig::default()), &diagnosis);
        reviews.into_iter().find(|review| review.gate == gate).unwrap().decision
    }

    fn unchanged(_: &mut Trajectory, _: &mut Diagnosis) {}

    #[test]
    fn s1_the_record_is_complete() {
        assert_eq!(word("S1", unchanged), Decision::Admit);
        assert_eq!(word("S1", |_, it| it.explanation = " ".to_owned()), Decision::Reject);
    }

    #[test]
    fn s2_the_step_is_the_policys() {
        assert_eq!(word("S2", unchanged), Decision::Admit);
        assert_eq!(word("S2", |_, it| it.decisive_node = 0), Decision::Reject);
        assert_eq!(word("S2", |_, it| it.decisive_node = 99), Decision::Reject);
    }

    #[test]
    fn s3_the_agent_is_the_author_up_to_case_and_form() {
        assert_eq!(word("S3", |_, it| it.responsible_agent = "ＡSSISTANT".to_owned()), Decision::Admit);
        assert_eq!(word("S3", |_, it| it.responsible_agent = "user".to_owned()), Decision::Reject);
    }

    #[test]
    fn s4_quotes_are_exact() {
        assert_eq!(word("S4", unchanged), Decision::Admit);
        assert_eq!(word("S4", |_, it| it.citations[0].quote.push('!')), Decision::Reject);
        assert_eq!(word("S4", |_, it| it.citations[0].at.end = 9_999), Decision::Reject);
        assert_eq!(word("S4", |_, it| it.citations.clear()), Decision::Reject);
    }

    #[test]
    fn s5_evidence_stands_at_or_before_the_step() {
        assert_eq!(word("S5", unchanged), Decision::Admit);
        assert_eq!(word("S5", |_, it| it.citations.retain(|one| one.at.node > 1)), Decision::Reject);
    }

    #[test]
    fn s6_the_candidate_is_a_new_valid_action() {
        let propose = |action: &'static str| {
            move |_: &mut Trajectory, it: &mut Diagnosis| {
                let action = Json::parse(action).unwrap();
                it.candidate = Some(Candidate { action, rationale: String::new() });
            }
        };
        assert_eq!(word("S6", unchanged), Decision::Admit);
        assert_eq!(word("S6", |_, it| it.candidate = None), Decision::Abstain);
        assert_eq!(word("S6", propose(r#"{"name":"take_item","arguments":{"n":"3"}}"#)), Decision::Reject);
        assert_eq!(word("S6", propose(r#"{"name":"other","arguments":{}}"#)), Decision::Reject);
        assert_eq!(
            word("S6", |run, it| {
                run.tools[0].name = "take_itme".to_owned();
                propose(r#"{"name":"take_itme","arguments":{"n":3.0}}"#)(run, it);
            }),
            Decision::Reject
        );
    }

    #[test]
    fn s6_a_run_that_acts_in_text_takes_an_action_in_text() {
        let turn = "I look it up.\nAction: Search[Rome]";
        let run = chat(vec![user("When was Rome founded?"), say(turn), user("753 BC"), say("In 753 BC.")]);
        let base = diagnose(&self::run(), &[], &DiagnosisConfig::default()).diagnosis.unwrap();
        let words = |run: &Trajectory, text: &str| {
            let action = Json::from_foreign(&serde_json::json!({ "say": text }).to_string());
            let candidate = Some(Candidate { action, rationale: String::new() });
            let explanation = "It looks.".to_owned();
            let diagnosis = Diagnosis { candidate, explanation, decisive_node: 1, ..base.clone() };
            let reviews = review(&Run::new(run, &[], &DiagnosisConfig::default()), &diagnosis);
            ["S6", "S9"].map(|gate| reviews.iter().find(|review| review.gate == gate).unwrap().decision)
        };
        assert_eq!(words(&run, "Action: Search[founded]"), [Decision::Admit; 2]);
        assert_eq!(words(&run, "```python\nRome\n```"), [Decision::Admit; 2]);
        assert_eq!(words(&run, "Action: Search[year_of_Rome]"), [Decision::Admit, Decision::Reject]);
        assert_eq!(words(&run, "Action:  Search[Rome]")[0], Decision::Reject);
        assert_eq!(words(&run, "I would search.")[0], Decision::Reject);
        assert_eq!(words(&self::run(), "Action: take[3]")[0], Decision::Reject);
    }

    #[test]
    fn s7_hidden_parts_are_not_cited() {
        assert_eq!(word("S7", unchanged), Decision::Admit);
        let hide = |run: &mut Trajectory, _: &mut Diagnosis| {
            run.nodes[1].parts[0] = Part::Opaque { kind: "sealed".to_owned(), raw: r#"{"n":3}"#.to_owned() };
        };
        assert_eq!(word("S7", hide), Decision::Reject);
    }

    #[test]
    fn s8_gold_answers_do_not_leak() {
        assert_eq!(word("S8", unchanged), Decision::Admit);
        assert_eq!(word("S8", |run, _| run.hidden.gold = None), Decision::Abstain);
        assert_eq!(word("S8", |_, it| it.explanation.push_str(" Forty-seven was right.")), Decision::Reject);
        let long = |run: &mut Trajectory, it: &mut Diagnosis| {
            run.hidden.gold = Some(Json::string("one two three four five six seven eight nine"));
            it.explanation.push_str(" two three four five six seven eight nine");
        };
        assert_eq!(word("S8", long), Decision::Reject);
    }

    #[test]
    fn s9_every_name_number_and_quote_stands_in_the_trace() {
        assert_eq!(word("S9", |_, it| it.explanation = "`ABC12` needs 3.".to_owned()), Decision::Admit);
        let place = |it: &mut Diagnosis| it.explanation = "Node 2 and 3 answer step 1.".to_owned();
        assert_eq!(word("S9", |_, it| place(it)), Decision::Admit);
        for text in [
            "`ABC13`",
            "The 47th",
            "Node 47",
            "Node 1 costs 47",
            "It has \"never been said\".",
            "A successful run differs.",
        ] {
            assert_eq!(word("S9", |_, it| it.explanation = text.to_owned()), Decision::Reject, "{text}");
        }
    }
}
