//! A round of collection: runs of many tasks shared by a student and a teacher, stored with a label for every state.
//!
//! Tasks that are held out of training are never shared: the student runs them alone, which measures it. A run is
//! stored when it has ended; what its models answered on the way is kept before that, so that a process that is
//! killed pays for nothing twice: the same call started again asks the same questions and gets the kept answers. A
//! run that a model's failure ended is not stored, for the same reason. A teacher that fails stops the round: what
//! the others have finished is stored first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::play::{Played, play};
use super::shared::Pairing;
use crate::environments::{Environment, Identity, TaskSpec};
use crate::id::TrajectoryId;
use crate::importers::{Event, Sink as _};
use crate::interleaving::{Interleaving, Mixing, RequestOutcome};
use crate::parallel;
use crate::reporter::Reporter;
use crate::rollout::record::{native_id, task_of};
use crate::rollout::{Assignment, CollectError, FORMAT, Plan, Situation};
use crate::store::{Filter, Page, Store};
use crate::verdict::{Actor, Content, Producer, Side, Verdict};

/// Version of the rules by which labels are made.
const LABELS_VERSION: u32 = 1;
/// Runs of a batch, for each thread: what waits to be stored while the slowest of it ends.
const BATCH: usize = 4;

/// What is collected in a round.
pub struct Round<'a> {
    /// Which tasks, how often, with which luck.
    pub plan: &'a Plan,
    /// Round, from 1.
    pub number: u32,
    /// Who shares the runs, and how.
    pub pairing: Pairing<'a>,
    /// Whether student and teacher each run every task alone too, for comparison.
    pub alone: bool,
    /// Threads: as many episodes at once.
    pub threads: usize,
    /// The caller's clock, in RFC 3339.
    pub now: &'a str,
}

/// A run to be made.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub assignment: Assignment,
    /// Who acts alone; both share the run where absent.
    pub alone: Option<Actor>,
    /// Whether its task is held out of training.
    pub held_out: bool,
    native: String,
    known: Option<TrajectoryId>,
}

/// What of a round is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collecting {
    /// Runs that are asked for.
    pub requests: u64,
    /// Of them, those that are not stored with all their labels.
    pub missing: u64,
    /// Tasks that are held out of training.
    pub held_out: u64,
}

/// What a round has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// Runs that were asked for.
    pub requests: u64,
    /// Those that were made by this call.
    pub new: u64,
    /// Tasks that are held out of training, which the student ran alone.
    pub held_out: u64,
    /// Requests by what became of them: they sum to `requests`.
    pub outcomes: BTreeMap<RequestOutcome, u64>,
    /// Runs that a model's failure ended, by its message: the same call makes them again.
    pub unfinished: BTreeMap<String, u64>,
    /// Why the teacher's failure stopped the round, where it did.
    pub stopped: Option<String>,
    /// The runs, stored ones in the order of the plan.
    pub runs: Vec<TrajectoryId>,
}

/// Compares a round with a project.
///
/// # Errors
/// Those of the plan and the project.
pub fn pending_round(
    store: Option<&Store>,
    environment: &dyn Environment,
    round: &Round<'_>,
) -> Result<Collecting, CollectError> {
    let jobs = jobs(store, environment, round)?;
    Ok(Collecting {
        requests: jobs.len() as u64,
        missing: jobs.iter().filter(|job| job.known.is_none()).count() as u64,
        held_out: held_out(&jobs),
    })
}

