//! `dagger`: visited states, each with what the teacher would do there.
//!
//! What is learned is what the run's own outcome says nothing about: a failed run teaches as much as a solved one, for
//! its states are those that the student gets into. Where the label was executed it stands in the run, and all such
//! turns of a branch are one sequence; elsewhere the label follows the state's messages in an example of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Evidence, Example, Exclusion, Lineage, Message, Objective, Segment, View, ViewInput};
use crate::id::VerdictId;
use crate::trajectory::{Branch, Part, Role};
use crate::verdict::{StateLabel, TurnAst};

/// See the module.
pub struct Dagger;

impl View for Dagger {
    fn name(&self) -> &'static str {
        "dagger"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        if input.labels.is_empty() {
            return Err(Exclusion::because("no-labels"));
        }
        input.for_training()?;
        let counts = |label: &StateLabel| input.round.is_none_or(|round| label.round == round);
        if !input.labels.iter().any(|(_, label)| counts(label)) {
            return Err(Exclusion::because("earlier-round"));
        }
        let accepted = input.labels.iter().filter_map(|(id, label)| {
            let is_learned = counts(label) && input.settings.labels.accepts(input.run, label);
            Some((*id, label, label.action.as_ref().filter(|_| is_learned)?))
        });
        let mut build = Build {
            input,
            main: Message::of_branch(input.run, &input.run.main_branch()),
            examples: Vec::new(),
        };
        let (executed, others): (Vec<_>, Vec<_>) =
            accepted.partition(|(_, label, action)| is_executed(input, label, action));
        build.sequences(self, &executed);
        for label in others {
            build.alone(self, label);
        }
        if build.examples.is_empty() {
            Err(Exclusion::because("no-accepted-label"))
        } else {
            Ok(build.examples)
        }
    }
}

/// A label that is learned, with its verdict and its action.
type Learned<'a> = (VerdictId, &'a StateLabel, &'a TurnAst);

/// Whether the run's own message is the label, to the letter, so that it can be learned where it stands.
fn is_executed(input: &ViewInput<'_>, label: &StateLabel, action: &TurnAst) -> bool {
    let Some(node) = label.executed.and_then(|node| input.run.nodes.get(node)) else { return false };
    let thinks = node.parts.iter().any(|part| matches!(part, Part::Reasoning { .. }));
    let wants_thought = input.settings.labels.teacher_reasoning && label.reasoning.is_some();
    let is_same = TurnAst::of_parts(&node.parts).is_ok_and(|(turn, _)| turn == *action);
    node.role == Role::Assistant && is_same && !thinks && !wants_thought
}

struct Build<'a> {
    input: &'a ViewInput<'a>,
    /// The messages of the main branch, which the states on it share.
    main: Vec<Arc<Message>>,
    examples: Vec<Example>,
}

