//! Two policies that take turns by a coin: at every turn the first one acts with a probability.

use super::{Family, parse, with_probability};
use crate::environments::Scene;
use crate::rollout::{Policy, PolicyError, Situation, TakesAdvice, Turn};

/// See the module.
pub struct Mixture {
    name: String,
    first: Box<dyn Policy>,
    second: Box<dyn Policy>,
    probability: f64,
}

pub(super) struct MixtureFamily;

impl Family for MixtureFamily {
    fn name(&self) -> &'static str {
        "mixture"
    }

    fn usage(&self) -> String {
        "mixture:<a>+<b>@<p>".to_owned()
    }

    fn describe(&self) -> &'static str {
        "acts as <a> with probability p at every turn, else as <b>"
    }

    fn parse(&self, parameters: &str) -> Result<Box<dyn Policy>, String> {
        let (both, probability) = with_probability(parameters)?;
        let (first, second) =
            both.split_once('+').ok_or("two policies with a `+` between them are needed")?;
        let part = |name: &str| parse(name).map_err(|error| error.to_string());
        Ok(Box::new(Mixture {
            name: format!("mixture:{parameters}"),
            first: part(first)?,
            second: part(second)?,
            probability,
        }))
    }
}

impl Policy for Mixture {
    fn name(&self) -> &str {
        &self.name
    }

    fn act(&self, situation: &Situation<'_>, scene: &mut dyn Scene) -> Result<Turn, PolicyError> {
        let is_first = situation.chance("mixture", self.probability);
        if is_first { &self.first } else { &self.second }.act(situation, scene)
    }

    fn advice(&self) -> TakesAdvice {
        match (self.first.advice(), self.second.advice()) {
            (TakesAdvice::Never, TakesAdvice::Never) => TakesAdvice::Never,
            (TakesAdvice::Read, TakesAdvice::Read) => TakesAdvice::Read,
            _ => TakesAdvice::Synthetic,
        }
    }
}
