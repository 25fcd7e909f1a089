//! The rows of one run: itself, its continuations, and every verdict on it, redacted with one set of
//! placeholders, so that a value reads the same in all of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Table;
use crate::exporters::writer::leftover;
use crate::json::Json;
use crate::redaction::{Kind, Placeholders, Redacted, redact, redact_beside, redact_name, redact_text};
use crate::trajectory::{Citation, Trajectory};
use crate::verdict::{
    Arm, ArmOutcome, Candidate, Content, Decision, Diagnosis, Relabel, ReplayPair, Side, Verdict,
};

/// A run with all that hangs on it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The run, labels applied.
    pub run: Trajectory,
    /// Its side of the split.
    pub side: Option<Side>,
    /// Every verdict on it, by kind, the current one of each first.
    pub verdicts: Vec<Verdict>,
    /// What replays have continued from it.
    pub continuations: Vec<Trajectory>,
}

/// What a run gives to the tables, or why nothing of it may leave.
#[derive(Clone, Debug, Default)]
pub struct CaseRows {
    /// Rows by table.
    pub rows: BTreeMap<Table, Vec<Value>>,
    /// Replacements made in the run and its continuations.
    pub redactions: BTreeMap<Kind, usize>,
    /// What was left that should have been replaced; there are no rows then.
    pub refused: Option<String>,
}

/// The rows of a run.
pub fn case_rows(case: &Case) -> CaseRows {
    let mut clear = Clear { redacted: redact(&case.run) };
    let mut rows: BTreeMap<Table, Vec<Value>> = BTreeMap::new();
    let mut redactions = clear.redacted.counts.clone();
    rows.entry(Table::Traces).or_default().push(trace(case, &clear.redacted.trajectory));
    for run in &case.continuations {
        let redacted = redact_beside(run, clear.redacted.placeholders.clone());
        for (kind, count) in &redacted.counts {
            *redactions.entry(*kind).or_default() += count;
        }
        clear.redacted.placeholders = redacted.placeholders;
        let continuation =
            Case { run: run.clone(), side: case.side, verdicts: Vec::new(), continuations: Vec::new() };
        rows.entry(Table::Traces).or_default().push(trace(&continuation, &redacted.trajectory));
    }
    let known = Known::of(&case.verdicts);
    let mut is_current = true;
    for verdict in &case.verdicts {
        match &verdict.content {
            Content::Diagnosis(diagnosis) => {
                let mut row = clear.diagnosis(verdict, diagnosis);
                row.insert("is_current".to_owned(), json!(std::mem::take(&mut is_current)));
                put(&mut row, "rung", known.rungs.get(&verdict.id).copied());
                rows.entry(Table::Diagnoses).or_default().push(Value::Object(row));
                if let Some(candidate) = &diagnosis.candidate
                    && !known.tests(verdict, candidate)
                {
                    let mut row = clear.candidate(case, candidate, &verdict.producer.name);
                    row.insert("diagnosis".to_owned(), json!(verdict.id));
                    rows.entry(Table::Candidates).or_default().push(Value::Object(row));
                }
            }
            Content::RejectedAnswer(answer) => {
                let mut row = match &answer.diagnosis {
                    Some(diagnosis) => clear.diagnosis(verdict, diagnosis),
                    None => head(verdict),
                };
                let text = [("gate", &answer.gate), ("reason", &answer.reason), ("answer", &answer.answer)];
                for (name, text) in text {
                    row.insert(name.to_owned(), clear.text(text).into());
                }
                row.insert("status".to_owned(), json!("rejected"));
                rows.entry(Table::Diagnoses).or_default().push(Value::Object(row));
            }
            Content::Review(review) => {
                let mut row = clear.review(verdict, &review.gate, review.verdict, &review.reason);
                row.insert("of".to_owned(), json!(review.of));
                rows.entry(Table::Reviews).or_default().push(Value::Object(row));
            }
            Content::PersonReview(review) => {
                let note = review.note.as_deref().unwrap_or_default();
                let mut row = clear.review(verdict, "person", review.verdict, note);
                put(&mut row, "node", review.node);
                rows.entry(Table::Reviews).or_default().push(Value::Object(row));
            }
            Content::ReplayPair(pair) => {
                if let Some(candidate) = &pair.candidate {
                    let by = pair.proposed_by.as_deref().unwrap_or("diagnosis");
                    let mut row = clear.candidate(case, candidate, by);
                    known.outcome(verdict, pair, &mut row);
                    rows.entry(Table::Candidates).or_default().push(Value::Object(row));
                }
                rows.entry(Table::Replays).or_default().extend(clear.replays(verdict, pair));
            }
            Content::Relabel(relabel) => {
                let row = clear.relabel(verdict, relabel);
                rows.entry(Table::Relabels).or_default().push(Value::Object(row));
            }
            _ => {}
        }
    }
    match rows.values().flatten().find_map(leftover) {
        Some(reason) => CaseRows { refused: Some(reason), ..CaseRows::default() },
        None => CaseRows { rows, redactions, refused: None },
    }
}