impl Build<'_> {
    /// The messages up to a node.
    fn context(&self, end: usize) -> Vec<Arc<Message>> {
        match self.main.iter().position(|message| message.node == Some(end)) {
            Some(at) => self.main[..=at].to_vec(),
            None => Message::of_branch(self.input.run, &Branch::to(self.input.run, Some(end))),
        }
    }

    /// One example for each branch that ends in an executed label. A turn that two branches share is learned once.
    fn sequences(&mut self, view: &Dagger, executed: &[Learned<'_>]) {
        let mut open: BTreeSet<usize> = executed.iter().filter_map(|(_, label, _)| label.executed).collect();
        let mut examples = Vec::new();
        while let Some(end) = open.last().copied() {
            let context = self.context(end);
            let mut segments: Vec<Segment> = Vec::new();
            let mut learned = BTreeSet::new();
            for (at, message) in context.iter().enumerate() {
                if message.node.is_some_and(|node| open.remove(&node)) {
                    learned.extend(message.node);
                    segments.extend(message.segments(at));
                }
            }
            // A branch that does not hold its own end is none.
            open.remove(&end);
            let verdicts = executed
                .iter()
                .filter(|(_, label, _)| label.executed.is_some_and(|node| learned.contains(&node)));
            let verdicts: Vec<Learned<'_>> = verdicts.copied().collect();
            if !segments.is_empty() {
                examples.push(self.example(view, context, segments, &verdicts));
            }
        }
        // In the order of the run.
        examples.reverse();
        self.examples.extend(examples);
    }

    /// A state with its label behind it.
    fn alone(&mut self, view: &Dagger, label: Learned<'_>) {
        let (_, state_label, action) = label;
        let mut context = self.context(state_label.state);
        let calls = |message: &Arc<Message>| {
            message.parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).count()
        };
        let first = context.iter().map(calls).sum();
        let thought = state_label.reasoning.as_ref().filter(|_| self.input.settings.labels.teacher_reasoning);
        let thought = thought.map(|text| Part::Reasoning { text: text.clone(), signature: None });
        let parts = thought.into_iter().chain(action.to_parts(first)).collect();
        let speaker = self.main.iter().find(|message| message.role == Role::Assistant);
        let agent = speaker.map_or("assistant", |message| message.agent.as_str());
        let message = Message::written(Role::Assistant, agent, parts);
        let segments = message.segments(context.len()).collect();
        context.push(Arc::new(message));
        self.examples.push(self.example(view, context, segments, &[label]));
    }

    fn example(
        &self,
        view: &Dagger,
        context: Vec<Arc<Message>>,
        segments: Vec<Segment>,
        labels: &[Learned<'_>],
    ) -> Example {
        let lineage = Lineage {
            evidence: Evidence::Teacher,
            verdicts: labels.iter().map(|(id, _, _)| *id).collect(),
            round: labels.first().map(|(_, label, _)| label.round),
            ..self.input.lineage(view)
        };
        Example { lineage, ..self.input.example(view, context, segments) }
    }
}

#[cfg(test)]
mod tests {
    use super::Dagger;
    use crate::id::{Hash, VerdictId};
    use crate::rollout::interleave::LabelSettings;
    use crate::task::Task;
    use crate::trajectory::{Node, Outcome, Part, Role, Trajectory};
    use crate::verdict::{Actor, CallAst, LabelCost, LabelMark, Side, StateLabel, TurnAst};
    use crate::views::{Evidence, Example, View as _, ViewInput, ViewSettings};

    fn go(to: &str) -> TurnAst {
        TurnAst {
            text: String::new(),
            calls: vec![CallAst::read("go", &format!("{{\"to\":\"{to}\"}}")).unwrap()],
        }
    }

    /// A run of three turns: the teacher's, the student's own, the teacher's answer.
    fn run(success: bool) -> Trajectory {
        let mut run = Trajectory::new("test", Task::from_goal("q"));
        run.push(Node::new(Role::User, "user", vec![Part::text("q")]));
        for (turn, to) in ["a", "b"].iter().enumerate() {
            run.push(Node::new(Role::Assistant, "assistant", go(to).to_parts(turn)).sampled());
            run.push(Node::new(
                Role::Tool,
                "go",
                vec![Part::text_result(Some(format!("call_{turn}")), "ok")],
            ));
        }
        run.push(Node::new(Role::Assistant, "assistant", vec![Part::text("done")]).sampled());
        run.finish(Outcome::from_flag(success, "success"));
        run
    }

    fn label(turn: usize, actor: Actor, action: TurnAst, agrees: bool) -> (VerdictId, StateLabel) {
        let label = StateLabel {
            state: 2 * turn,
            executed: Some(2 * turn + 1),
            turn: turn as u64,
            round: 1,
            actor,
            teacher: "t".to_owned(),
            action: Some(action),
            reasoning: Some("for a reason".to_owned()),
            agrees: Some(agrees),
            refused: None,
            marks: Vec::new(),
            verified: None,
            cost: LabelCost::default(),
            shift: None,
            unscored: None,
        };
        (VerdictId(Hash::of(&[turn as u8])), label)
    }