/// Runs what of a round is not stored yet, and stores it with its labels.
///
/// # Errors
/// Those of the plan and the project. A failure of the teacher is in the [`Collection`], with what was finished
/// before it.
pub fn collect_round(
    store: &mut Store,
    environment: &dyn Environment,
    round: &Round<'_>,
    reporter: &mut dyn Reporter,
) -> Result<Collection, CollectError> {
    let jobs = jobs(Some(store), environment, round)?;
    let mut done =
        Collection { requests: jobs.len() as u64, held_out: held_out(&jobs), ..Collection::default() };
    let missing: Vec<&Job> = jobs.iter().filter(|job| job.known.is_none()).collect();
    reporter.stage("collect", Some(missing.len() as u64));
    let stop = AtomicBool::new(false);
    let mut made: BTreeMap<&str, TrajectoryId> = BTreeMap::new();
    for batch in missing.chunks(BATCH * round.threads.max(1)) {
        let played = parallel::map(batch, round.threads, |job| {
            if stop.load(Ordering::Relaxed) {
                return Played::NotBegun;
            }
            let played = play(environment, round, job);
            stop.fetch_or(matches!(played, Played::TeacherFailed(_)), Ordering::Relaxed);
            played
        });
        let mut sealed = Vec::new();
        let mut verdicts = Vec::new();
        for (job, played) in batch.iter().zip(played) {
            match played {
                Played::Ended(run, labels) => {
                    let id = run.head.id;
                    made.insert(&job.native, id);
                    let producer = Producer::teacher(LABELS_VERSION, round.pairing.teacher.name());
                    verdicts.extend(labels.into_iter().map(|label| {
                        Verdict::new(id, producer.clone(), Vec::new(), Content::StateLabel(label), round.now)
                    }));
                    sealed.push(*run);
                }
                Played::Unfinished(message) => *done.unfinished.entry(message).or_default() += 1,
                Played::TeacherFailed(message) => {
                    done.stopped.get_or_insert(message);
                }
                Played::NotBegun => {}
            }
        }
        done.new += sealed.len() as u64;
        let mut sink = store.import(round.now)?;
        for run in sealed {
            sink.event(Event::Trajectory(Box::new(run)))?;
        }
        sink.finish()?;
        store.put_verdicts(&verdicts)?;
        reporter.advance(batch.len() as u64);
        if done.stopped.is_some() {
            break;
        }
    }
    for job in &jobs {
        let id = job.known.or_else(|| made.get(job.native.as_str()).copied());
        let outcome = match id {
            Some(id) => {
                done.runs.push(id);
                Interleaving::of(&store.load(id)?).map_or(RequestOutcome::Aborted, |shared| shared.outcome)
            }
            None => RequestOutcome::Aborted,
        };
        *done.outcomes.entry(outcome).or_default() += 1;
    }
    Ok(done)
}

