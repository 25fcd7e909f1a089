//! A shared run: at every turn the coin says who acts, and the teacher says what it would do.
//!
//! [`Shared`] is the policy of one episode. It writes down each state that it is asked about; what the labels come to
//! is decided when the episode has ended ([`super::labels`]).

use std::sync::{Mutex, PoisonError};

use super::labels::has_a_place;
use super::token_shift;
use crate::environments::{Action, Scene, refusal};
use crate::interleaving::{self, Mixing, Reading, Seat};
use crate::rollout::conversation::{likely_tokens, meaning, tools};
use crate::rollout::forms::Form;
use crate::rollout::{Policy, PolicyError, Situation, TakesAdvice, Turn};
use crate::trajectory::Tool;
use crate::verdict::{Actor, LabelMark, LabelRefusal, RefusalCode, TokenShift, TurnAst, Unscored};

/// The two that share runs, and how.
#[derive(Clone, Copy)]
pub struct Pairing<'a> {
    /// Who is to learn.
    pub student: &'a dyn Policy,
    /// Who is learned from.
    pub teacher: &'a dyn Policy,
    /// How turns are shared.
    pub mixing: Mixing,
    /// The form that the student writes turns in: what it has no place for is no label.
    pub form: &'static dyn Form,
    /// Tokens that the student's context holds, where that is known.
    pub context: Option<u64>,
    /// Whether each label is executed from its state and continued by the teacher.
    pub verify: bool,
    /// Whether it is measured how far the student's turns lie from the teacher.
    pub scores: bool,
}

/// The policy of one shared episode.
pub(super) struct Shared<'a> {
    name: &'a str,
    pairing: Pairing<'a>,
    seat: Seat<'a>,
    visits: Mutex<Vec<Visit>>,
}

/// A state that was visited.
pub(super) struct Visit {
    /// Which turn, from 0.
    pub turn: u64,
    /// Who acted.
    pub actor: Actor,
    /// What the teacher would do.
    pub label: Result<TurnAst, LabelRefusal>,
    /// The teacher's whole turn, for executing it.
    pub taught: Turn,
    /// What was executed, where it can be read.
    pub executed: Option<TurnAst>,
    /// The executed turn's reading, where a student's model wrote it.
    pub reading: Option<Reading>,
    /// The marks that are known before the end.
    pub marks: Vec<LabelMark>,
    /// How far the student's turn lies from the teacher, or why nobody knows, where that was asked for.
    pub shift: Option<Result<TokenShift, Unscored>>,
}

impl Visit {
    /// Whether what was executed here is the teacher's turn: it acted, or the student said just the same.
    pub(super) fn is_teachers(&self) -> bool {
        // A refused label and a turn that cannot be read are not the same.
        let is_same = || self.label.as_ref().is_ok_and(|label| Some(label) == self.executed.as_ref());
        self.actor == Actor::Teacher || is_same()
    }
}

impl<'a> Shared<'a> {
    pub(super) fn new(name: &'a str, pairing: Pairing<'a>, seat: Seat<'a>) -> Self {
        Self { name, pairing, seat, visits: Mutex::default() }
    }

    /// The states that were visited, in order.
    pub(super) fn into_visits(self) -> Vec<Visit> {
        self.visits.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn label(&self, turn: &Turn, situation: &Situation<'_>, tools: &[Tool]) -> Result<TurnAst, LabelRefusal> {
        if turn.reading == Some(Reading::Unreadable) {
            return Err(LabelRefusal::unreadable("the answer cannot be read as a turn"));
        }
        let label = meaning(turn).map_err(LabelRefusal::unreadable)?;
        for call in &label.calls {
            if let Some(reason) = refusal(situation.tools, &call.name, &call.arguments.to_value()) {
                return Err(LabelRefusal { code: RefusalCode::ForeignTool, reason });
            }
        }
        has_a_place(&label, tools, self.pairing.form)?;
        Ok(label)
    }

    /// How far the student's turn lies from the teacher, or why nobody knows.
    fn shift(
        &self,
        situation: &Situation<'_>,
        turn: &Turn,
    ) -> Result<Result<TokenShift, Unscored>, PolicyError> {
        let Some(sampled) = &turn.sampled else { return Ok(Err(Unscored::Student)) };
        let given = self.pairing.teacher.score(situation, sampled);
        let given = given.map_err(|error| PolicyError::Teacher(Box::new(error)))?;
        Ok(match given {
            Some(given) => token_shift(&sampled.tokens, &given).ok_or(Unscored::Tokens),
            None => Err(Unscored::Teacher),
        })
    }

    fn marks(&self, taught: &Turn, situation: &Situation<'_>, tools: &[Tool]) -> Vec<LabelMark> {
        let mut marks = Vec::new();
        if taught.reading == Some(Reading::Lenient) {
            marks.push(LabelMark::NonParsing);
        }
        let most = self.pairing.context;
        if most.is_some_and(|most| likely_tokens(situation, self.pairing.form, tools) > most) {
            marks.push(LabelMark::ContextOverflow);
        }
        if goes_in_circles(situation) {
            marks.push(LabelMark::Loop);
        }
        marks
    }
}

impl Policy for Shared<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn advice(&self) -> TakesAdvice {
        TakesAdvice::Never
    }