/// What the verdicts of a run say of each other.
struct Known<'a> {
    /// How far each diagnosis is proved.
    rungs: BTreeMap<crate::id::VerdictId, &'static str>,
    verdicts: &'a [Verdict],
}

impl<'a> Known<'a> {
    fn of(verdicts: &'a [Verdict]) -> Self {
        let mut rungs = BTreeMap::new();
        for verdict in verdicts {
            if let Content::Claim(claim) = &verdict.content {
                rungs.entry(claim.of).or_insert(claim.rung.as_str());
            }
        }
        Self { rungs, verdicts }
    }

    /// Whether a replay has tried the candidate of a diagnosis.
    fn tests(&self, diagnosis: &Verdict, candidate: &Candidate) -> bool {
        self.verdicts.iter().any(|verdict| match &verdict.content {
            Content::ReplayPair(pair) => {
                pair.diagnosis == Some(diagnosis.id) && pair.candidate.as_ref() == Some(candidate)
            }
            _ => false,
        })
    }

    /// Adds what a replay made of its candidate.
    fn outcome(&self, verdict: &Verdict, pair: &ReplayPair, row: &mut Map<String, Value>) {
        row.insert("pair".to_owned(), json!(verdict.id));
        put(row, "diagnosis", pair.diagnosis);
        let (passed, of) = pair.arm(Arm::Repair).map_or((0, 0), ArmOutcome::passed);
        let repair = self.verdicts.iter().find_map(|other| match &other.content {
            Content::Repair(repair) if repair.pair() == verdict.id => Some(repair.trajectory()),
            _ => None,
        });
        let status = match repair {
            Some(_) => "accepted",
            None if of > 0 => "rejected",
            None => "untested",
        };
        row.insert("status".to_owned(), json!(status));
        row.insert("passed".to_owned(), json!(passed));
        row.insert("of".to_owned(), json!(of));
        put(row, "continuation", repair);
    }
}

/// Frees texts about a run of what was replaced in it.
struct Clear {
    redacted: Redacted,
}

impl Clear {
    fn placeholders(&mut self) -> &mut Placeholders {
        &mut self.redacted.placeholders
    }