/// Shows the first situation of every run that is to be made, with who will be asked in it: who acts alone, or both.
///
/// # Errors
/// Those of the plan, the project and the caller. An environment that fails is passed over: it costs no question.
pub fn openings<E: From<CollectError>>(
    store: Option<&Store>,
    environment: &dyn Environment,
    round: &Round<'_>,
    mut see: impl FnMut(&Situation<'_>, Option<Actor>) -> Result<(), E>,
) -> Result<(), E> {
    for job in jobs(store, environment, round)?.iter().filter(|job| job.known.is_none()) {
        let Assignment { task_seed, difficulty, seed, .. } = job.assignment;
        let Ok(task) = environment.generate(task_seed, difficulty) else { continue };
        let Ok(mut instance) = environment.open(&task) else { continue };
        let Ok((_, first_observation)) = instance.start() else { continue };
        let situation = Situation {
            goal: &task.goal,
            rules: environment.identity().policy.as_deref(),
            tools: instance.tools(),
            first_observation: &first_observation,
            transcript: &[],
            turns: &[],
            turn: 0,
            turns_left: round.plan.limits.turns_of(&task),
            seed,
            advice: None,
        };
        see(&situation, job.alone)?;
    }
    Ok(())
}

/// Tasks among the runs that are held out of training. Runs of one task stand beside each other.
fn held_out(jobs: &[Job]) -> u64 {
    let held_out = jobs.iter().filter(|job| job.held_out);
    let mut tasks: Vec<_> =
        held_out.map(|job| (job.assignment.task_seed, job.assignment.difficulty)).collect();
    tasks.dedup();
    tasks.len() as u64
}

/// The runs of a round, task by task, each with the stored run that it is already.
fn jobs(
    store: Option<&Store>,
    environment: &dyn Environment,
    round: &Round<'_>,
) -> Result<Vec<Job>, CollectError> {
    let identity = environment.identity();
    let mut stored = BTreeMap::new();
    if let Some(store) = store {
        let ours = Filter { format: Some(FORMAT.to_owned()), ..Filter::default() };
        let rows = store.list(&ours, Page::ALL)?;
        stored.extend(rows.into_iter().filter_map(|row| Some((row.native_id?, row.id))));
    }
    let assignments = round.plan.assignments(&identity.manifest)?;
    let tasks = parallel::map(&assignments, round.threads, |assignment| {
        environment.generate(assignment.task_seed, assignment.difficulty).ok()
    });
    let mut jobs = Vec::new();
    for (assignment, task) in assignments.into_iter().zip(tasks) {
        // A task that cannot be made becomes a run with an error, which teaches nothing.
        let side = match (task.map(|task| task_of(identity, &task)), store) {
            (Some(task), Some(store)) => store.side_of_task(&task)?,
            (Some(task), None) => Store::side_of_new(&task),
            (None, _) => Side::Train,
        };
        let held_out = side != Side::Train;
        let arms: &[Option<Actor>] = match (held_out, round.alone) {
            (true, _) => &[Some(Actor::Student)],
            (false, true) => &[None, Some(Actor::Student), Some(Actor::Teacher)],
            (false, false) => &[None],
        };
        for alone in arms {
            let assignment = assignment.clone();
            let mut job = Job { assignment, alone: *alone, held_out, native: String::new(), known: None };
            let (key, name) = (job.key(identity), round.name(*alone));
            let Assignment { trial, seed, .. } = &job.assignment;
            job.native = native_id(identity, &key, &name, *seed, *trial, round.plan.limits);
            if let (Some(id), Some(store)) = (stored.get(&job.native), store) {
                job.known = is_labelled(store, *id)?.then_some(*id);
            }
            jobs.push(job);
        }
    }
    Ok(jobs)
}

impl Job {
    /// The key of its task.
    pub(super) fn key(&self, identity: &Identity) -> String {
        let Assignment { task_seed, difficulty, family, .. } = &self.assignment;
        TaskSpec::key_of(&identity.manifest.name, family, *difficulty, *task_seed)
    }
}

/// Whether a stored run has all its labels: a process may have been killed between the two.
fn is_labelled(store: &Store, id: TrajectoryId) -> Result<bool, CollectError> {
    let labels = store.of_run(id, "state_label")?.len() as u64;
    Ok(Interleaving::of(&store.load(id)?).is_none_or(|shared| labels >= shared.labels))
}

impl Round<'_> {
    /// The name under which a run is recorded: all that decides who acts in it, and what is tried beside.
    pub fn name(&self, alone: Option<Actor>) -> String {
        let Pairing { student, teacher, mixing, verify, form, context, scores: _ } = &self.pairing;
        let number = self.number;
        match alone {
            Some(Actor::Student) => format!("{} alone, round {number}", student.name()),
            Some(Actor::Teacher) => format!("{} alone, round {number}", teacher.name()),
            None => {
                let shares = match mixing {
                    Mixing::Turns { beta } => format!("beta {beta}"),
                    Mixing::Prefix { most } => format!("prefix 0..{most}"),
                };
                let verified = if *verify { ", verified" } else { "" };
                let form = if form.is_native() { String::new() } else { format!(", {}", form.name()) };
                let context = context.map_or_else(String::new, |most| format!(", context {most}"));
                let (student, teacher) = (student.name(), teacher.name());
                format!("{student} with {teacher}, {shares}, round {number}{form}{context}{verified}")
            }
        }
    }
}
