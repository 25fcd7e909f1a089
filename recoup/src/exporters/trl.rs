//! `trl`: each view in the one of TRL's forms that fits it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ExportOptions, Exporter, Training, TrlKto, TrlMessages, TrlPreference, TrlPromptCompletion};
use crate::views::{Objective, View};

/// What writes a view for TRL.
pub(super) fn of_view(view: &dyn View) -> &'static dyn Exporter {
    match view.objective() {
        Objective::Preference | Objective::GoalContrast => &TrlPreference,
        Objective::Desirability | Objective::StepRewards => &TrlKto,
        Objective::TokenSum if view.learns_whole_runs() => &TrlMessages,
        // TRL reads no per-message weights, so masked views go out one kept step a row.
        Objective::TokenSum | Objective::MeanPerExample => &TrlPromptCompletion,
    }
}

/// Examples of each view that the report shows.
const PREVIEWS: usize = 2;

/// The training file that the main job writes for a view. TRL weighs no row, so weighted ones are drawn.
pub fn natural(view: &'static dyn View) -> Training<'static> {
    let options = ExportOptions { resample: view.is_weighted(), previews: PREVIEWS, prover: None };
    Training { view, exporter: of_view(view), options }
}

/// Settings of TRL that make its loss the objective's: it averages over the tokens of a step of the optimizer,
/// which is the mean of an example where a step sees one.
pub(super) fn one_row_a_step(objective: Objective) -> BTreeMap<String, Value> {
    match objective {
        Objective::MeanPerExample => {
            let settings = ["per_device_train_batch_size", "gradient_accumulation_steps"];
            settings.map(|name| (name.to_owned(), Value::from(1))).into()
        }
        _ => BTreeMap::new(),
    }
}

/// Settings and one more.
pub(super) fn with(
    mut settings: BTreeMap<String, Value>,
    name: &str,
    value: impl Into<Value>,
) -> BTreeMap<String, Value> {
    settings.insert(name.to_owned(), value.into());
    settings
}
