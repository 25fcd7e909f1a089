//! Redaction: secrets and personal data leave a run before the run leaves the store.
//!
//! * What is found is replaced by a typed placeholder that stands for the same value all through the
//!   trajectory (`<EMAIL_1>`); redacting twice changes nothing.
//! * A node that was changed loses what still tells the old text: sampled token ids, log-probabilities
//!   and the provider's signatures. Prompt ids of every later node go too, since they spell the prompt.
//! * Sealed pieces (signatures, encrypted reasoning) are never searched or edited, and `hidden` is
//!   emptied.
//! * No table of values is written: [`OffsetMap`] holds ranges, and [`Placeholders`], which know the
//!   values so that a text about the run can be freed of them, stay in memory.
//! * A name that runs are grouped by is redacted for itself ([`redact_name`]), so that it reads the
//!   same in each of them.
//!
//! [`leftovers`] looks again, by other means, at what is about to be written, and blocks it.

mod arguments;
mod assigned;
mod checksums;
mod commands;
mod companions;
mod dialing;
mod edit;
mod find;
mod headers;
mod infix;
mod keys;
mod kind;
mod known;
mod leftovers;
mod numbers;
mod offsets;
mod pen;
mod personal;
mod phones;
mod placeholders;
mod secrets;
mod spanning;
mod token;

use std::collections::BTreeMap;

pub use self::kind::Kind;
pub use self::leftovers::{Leftover, leftovers};
pub use self::offsets::OffsetMap;
pub use self::placeholders::Placeholders;

use self::edit::{Edit, apply, edits};
use self::known::disjoint;
use self::pen::Pen;
use self::token::is_word;
use crate::trajectory::{Hidden, Trajectory};

/// A run that may leave, and what was done to it.
#[derive(Clone, Debug)]
pub struct Redacted {
    /// The run with placeholders in. Its ids are the original's: it is the same run, seen from outside.
    pub trajectory: Trajectory,
    /// Replacements made, by kind.
    pub counts: BTreeMap<Kind, usize>,
    /// Translates ranges of part text between the two.
    pub map: OffsetMap,
    /// The numbers given out, for text about the run that comes later ([`redact_text`]).
    pub placeholders: Placeholders,
}

impl Redacted {
    /// A run in which nothing is left to replace.
    pub(crate) fn as_it_is(run: &Trajectory) -> Self {
        Self {
            trajectory: run.clone(),
            counts: BTreeMap::new(),
            map: OffsetMap::default(),
            placeholders: Placeholders::default(),
        }
    }
}

/// Redacts a run.
pub fn redact(run: &Trajectory) -> Redacted {
    redact_beside(run, Placeholders::default())
}

/// Redacts a run that is read beside another one, such as its continuation: what was given out for the other
/// one's values stands for the same values here.
pub fn redact_beside(run: &Trajectory, placeholders: Placeholders) -> Redacted {
    let mut trajectory = run.clone();
    trajectory.hidden = Hidden::default();
    let mut pen = Pen::reserving(run, placeholders);
    let mut map = OffsetMap::default();
    let prompt_changed = pen.frame(&mut trajectory);
    let mut changed_before: Vec<bool> = Vec::with_capacity(trajectory.nodes.len());
    for (position, node) in trajectory.nodes.iter_mut().enumerate() {
        let inherited = node.parent.map_or(prompt_changed, |parent| changed_before[parent]);
        let changed = pen.node(position, node, &mut map);
        if let Some(call) = &mut node.occurrence.call {
            if inherited || changed {
                call.prompt_ids = None;
            }
            if changed {
                (call.completion_ids, call.logprobs) = (None, None);
            }
        }
        changed_before.push(inherited || changed);
    }
    pen.retell(&mut trajectory);
    Redacted { trajectory, counts: pen.counts, map, placeholders: pen.placeholders }
}

/// Rounds after which a text is taken as done; what stands hidden beside an earlier find is rare.
const ROUNDS_MAX: usize = 8;

/// Redacts a text about a run, with the run's own placeholders: what shows by itself, every value
/// that was redacted in the run, or a piece of one, and what the leftover scan still sees.
pub fn redact_text(text: &str, placeholders: &mut Placeholders) -> String {
    let mut redacted = text.to_owned();
    for _ in 0..ROUNDS_MAX {
        let mut found = placeholders.known_in(&redacted);
        found.extend(edits(&redacted));
        if found.is_empty() {
            found.extend(leftovers(&redacted).into_iter().map(|left| edit_of(left, &redacted)));
        }
        if found.is_empty() {
            break;
        }
        redacted = apply(&redacted, &disjoint(found), placeholders).0;
    }
    redacted
}

/// The edit of what the leftover scan sees, to the end of its word: the scan asks for the shortest key.
fn edit_of(left: Leftover, text: &str) -> Edit {
    let word = |byte: &&u8| is_word(**byte) || **byte == b'-';
    let end = left.end + text.as_bytes()[left.end..].iter().take_while(word).count();
    Edit { start: left.start, end, kind: left.kind, value: text[left.start..end].to_owned(), quoted: false }
}

