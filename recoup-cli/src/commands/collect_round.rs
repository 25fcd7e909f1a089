//! `recoup collect --student --teacher`: a round of runs that both share, with a label for every visited state.

mod say;

use std::sync::Arc;

use recoup::answers::{RoundCollected, RoundPlan};
use recoup::environments::Environment;
use recoup::id::TrajectoryId;
use recoup::interleaving::Mixing;
use recoup::models::{About, AskedModel, Estimate, ModelSpec, SpecError};
use recoup::rollout::forms::Form;
use recoup::rollout::interleave::{self, Aggregate, Collecting, Collection, LabelSettings, Pairing, Round};
use recoup::rollout::policies::{self, Chat, ChatSettings, FAMILIES, PolicyNameError};
use recoup::rollout::{FORMAT, Policy, Situation};
use recoup::store::{Filter, Page, Store, StoreError};
use recoup::verdict::Actor;
use serde::Serialize;

use super::collect::{plan, say_how_to_replay};
use super::{environment, project};
use crate::Ended;
use crate::args::CollectArgs;
use crate::clock::now;
use crate::failure::Failure;
use crate::models::{Decision, Models};
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Collects a round, or says what it would take.
pub(super) fn collect(
    student: &str,
    teacher: &str,
    flags: &CollectArgs,
    settings: &Settings,
    printer: Printer,
) -> Result<Ended, Failure> {
    let labels = flags.labels.over(&settings.views.labels);
    let spend = settings.models.spending(&flags.spend);
    if spend.batch {
        return Err(Failure::user(
            "a turn needs the answer to the one before, so `--batch` cannot be used here",
        ));
    }
    let parties = [named(student)?, named(teacher)?];
    let environment = environment::open(&flags.env, flags.trust)?;
    let plan = plan(flags);
    plan.assignments(&environment.identity().manifest).map_err(recoup::rollout::CollectError::from)?;
    let mut store = if spend.dry_run {
        match Store::open(&settings.project) {
            Err(StoreError::NoProject { .. }) => None,
            opened => Some(opened?),
        }
    } else {
        Some(project::create_or_open(settings)?)
    };
    let asked: Vec<String> = parties.iter().filter_map(Party::model).collect();
    let models = Models::open(&asked, &spend, settings, store.as_ref(), printer)?;
    let of = |form: &'static dyn Form, temperature, version| ChatSettings {
        form,
        temperature,
        version,
        max_answer: flags.round.max_answer,
        logprobs: flags.round.logprobs,
    };
    let [student, teacher] = parties;
    let mut opened = models.asking.models().iter();
    // A student keeps its name when it has learned, and is another model all the same.
    let settings_of_student = of(flags.round.student_form.0, flags.round.temperature, flags.round.round);
    let student = acting(student, &mut opened, "student", settings_of_student)?;
    let teacher = acting(
        teacher,
        &mut opened,
        "teacher",
        ChatSettings { logprobs: false, ..of(flags.round.teacher_form.0, 0.0, 0) },
    )?;
    let now = now();
    let is_remote = models.asking.models().iter().any(|model| model.host().is_some());
    let round = Round {
        plan: &plan,
        number: flags.round.round,
        pairing: Pairing {
            student: student.policy(),
            teacher: teacher.policy(),
            mixing: mixing(flags),
            form: flags.round.student_form.0,
            context: flags.round.context,
            verify: labels.verified,
            scores: flags.round.logprobs,
        },
        alone: flags.round.alone,
        // Who waits for an answer needs no processor.
        threads: if is_remote { settings.threads.max(models.asking.concurrency()) } else { settings.threads },
        now: &now,
    };
    let pending = interleave::pending_round(store.as_ref(), &*environment, &round)?;
    let mut estimate = Estimate::default();
    if !asked.is_empty() {
        interleave::openings::<Failure>(store.as_ref(), &*environment, &round, |situation, alone| {
            let parties = [(&student, Actor::Student), (&teacher, Actor::Teacher)];
            count(&mut estimate, parties, situation, alone, round.pairing.mixing);
            Ok(())
        })?;
    }
    if spend.dry_run {
        if printer.is_json() {
            let Collecting { requests, missing: new, held_out } = pending;
            let body = RoundPlan { requests, new, held_out, estimate };
            printer.json(&environment::answer(&*environment, &answer_head(flags, &round, &labels), body));
        } else {
            say::plan(&pending, &estimate, &round, printer);
        }
        return Ok(Ended::Done);
    }
    if models.announce(&estimate, &spend, settings, printer)? == Decision::Shown {
        return Ok(Ended::Done);
    }
    let Some(store) = &mut store else { return Ok(Ended::Done) };
    let mut progress = printer.progress();
    let done = interleave::collect_round(store, &*environment, &round, &mut progress)?;
    progress.finish();
    let counted = counted(store, &*environment, &done, &labels)?;
    let report = interleave::report(store, &counted, &labels)?;
    models.finish(printer)?;
    if printer.is_json() {
        let body = RoundCollected {
            requests: done.requests,
            new: done.new,
            held_out: done.held_out,
            outcomes: &done.outcomes,
            unfinished: &done.unfinished,
            report: &report,
            spent: models.asking.budget().spent(),
            ledger: models.asking.ledger().lines(),
        };
        printer.json(&environment::answer(&*environment, &answer_head(flags, &round, &labels), body));
    } else {
        say::done(&done, &report, &round, printer);
    }
    for (message, count) in &done.unfinished {
        printer.warn(format_args!(
            "{} ended by a model's failure and will be made again by the same command: {message}",
            runs(*count as usize)
        ));
    }
    if let Some(message) = &done.stopped {
        return Err(stopped(message, &done));
    }
    say_how_to_replay(&flags.env, &*environment, printer);
    Ok(if done.unfinished.is_empty() { Ended::Done } else { Ended::Partly })
}

