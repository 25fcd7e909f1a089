//! The pen: goes over the texts of one run, replaces and counts.

use std::collections::BTreeMap;

use super::arguments::json_edits;
use super::edit::{Edit, apply, edits};
use super::kind::Kind;
use super::offsets::{OffsetMap, Replaced};
use super::placeholders::Placeholders;
use crate::json::Json;
use crate::trajectory::{Node, Part, Trajectory};

#[derive(Default)]
pub(super) struct Pen {
    pub placeholders: Placeholders,
    pub counts: BTreeMap<Kind, usize>,
}

impl Pen {
    /// A pen that gives out no placeholder which the run already holds.
    pub(super) fn reserving(run: &Trajectory) -> Self {
        let mut pen = Self::default();
        pen.placeholders.reserve(&run.task.goal);
        for part in run.nodes.iter().flat_map(|node| &node.parts) {
            match part {
                Part::ToolResult(result) => {
                    result
                        .parts
                        .iter()
                        .filter_map(Part::cited_text)
                        .for_each(|text| pen.placeholders.reserve(text));
                }
                part => part.cited_text().into_iter().for_each(|text| pen.placeholders.reserve(text)),
            }
        }
        pen
    }

    /// Everything of a run but its nodes; true where the model's prompt changed.
    pub(super) fn frame(&mut self, run: &mut Trajectory) -> bool {
        self.text(&mut run.task.goal);
        let mut prompt_changed = false;
        for agent in &mut run.agents {
            self.text(&mut agent.name);
            if let Some(prompt) = &mut agent.system_prompt {
                prompt_changed |= self.text(prompt);
            }
        }
        for tool in &mut run.tools {
            prompt_changed |= self.text(&mut tool.description);
            if let Some(parameters) = &mut tool.parameters {
                prompt_changed |= self.json(parameters);
            }
        }
        if let Some(reset) = run.environment.as_mut().and_then(|environment| environment.reset.as_mut()) {
            self.json(reset);
        }
        for leaf in &mut run.leaves {
            self.text(&mut leaf.outcome.evidence);
            if let Some(termination) = &mut leaf.outcome.termination {
                self.text(&mut termination.native);
            }
        }
        for value in run.extra.values_mut() {
            self.json(value);
        }
        prompt_changed
    }

    /// One message; true where its own content changed.
    pub(super) fn node(&mut self, position: usize, node: &mut Node, map: &mut OffsetMap) -> bool {
        let mut changed = self.text(&mut node.agent);
        for (index, part) in node.parts.iter_mut().enumerate() {
            changed |= self.part(part, &[index], position, map);
        }
        if changed {
            for part in &mut node.parts {
                if let Part::Reasoning { signature, .. } = part {
                    *signature = None;
                }
            }
        }
        if let Some(extra) = &mut node.occurrence.extra {
            self.json(extra);
        }
        if let Some(call) = &mut node.occurrence.call {
            if let Some(parameters) = &mut call.parameters {
                self.json(parameters);
            }
            if let Some(error) = &mut call.error {
                self.text(error);
            }
        }
        changed
    }

    fn part(&mut self, part: &mut Part, path: &[usize], node: usize, map: &mut OffsetMap) -> bool {
        let (text, edits) = match part {
            Part::Text(part) => {
                let edits = edits(&part.text);
                (&mut part.text, edits)
            }
            Part::Reasoning { text, .. } => {
                let edits = edits(text);
                (text, edits)
            }
            Part::ToolCall(call) => {
                let edits = json_edits(&call.arguments_raw);
                (&mut call.arguments_raw, edits)
            }
            Part::Opaque { kind, .. } if is_sealed(kind) => return false,
            Part::Opaque { raw, .. } => {
                let edits = json_edits(raw);
                (raw, edits)
            }
            Part::Media(media) => return media.reference.as_mut().is_some_and(|text| self.text(text)),
            Part::ToolResult(result) => {
                let mut changed = false;
                for (inner, part) in result.parts.iter_mut().enumerate() {
                    // A path has two levels; results do not nest.
                    if !matches!(part, Part::ToolResult(_)) {
                        changed |= self.part(part, &[path[0], inner], node, map);
                    }
                }
                return changed;
            }
        };
        let replaced = self.apply(text, &edits);
        let changed = !replaced.is_empty();
        map.insert(node, path.to_vec(), replaced);
        changed
    }

    fn text(&mut self, text: &mut String) -> bool {
        let edits = edits(text);
        !self.apply(text, &edits).is_empty()
    }

    fn json(&mut self, value: &mut Json) -> bool {
        let edits = json_edits(value.as_str());
        if edits.is_empty() {
            return false;
        }
        let mut text = value.as_str().to_owned();
        self.apply(&mut text, &edits);
        *value = Json::from_foreign(&text);
        true
    }

    fn apply(&mut self, text: &mut String, edits: &[Edit]) -> Vec<Replaced> {
        if edits.is_empty() {
            return Vec::new();
        }
        for edit in edits {
            *self.counts.entry(edit.kind).or_default() += 1;
        }
        let (redacted, replaced) = apply(text, edits, &mut self.placeholders);
        *text = redacted;
        replaced
    }
}

/// Pieces that a provider sealed: they are bytes for its eyes, and an edit would break the seal.
fn is_sealed(kind: &str) -> bool {
    ["thinking", "reasoning", "encrypted", "signature"].iter().any(|word| kind.contains(word))
}
