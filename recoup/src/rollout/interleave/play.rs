//! Playing one run of a round: by both or by one alone, with its record and its labels.

use std::sync::{Mutex, PoisonError};

use super::Round;
use super::labels::Visited;
use super::round::Job;
use super::shared::{Shared, Visit};
use crate::environments::{Environment, Scene};
use crate::interleaving::{Delivered, Interleaving, Reading, Readings, RequestOutcome, Seat};
use crate::rollout::attempt::Attempt;
use crate::rollout::{End, Keep, Policy, PolicyError, Situation, Turn};
use crate::trajectory::{NativeId, Sealed, Trajectory};
use crate::verdict::{Actor, RefusalCode, StateLabel};

/// A run that was played.
pub(super) enum Played {
    /// To be stored, with the labels of the states that were visited.
    Ended(Box<Sealed>, Vec<StateLabel>),
    /// A model gave no answer.
    Unfinished(String),
    /// The teacher gave none.
    TeacherFailed(String),
    /// It was not begun, for the round has stopped.
    NotBegun,
}

/// Runs one episode and makes its record and its labels.
pub(super) fn play(environment: &dyn Environment, round: &Round<'_>, job: &Job) -> Played {
    let name = round.name(job.alone);
    match job.alone {
        Some(actor) => alone(environment, round, job, actor, &name),
        None => shared(environment, round, job, &name),
    }
}

/// A policy that acts alone, under the name of its runs.
struct Alone<'a> {
    name: &'a str,
    policy: &'a dyn Policy,
    turns: Mutex<Vec<Acted>>,
}

/// What is known of a turn beside the episode.
struct Acted {
    by: Actor,
    reading: Option<Reading>,
}

impl Policy for Alone<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn act(&self, situation: &Situation<'_>, scene: &mut dyn Scene) -> Result<Turn, PolicyError> {
        let turn = self.policy.act(situation, scene)?;
        let acted = Acted { by: Actor::Student, reading: turn.reading };
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).push(acted);
        Ok(turn)
    }
}

fn alone(environment: &dyn Environment, round: &Round<'_>, job: &Job, actor: Actor, name: &str) -> Played {
    let acts = if actor == Actor::Student { round.pairing.student } else { round.pairing.teacher };
    let policy = Alone { name, policy: acts, turns: Mutex::default() };
    let ended = Ended::play(environment, round, job, &policy);
    if let Some(message) = ended.models_failure() {
        // A teacher that fails alone fails beside the student too.
        return match actor {
            Actor::Student => Played::Unfinished(message),
            Actor::Teacher => Played::TeacherFailed(message),
        };
    }
    let turns = policy.turns.into_inner().unwrap_or_else(PoisonError::into_inner);
    let turns: Vec<Acted> = turns.into_iter().map(|turn| Acted { by: actor, ..turn }).collect();
    ended.finish(round, job, name, &turns, &|_| Ok(Vec::new()))
}

fn shared(environment: &dyn Environment, round: &Round<'_>, job: &Job, name: &str) -> Played {
    let task_key = job.key(environment.identity());
    let episode = u64::from(job.assignment.trial);
    let seat = Seat { seed: round.plan.seed, task: &task_key, episode, round: round.number };
    let policy = Shared::new(name, round.pairing, seat);
    let ended = Ended::play(environment, round, job, &policy);
    if let End::Policy(PolicyError::Teacher(error)) = &ended.attempt.episode.end {
        return Played::TeacherFailed(error.to_string());
    }
    if let Some(message) = ended.models_failure() {
        return Played::Unfinished(message);
    }
    let visits = policy.into_visits();
    let acted = |visit: &Visit| match visit.actor {
        Actor::Student => Acted { by: Actor::Student, reading: visit.reading },
        Actor::Teacher => Acted { by: Actor::Teacher, reading: None },
    };
    let turns: Vec<Acted> = visits.iter().map(acted).collect();
    let labels = |run: &Trajectory| {
        let visited = Visited {
            environment,
            task: &ended.attempt.task,
            pairing: round.pairing,
            round: round.number,
            seed: job.assignment.seed,
            limits: round.plan.limits,
            episode: &ended.attempt.episode,
            visits: &visits,
        };
        visited.labels(run)
    };
    ended.finish(round, job, name, &turns, &labels)
}

