//! `diagnosis_sft`: the record of a failed run, and where it went wrong.
//!
//! The question is the one that `recoup` asks its judges, word for word, and the answer has the form that it reads
//! from them, so that a model which learned this can be a judge. The record holds no gold answer, no verifier's
//! output and nothing that a replay found; a long one is shown through the judges' own window, around what
//! detectors cite. A quote stands in what is shown exactly once, or it is left out; an answer that would point
//! outside the window is no example.

use std::sync::Arc;

use serde_json::json;

use super::{DiagnosisAnswer, Example, Exclusion, Message, Objective, View, ViewInput};
use crate::judges::{CITATIONS_MAX, Case, DIAGNOSE, JudgeConfig, QUOTE_CHARS_MAX, Shown};
use crate::trajectory::{Citation, Part, Role};
use crate::verdict::{Diagnosis, FailureClass};

/// The question whose answer is a name and a number.
const BENCHMARK: &str = include_str!("prompts/benchmark.md");
/// Characters by which a quote grows to both sides until it stands only once.
const MARGINS: [usize; 4] = [0, 16, 64, 256];
/// What an answer says of blame: no other failure is in the view.
const BLAME: &str = "This turn is the agent's own, and the failure follows from it.";

/// See the module.
pub struct DiagnosisSft;

impl View for DiagnosisSft {
    fn name(&self) -> &'static str {
        "diagnosis_sft"
    }

    fn objective(&self) -> Objective {
        Objective::MeanPerExample
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let diagnosis = input.admitted_diagnosis()?;
        let anchors: Vec<Citation> =
            diagnosis.findings.iter().flat_map(|finding| &finding.citations).cloned().collect();
        let case = Case::of_redacted(input.run, &anchors);
        let shown = case.show(JudgeConfig::default().window_bytes(), &[]);
        let step = case
            .index(diagnosis.decisive_node)
            .filter(|step| shown.holds(*step))
            .ok_or(Exclusion::because("decisive-step-outside-the-window"))?;
        let agent = case
            .shown_agent(diagnosis.decisive_node)
            .ok_or(Exclusion::because("decisive-step-outside-the-window"))?;
        let (question, answer) = match input.settings.diagnosis_answer {
            DiagnosisAnswer::Full => {
                let answer = full(&case, &shown, diagnosis, (step, &agent), input.class)?;
                (DIAGNOSE.text, answer)
            }
            DiagnosisAnswer::Benchmark => (BENCHMARK, format!("Agent Name: {agent}\nStep Number: {step}")),
        };
        let said =
            |role: Role, text: &str| Arc::new(Message::written(role, role.as_str(), vec![Part::text(text)]));
        let context =
            vec![said(Role::System, question), said(Role::User, &shown.text), said(Role::Assistant, &answer)];
        let segments = context[2].segments(2).collect();
        let objective = Objective::MeanPerExample;
        let lineage = input.diagnosed_lineage(self);
        Ok(vec![Example { objective, ..Example::new(context, Vec::new().into(), segments, lineage) }])
    }
}

/// The answer in the form that judges give it.
fn full(
    case: &Case<'_>,
    shown: &Shown,
    diagnosis: &Diagnosis,
    (step, agent): (usize, &str),
    class: Option<&FailureClass>,
) -> Result<String, Exclusion> {
    let cited = diagnosis.citations.iter().filter_map(|quote| cited(case, shown, &quote.at));
    let cited: Vec<(usize, String)> = cited.take(CITATIONS_MAX).collect();
    if !cited.iter().any(|(node, _)| *node <= step) {
        return Err(Exclusion::because("evidence-outside-the-window"));
    }
    let citations: Vec<_> =
        cited.into_iter().map(|(node, quote)| json!({ "node": node, "quote": quote })).collect();
    let candidate = diagnosis.candidate.as_ref().and_then(|candidate| {
        let action = candidate.action.to_value();
        let (tool, arguments) = match action.get("say") {
            Some(text) => (None, text.clone()),
            None => (Some(action.get("name")?), json!(action.get("arguments")?.to_string())),
        };
        Some(json!({ "tool": tool, "arguments": arguments, "rationale": candidate.rationale }))
    });
    let class = class.map(
        |class| json!({ "class": class.class, "recoverable": class.recoverable, "severity": class.severity }),
    );
    Ok(json!({
        "citations": citations,
        "decisive_step": step,
        "responsible_agent": agent,
        "explanation": diagnosis.explanation,
        "candidate": candidate,
        "blame": { "party": "agent", "reason": BLAME },
        "failure_class": class,
    })
    .to_string())
}

/// A range of the run as a judge would quote it: with the number of its node, in words that stand there once.
fn cited(case: &Case<'_>, shown: &Shown, at: &Citation) -> Option<(usize, String)> {
    let node = case.index(at.node)?;
    let text = case.run().nodes.get(at.node)?.part(&at.part_path)?.cited_text()?;
    MARGINS.iter().find_map(|margin| {
        let start = text.floor_char_boundary(at.start.saturating_sub(*margin));
        let end = text.ceil_char_boundary((at.end + margin).min(text.len()));
        let quote = text.get(start..end)?;
        let quote: String = quote.chars().take(QUOTE_CHARS_MAX).collect();
        case.cite(shown, node, &quote).is_ok().then_some((node, quote))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::fixture::fixture;
    use super::DiagnosisSft;
    use crate::trajectory::{Node, Part, Role};
    use crate::views::{DiagnosisAnswer, Objective, View};

    #[test]
    fn the_answer_is_one_that_a_judge_would_give() {
        let fixture = fixture();
        let examples = DiagnosisSft.build(&fixture.input()).unwrap();
        let [example] = examples.as_slice() else { panic!("one example") };
        assert_eq!((example.context.len(), example.objective), (3, Objective::MeanPerExample));
        assert!(example.learns_all_of(2) && example.segments.len() == 1);
        let text = example.context[2].parts[0].cited_text().unwrap();
        let answer: Value = serde_json::from_str(text).unwrap();
        assert!(text.starts_with(r#"{"citations":[{"node":3,"quote":"B2"}],"decisive_step":3,"#), "{text}");
        assert_eq!(answer["candidate"]["arguments"], r#"{"id":"A1"}"#);
        let lineage = &example.lineage;
        assert_eq!(lineage.gates, ["S1", "S4"]);
        assert_eq!(lineage.verdicts, [fixture.reviews[0].of]);
    }

    #[test]
    fn a_benchmark_asks_for_a_name_and_a_number() {
        let mut fixture = fixture();
        fixture.settings.diagnosis_answer = DiagnosisAnswer::Benchmark;
        let example = DiagnosisSft.build(&fixture.input()).unwrap().remove(0);
        assert_eq!(example.context[2].parts[0].cited_text(), Some("Agent Name: assistant\nStep Number: 3"));
    }

    #[test]
    fn a_long_run_is_shown_around_what_detectors_cite() {
        let mut fixture = fixture();
        for _ in 0..400 {
            let noise = "The weather is fine in the harbor, and the boats lie still. ".repeat(40);
            fixture.run.push(Node::new(Role::User, "user", vec![Part::text(noise)]));
        }
        let end =
            fixture.run.push(Node::new(Role::Assistant, "assistant", vec![Part::text("Bye.")]).sampled());
        fixture.run.leaves[0].node = Some(end);
        let example = DiagnosisSft.build(&fixture.input()).unwrap().remove(0);
        let shown = example.context[1].parts[0].cited_text().unwrap();
        assert!(shown.len() <= 72_000 && shown.contains("left out"), "{}", shown.len());
        assert!(shown.contains(r#"{"id":"B2"}"#));
    }
}
