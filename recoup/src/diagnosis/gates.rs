//! Gates S1 to S9: what a diagnosis must satisfy, whoever gave it. Structural and deterministic.

mod candidate;
mod wording;

use self::candidate::s6_candidate;
use self::wording::{s8_no_leak, s9_grounded_words};
use super::Run;
use crate::trajectory::{Part, folded};
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

/// No citation into what the agents could not see.
fn s7_nothing_hidden(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    let hidden = diagnosis.citations.iter().find(|citation| {
        let node = run.trajectory.nodes.get(citation.at.node);
        let part = node.and_then(|node| node.part(&citation.at.part_path));
        part.is_none_or(|part| matches!(part, Part::Opaque { .. } | Part::Media(_)))
    });
    hidden.map_or_else(admit, |citation| reject(format!("node {} cites a hidden part", citation.at.node)))
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
