//! What is due: failures that the main job has not replayed yet and whose environment is here.

use super::worlds::Worlds;
use crate::id::TrajectoryId;
use crate::replay::{REPLAY_VERSION, ReplayError};
use crate::store::{Group, Store, StoreError};
use crate::trajectory::Status;
use crate::verdict::Content;

/// The stage's name in the project.
pub(super) const STAGE: &str = "replay";

/// Runs to replay, and the groups that are finished with them.
pub(super) struct Due {
    pub(super) runs: Vec<TrajectoryId>,
    pub(super) finished: Vec<Group>,
}

/// The first groups with at least `most` runs to replay between them, or all. A group stays pending for its runs
/// of versions that are not here; those of its runs that are done are not due again.
pub(super) fn due(store: &Store, worlds: &mut Worlds<'_>, most: usize) -> Result<Due, StoreError> {
    let mut due = Due { runs: Vec::new(), finished: Vec::new() };
    for group in store.pending(STAGE, REPLAY_VERSION)? {
        let mut missing = false;
        for id in &group.runs {
            if store.row(*id)?.outcome != Status::Failure.as_str() {
                continue;
            }
            let Some(reference) = store.environment(*id)? else { continue };
            if !worlds.knows(&reference) {
                missing |= reference.version.is_some();
            } else if !is_replayed(store, *id)? {
                due.runs.push(*id);
            }
        }
        if !missing {
            due.finished.push(group);
        }
        if due.runs.len() >= most {
            break;
        }
    }
    Ok(due)
}

/// Whether this version has replayed a run in its environment, or has found that it cannot be with the diagnosis
/// it has.
fn is_replayed(store: &Store, id: TrajectoryId) -> Result<bool, StoreError> {
    let pair = store.current(id, "replay_pair")?.filter(|pair| pair.producer.version == REPLAY_VERSION);
    let Some(Content::ReplayPair(pair)) = pair.map(|verdict| verdict.content) else { return Ok(false) };
    let Some(unsupported) = pair.unsupported else { return Ok(true) };
    let diagnosis = store.current(id, "diagnosis")?.map(|verdict| verdict.id);
    Ok(ReplayError::OF_THE_RUN.contains(&unsupported.code.as_str()) && pair.diagnosis == diagnosis)
}

#[cfg(test)]
mod tests {
    use super::super::replay::{ReplayConfig, replay, replayable};
    use super::due;
    use crate::environments::bundled;
    use crate::id::TrajectoryId;
    use crate::importers::{Event, Sink as _};
    use crate::pipeline::diagnose;
    use crate::pipeline::worlds::Worlds;
    use crate::replay::ReplayPlan;
    use crate::rollout::{Plan, collect, policies};
    use crate::store::Store;
    use crate::trajectory::NativeId;

    const NOW: &str = "2026-11-30T00:00:00Z";

    fn runs(store: &Store, most: usize) -> Vec<TrajectoryId> {
        due(store, &mut Worlds::new(&bundled::open, None), most).unwrap().runs
    }

    #[test]
    fn a_group_that_stays_pending_does_not_keep_the_others_from_their_turn() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::create_or_open(dir.path()).unwrap();
        let quest = bundled::open("quest").unwrap().unwrap();
        let weak = policies::parse("weak:premature-stop@0.5").unwrap();
        collect(&mut store, &*quest, &*weak, &Plan::new(6, 7), 1, NOW, &mut ()).unwrap();
        diagnose(&mut store, NOW, 1, &mut ()).unwrap();
        let failed = replayable(&store).unwrap();
        assert!(failed.len() >= 2);
        // Another trial of the first one's task, in a version that nobody has here.
        let mut older = store.effective(failed[0]).unwrap();
        older.trial = Some(1);
        older.environment.as_mut().unwrap().version = Some("older".to_owned());
        let older = older.seal(&NativeId::Named("older".to_owned()), Vec::new()).unwrap();
        let mut import = store.import(NOW).unwrap();
        import.event(Event::Trajectory(Box::new(older))).unwrap();
        import.finish().unwrap();

        let first = runs(&store, 1);
        assert_eq!(first, [failed[0]]);
        let config = ReplayConfig {
            plan: ReplayPlan { continuations: 1, ..ReplayPlan::default() },
            sweep: None,
            opener: &bundled::open,
            policy: None,
            threads: 1,
            now: NOW,
        };
        replay(&mut store, &first, &config, &mut ()).unwrap();
        assert_eq!(runs(&store, 1), [failed[1]], "the first is done, though its group is pending");
    }
}
