//! The record as a judge reads it: numbered nodes between lines that no text of the record can forge.
//!
//! Every line of the frame begins with a mark that follows from the run's content and occurs nowhere in
//! it, so text of the run can neither close the record nor number a node. Names stand in the frame as
//! JSON strings, on one line. Each stretch of text that is shown knows the bytes it was made from, and
//! only what was shown can be quoted.

use std::fmt::Write as _;
use std::ops::Range;

use memchr::memmem;

use super::case::Case;
use super::excerpt::excerpt;
use super::visible_text::{Shifts, push_visible};
use super::window::{Size, window};
use crate::trajectory::{Citation, Node, Part};
use crate::visible::visible_line;

/// Bytes kept of a name in the frame.
const NAME_BYTES: usize = 80;
/// Parts of one message shown at its start, and at its end.
const PARTS: (usize, usize) = (48, 16);
/// Bytes of one cited range that are shown whatever the window.
const FOCUS_BYTES: usize = 2_400;
/// Bytes of the lines that frame a node, and a part of it.
const FRAME: (usize, usize) = (72, 56);
/// Times that the window is narrowed where the frame took more than was reckoned.
const NARROWED_MAX: usize = 12;

/// What a judge is shown.
#[derive(Debug)]
pub struct Shown {
    /// The record, its frame included.
    pub text: String,
    /// Bytes of the run's own text that are left out.
    pub left_out: usize,
    stretches: Vec<Stretch>,
}

/// A stretch of a part that is shown.
#[derive(Debug)]
struct Stretch {
    node: usize,
    position: usize,
    path: Vec<usize>,
    source: usize,
    shown: Range<usize>,
    shifts: Shifts,
}

/// Why a quote is no citation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misquote {
    /// No node of that number is shown.
    NoNode,
    /// It stands nowhere in what was shown of the node.
    Absent,
    /// It stands there more than once.
    Ambiguous,
    /// It stands only in a part that the judge was not shown.
    Hidden(Citation),
}

impl Shown {
    /// Whether anything of a node is shown.
    pub fn holds(&self, node: usize) -> bool {
        self.stretches.iter().any(|stretch| stretch.node == node)
    }

    /// The one place of a quote in what was shown of a node, as a range of the redacted part.
    pub(super) fn locate(&self, node: usize, quote: &str) -> Result<Citation, Misquote> {
        let of_node: Vec<&Stretch> = self.stretches.iter().filter(|stretch| stretch.node == node).collect();
        if of_node.is_empty() {
            return Err(Misquote::NoNode);
        }
        if quote.is_empty() {
            return Err(Misquote::Absent);
        }
        let mut places = of_node.iter().flat_map(|stretch| {
            let text = &self.text.as_bytes()[stretch.shown.clone()];
            places(text, quote.as_bytes()).map(move |at| (*stretch, at))
        });
        let (stretch, at) = places.next().ok_or(Misquote::Absent)?;
        if places.next().is_some() {
            return Err(Misquote::Ambiguous);
        }
        let source = stretch.shifts.to_source(&(at..at + quote.len()));
        Ok(Citation {
            node: stretch.position,
            part_path: stretch.path.clone(),
            start: stretch.source + source.start,
            end: stretch.source + source.end,
        })
    }
}

/// The first two places of a needle, overlapping ones too.
fn places<'a>(text: &'a [u8], needle: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = memmem::find(text, needle);
    let second = first.and_then(|at| Some(at + 1 + memmem::find(text.get(at + 1..)?, needle)?));
    first.into_iter().chain(second)
}

/// Shows a run in about `budget` bytes, with these ranges of the redacted run always in it.
pub(super) fn show(case: &Case<'_>, budget: usize, focus: &[Citation]) -> Shown {
    let mut target = budget;
    for _ in 0..NARROWED_MAX {
        let shown = Writer::new(case, focus, target).write();
        if shown.text.len() <= budget {
            return shown;
        }
        target = target * 3 / 4;
    }
    Writer::new(case, focus, target).write()
}

struct Writer<'a> {
    case: &'a Case<'a>,
    focus: &'a [Citation],
    budget: usize,
    out: String,
    stretches: Vec<Stretch>,
    left_out: usize,
}

impl<'a> Writer<'a> {
    fn new(case: &'a Case<'a>, focus: &'a [Citation], budget: usize) -> Self {
        Self { case, focus, budget, out: String::new(), stretches: Vec::new(), left_out: 0 }
    }

