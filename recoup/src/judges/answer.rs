//! An answer: one JSON object, its citations first, read strictly.
//!
//! What is not exactly that is refused with a reason that goes back to the judge. Text around the object
//! is refused too, but for a code fence and for reasoning that some models put before their answers.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::canonical::canonicalize;
use crate::json::Json;
use crate::models::{ReplySchema, bare};
use crate::verdict::{Class, Decision, Party};

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Most citations of one answer.
pub const CITATIONS_MAX: usize = 8;
/// Characters of one quote.
pub const QUOTE_CHARS_MAX: usize = 600;
/// Characters of an explanation or a reason.
const PROSE_CHARS_MAX: usize = 4_000;

/// What a judge says of a run, as it says it: numbers and quotes are those of what it was shown.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// What it rests on.
    pub citations: Vec<Cited>,
    /// Number of the decisive node; `None` where the failure is not the agent's.
    pub decisive_step: Option<i64>,
    /// Author of that node.
    pub responsible_agent: Option<String>,
    /// Free text.
    pub explanation: String,
    /// What should have been done.
    #[serde(default)]
    pub candidate: Option<Proposed>,
    /// Whose failure it was.
    #[serde(default)]
    pub blame: Option<Blamed>,
    /// What kind of failure it was.
    #[serde(default)]
    pub failure_class: Option<Classed>,
}

/// A quote with the number of its node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cited {
    /// Number of the node.
    pub node: i64,
    /// Its words.
    pub quote: String,
}

/// The action that should have been taken.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposed {
    /// The tool; `None` where agents act in text.
    pub tool: Option<String>,
    /// Its arguments, an object or a string that holds one; without a tool the text of the turn.
    pub arguments: Json,
    /// Why.
    pub rationale: String,
}

/// Who failed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blamed {
    /// The party.
    pub party: Party,
    /// Why.
    pub reason: String,
}

/// What kind of failure it was.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classed {
    /// The class.
    pub class: Class,
    /// Whether the run could still be saved after its decisive step.
    pub recoverable: bool,
    /// 0 mild … 1 catastrophic.
    pub severity: f64,
}

/// What another judge says of a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opinion {
    /// Number of the node that it holds for decisive itself.
    pub decisive_step: Option<i64>,
    /// The explanation follows from the citations.
    #[serde(rename = "M1")]
    pub m1: Word,
    /// The candidate uses only what was known before.
    #[serde(rename = "M2")]
    pub m2: Word,
    /// It addresses the error that is named.
    #[serde(rename = "M3")]
    pub m3: Word,
    /// The error was not made up for later.
    #[serde(rename = "M4")]
    pub m4: Word,
}

/// A judge's word on one question.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Word {
    /// Why.
    pub reason: String,
    /// What it says.
    pub verdict: Decision,
}