    fn act(&self, situation: &Situation<'_>, scene: &mut dyn Scene) -> Result<Turn, PolicyError> {
        let actor = self.pairing.mixing.actor(&self.seat, situation.turn);
        // Who acts asks first: a student that fails costs no label.
        let student = match actor {
            Actor::Student => Some(self.pairing.student.act(situation, scene)?),
            Actor::Teacher => None,
        };
        let taught = match (self.pairing.teacher.act(situation, scene), actor) {
            (Ok(turn), _) => Ok(turn),
            (Err(PolicyError::Environment(error)), _) => return Err(error.into()),
            // A scripted teacher may know no way on from where a student has led; one that knows none from the start
            // is none.
            (Err(PolicyError::Policy { message, .. }), Actor::Student) if situation.turn > 0 => Err(message),
            (Err(error @ PolicyError::Policy { .. }), Actor::Teacher) if situation.turn > 0 => {
                return Err(error);
            }
            (Err(error), _) => return Err(PolicyError::Teacher(Box::new(error))),
        };
        let tools = tools(situation.tools);
        let label = match &taught {
            Ok(taught) => self.label(taught, situation, &tools),
            Err(reason) => Err(LabelRefusal { code: RefusalCode::Missing, reason: reason.clone() }),
        };
        let taught = taught.unwrap_or_default();
        let marks = self.marks(&taught, situation, &tools);
        let scored = student.as_ref().filter(|_| self.pairing.scores);
        let shift = scored.map(|turn| self.shift(situation, turn)).transpose()?;
        let reading = student.as_ref().and_then(|turn| turn.reading);
        // What a teacher thinks stands on its label; the student's own history never shows it.
        let executed = student.unwrap_or_else(|| Turn { thought: None, ..taught.clone() });
        let visit = Visit {
            turn: situation.turn,
            actor,
            label,
            executed: meaning(&executed).ok(),
            reading,
            marks,
            shift,
            taught,
        };
        self.visits.lock().unwrap_or_else(PoisonError::into_inner).push(visit);
        Ok(executed)
    }
}

/// Whether the episode goes in circles; words are no action to repeat.
fn goes_in_circles(situation: &Situation<'_>) -> bool {
    let is_call = |action: &Action| matches!(action, Action::Call { .. });
    situation.transcript.last().is_some_and(|last| is_call(&last.action))
        && interleaving::goes_in_circles(situation.transcript.iter().rev())
}

#[cfg(test)]
mod tests {
    use super::{Actor, LabelRefusal, Turn, TurnAst, Visit};

    #[test]
    fn a_turn_that_nobody_could_read_is_not_the_teachers() {
        let said = |text: &str| TurnAst { text: text.to_owned(), calls: Vec::new() };
        let visit = |label, executed| Visit {
            turn: 0,
            actor: Actor::Student,
            label,
            taught: Turn::default(),
            executed,
            reading: None,
            marks: Vec::new(),
            shift: None,
        };
        assert!(visit(Ok(said("a")), Some(said("a"))).is_teachers());
        assert!(!visit(Ok(said("a")), Some(said("b"))).is_teachers());
        assert!(!visit(Err(LabelRefusal::unreadable("no turn")), None).is_teachers());
    }
}