    fn write(mut self) -> Shown {
        let mark = self.case.mark();
        let _ = writeln!(self.out, "The mark is {mark}.\nBEGIN {mark}");
        self.head();
        self.nodes();
        let _ = writeln!(self.out, "END {mark}");
        Shown { text: self.out, left_out: self.left_out, stretches: self.stretches }
    }

    /// A line of the frame.
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{} {text}", self.case.mark());
    }

    /// A text that cannot be quoted, shortened in its middle.
    fn aside(&mut self, text: &str, cap: usize) {
        let mut from = 0;
        for range in excerpt(text, cap, &[], 0) {
            self.gap(range.start - from);
            push_visible(&mut self.out, &text[range.clone()]);
            self.end_line();
            from = range.end;
        }
        self.gap(text.len() - from);
    }

    fn gap(&mut self, bytes: usize) {
        if bytes > 0 {
            self.left_out += bytes;
            self.end_line();
            self.line(&format!("{bytes} bytes left out"));
        }
    }

    fn end_line(&mut self) {
        if !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    /// The task, what the agents were told, the tools, and the truth where it is to be seen.
    fn head(&mut self) {
        let run = self.case.redacted();
        self.line("task");
        self.aside(&run.task.goal, self.budget / 8);
        let prompted: Vec<_> =
            run.agents.iter().filter(|agent| agent.system_prompt.is_some()).take(16).collect();
        for agent in &prompted {
            self.line(&format!("instructions of {}", name(&agent.name)));
            let cap = self.budget / 8 / prompted.len();
            self.aside(agent.system_prompt.as_deref().unwrap_or_default(), cap);
        }
        self.line("tools, one a line");
        let tools = tools(run, self.budget / 4);
        self.out.push_str(&tools);
        if let Some(truth) = self.case.truth() {
            self.line("what the run should have come to, which the agent never saw");
            self.aside(truth, self.budget / 8);
        }
    }

    fn nodes(&mut self) {
        let case = self.case;
        let nodes: Vec<(usize, &Node)> = case.nodes().collect();
        let sizes: Vec<Size> = nodes.iter().map(|(_, node)| size(node)).collect();
        let last = nodes.len().saturating_sub(1);
        let mut must = vec![0, 1, last.saturating_sub(1), last];
        must.extend(self.focus.iter().filter_map(|citation| case.index(citation.node)));
        must.sort_unstable();
        must.dedup();
        let caps = window(&sizes, &must, self.budget.saturating_sub(self.out.len() + 64));
        let mut skipped: Option<usize> = None;
        for (index, ((position, node), cap)) in nodes.into_iter().zip(caps).enumerate() {
            let Some(cap) = cap else {
                self.left_out += sizes[index].text;
                skipped.get_or_insert(index);
                continue;
            };
            self.skipped(skipped.take(), index);
            self.node(index, position, node, cap);
        }
        self.skipped(skipped, sizes.len());
    }

    fn skipped(&mut self, from: Option<usize>, to: usize) {
        if let Some(from) = from {
            self.line(&format!("nodes {from} to {} left out", to - 1));
        }
    }

    fn node(&mut self, index: usize, position: usize, node: &Node, cap: usize) {
        let occurrence = &node.occurrence;
        let who = if occurrence.sampled && !occurrence.copied_context {
            format!("turn of {}", name(&node.agent))
        } else if node.agent == node.role.as_str() {
            node.role.as_str().to_owned()
        } else {
            format!("{}, {}", node.role.as_str(), name(&node.agent))
        };
        self.line(&format!("node {index}, {who}"));
        let whole = size(node).text.max(1);
        let (first, last) = PARTS;
        let middle = first..node.parts.len().saturating_sub(last);
        let mut hidden = 0;
        for (at, part) in node.parts.iter().enumerate() {
            let cited =
                self.focus.iter().any(|cite| cite.node == position && cite.part_path.first() == Some(&at));
            if middle.contains(&at) && !cited {
                hidden += 1;
                self.left_out += part_len(part);
                continue;
            }
            if std::mem::take(&mut hidden) > 0 {
                self.line("parts left out");
            }
            // In proportion, so that a short call beside a long text is seen.
            let share = if whole <= cap {
                cap
            } else {
                (part_len(part) as u128 * cap as u128 / whole as u128) as usize
            };
            self.part(index, position, &[at], part, share.max(48));
        }
    }

    fn part(&mut self, index: usize, position: usize, path: &[usize], part: &Part, cap: usize) {
        match part {
            Part::Text(text) => self.quotable(index, position, path, &text.text, cap),
            Part::Reasoning { text, .. } => {
                self.line("reasoning");
                self.quotable(index, position, path, text, cap);
            }
            Part::ToolCall(call) => {
                self.line(&format!("call of {}", name(&call.name)));
                self.quotable(index, position, path, &call.arguments_raw, cap);
            }
            Part::ToolResult(result) => {
                let error = if result.is_error == Some(true) { ", an error" } else { "" };
                let code = result.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
                self.line(&format!("result{error}{code}"));
                let whole: usize = result.parts.iter().map(part_len).sum::<usize>().max(1);
                for (inner, part) in result.parts.iter().take(PARTS.0).enumerate() {
                    if !matches!(part, Part::ToolResult(_)) {
                        let share = if whole <= cap {
                            cap
                        } else {
                            (part_len(part) as u128 * cap as u128 / whole as u128) as usize
                        };
                        self.part(index, position, &[path[0], inner], part, share.max(48));
                    }
                }
                let rest = result.parts.len().saturating_sub(PARTS.0);
                if rest > 0 {
                    self.left_out += result.parts[PARTS.0..].iter().map(part_len).sum::<usize>();
                    self.line("parts left out");
                }
            }
            Part::Media(media) => self.line(&format!("media {}", name(&media.mime))),
            Part::Opaque { .. } => self.line("a sealed part, not shown"),
        }
    }

    fn quotable(&mut self, node: usize, position: usize, path: &[usize], text: &str, cap: usize) {
        let focus: Vec<Range<usize>> = self
            .focus
            .iter()
            .filter(|citation| citation.node == position && citation.part_path == path)
            .map(|citation| citation.start..citation.end.min(text.len()))
            .collect();
        // Of many cited places each is shown less, so that a small window holds them all.
        let each = (self.budget / 3 / self.focus.len().max(1)).clamp(80, FOCUS_BYTES);
        let mut from = 0;
        for range in excerpt(text, cap, &focus, each) {
            self.gap(range.start - from);
            let start = self.out.len();
            let shifts = push_visible(&mut self.out, &text[range.clone()]);
            self.stretches.push(Stretch {
                node,
                position,
                path: path.to_vec(),
                source: range.start,
                shown: start..self.out.len(),
                shifts,
            });
            self.end_line();
            from = range.end;
        }
        self.gap(text.len() - from);
    }
}