/// Redacts a name that runs are grouped by (a task, an agent, a model), for itself: the same in each, and
/// another one where only the secret in it is another.
pub fn redact_name(name: &str) -> String {
    redact_text(name, &mut Placeholders::of_name())
}

#[cfg(test)]
mod tests {
    use super::{Kind, redact, redact_beside, redact_name};
    use crate::task::Task;
    use crate::trajectory::{ArgumentsForm, Call, Citation, Node, Outcome, Part, Role, ToolCall, Trajectory};

    fn run() -> Trajectory {
        let mut run = Trajectory::new("test", Task::from_goal("mail mia@example.com"));
        run.hidden.gold = Some(crate::json::Json::string("the answer"));
        run.push(Node::new(Role::User, "user", vec![Part::text("mail mia@example.com, please")]));
        let call = ToolCall {
            call_id: Some("call_1".to_owned()),
            name: "send".to_owned(),
            arguments_raw: r#"{"to": "mia@example.com"}"#.to_owned(),
            arguments_form: ArgumentsForm::String,
        };
        let sealed =
            Part::Reasoning { text: "to mia@example.com".to_owned(), signature: Some("c2ln".to_owned()) };
        let opaque =
            Part::Opaque { kind: "redacted_thinking".to_owned(), raw: "\"a@example.com\"".to_owned() };
        let mut node =
            Node::new(Role::Assistant, "assistant", vec![sealed, Part::ToolCall(call), opaque]).sampled();
        node.occurrence.call = Some(Box::new(ids()));
        run.push(node);
        let mut last = Node::new(Role::Assistant, "assistant", vec![Part::text("sent")]).sampled();
        last.occurrence.call = Some(Box::new(ids()));
        run.push(last);
        run.finish(Outcome::unknown());
        run
    }

    fn ids() -> Call {
        Call {
            prompt_ids: Some(vec![1]),
            completion_ids: Some(vec![2]),
            logprobs: Some(vec![-0.5]),
            ..Call::default()
        }
    }

    #[test]
    fn a_changed_node_loses_what_tells_the_old_text() {
        let redacted = redact(&run());
        let node = &redacted.trajectory.nodes[1];
        assert_eq!(node.parts[0], Part::Reasoning { text: "to <EMAIL_1>".to_owned(), signature: None });
        assert_eq!(node.parts[1].cited_text(), Some(r#"{"to": "<EMAIL_1>"}"#));
        assert_eq!(node.parts[2].cited_text(), Some("\"a@example.com\""), "sealed pieces stay");
        let call = node.occurrence.call.as_deref().unwrap();
        assert_eq!((&call.prompt_ids, &call.completion_ids, &call.logprobs), (&None, &None, &None));
        let call = redacted.trajectory.nodes[2].occurrence.call.as_deref().unwrap();
        assert_eq!((&call.prompt_ids, &call.completion_ids), (&None, &Some(vec![2])));
        assert_eq!(redacted.trajectory.task.goal, "mail <EMAIL_1>");
        assert_eq!(redacted.trajectory.hidden.gold, None);
        assert_eq!(redacted.counts[&Kind::Email], 4);
    }

    #[test]
    fn a_password_goes_from_later_messages_too() {
        let mut run = run();
        let (url, bare) = ("postgres://app:pl3nty0fSun@db/main", "I typed pl3nty0fSun there");
        for text in [url, bare] {
            run.push(Node::new(Role::User, "user", vec![Part::text(text)]));
        }
        run.finish(Outcome::unknown());
        let redacted = redact(&run).trajectory;
        assert_eq!(redacted.nodes[3].text(), "postgres://app:<PASSWORD_1>@db/main");
        assert_eq!(redacted.nodes[4].text(), "I typed <PASSWORD_1> there");
    }

    #[test]
    fn a_run_beside_another_shares_its_placeholders() {
        let other = redact(&run());
        let mut beside = run();
        beside.push(Node::new(
            Role::User,
            "user",
            vec![Part::text("now leo@example.com and mia@example.com")],
        ));
        beside.finish(Outcome::unknown());
        let beside = redact_beside(&beside, other.placeholders.clone()).trajectory;
        assert_eq!(beside.nodes[0], other.trajectory.nodes[0]);
        assert_eq!(beside.nodes[3].text(), "now <EMAIL_2> and <EMAIL_1>");
    }

    #[test]
    fn names_that_differ_in_a_secret_stay_two() {
        let [mia, leo] = ["mail of mia@example.com", "mail of leo@example.com"].map(redact_name);
        assert_ne!(mia, leo);
        assert_eq!(redact_name("mail of mia@example.com"), mia);
        assert_eq!(redact_name(&mia), mia);
        assert!(mia.starts_with("mail of <EMAIL_"), "{mia}");
    }

    #[test]
    fn citations_translate() {
        let original = run();
        let redacted = redact(&original);
        let quoted = Citation { node: 0, part_path: vec![0], start: 5, end: 14 };
        assert_eq!(quoted.quote(&redacted.trajectory).unwrap(), "<EMAIL_1>");
        assert_eq!(redacted.map.to_original(&quoted).quote(&original).unwrap(), "mia@example.com");
    }
}