    fn text(&mut self, text: &str) -> String {
        redact_text(text, self.placeholders())
    }

    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => self.text(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(key, value)| (self.text(&key), self.value(value))).collect()
            }
            other => other,
        }
    }

    /// A citation into the redacted run, with the text that stands there.
    fn citation(&self, at: &Citation) -> Value {
        let at = self.redacted.map.to_redacted(at);
        let quote = at.quote(&self.redacted.trajectory).ok();
        json!({ "node": at.node, "part_path": at.part_path, "start": at.start, "end": at.end, "quote": quote })
    }

    fn diagnosis(&mut self, verdict: &Verdict, diagnosis: &Diagnosis) -> Map<String, Value> {
        let mut row = head(verdict);
        let run = &self.redacted.trajectory;
        let agent = run.nodes.get(diagnosis.decisive_node).map(|node| node.agent.clone());
        let step = run.main_branch().step(diagnosis.decisive_node);
        let agent = agent.unwrap_or_else(|| self.text(&diagnosis.responsible_agent));
        let citations: Vec<Value> =
            diagnosis.citations.iter().map(|quote| self.citation(&quote.at)).collect();
        let mut findings = Vec::with_capacity(diagnosis.findings.len());
        for finding in &diagnosis.findings {
            let citations: Vec<Value> = finding.citations.iter().map(|at| self.citation(at)).collect();
            findings.push(json!({
                "detector": finding.detector,
                "node": finding.node,
                "message": self.text(&finding.message),
                "strength": finding.strength,
                "capability": finding.capability,
                "citations": citations,
                "resolved_at": finding.resolved_at,
            }));
        }
        let status = if diagnosis.admitted { "accepted" } else { "rejected" };
        row.insert("status".to_owned(), json!(status));
        row.insert("decisive_node".to_owned(), json!(diagnosis.decisive_node));
        put(&mut row, "decisive_step", step);
        row.insert("agent".to_owned(), json!(agent));
        row.insert("explanation".to_owned(), self.text(&diagnosis.explanation).into());
        row.insert("suspected".to_owned(), json!(diagnosis.suspected));
        row.insert("citations".to_owned(), json!(citations));
        row.insert("findings".to_owned(), json!(findings));
        row
    }

    fn candidate(&mut self, case: &Case, candidate: &Candidate, by: &str) -> Map<String, Value> {
        object(json!({
            "trace": case.run.id,
            "proposed_by": redact_name(by),
            "status": "untested",
            "action": self.value(candidate.action.to_value()),
            "rationale": self.text(&candidate.rationale),
            "passed": 0,
            "of": 0,
        }))
    }

    fn review(
        &mut self,
        verdict: &Verdict,
        gate: &str,
        decision: Decision,
        reason: &str,
    ) -> Map<String, Value> {
        let mut row = object(json!({
            "id": verdict.id,
            "trace": verdict.subject,
            "gate": gate,
            "decision": decision,
            "reason": self.text(reason),
            "producer": verdict.producer.name,
        }));
        put(&mut row, "model", verdict.producer.model.as_deref().map(redact_name));
        row
    }

    fn relabel(&mut self, verdict: &Verdict, relabel: &Relabel) -> Map<String, Value> {
        let mut claims = Vec::with_capacity(relabel.claims.len());
        for claim in &relabel.claims {
            let facts: Vec<Value> = claim.facts.iter().map(|quote| self.citation(&quote.at)).collect();
            claims.push(json!({ "text": self.text(&claim.text), "facts": facts }));
        }
        let mut row = object(json!({
            "id": verdict.id,
            "trace": verdict.subject,
            "status": if relabel.accepted.is_some() { "accepted" } else { "rejected" },
            "goal": self.text(&relabel.goal),
            "claims": claims,
            "attempt": relabel.attempt,
            "background": relabel.background,
            "blind": relabel.blind,
            "producer": verdict.producer.name,
        }));
        put(&mut row, "model", verdict.producer.model.as_deref().map(redact_name));
        put(
            &mut row,
            "specification",
            relabel.specification.as_ref().map(|goal| self.value(goal.to_value())),
        );
        if let Some(accepted) = &relabel.accepted {
            row.insert("evidence".to_owned(), json!(accepted.evidence));
            row.insert("confidence".to_owned(), json!(relabel.confidence()));
            row.insert("cut_node".to_owned(), json!(accepted.cut_node));
        }
        if let Some(refusal) = &relabel.rejected {
            row.insert("gate".to_owned(), self.text(&refusal.gate).into());
            row.insert("reason".to_owned(), self.text(&refusal.reason).into());
        }
        row
    }

    fn replays(&mut self, verdict: &Verdict, pair: &ReplayPair) -> Vec<Value> {
        let mut whole = object(json!({
            "pair": verdict.id,
            "trace": verdict.subject,
            "node": pair.node,
            "step": pair.step,
            "environment": redact_name(&pair.environment),
            "policy": redact_name(&pair.policy),
            "injected": pair.injected,
            "synthetic": false,
        }));
        put(&mut whole, "diagnosis", pair.diagnosis);
        if let Some(unsupported) = &pair.unsupported {
            whole.insert("unsupported".to_owned(), json!(unsupported.code));
            whole.insert("reason".to_owned(), self.text(&unsupported.reason).into());
            return vec![Value::Object(whole)];
        }
        let mut rows = Vec::new();
        for outcome in &pair.arms {
            for continuation in &outcome.continuations {
                let mut row = whole.clone();
                row.insert("arm".to_owned(), json!(outcome.arm));
                row.insert("synthetic".to_owned(), json!(outcome.synthetic));
                put(&mut row, "continuation", continuation.trajectory);
                put(&mut row, "passed", continuation.passed);
                put(&mut row, "error", continuation.error.as_deref().map(|error| self.text(error)));
                rows.push(Value::Object(row));
            }
        }
        rows
    }
}