fn stopped(message: &str, done: &Collection) -> Failure {
    let stored = done.runs.len();
    Failure::user(format!(
        "the teacher failed, and collecting stopped with {stored} of {} stored: {message}",
        runs(done.requests as usize)
    ))
    .code("teacher-failed")
    .hint("the same command goes on from there; what was answered is kept and not asked again")
}

/// Whom a name means.
enum Party {
    Policy(Box<dyn Policy>),
    Model(String),
}

impl Party {
    fn model(&self) -> Option<String> {
        match self {
            Self::Policy(_) => None,
            Self::Model(name) => Some(name.clone()),
        }
    }
}

fn named(name: &str) -> Result<Party, Failure> {
    let family = name.split(':').next().unwrap_or_default();
    // Both a list of actions and a file of answers are called scripted.
    let is_script = name.starts_with("scripted:") && !name.starts_with("scripted:[");
    if !is_script && FAMILIES.iter().any(|known| known.name() == family) {
        return Ok(Party::Policy(policies::parse(name)?));
    }
    match ModelSpec::parse(name) {
        Ok(_) => Ok(Party::Model(name.to_owned())),
        Err(error) => Err(Failure::user(error.to_string()).code("model").hint(format!(
            "{}; {}",
            SpecError::hint(),
            PolicyNameError::hint()
        ))),
    }
}

/// A party that acts.
enum Acting {
    Policy(Box<dyn Policy>),
    Model(Chat<About>, Arc<AskedModel>),
}

impl Acting {
    fn policy(&self) -> &dyn Policy {
        match self {
            Self::Policy(policy) => &**policy,
            Self::Model(chat, _) => chat,
        }
    }
}

/// Makes a party act; the next of the opened models is its own where it is one.
fn acting<'m>(
    party: Party,
    models: &mut impl Iterator<Item = &'m Arc<AskedModel>>,
    stage: &str,
    settings: ChatSettings,
) -> Result<Acting, Failure> {
    match party {
        Party::Policy(policy) => Ok(Acting::Policy(policy)),
        Party::Model(name) => {
            let model = models.next().ok_or_else(|| Failure::user(format!("`{name}` was not opened")))?;
            Ok(Acting::Model(Chat::new(model.about(stage, None), model.price(), settings), Arc::clone(model)))
        }
    }
}

fn mixing(flags: &CollectArgs) -> Mixing {
    let number = flags.round.round;
    match &flags.round.prefix {
        Some(prefixes) => Mixing::Prefix { most: prefixes.most(number) },
        None => Mixing::Turns { beta: flags.round.beta.clone().unwrap_or_default().beta(number) },
    }
}

/// Adds what a run may take: each of its turns asks the teacher, and the student as often as it acts.
fn count(
    estimate: &mut Estimate,
    parties: [(&Acting, Actor); 2],
    situation: &Situation<'_>,
    alone: Option<Actor>,
    mixing: Mixing,
) {
    for (acting, actor) in parties {
        let Acting::Model(chat, model) = acting else { continue };
        let turns = situation.turns_left;
        let turns = match (alone, actor, mixing) {
            (Some(alone), _, _) if alone != actor => continue,
            (None, Actor::Student, Mixing::Turns { beta }) => (turns as f64 * (1.0 - beta)).ceil() as u64,
            (None, Actor::Student, Mixing::Prefix { most }) => turns.min(most),
            _ => turns,
        };
        if turns > 0 {
            estimate.add_conversation(model, &chat.request(situation), turns);
        }
    }
}

/// The runs that count: those of this call, or every shared run of the environment.
fn counted(
    store: &Store,
    environment: &dyn Environment,
    done: &Collection,
    labels: &LabelSettings,
) -> Result<Vec<TrajectoryId>, Failure> {
    if labels.aggregate == Aggregate::Latest {
        return Ok(done.runs.clone());
    }
    let name = &environment.identity().manifest.name;
    let ours = Filter { format: Some(FORMAT.to_owned()), ..Filter::default() };
    let mut counted = Vec::new();
    for row in store.list(&ours, Page::ALL)? {
        if store.environment(row.id)?.is_some_and(|its| its.name == *name) {
            counted.push(row.id);
        }
    }
    Ok(counted)
}

fn answer_head(flags: &CollectArgs, round: &Round<'_>, labels: &LabelSettings) -> impl Serialize {
    let Pairing { student, teacher, mixing, .. } = round.pairing;
    let names = (student.name().to_owned(), teacher.name().to_owned());
    (names, mixing, round.number, round.plan.clone(), flags.round.alone, labels.clone())
}
