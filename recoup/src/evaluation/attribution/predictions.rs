//! Predictions from elsewhere: a JSONL file, or the log that Who&When's own programs write.
//!
//! A line of JSONL is `{"file" or "run", "agent", "step"}`, the step 0-based over the messages of the
//! run. The log holds blocks `Prediction for 12.json:` with `Agent Name:` and `Step Number:`. A block or
//! line that lacks either counts as no prediction, as an answer does that cannot be read.

use serde::Deserialize;

use super::{Case, Origin, Prediction};

/// One prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// File of the run, its last folders first where names repeat, or the start of the run's id.
    pub run: String,
    /// The agent.
    pub agent: Option<String>,
    /// 0-based index of the message.
    pub index: Option<usize>,
    /// The step as a log writes it.
    pub written_step: Option<String>,
}

/// A file of predictions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenPredictions(Vec<Given>);

#[derive(Deserialize)]
struct Line {
    #[serde(alias = "file", alias = "trajectory_id")]
    run: String,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    step: Option<usize>,
}

/// What opens a block of the log.
const BLOCK: &str = "Prediction for ";

/// Reads a file of predictions.
///
/// # Errors
/// The number of the first line of JSONL that is no prediction, from 1, and why.
pub fn parse_predictions(text: &str) -> Result<GivenPredictions, (usize, String)> {
    if !text.trim_start().starts_with('{') && text.contains(BLOCK) {
        return Ok(GivenPredictions(blocks(text)));
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let given = lines.map(|(number, line)| {
        let line: Line = serde_json::from_str(line).map_err(|error| (number + 1, error.to_string()))?;
        Ok(Given { run: line.run, agent: line.agent, index: line.step, written_step: None })
    });
    given.collect::<Result<_, _>>().map(GivenPredictions)
}

fn blocks(text: &str) -> Vec<Given> {
    let mut given: Vec<Given> = Vec::new();
    for block in text.split(BLOCK).skip(1) {
        let Some((name, body)) = block.split_once(':') else { continue };
        let name = name.trim();
        // As the published pattern has it: the extension in small letters, with a name before it.
        if name.strip_suffix(".json").is_none_or(str::is_empty) {
            continue;
        }
        let agent = field(body, "agent name:", |c| c.is_alphanumeric() || c == '_');
        let step = field(body, "step number:", |c| c.is_ascii_digit());
        let index = step.as_ref().and_then(|step| step.parse().ok());
        // A later block of the same file replaces an earlier one.
        given.retain(|known| known.run != name);
        given.push(Given { run: name.to_owned(), agent, index, written_step: step });
    }
    given
}

/// What stands behind a name, in any case, from its first occurrence that something fits behind.
fn field(text: &str, name: &str, fits: impl Fn(char) -> bool) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    lower.match_indices(name).find_map(|(at, _)| {
        let rest = text[at + name.len()..].trim_start();
        let end = rest.find(|c: char| !fits(c)).unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].to_owned())
    })
}

impl GivenPredictions {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The prediction for a run: the one that names most of its path, else the one that starts its id.
    pub fn of(&self, case: &Case, id: &str) -> Option<Prediction> {
        let by_path = self.0.iter().filter(|given| names_path(&case.name, &given.run));
        let found = by_path
            .max_by_key(|given| given.run.len())
            .or_else(|| self.0.iter().find(|given| given.run.len() >= 8 && id.starts_with(&given.run)))?;
        Some(Prediction {
            index: found.index,
            agent: found.agent.clone(),
            written_step: found.written_step.clone(),
            origin: Origin::Given,
        })
    }
}

/// Whether a path ends in the folders and the file that are named.
fn names_path(path: &str, named: &str) -> bool {
    path.strip_suffix(named).is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\', '#']))
}

#[cfg(test)]
mod tests {
    use super::super::case::tests::case;
    use super::parse_predictions;

    #[test]
    fn a_log_and_lines_say_the_same() {
        let log = "noise\nPrediction for 1.json:\nAgent Name: a-b\nStep Number: 3\nwhy\n\
                   Prediction for 2.json: agent name: B\n==\nPrediction for 11.json:\nStep Number:  4, Agent Name: c";
        let mut log = parse_predictions(log).unwrap();
        let written: Vec<_> = log.0.iter_mut().map(|given| given.written_step.take()).collect();
        assert_eq!(written, [Some("3".to_owned()), None, Some("4".to_owned())]);
        let lines = "{\"file\":\"1.json\",\"agent\":\"a\",\"step\":3}\n\n{\"run\":\"2.json\",\"agent\":\"B\"}\n\
                     {\"file\":\"11.json\",\"agent\":\"c\",\"step\":4}";
        assert_eq!(log, parse_predictions(lines).unwrap());
        assert_eq!(parse_predictions("{\"file\":\"1.json\"}\n{}").unwrap_err().0, 2);
    }

    #[test]
    fn runs_are_found_by_whole_names_and_the_longest_wins() {
        let lines = "{\"file\":\"1.json\",\"agent\":\"a\",\"step\":0}\n{\"file\":\"Hand/1.json\",\"agent\":\"b\",\"step\":1}";
        let given = parse_predictions(lines).unwrap();
        let of = |name: &str| {
            let mut case = case(1, "a", None);
            case.name = name.to_owned();
            given.of(&case, "0123456789").and_then(|prediction| prediction.index)
        };
        assert_eq!([of("x/1.json"), of("x/Hand/1.json"), of("x/11.json")], [Some(0), Some(1), None]);
    }
}