/// What every row about a diagnosis has.
fn head(verdict: &Verdict) -> Map<String, Value> {
    let producer = &verdict.producer;
    let mut row = object(json!({
        "id": verdict.id,
        "trace": verdict.subject,
        "is_current": false,
        "producer": producer.name,
        "producer_version": producer.version,
        "rank": producer.rank,
        "explanation": "",
        "suspected": false,
        "citations": [],
        "findings": [],
    }));
    put(&mut row, "model", producer.model.as_deref().map(redact_name));
    put(&mut row, "prompt_hash", producer.prompt_hash.as_deref());
    put(&mut row, "confidence", verdict.confidence);
    row
}

fn trace(case: &Case, redacted: &Trajectory) -> Value {
    let outcome = redacted.outcome();
    let mut row = object(json!({
        "id": redacted.id,
        "task": redacted.task.key,
        "goal": redacted.task.goal,
        "format": redacted.source.format,
        "licence": redacted.licence,
        "split": case.side.map_or("none", Side::as_str),
        "outcome": outcome.status,
        "evidence": outcome.evidence,
        "suspected": false,
        "nodes": redacted.nodes.len(),
        "steps": redacted.nodes.iter().filter(|node| node.occurrence.sampled).count(),
        "trace": blob(redacted),
    }));
    let environment = redacted.environment.as_ref();
    put(&mut row, "environment", environment.map(|environment| &environment.name));
    put(&mut row, "environment_version", environment.and_then(|environment| environment.version.as_ref()));
    put(&mut row, "harness", redacted.harness.as_ref().map(|harness| &harness.name));
    put(&mut row, "policy", policy(redacted));
    put(&mut row, "origin", redacted.origin.as_ref().map(|origin| origin.trajectory));
    put(&mut row, "arm", redacted.origin.as_ref().map(|origin| &origin.arm));
    put(&mut row, "score", outcome.score);
    let of = |wanted: &str| case.verdicts.iter().find(|verdict| verdict.content.kind() == wanted);
    if let Some(Content::Blame(blame)) = of("blame").map(|verdict| &verdict.content) {
        row.insert("blame".to_owned(), json!(blame.party));
        row.insert("blame_rule".to_owned(), json!(blame.rule));
        row.insert("suspected".to_owned(), json!(blame.suspected));
    }
    if let Some(Content::FailureClass(class)) = of("failure_class").map(|verdict| &verdict.content) {
        row.insert("class".to_owned(), json!(class.class));
        row.insert("severity".to_owned(), json!(class.severity));
    }
    Value::Object(row)
}

/// The model that acted, or the policy by its agent's name.
pub(super) fn policy(run: &Trajectory) -> Option<String> {
    let agent = run.agents.first().map(|agent| agent.name.as_str());
    run.model(agent.unwrap_or_default()).or(agent).map(str::to_owned)
}

/// The run as JSON. Of where it was read only the last segment leaves: paths name people.
fn blob(redacted: &Trajectory) -> Value {
    let mut run = redacted.clone();
    let name = run.source.uri.rsplit(['/', '\\']).next().unwrap_or_default();
    run.source.uri = name.to_owned();
    Json::from_serialize(&run).map_or(Value::Null, |run| run.to_value())
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn put<T: serde::Serialize>(row: &mut Map<String, Value>, name: &str, value: Option<T>) {
    if let Some(value) = value {
        row.insert(name.to_owned(), json!(value));
    }
}
