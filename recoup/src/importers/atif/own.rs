//! What recoup knows beyond ATIF: it travels under `extra.recoup` of the root, of a step, of a call or
//! of a result, and is taken out again here.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::importers::object::{Object, is_object, json_object};
use crate::json::Json;
use crate::trajectory::{Outcome, Trajectory};

/// Parts an `extra` into the source's own members and recoup's. An `extra` that held recoup's alone
/// was not there before.
pub(super) fn split(extra: Option<&RawValue>) -> (Option<Json>, Object<'_>) {
    let Some(raw) = extra else { return (None, Object::default()) };
    let parts = is_object(raw).then(|| Object::parse(raw, "extra").ok()).flatten().and_then(|mut extra| {
        let own = Object::parse(extra.take_if("recoup", is_object)?, "recoup").ok()?;
        Some((extra, own))
    });
    match parts {
        Some((extra, own)) => ((!extra.is_empty()).then(|| json_object(extra.rest())), own),
        None => (Some(raw.into()), Object::default()),
    }
}

/// Takes a member that reads as `T`; any other stays.
pub(super) fn take<T: DeserializeOwned>(own: &mut Object<'_>, key: &str) -> Option<T> {
    let value = serde_json::from_str(own.get(key)?.get()).ok()?;
    own.take(key);
    Some(value)
}

/// Writes back who acted, which the steps refer to.
pub(super) fn restore_agents(own: &mut Object<'_>, run: &mut Trajectory) {
    if let Some(agents) = take(own, "agents") {
        run.agents = agents;
    }
    if let Some(harness) = take(own, "harness") {
        run.harness = harness;
    }
}

/// Writes the root's other members back into the run and ends it. What does not read, because somebody else
/// wrote it, is kept by name.
pub(super) fn restore(own: &mut Object<'_>, run: &mut Trajectory, stated: Outcome) {
    let outcome = take(own, "outcome").unwrap_or(stated);
    if let Some(task) = take(own, "task") {
        run.task = task;
    }
    run.environment = take(own, "environment");
    run.verifier = take(own, "verifier");
    run.trial = take(own, "trial");
    run.seed = take(own, "seed");
    run.budget = take(own, "budget");
    run.origin = take(own, "origin");
    if let Some(extra) = own.take_if("extra", is_object).and_then(|raw| Object::parse(raw, "extra").ok()) {
        run.extra.extend(extra.rest());
    }
    let unread = std::mem::take(own).rest();
    run.extra.extend(unread.into_iter().map(|(key, value)| (format!("recoup.{key}"), value)));
    run.finish(outcome);
}
