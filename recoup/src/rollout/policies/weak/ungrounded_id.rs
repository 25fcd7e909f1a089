//! Ungrounded argument: makes up an id or a name in place of looking it up.

use super::{Moment, Style};
use crate::environments::{Action, EnvironmentError};

/// See the module.
pub(super) struct UngroundedId;

impl Style for UngroundedId {
    fn name(&self) -> &'static str {
        "ungrounded-id"
    }

    fn describe(&self) -> &'static str {
        "makes up an id or a name of the right form"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        Ok(moment.with_invention())
    }
}