    fn labels() -> Vec<(VerdictId, StateLabel)> {
        let done = TurnAst { text: "done".to_owned(), calls: Vec::new() };
        vec![
            label(0, Actor::Teacher, go("a"), true),
            label(1, Actor::Student, go("c"), false),
            label(2, Actor::Teacher, done, true),
        ]
    }

    fn learned(example: &Example) -> Vec<String> {
        let text = |segment: &crate::views::Segment| {
            let part = &example.context[segment.message].parts[segment.part_path[0]];
            part.cited_text().unwrap_or_default().to_owned()
        };
        example.segments.iter().map(text).collect()
    }

    #[test]
    fn executed_labels_are_one_sequence_and_others_follow_their_state() {
        let (run, labels, settings) = (run(true), labels(), ViewSettings::default());
        let input = ViewInput { labels: &labels, ..ViewInput::new(&run, Side::Train, &settings) };
        let examples = Dagger.build(&input).unwrap();
        assert_eq!(
            examples.iter().map(learned).collect::<Vec<_>>(),
            [vec![r#"{"to":"a"}"#.to_owned(), "done".to_owned()], vec![r#"{"to":"c"}"#.to_owned()],]
        );
        assert_eq!((examples[0].context.len(), examples[1].context.len()), (6, 4));
        let lineage = &examples[0].lineage;
        assert_eq!(
            (lineage.evidence, lineage.round, lineage.verdicts.len()),
            (Evidence::Teacher, Some(1), 2)
        );
        // The state's messages are those of the sequence, not copies.
        assert!(std::sync::Arc::ptr_eq(&examples[0].context[2], &examples[1].context[2]));
    }

    #[test]
    fn an_end_that_solved_nothing_is_not_learned_unless_asked_for() {
        let (run, labels) = (run(false), labels());
        let build = |settings: &ViewSettings| {
            let input = ViewInput { labels: &labels, ..ViewInput::new(&run, Side::Train, settings) };
            Dagger.build(&input).unwrap().iter().flat_map(learned).collect::<Vec<_>>()
        };
        assert_eq!(build(&ViewSettings::default()).len(), 2);
        let off = LabelSettings { off: vec![LabelMark::UnsolvedFinish], ..LabelSettings::default() };
        assert_eq!(build(&ViewSettings { labels: off, ..ViewSettings::default() }).len(), 3);
    }

    #[test]
    fn filters_rounds_and_sides_hold_labels_back() {
        let run = run(true);
        let mut labels = labels();
        labels[1].1.marks = vec![LabelMark::Loop];
        let settings = ViewSettings::default();
        let input = ViewInput { labels: &labels, ..ViewInput::new(&run, Side::Train, &settings) };
        assert_eq!(Dagger.build(&input).unwrap().len(), 1);
        let reason = |input: &ViewInput<'_>| Dagger.build(input).unwrap_err().reason;
        assert_eq!(reason(&ViewInput { side: Side::Validation, ..input }), "held-out");
        assert_eq!(reason(&ViewInput { round: Some(2), ..input }), "earlier-round");
        assert_eq!(reason(&ViewInput { labels: &[], ..input }), "no-labels");
        let verified = LabelSettings { verified: true, ..LabelSettings::default() };
        let verified = ViewSettings { labels: verified, ..ViewSettings::default() };
        assert_eq!(reason(&ViewInput { settings: &verified, ..input }), "no-accepted-label");
    }

    #[test]
    fn reasoning_is_learned_where_it_is_asked_for() {
        let (run, labels) = (run(true), labels());
        let wanted = LabelSettings { teacher_reasoning: true, ..LabelSettings::default() };
        let settings = ViewSettings { labels: wanted, ..ViewSettings::default() };
        let input = ViewInput { labels: &labels, ..ViewInput::new(&run, Side::Train, &settings) };
        let examples = Dagger.build(&input).unwrap();
        assert_eq!(examples.len(), 3, "what the run does not show cannot be learned in it");
        assert!(examples.iter().all(|example| learned(example)[0] == "for a reason"));
    }
}
