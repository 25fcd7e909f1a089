//! Weak policies: the expert with one bad habit.
//!
//! At every turn the habit shows with the rate's probability; in between the expert acts. A [`Style`]
//! is a habit. It works in any environment: it bends what the expert would do, by the tools' schemas and
//! by what was shown. Some habits hold on: while the transcript shows that one is under way, it goes on with a
//! probability of its own, as agents do that are stuck.
//!
//! Some styles take advice, by a rule that was written for them: told to reconsider, they fall into
//! their habit four times where it would have been five; told what went wrong, half as often. What
//! follows from that in a matched replay is marked synthetic.

mod bend;
mod budget_overrun;
mod claim;
mod false_claim;
mod hallucinated_tool;
mod ignored_error;
mod lost_state;
mod malformed_call;
mod premature_stop;
mod seen;
mod skip_step;
mod turning_circles;
mod ungrounded_id;
mod wrong_variant;

use super::expert::teach;
use super::random::Dice;
use super::{Family, with_probability};
use crate::environments::{Action, EnvironmentError, Scene};
use crate::rollout::{Advice, Policy, PolicyError, Situation, TakesAdvice, Turn};

/// A bad habit.
pub trait Style: Sync {
    /// Name on the command line (`premature-stop`).
    fn name(&self) -> &'static str;

    /// What it does, in a sentence.
    fn describe(&self) -> &'static str;

    /// What it does in place of the expert's action; `None` where there is no occasion for it.
    ///
    /// # Errors
    /// When the environment fails.
    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError>;

    /// How likely the habit goes on, where the transcript shows that it is under way.
    fn hold(&self, _: &Situation<'_>) -> f64 {
        0.0
    }

    /// Whether it responds to advice.
    fn takes_advice(&self) -> bool {
        true
    }
}

/// Every style.
pub const STYLES: &[&dyn Style] = &[
    &skip_step::SkipStep,
    &ungrounded_id::UngroundedId,
    &wrong_variant::WrongVariant,
    &premature_stop::PrematureStop,
    &ignored_error::IgnoredError,
    &budget_overrun::BudgetOverrun,
    &lost_state::LostState,
    &hallucinated_tool::HallucinatedTool,
    &malformed_call::MalformedCall,
    &false_claim::FalseClaim,
    &turning_circles::Loop,
];

/// What "reconsider" leaves of the probability of a lapse.
const RECONSIDERED: f64 = 0.8;
/// What a diagnosis leaves of it.
const DIAGNOSED: f64 = 0.5;

/// Where a style may lapse.
pub struct Moment<'a> {
    situation: &'a Situation<'a>,
    scene: &'a mut dyn Scene,
    expert: &'a Action,
    dice: Dice,
}

/// See the module.
pub struct Weak {
    name: String,
    style: &'static dyn Style,
    rate: f64,
}

pub(super) struct WeakFamily;

impl Family for WeakFamily {
    fn name(&self) -> &'static str {
        "weak"
    }

    fn usage(&self) -> String {
        "weak:<style>@<rate>".to_owned()
    }

    fn describe(&self) -> &'static str {
        "the expert with a bad habit, which shows with the rate's probability at every turn"
    }

    fn parse(&self, parameters: &str) -> Result<Box<dyn Policy>, String> {
        let (style, rate) = with_probability(parameters)?;
        let known = STYLES.iter().find(|known| known.name() == style);
        let style = *known.ok_or_else(|| format!("there is no style `{style}`"))?;
        Ok(Box::new(Weak { name: format!("weak:{parameters}"), style, rate }))
    }
}

impl Policy for Weak {
    fn name(&self) -> &str {
        &self.name
    }

    fn act(&self, situation: &Situation<'_>, scene: &mut dyn Scene) -> Result<Turn, PolicyError> {
        let expert = teach(self, scene)?;
        let heeded = match situation.advice.filter(|_| self.style.takes_advice()) {
            None => 1.0,
            Some(Advice::Reconsider) => RECONSIDERED,
            Some(Advice::Diagnosis(_)) => DIAGNOSED,
        };
        let likely = self.rate.max(self.style.hold(situation)) * heeded;
        if situation.chance("lapse", likely) {
            let dice = Dice::new(situation, "habit");
            let mut moment = Moment { situation, scene, expert: &expert, dice };
            if let Some(action) = self.style.lapse(&mut moment)? {
                return Ok(action.into());
            }
        }
        Ok(expert.into())
    }

    fn advice(&self) -> TakesAdvice {
        if self.style.takes_advice() { TakesAdvice::Synthetic } else { TakesAdvice::Never }
    }
}

/// Whether the last thing done was answered with an error.
fn has_just_failed(situation: &Situation<'_>) -> bool {
    situation.transcript.last().is_some_and(|last| last.step.is_error)
}

/// Whether an action is a call that changes nothing.
fn only_looks(situation: &Situation<'_>, action: &Action) -> bool {
    matches!(action, Action::Call { tool, .. }
        if situation.tools.iter().any(|known| known.only_looks() && known.name == **tool))
}