fn size(node: &Node) -> Size {
    let parts = node.parts.len().min(PARTS.0 + PARTS.1);
    Size { text: node.parts.iter().map(part_len).sum(), frame: FRAME.0 + FRAME.1 * parts }
}

fn part_len(part: &Part) -> usize {
    match part {
        Part::ToolResult(result) => result.parts.iter().map(part_len).sum(),
        Part::Opaque { .. } => 0,
        part => part.cited_text().map_or(0, str::len),
    }
}

/// A foreign name on a line of the frame: a JSON string, short, nothing in it invisible.
pub(super) fn name(name: &str) -> String {
    let short = &name[..name.floor_char_boundary(NAME_BYTES)];
    serde_json::Value::String(visible_line(short).into_owned()).to_string()
}

/// The tools as JSON lines: whole, else without schemas, else by name.
fn tools(run: &crate::trajectory::Trajectory, cap: usize) -> String {
    let lines = |form: &dyn Fn(&crate::trajectory::Tool) -> serde_json::Value| {
        let mut text = String::new();
        for (at, tool) in run.tools.iter().enumerate() {
            let line = form(tool).to_string();
            if text.len() + line.len() > cap {
                let _ = writeln!(text, "{}", serde_json::json!({ "more tools": run.tools.len() - at }));
                return Err(text);
            }
            push_visible(&mut text, &line);
            text.push('\n');
        }
        Ok(text)
    };
    let clip = |text: &str| text[..text.floor_char_boundary(160)].to_owned();
    let schema = |tool: &crate::trajectory::Tool| tool.parameters.as_ref().map(crate::json::Json::to_value);
    let whole = |tool: &crate::trajectory::Tool| serde_json::json!({ "name": tool.name, "description": tool.description, "parameters": schema(tool) });
    let brief = |tool: &crate::trajectory::Tool| serde_json::json!({ "name": name(&tool.name).trim_matches('"'), "description": clip(&tool.description) });
    let bare =
        |tool: &crate::trajectory::Tool| serde_json::json!({ "name": name(&tool.name).trim_matches('"') });
    lines(&whole).or_else(|_| lines(&brief)).or_else(|_| lines(&bare)).unwrap_or_else(|cut| cut)
}
