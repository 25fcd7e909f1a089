//! The tables of a release and the shapes of their rows.

use crate::exporters::shape::{Key, Shape, key, optional};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// Runs and continuations.
    Traces,
    /// What was said of where they went wrong, admitted or not.
    Diagnoses,
    /// Proposed repairs, proved or not.
    Candidates,
    /// Words of gates and people.
    Reviews,
    /// Continuations of matched replays.
    Replays,
}

impl Table {
    /// Every table, in the order of the card.
    pub const ALL: [Self; 5] =
        [Self::Traces, Self::Diagnoses, Self::Candidates, Self::Reviews, Self::Replays];

    /// Its name, and its file's before `.parquet`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Diagnoses => "diagnoses",
            Self::Candidates => "candidates",
            Self::Reviews => "reviews",
            Self::Replays => "replays",
        }
    }

    /// What a row is, in words for the card.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Traces => "a run; `origin` names the run that a replay continued",
            Self::Diagnoses => "a diagnosis of a run, `accepted` where every gate admitted it",
            Self::Candidates => "a proposed repair, `accepted` where a re-execution proved it",
            Self::Reviews => "the word of a gate or a person on a diagnosis or a run",
            Self::Replays => "one continuation of one arm of a matched replay",
        }
    }

    /// What a row looks like.
    pub fn shape(self) -> Shape {
        Shape::Object(match self {
            Self::Traces => TRACES,
            Self::Diagnoses => DIAGNOSES,
            Self::Candidates => CANDIDATES,
            Self::Reviews => REVIEWS,
            Self::Replays => REPLAYS,
        })
    }
}

const TRACES: &[Key] = &[
    key("id", Shape::Text),
    optional("origin", Shape::Text),
    optional("arm", Shape::Text),
    key("task", Shape::Text),
    key("goal", Shape::Text),
    optional("environment", Shape::Text),
    optional("environment_version", Shape::Text),
    optional("harness", Shape::Text),
    optional("policy", Shape::Text),
    key("format", Shape::Text),
    key("licence", Shape::Text),
    key("split", Shape::Text),
    key("outcome", Shape::Word(&["success", "failure", "unknown"])),
    optional("score", Shape::Any),
    key("evidence", Shape::Text),
    optional("blame", Shape::Text),
    optional("blame_rule", Shape::Text),
    key("suspected", Shape::Flag),
    optional("class", Shape::Text),
    optional("severity", Shape::Any),
    key("nodes", Shape::Integer),
    key("steps", Shape::Integer),
    key("trace", Shape::Any),
];

const DIAGNOSES: &[Key] = &[
    key("id", Shape::Text),
    key("trace", Shape::Text),
    key("status", Shape::Word(&["accepted", "rejected"])),
    key("is_current", Shape::Flag),
    key("producer", Shape::Text),
    key("producer_version", Shape::Integer),
    key("rank", Shape::Integer),
    optional("model", Shape::Text),
    optional("prompt_hash", Shape::Text),
    optional("confidence", Shape::Any),
    optional("decisive_node", Shape::Integer),
    optional("decisive_step", Shape::Integer),
    optional("agent", Shape::Text),
    key("explanation", Shape::Text),
    key("suspected", Shape::Flag),
    key("citations", Shape::Any),
    key("findings", Shape::Any),
    optional("rung", Shape::Text),
    optional("gate", Shape::Text),
    optional("reason", Shape::Text),
    optional("answer", Shape::Text),
];

const CANDIDATES: &[Key] = &[
    key("trace", Shape::Text),
    optional("diagnosis", Shape::Text),
    optional("pair", Shape::Text),
    key("proposed_by", Shape::Text),
    key("status", Shape::Word(&["accepted", "rejected", "untested"])),
    key("action", Shape::Any),
    key("rationale", Shape::Text),
    key("passed", Shape::Integer),
    key("of", Shape::Integer),
    optional("continuation", Shape::Text),
];

const REVIEWS: &[Key] = &[
    key("id", Shape::Text),
    key("trace", Shape::Text),
    optional("of", Shape::Text),
    key("gate", Shape::Text),
    key("decision", Shape::Word(&["admit", "reject", "abstain"])),
    key("reason", Shape::Text),
    optional("node", Shape::Integer),
    key("producer", Shape::Text),
    optional("model", Shape::Text),
];

const REPLAYS: &[Key] = &[
    key("pair", Shape::Text),
    key("trace", Shape::Text),
    optional("diagnosis", Shape::Text),
    key("node", Shape::Integer),
    key("step", Shape::Integer),
    key("environment", Shape::Text),
    key("policy", Shape::Text),
    key("injected", Shape::Flag),
    optional("arm", Shape::Text),
    key("synthetic", Shape::Flag),
    optional("continuation", Shape::Text),
    optional("passed", Shape::Flag),
    optional("error", Shape::Text),
    optional("unsupported", Shape::Text),
    optional("reason", Shape::Text),
];
