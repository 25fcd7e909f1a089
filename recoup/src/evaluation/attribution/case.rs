//! A case: one labelled run, what the label says of it and what was predicted.

use crate::trajectory::folded;
use crate::trajectory::{Role, Trajectory};
use crate::verdict::ReferenceLabel;

/// Who wrote a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// The author.
    pub agent: String,
    /// In which role.
    pub role: Role,
    /// Whether it is a turn of the policy.
    pub sampled: bool,
}

/// What a label says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Form of the label (`who-and-when`).
    pub source: String,
    /// 0-based index of the message on the main branch; none where it is no message of the run.
    pub index: Option<usize>,
    /// The blamed agent, in the label's spelling.
    pub agent: Option<String>,
    /// Number of the first message in the label's own counting.
    pub index_base: u8,
    /// The step as the label writes it.
    pub written_step: Option<String>,
}

/// Who predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A diagnosis that stands.
    Diagnosis,
    /// The likeliest turn where nothing decisive was found.
    Suspect,
    /// A file of predictions.
    Given,
}

/// What is predicted of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// 0-based index of the message on the main branch.
    pub index: Option<usize>,
    /// The agent.
    pub agent: Option<String>,
    /// The step as a file writes it, where one does: the published scorer compares characters.
    pub written_step: Option<String>,
    /// Who says so.
    pub origin: Origin,
}

/// One labelled run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Where it was read.
    pub name: String,
    /// Its task: what runs of it share.
    pub task: String,
    /// Authors of the messages of its main branch, in order.
    pub speakers: Vec<Speaker>,
    /// The label.
    pub truth: Truth,
    /// The prediction, where there is one.
    pub prediction: Option<Prediction>,
}

impl Truth {
    /// What a label says of a run. Of a run's labels the root cause counts, else the first.
    pub fn of(labels: &[ReferenceLabel], run: &Trajectory) -> Option<Self> {
        let is_root = |label: &&ReferenceLabel| {
            label.native.to_value().get("is_root_cause").and_then(serde_json::Value::as_bool) == Some(true)
        };
        let label = labels.iter().find(is_root).or_else(|| labels.first())?;
        let native = label.native.to_value();
        let written = |keys: &[&str]| {
            keys.iter().find_map(|key| match native.get(*key)? {
                serde_json::Value::String(text) => Some(text.clone()),
                serde_json::Value::Null => None,
                other => Some(other.to_string()),
            })
        };
        Some(Self {
            source: label.source.clone(),
            index: label.node.and_then(|node| run.main_branch().node_index(node)),
            agent: label.agent.clone(),
            index_base: label.index_base,
            written_step: written(&[
                "mistake_step",
                "step_number",
                "error_step",
                "failure_step",
                "root_cause_step",
            ]),
        })
    }
}

impl Case {
    /// A case of a labelled run, without a prediction.
    pub fn new(run: &Trajectory, truth: Truth) -> Self {
        let branch = run.main_branch();
        let speakers = branch.nodes().map(|(_, node)| Speaker {
            agent: node.agent.clone(),
            role: node.role,
            sampled: node.occurrence.sampled && !node.occurrence.copied_context,
        });
        Self {
            name: run.source.uri.clone(),
            task: run.task.key.0.clone(),
            speakers: speakers.collect(),
            truth,
            prediction: None,
        }
    }

    /// Turns between the predicted message and the label's: 0 for the same message, and at least 1 for
    /// another.
    pub fn distance(&self) -> Option<usize> {
        let (said, meant) = (self.prediction.as_ref()?.index?, self.truth.index?);
        Some(self.turns_between(said, meant))
    }

    fn turns_between(&self, said: usize, meant: usize) -> usize {
        if said == meant {
            return 0;
        }
        let (low, high) = (said.min(meant), said.max(meant));
        let between = self.speakers.iter().take(high).skip(low + 1);
        between.filter(|speaker| speaker.sampled).count() + 1
    }

    /// Whether the very message is predicted.
    pub fn is_exact(&self) -> bool {
        self.distance() == Some(0)
    }

    /// Whether the agent is predicted, after NFKC and case folding.
    pub fn is_agent(&self) -> bool {
        self.prediction
            .as_ref()
            .and_then(|prediction| prediction.agent.as_deref())
            .is_some_and(|agent| self.blames(agent))
    }

    /// Whether the label blames an agent of this name.
    pub fn blames(&self, agent: &str) -> bool {
        self.truth.agent.as_deref().is_some_and(|meant| folded(meant) == folded(agent))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Case, Origin, Prediction, Speaker, Truth};
    use crate::trajectory::Role;

    /// A run of user, `a`, tool, `b`, `b`.
    pub(crate) fn case(index: usize, agent: &str, predicted: Option<(usize, &str, Origin)>) -> Case {
        let roles = [
            ("user", Role::User),
            ("a", Role::Assistant),
            ("tool", Role::Tool),
            ("b", Role::Assistant),
            ("b", Role::Assistant),
        ];
        let speakers = roles.map(|(agent, role)| Speaker {
            agent: agent.to_owned(),
            role,
            sampled: role == Role::Assistant,
        });
        Case {
            name: format!("{index}.json"),
            task: format!("task/{index}"),
            speakers: speakers.to_vec(),
            truth: Truth {
                source: "who-and-when".to_owned(),
                index: Some(index),
                agent: Some(agent.to_owned()),
                index_base: 0,
                written_step: Some(index.to_string()),
            },
            prediction: predicted.map(|(index, agent, origin)| Prediction {
                index: Some(index),
                agent: Some(agent.to_owned()),
                written_step: None,
                origin,
            }),
        }
    }

    #[test]
    fn the_same_message_is_exact_and_its_neighbours_are_a_turn_away() {
        let away = |said, meant| case(meant, "a", Some((said, "a", Origin::Given))).distance();
        assert_eq!([away(1, 1), away(1, 0), away(1, 2)], [Some(0), Some(1), Some(1)]);
        assert_eq!([away(1, 3), away(1, 4), away(3, 1), away(4, 0)], [Some(1), Some(2), Some(1), Some(3)]);
    }

    #[test]
    fn agents_are_compared_without_case() {
        assert!(case(1, "WebSurfer", Some((3, "Websurfer", Origin::Given))).is_agent());
        assert!(!case(1, "WebSurfer", None).is_agent());
    }
}
