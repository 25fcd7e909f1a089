//! Candidates: where the action of the `repair` arm comes from. One a run; none is chosen by its result.

use serde::{Deserialize, Serialize};

use super::ReplayError;
use crate::environments::{Action, Instance, State};
use crate::id::TrajectoryId;
use crate::json::Json;
use crate::verdict::{Candidate, Diagnosis};

/// Who proposes candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Proposer {
    /// The rules that diagnosed the run, where the fault itself implies the action.
    #[default]
    Rules,
    /// The environment's scripted teacher, asked at the decisive step.
    Expert,
    /// A file.
    File(Vec<Proposed>),
}

/// A line of a file of candidates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposed {
    /// Id of the run, or the start of it.
    pub run: String,
    /// The turn to replace, 0-based; the diagnosed one where absent.
    #[serde(default)]
    pub step: Option<usize>,
    /// `{"tool" or "name", "arguments"}`, or `{"say"}`.
    pub action: Json,
    /// Why.
    #[serde(default)]
    pub rationale: String,
}

impl Proposer {
    /// The proposer's word in records.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Expert => "expert",
            Self::File(_) => "file",
        }
    }

    /// What a file proposes for a run: the first line that names it.
    pub fn line(&self, run: TrajectoryId) -> Option<&Proposed> {
        let Self::File(lines) = self else { return None };
        let id = run.to_string();
        lines.iter().find(|line| id.starts_with(&line.run.to_ascii_lowercase()))
    }

    /// The candidate for a turn of a run.
    ///
    /// # Errors
    /// When the environment fails, or has no expert to ask.
    pub fn candidate(
        &self,
        run: TrajectoryId,
        diagnosis: Option<&Diagnosis>,
        instance: &mut dyn Instance,
        state: &State,
    ) -> Result<Option<Candidate>, ReplayError> {
        match self {
            Self::Rules => Ok(diagnosis.and_then(|diagnosis| diagnosis.candidate.clone())),
            Self::Expert => {
                let action = instance.expert(state)?.ok_or(ReplayError::NoExpert)?;
                let rationale = "The environment's expert does this here.".to_owned();
                Ok(Some(Candidate { action: Json::from_foreign(&action.to_json()), rationale }))
            }
            Self::File(_) => Ok(self
                .line(run)
                .map(|line| Candidate { action: line.action.clone(), rationale: line.rationale.clone() })),
        }
    }
}

/// Reads a file of candidates, one JSON object a line.
///
/// # Errors
/// The number of the first line that is none, from 1, and why.
pub fn parse_candidates(text: &str) -> Result<Vec<Proposed>, (usize, String)> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            let wrong = |reason: String| (number + 1, reason);
            let proposed: Proposed = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            if proposed.run.is_empty() || !proposed.run.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(wrong(format!("{:?} is not the start of a run's id", proposed.run)));
            }
            action_of(&proposed.action)
                .ok_or_else(|| wrong("`action` is neither a call nor words".to_owned()))?;
            Ok(proposed)
        })
        .collect()
}

/// The action of a candidate: a call under the environment's word `tool` or the schema's word `name`, or
/// words.
pub fn action_of(candidate: &Json) -> Option<Action> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Form {
        #[serde(alias = "name")]
        tool: Option<String>,
        arguments: Option<Json>,
        say: Option<String>,
    }
    match serde_json::from_str(candidate.as_str()).ok()? {
        Form { tool: Some(tool), arguments: Some(arguments), say: None } => {
            Some(Action::call(tool, arguments))
        }
        Form { tool: None, arguments: None, say: Some(text) } => Some(Action::say(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{action_of, parse_candidates};
    use crate::environments::Action;
    use crate::json::Json;

    #[test]
    fn a_line_names_a_run_and_an_action() {
        let text = "{\"run\":\"AB12\",\"action\":{\"name\":\"go\",\"arguments\":{\"to\":\"hall\"}}}\n\n\
                    {\"run\":\"cd\",\"step\":3,\"action\":{\"say\":\"done\"},\"rationale\":\"enough\"}\n";
        let lines = parse_candidates(text).unwrap();
        assert_eq!((lines.len(), lines[1].step), (2, Some(3)));
        let go = Action::call("go", Json::parse(r#"{"to":"hall"}"#).unwrap());
        assert_eq!(action_of(&lines[0].action), Some(go));
        assert_eq!(action_of(&lines[1].action), Some(Action::say("done")));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let good = "{\"run\":\"ab\",\"action\":{\"say\":\"x\"}}\n";
        for (bad, word) in [
            ("{", "EOF"),
            ("{\"run\":\"xyz\",\"action\":{\"say\":\"x\"}}", "xyz"),
            ("{\"run\":\"ab\",\"action\":{\"say\":\"x\",\"tool\":\"y\"}}", "neither"),
        ] {
            let (line, reason) = parse_candidates(&format!("{good}{bad}")).unwrap_err();
            assert!(line == 2 && reason.contains(word), "{line}: {reason}");
        }
    }
}
