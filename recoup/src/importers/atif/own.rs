//! What recoup knows beyond ATIF: it travels under `extra.recoup` of the root, of a step, of a call or
//! of a result, and is taken out again here.

use serde_json::value::RawValue;

use crate::importers::object::Object;
use crate::importers::value::{is_object, json_object};
use crate::json::Json;
use crate::trajectory::{Outcome, Trajectory};

/// Parts an `extra` into the source's own members and recoup's. An `extra` that held recoup's alone
/// was not there before.
pub(super) fn split(extra: Option<&RawValue>) -> (Option<Json>, Object<'_>) {
    let Some(raw) = extra else { return (None, Object::default()) };
    match Object::of(raw) {
        Some(mut extra) if extra.get("recoup").is_some_and(is_object) => {
            let own = extra.object("recoup");
            (json_object(extra.rest()), own)
        }
        _ => (Some(raw.into()), Object::default()),
    }
}

/// Writes back who acted, which the steps refer to.
pub(super) fn restore_agents(own: &mut Object<'_>, run: &mut Trajectory) {
    if let Some(agents) = own.read("agents") {
        run.agents = agents;
    }
    // Null where the run has none, though the format demands one.
    if own.has("harness") {
        run.harness = own.read("harness");
    }
}

/// Writes the root's other members back into the run and ends it. What does not read, because somebody else
/// wrote it, is kept by name.
pub(super) fn restore(own: &mut Object<'_>, run: &mut Trajectory, stated: Outcome) {
    let outcome = own.read("outcome").unwrap_or(stated);
    if let Some(task) = own.read("task") {
        run.task = task;
    }
    run.environment = own.read("environment");
    run.verifier = own.read("verifier");
    run.trial = own.read("trial");
    run.seed = own.read("seed");
    run.budget = own.read("budget");
    run.origin = own.read("origin");
    run.extra.extend(own.object("extra").rest());
    let unread = std::mem::take(own).rest();
    run.extra.extend(unread.into_iter().map(|(key, value)| (format!("recoup.{key}"), value)));
    run.finish(outcome);
}
