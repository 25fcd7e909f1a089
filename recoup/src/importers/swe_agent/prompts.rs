//! Prompts stored again at every step.

use serde_json::value::RawValue;

use crate::importers::RecordError;
use crate::importers::harness_message::message;
use crate::importers::prompts::{Place, Prompts};
use crate::trajectory::{Role, Trajectory};

/// Walks the prompt that one step stored. Where a history processor changed what the model saw,
/// the rest of the prompt is a branch of its own: context, sampled by nobody.
pub(super) fn walk(
    prompts: &mut Prompts,
    run: &mut Trajectory,
    prompt: &[&RawValue],
) -> Result<(), RecordError> {
    let mut place: Option<Place> = None;
    for raw in prompt {
        let acted = place.is_some_and(|place| place.acted);
        let mut node = message(raw, acted, &mut run.media)?.node;
        let is_turn = node.role == Role::Assistant && !node.occurrence.copied_context;
        // Prompts of some versions leave the agent's name out.
        if let (true, Some(agent)) = (node.agent == "assistant", run.agents.first()) {
            node.agent.clone_from(&agent.name);
        }
        node.occurrence.copied_context = true;
        place = Some(prompts.follow(run, place, node, is_turn));
    }
    Ok(())
}
