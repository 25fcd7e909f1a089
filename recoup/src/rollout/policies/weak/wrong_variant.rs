//! Wrong variant: the right call about the wrong thing.

use super::{Moment, Style};
use crate::environments::{Action, EnvironmentError};

/// See the module.
pub(super) struct WrongVariant;

impl Style for WrongVariant {
    fn name(&self) -> &'static str {
        "wrong-variant"
    }

    fn describe(&self) -> &'static str {
        "gives another option, thing or number of the same kind"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        Ok(moment.with_variant())
    }
}
