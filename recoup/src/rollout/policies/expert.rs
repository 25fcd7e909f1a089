//! The expert: does what the environment's scripted teacher would do.

use super::{Family, no_parameters};
use crate::environments::{Action, Scene};
use crate::rollout::{Policy, PolicyError, Situation, Turn};

/// See the module.
pub struct Expert;

pub(super) struct ExpertFamily;

impl Family for ExpertFamily {
    fn name(&self) -> &'static str {
        "expert"
    }

    fn usage(&self) -> String {
        "expert".to_owned()
    }

    fn describe(&self) -> &'static str {
        "does what the environment's scripted teacher would do"
    }

    fn parse(&self, parameters: &str) -> Result<Box<dyn Policy>, String> {
        no_parameters(parameters)?;
        Ok(Box::new(Expert))
    }
}

impl Policy for Expert {
    fn name(&self) -> &'static str {
        "expert"
    }

    fn is_deterministic(&self) -> bool {
        true
    }

    fn act(&self, _: &Situation<'_>, scene: &mut dyn Scene) -> Result<Turn, PolicyError> {
        teach(self, scene).map(Turn::from)
    }
}

/// What the teacher would do, for a policy that cannot be without one.
pub(super) fn teach(policy: &dyn Policy, scene: &mut dyn Scene) -> Result<Action, PolicyError> {
    scene.expert()?.ok_or_else(|| PolicyError::Policy {
        policy: policy.name().to_owned(),
        message: "the environment has no teacher".to_owned(),
    })
}