impl Opinion {
    /// The four words with their gates, in order.
    pub fn words(&self) -> [(&'static str, &Word); 4] {
        [("M1", &self.m1), ("M2", &self.m2), ("M3", &self.m3), ("M4", &self.m4)]
    }
}

impl Proposal {
    /// Whose failure it says the run was: the agent's where it names nobody else.
    pub fn party(&self) -> Party {
        self.blame.as_ref().map_or(Party::Agent, |blame| blame.party)
    }
}

impl Proposed {
    /// The action as candidates hold it: a call of a tool, or what the turn says.
    pub fn action(&self) -> Value {
        let arguments = self.arguments.to_value();
        let Some(tool) = &self.tool else { return json!({ "say": arguments }) };
        let object = arguments.as_str().and_then(|text| Json::parse(text).ok()).map(|json| json.to_value());
        let arguments = object.filter(Value::is_object).unwrap_or(arguments);
        json!({ "name": tool, "arguments": arguments })
    }
}

/// Reads a proposal.
///
/// # Errors
/// What is wrong with the answer, in words for its judge.
pub(super) fn proposal(text: &str) -> Result<Proposal, String> {
    let proposal: Proposal = read(text)?;
    if proposal.citations.is_empty() || proposal.citations.len() > CITATIONS_MAX {
        return Err(format!("there must be 1 to {CITATIONS_MAX} citations"));
    }
    if proposal.citations.iter().any(|cited| cited.quote.chars().count() > QUOTE_CHARS_MAX) {
        return Err(format!("a quote is longer than {QUOTE_CHARS_MAX} characters"));
    }
    let blamed = proposal.blame.as_ref().map(|blame| blame.reason.as_str());
    let rationale = proposal.candidate.as_ref().map(|candidate| candidate.rationale.as_str());
    if [Some(proposal.explanation.as_str()), blamed, rationale].into_iter().flatten().any(is_too_long) {
        return Err(format!("a text is longer than {PROSE_CHARS_MAX} characters"));
    }
    if proposal.failure_class.as_ref().is_some_and(|class| !(0.0..=1.0).contains(&class.severity)) {
        return Err("`severity` is not between 0 and 1".to_owned());
    }
    match (proposal.party() == Party::Agent, proposal.decisive_step.is_some()) {
        (true, false) => {
            Err("`decisive_step` is missing, and the failure is said to be the agent's".to_owned())
        }
        (false, true) => {
            Err("`decisive_step` is given, and the failure is said not to be the agent's".to_owned())
        }
        _ => Ok(proposal),
    }
}

/// Reads an opinion.
///
/// # Errors
/// What is wrong with the answer.
pub(super) fn opinion(text: &str) -> Result<Opinion, String> {
    let opinion: Opinion = read(text)?;
    if opinion.words().iter().any(|(_, word)| is_too_long(&word.reason)) {
        return Err(format!("a reason is longer than {PROSE_CHARS_MAX} characters"));
    }
    Ok(opinion)
}

fn is_too_long(text: &str) -> bool {
    text.chars().count() > PROSE_CHARS_MAX
}

/// Reads one JSON object, strictly.
///
/// # Errors
/// What is wrong with the answer.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    if text.len() > ANSWER_BYTES_MAX {
        return Err(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes"));
    }
    let object = bare(text);
    if !object.starts_with('{') {
        return Err("the answer is not a JSON object".to_owned());
    }
    // Refuses keys that are given twice and nesting without end, which the typed reader lets pass.
    canonicalize(object).map_err(|error| format!("the answer is not a JSON object: {error}"))?;
    let members: serde_json::Map<String, Value> =
        serde_json::from_str(object).map_err(|error| format!("the answer is not a JSON object: {error}"))?;
    let place = |key: &str| members.keys().position(|other| other == key);
    // Who concludes first cites what suits the conclusion.
    if place("citations") > place("decisive_step") && place("decisive_step").is_some() {
        return Err("`citations` must come before `decisive_step`: cite first, then conclude".to_owned());
    }
    serde_json::from_str(object).map_err(|error| format!("the answer does not fit the schema: {error}"))
}

/// The schema of a proposal. Every key is required and no other allowed, as strict modes ask; the order
/// of `required` is the order to write in.
pub(super) fn proposal_schema() -> ReplySchema {
    let parties: Vec<&str> =
        Party::ALL.iter().filter(|party| **party != Party::Unknown).map(|party| party.as_str()).collect();
    let classes: Vec<&str> = Class::ALL.iter().map(|class| class.as_str()).collect();
    let citation = object(&[("node", json!({ "type": "integer" })), ("quote", json!({ "type": "string" }))]);
    let candidate = object(&[
        ("tool", json!({ "type": ["string", "null"] })),
        ("arguments", json!({ "type": "string" })),
        ("rationale", json!({ "type": "string" })),
    ]);
    let blame = object(&[
        ("party", json!({ "type": "string", "enum": parties })),
        ("reason", json!({ "type": "string" })),
    ]);
    let class = object(&[
        ("class", json!({ "type": "string", "enum": classes })),
        ("recoverable", json!({ "type": "boolean" })),
        ("severity", json!({ "type": "number" })),
    ]);
    reply(
        "diagnosis",
        &object(&[
            ("citations", json!({ "type": "array", "items": citation })),
            ("decisive_step", json!({ "type": ["integer", "null"] })),
            ("responsible_agent", json!({ "type": ["string", "null"] })),
            ("explanation", json!({ "type": "string" })),
            ("candidate", json!({ "anyOf": [candidate, { "type": "null" }] })),
            ("blame", blame),
            ("failure_class", json!({ "anyOf": [class, { "type": "null" }] })),
        ]),
    )
}

/// The schema of an opinion.
pub(super) fn opinion_schema() -> ReplySchema {
    let word = object(&[
        ("reason", json!({ "type": "string" })),
        ("verdict", json!({ "type": "string", "enum": ["admit", "reject", "abstain"] })),
    ]);
    let mut members = vec![("decisive_step", json!({ "type": ["integer", "null"] }))];
    members.extend(["M1", "M2", "M3", "M4"].map(|gate| (gate, word.clone())));
    reply("opinion", &object(&members))
}

