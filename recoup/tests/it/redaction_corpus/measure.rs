//! Measuring: items go through whole runs, as an export or a judge sees them, and are looked for there.

use std::collections::BTreeMap;

use super::draw::Draw;
use super::ordinary::CLASSES;
use super::planted::{Place, Planted};
use recoup::redaction::{Kind, leftovers, redact};
use recoup::task::Task;
use recoup::trajectory::{ArgumentsForm, Citation, Node, Outcome, Part, Role, ToolCall, Trajectory};

/// Items of one run: with fewer the seed would matter, with more one password would be found by another.
const PER_RUN: usize = 8;
/// Lines of one message of ordinary text.
const PER_MESSAGE: usize = 40;

/// One row of the table.
#[derive(Default)]
pub struct Row {
    pub items: usize,
    /// Items of which no byte is left.
    pub found: usize,
    /// Found, and more than a byte of what stands around went too.
    pub wider: usize,
    /// What was missed, by form.
    pub missed: BTreeMap<String, usize>,
}

/// What was measured on ordinary text of one class.
pub struct Ordinary {
    pub class: &'static str,
    pub items: usize,
    /// Pieces between white space.
    pub tokens: usize,
    pub hits: BTreeMap<Kind, usize>,
}

fn run_of(texts: &[(Place, &str)]) -> Trajectory {
    let mut run = Trajectory::new("test", Task::from_goal("look after the office"));
    for (place, text) in texts {
        run.push(match place {
            Place::Message => Node::new(Role::User, "user", vec![Part::text(*text)]),
            Place::Result => Node::new(Role::Tool, "shell", vec![Part::text_result(None, *text)]),
            Place::Arguments => {
                let call = ToolCall {
                    call_id: None,
                    name: "act".to_owned(),
                    arguments_raw: (*text).to_owned(),
                    arguments_form: ArgumentsForm::String,
                };
                Node::new(Role::Assistant, "assistant", vec![Part::ToolCall(call)]).sampled()
            }
        });
    }
    run.finish(Outcome::unknown());
    run
}

/// Every row, in order of its name.
pub fn found(items: &[Planted]) -> BTreeMap<&'static str, Row> {
    let mut rows: BTreeMap<&'static str, Row> = BTreeMap::new();
    for group in items.chunks(PER_RUN) {
        let texts: Vec<(Place, &str)> = group.iter().map(|item| (item.place, item.text.as_str())).collect();
        let original = run_of(&texts);
        let redacted = redact(&original);
        for (node, item) in group.iter().enumerate() {
            let part_path = if item.place == Place::Result { vec![0, 0] } else { vec![0] };
            let here = Citation { node, part_path, start: item.range.start, end: item.range.end };
            assert_eq!(here.quote(&original).unwrap(), &item.text[item.range.clone()]);
            let there = redacted.map.to_redacted(&here);
            let row = rows.entry(item.row).or_default();
            row.items += 1;
            if is_placeholder(there.quote(&redacted.trajectory).unwrap()) {
                let back = redacted.map.to_original(&there);
                row.found += 1;
                row.wider += usize::from(back.end - back.start > item.range.len() + 1);
            } else {
                *row.missed.entry(item.form.clone()).or_default() += 1;
            }
        }
    }
    rows
}

/// Whether nothing but placeholders stands in a text.
fn is_placeholder(text: &str) -> bool {
    let pieces: Vec<&str> = text.split_inclusive('>').collect();
    !pieces.is_empty()
        && pieces.iter().all(|piece| {
            let word = piece.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
            word.and_then(|word| word.rsplit_once('_')).is_some_and(|(word, number)| {
                Kind::ALL.iter().any(|kind| kind.word() == word)
                    && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
}

/// Every class of ordinary text.
pub fn ordinary(draw: &mut Draw) -> Vec<Ordinary> {
    CLASSES
        .iter()
        .map(|(class, item, count)| {
            let lines: Vec<String> = (0..*count).map(|_| item(draw)).collect();
            let messages: Vec<String> = lines.chunks(PER_MESSAGE).map(|lines| lines.join("\n")).collect();
            let texts: Vec<(Place, &str)> =
                messages.iter().map(|text| (Place::Result, text.as_str())).collect();
            let mut hits = BTreeMap::new();
            for group in texts.chunks(PER_RUN) {
                for (kind, count) in redact(&run_of(group)).counts {
                    *hits.entry(kind).or_default() += count;
                }
            }
            let blocked: usize = messages.iter().map(|text| leftovers(text).len()).sum();
            assert_eq!(blocked, 0, "{class}: the leftover scan would block rows");
            let tokens = messages.iter().map(|text| text.split_whitespace().count()).sum();
            Ordinary { class, items: *count, tokens, hits }
        })
        .collect()
}
