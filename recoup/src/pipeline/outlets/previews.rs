//! Previews of examples for the report: few, short, and only of text that may leave.

use crate::redaction::leftovers;
use crate::report::{Piece, Preview, PreviewMessage};
use crate::trajectory::Part;
use crate::views::{Example, Message, Segment, StepLabel};

/// Characters shown of a stretch that is context, and of one that is learned.
const CHARS: (usize, usize) = (240, 900);
/// Messages shown at the start, and at the end.
const MESSAGES: (usize, usize) = (2, 5);
/// Stretches shown of one message.
const PIECES: usize = 12;

/// An example as the report shows it; `None` where a look at it finds what must not leave.
pub(super) fn preview(example: &Example) -> Option<Preview> {
    let len = example.context.len();
    let (first, last) = MESSAGES;
    let mut messages: Vec<PreviewMessage> = Vec::new();
    let mut left_out = 0;
    for (index, message) in example.context.iter().enumerate() {
        if index >= first && index + last < len {
            left_out += 1;
            continue;
        }
        messages.push(PreviewMessage {
            left_out: std::mem::take(&mut left_out),
            role: message.role.as_str().to_owned(),
            label: example.step_labels.iter().find(|label| label.message == index).map(label),
            pieces: pieces(message, &example.segments_of(index).collect::<Vec<_>>()),
        });
    }
    let is_clean = |piece: &Piece| leftovers(&piece.text).is_empty();
    let word = match (&example.pair, example.desirable) {
        (Some(pair), _) => Some(if pair.chosen { "chosen" } else { "rejected" }),
        (None, Some(wanted)) => Some(if wanted { "wanted" } else { "unwanted" }),
        (None, None) => None,
    };
    messages.iter().flat_map(|message| &message.pieces).all(is_clean).then(|| Preview {
        run: example.lineage.trajectory.to_string(),
        evidence: example.lineage.evidence.as_str().to_owned(),
        word: word.map(str::to_owned),
        messages,
    })
}

fn label(label: &StepLabel) -> String {
    let word = if label.correct { "right" } else { "wrong" };
    label.value.map_or_else(|| word.to_owned(), |value| format!("{word}, value {value:.2}"))
}

/// The stretches of a message: where a segment begins or ends, another one does.
fn pieces(message: &Message, segments: &[&Segment]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (index, part) in message.parts.iter().enumerate() {
        let own = segments.iter().filter(|segment| segment.part_path == [index]);
        match part {
            Part::Text(text) => cut(&mut pieces, &text.text, own),
            Part::Reasoning { text, .. } => cut(&mut pieces, text, own),
            Part::ToolCall(call) => {
                // A segment over all of the arguments stands for the whole call.
                let whole = own.clone().any(|own| (own.start, own.end) == (0, call.arguments_raw.len()));
                pieces.push(piece(&format!("{} {}", call.name, call.arguments_raw), whole));
            }
            Part::ToolResult(result) => {
                let texts = result.parts.iter().filter_map(Part::cited_text);
                pieces.extend(texts.map(|text| piece(text, false)));
            }
            Part::Media(media) => pieces.push(piece(&media.mime, false)),
            Part::Opaque { .. } => pieces.push(piece("a sealed part", false)),
        }
    }
    pieces.truncate(PIECES);
    pieces
}

fn cut<'a>(pieces: &mut Vec<Piece>, text: &str, segments: impl Iterator<Item = &'a &'a Segment>) {
    let before = pieces.len();
    let mut from = 0;
    for segment in segments {
        let context = text.get(from..segment.start).filter(|context| !context.is_empty());
        pieces.extend(context.map(|context| piece(context, false)));
        pieces.extend(text.get(segment.start..segment.end).map(|learned| piece(learned, true)));
        from = segment.end;
    }
    pieces.extend(text.get(from..).filter(|rest| !rest.is_empty()).map(|rest| piece(rest, false)));
    pieces.iter_mut().skip(before + 1).for_each(|piece| piece.continues = true);
}

fn piece(text: &str, learned: bool) -> Piece {
    let most = if learned { CHARS.1 } else { CHARS.0 };
    let end = text.char_indices().nth(most).map_or(text.len(), |(end, _)| end);
    let left_out = text[end..].chars().count() as u64;
    Piece { text: text[..end].to_owned(), learned, left_out, continues: false }
}

#[cfg(test)]
mod tests {
    use super::preview;
    use crate::task::Task;
    use crate::trajectory::{Node, Outcome, Part, Role, Trajectory};
    use crate::verdict::Side;
    use crate::views::{Example, Lineage, Message, Segment};

    fn example(said: &str) -> Example {
        let mut run = Trajectory::new("test", Task::from_goal("goal"));
        run.push(Node::new(Role::User, "user", vec![Part::text("x".repeat(300))]));
        for turn in 0..9 {
            let text = format!("{turn}: {said}");
            run.push(Node::new(Role::Assistant, "assistant", vec![Part::text(text)]).sampled());
        }
        run.finish(Outcome::unknown());
        let context = Message::of_branch(&run, &run.main_branch());
        let segments = vec![Segment { message: 9, part_path: vec![0], start: 3, end: 8, weight: 1.0 }];
        Example::new(context, Vec::new().into(), segments, Lineage::new("test", &run, Side::Train))
    }

    #[test]
    fn what_is_learned_is_a_stretch_of_its_own() {
        let shown = preview(&example("right or not")).unwrap();
        let last = shown.messages.last().unwrap();
        let pieces: Vec<(&str, bool)> =
            last.pieces.iter().map(|piece| (piece.text.as_str(), piece.learned)).collect();
        assert_eq!(pieces, [("8: ", false), ("right", true), (" or not", false)]);
        assert_eq!((shown.messages.len(), shown.messages[2].left_out), (7, 3));
        assert_eq!((shown.messages[0].pieces[0].text.len(), shown.messages[0].pieces[0].left_out), (240, 60));
    }

    #[test]
    fn what_must_not_leave_is_not_shown() {
        assert_eq!(preview(&example("write to leo@example.com")), None);
    }
}