/// The schema of an object with these members, all required, in this order.
pub(crate) fn object(members: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}

/// A schema to answer in.
pub(crate) fn reply(name: &str, schema: &Value) -> ReplySchema {
    ReplySchema { name: name.to_owned(), schema: Json::from_foreign(&schema.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::{opinion, proposal};
    use crate::verdict::Decision;

    const GOOD: &str = r#"{"citations":[{"node":1,"quote":"x"}],"decisive_step":1,"responsible_agent":"a",
        "explanation":"e","candidate":{"tool":"t","arguments":"{\"n\":3}","rationale":"r"},
        "blame":{"party":"agent","reason":"r"},"failure_class":{"class":"tool_error","recoverable":true,"severity":0.5}}"#;

    #[test]
    fn an_answer_is_read_bare_fenced_and_after_reasoning() {
        for text in
            [GOOD.to_owned(), format!("```json\n{GOOD}\n```"), format!("<think>hm {{}}</think>\n{GOOD}")]
        {
            let read = proposal(&text).unwrap();
            let action = read.candidate.unwrap().action();
            assert_eq!(action, serde_json::json!({ "name": "t", "arguments": { "n": 3 } }));
        }
        let said = GOOD
            .replace(r#""tool":"t","arguments":"{\"n\":3}""#, r#""tool":null,"arguments":"Action: x[3]""#);
        let action = proposal(&said).unwrap().candidate.unwrap().action();
        assert_eq!(action, serde_json::json!({ "say": "Action: x[3]" }));
        let short = r#"{"citations":[{"node":1,"quote":"x"}],"decisive_step":1,"responsible_agent":"a","explanation":"e"}"#;
        assert!(proposal(short).is_ok());
    }

    #[test]
    fn what_is_not_the_schema_is_refused_with_a_reason() {
        let cases = [
            ("<html><body>502 Bad Gateway</body></html>".to_owned(), "not a JSON object"),
            (String::new(), "not a JSON object"),
            (GOOD[..GOOD.len() / 2].to_owned(), "not a JSON object"),
            (format!("Sure! {GOOD}"), "not a JSON object"),
            (format!("{GOOD} {GOOD}"), "not a JSON object"),
            (
                format!("{{\"decisive_step\":1,{}", &GOOD[1..].replace("\"decisive_step\":1,", "")),
                "cite first",
            ),
            (GOOD.replace("\"explanation\":\"e\",", ""), "explanation"),
            (GOOD.replace("\"decisive_step\":1", "\"decisive_step\":\"1\""), "schema"),
            (
                GOOD.replace("\"decisive_step\":1", "\"decisive_step\":1,\"decisive_step\":0"),
                "not a JSON object",
            ),
            (GOOD.replace("\"decisive_step\":1", "\"decisive_step\":null"), "decisive_step"),
            (GOOD.replace("\"party\":\"agent\"", "\"party\":\"task\""), "decisive_step"),
            (GOOD.replace("\"node\":1", "\"node\":1,\"mood\":1"), "schema"),
            (GOOD.replace("0.5", "7"), "severity"),
            (GOOD.replace("tool_error", "bad_luck"), "schema"),
            (GOOD.replace(r#"[{"node":1,"quote":"x"}]"#, "[]"), "citations"),
            (GOOD.replace("\"x\"", &format!("\"{}\"", "x".repeat(700))), "longer"),
            (GOOD.replace("\"e\"", &format!("\"{}\"", "x".repeat(70_000))), "longer"),
        ];
        for (text, reason) in cases {
            let error = proposal(&text).unwrap_err();
            assert!(error.contains(reason), "{error} for {text:.80}");
        }
    }

    #[test]
    fn an_opinion_has_four_words() {
        let word = r#"{"reason":"r","verdict":"admit"}"#;
        let text = format!(
            r#"{{"decisive_step":4,"M1":{word},"M2":{word},"M3":{word},"M4":{}}}"#,
            word.replace("admit", "abstain")
        );
        let read = opinion(&text).unwrap();
        assert_eq!(read.words().map(|(gate, _)| gate), ["M1", "M2", "M3", "M4"]);
        assert_eq!(read.m4.verdict, Decision::Abstain);
        assert!(opinion(&text.replace("\"M3\"", "\"M5\"")).is_err());
        assert!(opinion(&text.replace("admit", "fine")).is_err());
    }
}