/// An episode that has ended.
struct Ended<'a> {
    environment: &'a dyn Environment,
    attempt: Attempt,
}

impl<'a> Ended<'a> {
    fn play(environment: &'a dyn Environment, round: &Round<'_>, job: &Job, policy: &dyn Policy) -> Self {
        // Labels are tried from their states once the end is known.
        let keep = if job.alone.is_none() { Keep::States } else { round.plan.keep };
        let attempt = Attempt::play(environment, policy, round.plan, &job.assignment, keep);
        Self { environment, attempt }
    }

    /// What a model's failure says that ended the episode.
    fn models_failure(&self) -> Option<String> {
        match &self.attempt.episode.end {
            End::Policy(PolicyError::Model { error, .. }) => Some(error.to_string()),
            _ => None,
        }
    }

    /// Makes the record, then the labels, which name places in it.
    fn finish(
        &self,
        round: &Round<'_>,
        job: &Job,
        name: &str,
        turns: &[Acted],
        labels: &dyn Fn(&Trajectory) -> Result<Vec<StateLabel>, PolicyError>,
    ) -> Played {
        let under = Alone { name, policy: round.pairing.student, turns: Mutex::default() };
        let identity = self.environment.identity();
        let (mut run, native) = self.attempt.record(identity, &under, round.plan, &job.assignment);
        if round.plan.keep != Keep::States {
            run.media.clear();
            for node in &mut run.nodes {
                node.occurrence.checkpoint = None;
            }
        }
        let labels = match labels(&run) {
            Ok(labels) => labels,
            Err(error) => return Played::TeacherFailed(error.to_string()),
        };
        let is_missing = |label: &&StateLabel| {
            label.refused.as_ref().is_some_and(|refused| refused.code == RefusalCode::Missing)
        };
        let mut delivered = Delivered {
            missing: labels.iter().filter(is_missing).count() as u64,
            is_capped: matches!(self.attempt.episode.end, End::MaxSteps | End::MaxTokens | End::MaxTime),
            is_aborted: self.attempt.episode.end.error().is_some(),
            ..Delivered::default()
        };
        let mut readings = Readings::default();
        let steps = run.main_branch().steps();
        for (turn, node) in turns.iter().zip(steps) {
            delivered.took(turn.by);
            if turn.by == Actor::Student {
                readings.count(turn.reading);
            }
            let policy =
                if turn.by == Actor::Student { round.pairing.student } else { round.pairing.teacher };
            let call = run.nodes[node].occurrence.call.get_or_insert_default();
            call.model = Some(policy.name().to_owned());
        }
        let pairing = &round.pairing;
        let interleaving = Interleaving {
            round: round.number,
            student: pairing.student.name().to_owned(),
            teacher: (job.alone != Some(Actor::Student)).then(|| pairing.teacher.name().to_owned()),
            mixing: job.alone.is_none().then_some(pairing.mixing),
            alone: job.alone,
            outcome: RequestOutcome::Aborted,
            student_turns: 0,
            teacher_turns: 0,
            labels: labels.len() as u64,
            readings,
        };
        interleaving.delivered(&delivered).write(&mut run);
        seal(run, &native, labels)
    }
}

fn seal(run: Trajectory, native: &NativeId, labels: Vec<StateLabel>) -> Played {
    match run.seal(native, Vec::new()) {
        Ok(sealed) => Played::Ended(Box::new(sealed), labels),
        Err(reason) => Played::Unfinished(format!("the run has no record: {reason}")),
    }
}
