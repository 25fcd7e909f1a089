//! A case: one run made ready for judges, redacted, with the way back.

use memchr::memmem;

use super::shown::{self, Misquote, Shown, show};
use crate::id::Hash;
use crate::redaction::{Redacted, redact, redact_text};
use crate::trajectory::{Citation, Node, Part, Trajectory, folded};

/// Digits of the mark.
const MARK_DIGITS: usize = 12;

/// A run as judges get it: redacted, numbered along its main branch, nothing hidden in it.
pub struct Case<'a> {
    run: &'a Trajectory,
    redacted: Redacted,
    positions: Vec<usize>,
    anchors: Vec<Citation>,
    mark: String,
    truth: Option<String>,
}

impl<'a> Case<'a> {
    /// Makes a run ready. `anchors` are ranges of it that a window should hold beside its ends: what
    /// detectors cite. Gold answers are shown only `with_ground_truth`.
    pub fn new(run: &'a Trajectory, anchors: &[Citation], with_ground_truth: bool) -> Self {
        let mut redacted = redact(run);
        let positions = run.main_branch().positions().to_vec();
        let anchors = anchors.iter().map(|anchor| redacted.map.to_redacted(anchor)).collect();
        let mark = mark(&redacted.trajectory);
        let hidden = [&run.hidden.gold, &run.hidden.reference];
        let truth: Vec<&str> = hidden.into_iter().flatten().map(crate::json::Json::as_str).collect();
        let truth = (with_ground_truth && !truth.is_empty())
            .then(|| redact_text(&truth.join("\n"), &mut redacted.placeholders));
        Self { run, redacted, positions, anchors, mark, truth }
    }

    /// The same of a run that was redacted before: it is its own original.
    pub fn of_redacted(run: &'a Trajectory, anchors: &[Citation]) -> Self {
        let redacted = Redacted::as_it_is(run);
        let positions = run.main_branch().positions().to_vec();
        Self { run, mark: mark(run), redacted, positions, anchors: anchors.to_vec(), truth: None }
    }

    /// The run itself.
    pub fn run(&self) -> &'a Trajectory {
        self.run
    }

    /// The run as it may leave.
    pub(super) fn redacted(&self) -> &Trajectory {
        &self.redacted.trajectory
    }

    /// What begins every line of the frame and occurs nowhere in the run.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    pub(super) fn truth(&self) -> Option<&str> {
        self.truth.as_deref()
    }

    /// The redacted nodes of the main branch, each with its position.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.positions.iter().map(|position| (*position, &self.redacted.trajectory.nodes[*position]))
    }

    /// The number of a node in what is shown.
    pub fn index(&self, position: usize) -> Option<usize> {
        self.positions.binary_search(&position).ok()
    }

    /// The position of the node of a number.
    pub fn position(&self, index: usize) -> Option<usize> {
        self.positions.get(index).copied()
    }

    /// The run in about `budget` bytes. The cited ranges (of the run itself) are in it whatever is left
    /// out.
    pub fn show(&self, budget: usize, cited: &[Citation]) -> Shown {
        let cited = cited.iter().map(|citation| self.redacted.map.to_redacted(citation));
        let focus: Vec<Citation> = cited.chain(self.anchors.iter().cloned()).collect();
        show(self, budget, &focus)
    }

    /// The exact bytes of the run that a quote of what was shown means.
    ///
    /// # Errors
    /// Why it means none.
    pub fn cite(&self, shown: &Shown, node: usize, quote: &str) -> Result<Citation, Misquote> {
        let found = shown.locate(node, quote).or_else(|miss| match (&miss, quote.trim()) {
            (Misquote::Absent, trimmed) if trimmed.len() < quote.len() => shown.locate(node, trimmed),
            _ => Err(miss),
        });
        match found {
            Ok(citation) => Ok(self.redacted.map.to_original(&citation)),
            Err(Misquote::Absent | Misquote::NoNode) => Err(self.hidden(node, quote).map_or_else(
                || if self.position(node).is_some() { Misquote::Absent } else { Misquote::NoNode },
                Misquote::Hidden,
            )),
            Err(miss) => Err(miss),
        }
    }

    /// Where a sealed part of the node holds the quote.
    fn hidden(&self, node: usize, quote: &str) -> Option<Citation> {
        let position = self.position(node)?;
        self.run.nodes[position].parts.iter().enumerate().find_map(|(at, part)| {
            let Part::Opaque { raw, .. } = part else { return None };
            let start = memmem::find(raw.as_bytes(), quote.as_bytes()).filter(|_| !quote.is_empty())?;
            Some(Citation { node: position, part_path: vec![at], start, end: start + quote.len() })
        })
    }

    /// Frees a text about the run of everything that must not leave.
    pub fn redact(&self, text: &str) -> String {
        redact_text(text, &mut self.redacted.placeholders.clone())
    }

    /// Puts back what placeholders in an answer stand for. For the gates and for execution only: what
    /// comes out is never written.
    pub fn restore(&self, text: &str) -> String {
        self.redacted.placeholders.restore(text)
    }

    /// The author of a node as shown.
    pub fn shown_agent(&self, position: usize) -> Option<String> {
        let node = self.redacted.trajectory.nodes.get(position)?;
        serde_json::from_str(&shown::name(&node.agent)).ok()
    }

    /// Whether a name is the one that was shown for the author of a node, up to form and case.
    pub fn is_shown_agent(&self, position: usize, named: &str) -> bool {
        let node = self.redacted.trajectory.nodes.get(position);
        node.is_some_and(|node| {
            let shown = shown::name(&node.agent);
            [node.agent.as_str(), shown.trim_matches('"')].iter().any(|name| folded(name) == folded(named))
        })
    }
}

/// A mark that occurs in no text of the run: the content decides it, and content that holds it decides
/// another.
fn mark(run: &Trajectory) -> String {
    let texts: Vec<&str> = texts(run);
    for attempt in 0_u32.. {
        let digits = Hash::of_all(&[b"mark", &run.id.0.0, &attempt.to_le_bytes()]).to_string();
        let mark = &digits[..MARK_DIGITS];
        if !texts.iter().any(|text| memmem::find(text.as_bytes(), mark.as_bytes()).is_some()) {
            return mark.to_owned();
        }
    }
    // No run holds every mark.
    String::new()
}

/// Everything of a run that may be shown.
fn texts(run: &Trajectory) -> Vec<&str> {
    fn of_part<'a>(part: &'a Part, out: &mut Vec<&'a str>) {
        match part {
            Part::ToolResult(result) => result.parts.iter().for_each(|part| of_part(part, out)),
            Part::ToolCall(call) => out.extend([call.name.as_str(), &call.arguments_raw]),
            Part::Media(media) => out.push(&media.mime),
            part => out.extend(part.cited_text()),
        }
    }
    let mut out = vec![run.task.goal.as_str()];
    for agent in &run.agents {
        out.push(&agent.name);
        out.extend(agent.system_prompt.as_deref());
    }
    for tool in &run.tools {
        out.extend([tool.name.as_str(), &tool.description]);
        out.extend(tool.parameters.as_ref().map(crate::json::Json::as_str));
    }
    for node in &run.nodes {
        out.push(&node.agent);
        node.parts.iter().for_each(|part| of_part(part, &mut out));
    }
    out
}
