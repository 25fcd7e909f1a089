//! What judges made of a project's runs, for the report.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::VerdictId;
use crate::judges::quality::{Share, measure};
use crate::pipeline::labelled::judgements;
use crate::redaction::redact_name;
use crate::report::{Disagreement, GateCount, Judges};
use crate::statistics::Resampling;
use crate::store::{Store, StoreError};
use crate::trajectory::Branch;
use crate::verdict::{Content, Decision, Judging, Verdict};

/// Disagreements that the report lists.
const LISTED: usize = 50;
/// Seed of the report's resampling: the same project, the same intervals.
const REPORT_SEED: u64 = 0;

/// What the project's judges say. `None` where nothing was judged.
pub(super) fn judges(store: &Store) -> Result<Option<Judges>, StoreError> {
    let mut tally = Tally { judges: Judges { cost_usd: Some(0.0), ..Judges::default() }, ..Tally::default() };
    let mut last = None;
    for (task, verdict) in store.of_kind("judging")? {
        let Content::Judging(judging) = verdict.content else { continue };
        // Of each run the current protocol, which comes first.
        let counts = judging.sample == 0 && !judging.with_ground_truth && last != Some(verdict.subject);
        if !counts {
            continue;
        }
        last = Some(verdict.subject);
        let run = store.effective(verdict.subject)?;
        let verdicts = store.verdicts(verdict.subject)?;
        tally.add(&run.main_branch(), &verdicts, &judging, (verdict.subject.to_string(), &task.0));
    }
    let quality = measure(&judgements(store)?, Resampling::new(REPORT_SEED));
    Ok((tally.runs > 0).then(|| Judges { quality, ..tally.finish() }))
}

#[derive(Default)]
struct Tally {
    judges: Judges,
    runs: u64,
    admitted: u64,
    /// Runs on which both rules and judge name a step: all, the same, within three.
    both: [u64; 3],
    panel_disagrees: Vec<Disagreement>,
    rules_disagree: Vec<Disagreement>,
}

impl Tally {
    fn add(
        &mut self,
        branch: &Branch<'_>,
        verdicts: &[Verdict],
        judging: &Judging,
        (run, task): (String, &str),
    ) {
        self.runs += 1;
        self.admitted += u64::from(judging.admitted);
        let judges = &mut self.judges;
        let panel: Vec<&str> = judging.members.iter().map(|member| member.model.as_str()).collect();
        *judges.panels.entry(redact_name(&panel.join(" + "))).or_default() += 1;
        judges.calls += judging.calls;
        judges.prompt_tokens += judging.prompt_tokens;
        judges.completion_tokens += judging.completion_tokens;
        judges.cost_usd = judges.cost_usd.zip(judging.cost_usd).map(|(all, one)| all + one);
        gates(&mut judges.gates, verdicts, judging);

        let rules = verdicts.iter().find_map(|verdict| match &verdict.content {
            Content::Diagnosis(diagnosis) if verdict.producer.name == "rules" => {
                Some(diagnosis.decisive_node)
            }
            _ => None,
        });
        let step = |node: Option<usize>| node.and_then(|node| branch.step(node));
        let held: Vec<Option<usize>> = judging.members.iter().map(|member| step(member.node)).collect();
        let (rules, proposed) = (step(rules), held.first().copied().flatten());
        let found = || Disagreement {
            run: run.clone(),
            task: redact_name(task),
            rules,
            judges: held.clone(),
            admitted: judging.admitted,
        };
        let differs = |other: &Option<usize>| other.is_some() && *other != proposed;
        if let (Some(rules), Some(proposed)) = (rules, proposed) {
            self.both[0] += 1;
            self.both[1] += u64::from(rules == proposed);
            self.both[2] += u64::from(rules.abs_diff(proposed) <= 3);
        }
        if held.iter().skip(1).any(differs) {
            self.panel_disagrees.push(found());
        } else if differs(&rules) {
            self.rules_disagree.push(found());
        }
    }

    fn finish(mut self) -> Judges {
        self.panel_disagrees.append(&mut self.rules_disagree);
        let (cost, admitted) = (self.judges.cost_usd, self.admitted);
        Judges {
            admitted: Share::of(admitted, self.runs),
            cost_per_admitted_usd: cost.filter(|_| admitted > 0).map(|cost| cost / admitted as f64),
            same_step_as_rules: Share::of(self.both[1], self.both[0]),
            within_3_of_rules: Share::of(self.both[2], self.both[0]),
            disagreements: crate::report::Capped::new(self.panel_disagrees, LISTED),
            ..self.judges
        }
    }
}

/// Counts the gates' words on the last answer of a run.
fn gates(counts: &mut BTreeMap<String, GateCount>, verdicts: &[Verdict], judging: &Judging) {
    let last = judging.attempts.len().saturating_sub(1) as u32;
    let answers: BTreeSet<VerdictId> = verdicts
        .iter()
        .filter(|verdict| match &verdict.content {
            Content::RejectedAnswer(answer) => answer.attempt == last && answer.sample == judging.sample,
            Content::Diagnosis(_) | Content::Blame(_) => judging.diagnosis == Some(verdict.id),
            _ => false,
        })
        .map(|verdict| verdict.id)
        .collect();
    for verdict in verdicts {
        let Content::Review(review) = &verdict.content else { continue };
        if !answers.contains(&review.of) || review.gate == "step" {
            continue;
        }
        let count = counts.entry(review.gate.clone()).or_default();
        match review.verdict {
            Decision::Admit => count.admitted += 1,
            Decision::Reject => count.rejected += 1,
            Decision::Abstain => count.abstained += 1,
        }
    }
    if let Some(gate) = judging.attempts.last().and_then(|attempt| attempt.gate.as_ref()) {
        counts.entry(gate.clone()).or_default().decided += 1;
    }
}
