//! The pen: goes over the texts of one run, replaces and counts.

use std::collections::BTreeMap;

use super::arguments::json_edits;
use super::edit::{Edit, apply, edits};
use super::kind::Kind;
use super::known::disjoint;
use super::offsets::{OffsetMap, Replaced};
use super::placeholders::Placeholders;
use super::redact_name;
use super::spanning::across_parts;
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Node, Part, Role, Trajectory};

#[derive(Default)]
pub(super) struct Pen {
    pub placeholders: Placeholders,
    pub counts: BTreeMap<Kind, usize>,
}

impl Pen {
    /// A pen that goes on with some placeholders and gives out none which the run already holds.
    pub(super) fn reserving(run: &Trajectory, placeholders: Placeholders) -> Self {
        let mut pen = Self { placeholders, ..Self::default() };
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
        self.names(run);
        let mut prompt_changed = false;
        for agent in &mut run.agents {
            if let Some(prompt) = &mut agent.system_prompt {
                prompt_changed |= self.text(prompt);
            }
        }
        for tool in &mut run.tools {
            prompt_changed |= self.identifier(&mut tool.name);
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

    /// What importers made of the messages: it may tell a value in another form, cut by a line's end.
    pub(super) fn retell(&mut self, run: &mut Trajectory) {
        let goal = &mut run.task.goal;
        let edits = self.placeholders.known_in(goal);
        self.apply(goal, &edits);
    }

    /// What the run, its parts and its place are called.
    fn names(&mut self, run: &mut Trajectory) {
        self.text(&mut run.source.uri);
        let Task { key, template_key, group_keys, .. } = &mut run.task;
        self.name(&mut key.0);
        template_key.iter_mut().chain(group_keys).for_each(|key| self.name(key));
        if let Some(harness) = &mut run.harness {
            self.name(&mut harness.name);
            harness.version.iter_mut().for_each(|version| self.name(version));
        }
        if let Some(environment) = &mut run.environment {
            self.name(&mut environment.name);
            environment.version.iter_mut().for_each(|version| self.name(version));
        }
        if let Some(verifier) = &mut run.verifier {
            self.name(&mut verifier.name);
            verifier.version.iter_mut().for_each(|version| self.name(version));
        }
        for agent in &mut run.agents {
            self.name(&mut agent.name);
            agent.model.iter_mut().for_each(|model| self.name(model));
        }
    }

    /// One message; true where its own content changed.
    pub(super) fn node(&mut self, position: usize, node: &mut Node, map: &mut OffsetMap) -> bool {
        let agent = node.agent.clone();
        // A tool's message is signed with the tool's name.
        match node.role {
            Role::Tool => {
                self.identifier(&mut node.agent);
            }
            _ => self.name(&mut node.agent),
        }
        let mut changed = node.agent != agent;
        let pieces = across_parts(&node.parts);
        for (index, part) in node.parts.iter_mut().enumerate() {
            changed |= self.part(part, pieces.get(&index), &[index], position, map);
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
            call.model.iter_mut().for_each(|model| self.name(model));
            if let Some(reason) = &mut call.finish_reason {
                self.text(reason);
            }
            if let Some(parameters) = &mut call.parameters {
                self.json(parameters);
            }
            if let Some(error) = &mut call.error {
                self.text(error);
            }
        }
        changed
    }

    /// One part; `across` are its pieces of what stands in several.
    fn part(
        &mut self,
        part: &mut Part,
        across: Option<&Vec<Edit>>,
        path: &[usize],
        node: usize,
        map: &mut OffsetMap,
    ) -> bool {
        let mut renamed = false;
        let (text, edits) = match part {
            Part::Text(part) => {
                let mut edits = edits(&part.text);
                if let Some(across) = across {
                    edits = disjoint(across.iter().cloned().chain(edits).collect());
                }
                (&mut part.text, edits)
            }
            Part::Reasoning { text, .. } => {
                let edits = edits(text);
                (text, edits)
            }
            Part::ToolCall(call) => {
                renamed = self.identifier(&mut call.name);
                if let Some(id) = &mut call.call_id {
                    self.identifier(id);
                }
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
                if let Some(id) = &mut result.call_id {
                    self.identifier(id);
                }
                let inner_pieces = across_parts(&result.parts);
                let mut changed = false;
                for (inner, part) in result.parts.iter_mut().enumerate() {
                    // A path has two levels; results do not nest.
                    if !matches!(part, Part::ToolResult(_)) {
                        changed |= self.part(part, inner_pieces.get(&inner), &[path[0], inner], node, map);
                    }
                }
                return changed;
            }
        };
        let repeated = self.placeholders.repeated_in(text);
        let edits = if repeated.is_empty() { edits } else { disjoint([edits, repeated].concat()) };
        let replaced = self.apply(text, &edits);
        let changed = renamed || !replaced.is_empty();
        map.insert(node, path.to_vec(), replaced);
        changed
    }

    fn text(&mut self, text: &mut String) -> bool {
        let edits = edits(text);
        !self.apply(text, &edits).is_empty()
    }

    /// A name that runs are grouped by: the same placeholder whatever else the run holds.
    fn name(&mut self, name: &mut String) {
        let redacted = redact_name(name);
        if redacted != *name {
            for edit in edits(name) {
                // The run's texts may tell it too.
                self.placeholders.of(edit.kind, &edit.value);
                *self.counts.entry(edit.kind).or_default() += 1;
            }
            *name = redacted;
        }
    }

    /// A name that a program reads: what replaces a secret in it is an identifier itself.
    fn identifier(&mut self, name: &mut String) -> bool {
        let edits = edits(name);
        let changed = !edits.is_empty();
        for edit in edits.iter().rev() {
            let placeholder = self.placeholders.of(edit.kind, &edit.value);
            name.replace_range(edit.start..edit.end, placeholder.trim_matches(['<', '>']));
            *self.counts.entry(edit.kind).or_default() += 1;
        }
        changed
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
