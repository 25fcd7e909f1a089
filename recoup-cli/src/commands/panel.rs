//! A panel: the judges that the user named, what asking them may take, and what they came to.

use std::fmt::Write as _;
use std::sync::Arc;

use recoup::diagnosis::{RETRIES, REVIEWS_MAX};
use recoup::id::TrajectoryId;
use recoup::judges::quality::{Quality, Share};
use recoup::judges::{Judge, JudgeConfig, ModelJudge, Room};
use recoup::models::{AGAIN_BYTES, AskedModel, Estimate, LedgerLine};
use recoup::pipeline::{self, Diagnosing, JudgingPlan};
use recoup::store::Store;

use crate::Ended;
use crate::args::{JudgeArgs, JudgingArgs};
use crate::failure::Failure;
use crate::models::{Decision, Models};
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// The stage that answers are kept and counted under.
const STAGE: &str = "diagnose";

/// Models that judge together.
pub(super) struct Panel {
    models: Models,
    /// The room that each of them has for a question.
    rooms: Vec<Arc<Room>>,
    flags: JudgeArgs,
    config: JudgeConfig,
}

/// Which runs a panel judges, and how often.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    pub only: Option<Vec<TrajectoryId>>,
    pub limit: Option<usize>,
    pub sample: Option<usize>,
    pub resume: bool,
    pub repeats: u32,
    pub with_ground_truth: bool,
}

impl Choice {
    /// What the flags of `recoup diagnose` say.
    pub(super) fn of(flags: &JudgingArgs, only: Option<Vec<TrajectoryId>>) -> Self {
        Self {
            only,
            limit: flags.limit,
            sample: flags.sample,
            resume: flags.resume,
            repeats: flags.repeats,
            with_ground_truth: flags.with_ground_truth,
        }
    }
}

impl Panel {
    /// Opens the models that flags or settings name; `None` where none is.
    pub(super) fn open(
        flags: &JudgeArgs,
        settings: &Settings,
        store: &Store,
        printer: Printer,
    ) -> Result<Option<Self>, Failure> {
        let flags = settings.models.judging(flags);
        if flags.judges.is_empty() {
            return Ok(None);
        }
        let models = Models::open(&flags.judges, &flags.spend, settings, Some(store), printer)?;
        let asking = &models.asking;
        let mut families: Vec<&str> =
            asking.models().iter().map(|model| model.identity().family.as_str()).collect();
        families.sort_unstable();
        families.dedup();
        if asking.models().len() == 1 {
            printer.note(
                "one judge alone: nobody checks its reasons (M1 to M4), so whose failure a run was stays what the rules \
                 say; a second `--judge` would",
            );
        } else if families.len() == 1 {
            printer.note("the judges are of one family and may err alike");
        }
        let default = JudgeConfig::default();
        let config = JudgeConfig {
            window_tokens: flags.window.unwrap_or(default.window_tokens),
            answer_tokens: flags.max_answer.unwrap_or(default.answer_tokens),
            ..default
        };
        let rooms = asking.models().iter().map(|_| Arc::default()).collect();
        Ok(Some(Self { models, rooms, flags, config }))
    }

    /// The judges of one judgement of a run.
    fn judges(&self, run: TrajectoryId, sample: u32) -> Vec<Box<dyn Judge>> {
        let judge = |(model, room): (&Arc<AskedModel>, &Arc<Room>)| {
            let config = JudgeConfig { sample, price: model.price(), ..self.config };
            let model = Box::new(model.about(STAGE, Some(run)));
            Box::new(ModelJudge::new(model, config, Arc::clone(room))) as Box<dyn Judge>
        };
        self.models.asking.models().iter().zip(&self.rooms).map(judge).collect()
    }

    /// Hands a plan for these runs to `use_plan`.
    pub(super) fn with_plan<T>(&self, choice: Choice, use_plan: impl FnOnce(&JudgingPlan<'_>) -> T) -> T {
        let panel = |run: TrajectoryId, sample: u32| self.judges(run, sample);
        use_plan(&JudgingPlan {
            members: self.models.asking.models().iter().map(|model| model.identity().clone()).collect(),
            panel: &panel,
            repeats: choice.repeats.max(1),
            asking: self.config,
            only: choice.only,
            limit: choice.limit,
            sample: choice.sample,
            resume: choice.resume,
            with_ground_truth: choice.with_ground_truth,
            in_flight: self.models.asking.concurrency(),
            ledger: self.models.asking.ledger(),
            stage: STAGE,
        })
    }

    /// Says what judging will take, and whether to go on.
    ///
    /// # Errors
    /// Where it may cost more than the user said.
    pub(super) fn announce(
        &self,
        store: &Store,
        plan: &JudgingPlan<'_>,
        settings: &Settings,
        printer: Printer,
    ) -> Result<Decision, Failure> {
        let mut estimate = Estimate::default();
        let models = self.models.asking.models();
        if self.flags.spend.dry_run || models.iter().any(|model| model.host().is_some()) {
            pipeline::first_questions::<Failure>(store, plan, &mut |run, question| {
                for (member, model) in models.iter().enumerate() {
                    let again = if member == 0 { RETRIES } else { REVIEWS_MAX - 1 };
                    estimate.add_again(model, question, again, RETRIES as usize * AGAIN_BYTES);
                }
                // Who reviews reads as much as who proposes, and was asked where the proposer was.
                if let Some(first) = models.first()
                    && first.is_kept(question)?
                {
                    estimate.cached += models.len() as u64;
                    return Ok(());
                }
                for model in models {
                    estimate.add(model, question, Some(run))?;
                }
                Ok(())
            })?;
        }
        self.models.announce(&estimate, &self.flags.spend, settings, printer)
    }

    /// Says what it all came to.
    ///
    /// # Errors
    /// When what was put off cannot be sent as a batch.
    pub(super) fn say(&self, done: &Diagnosing, printer: Printer) -> Result<(), Failure> {
        if !printer.is_json() {
            say(done, printer);
        }
        self.models.finish(printer)
    }
}

/// What judging came to, in lines.
fn say(done: &Diagnosing, printer: Printer) {
    let Some(judging) = &done.judging else { return };
    let rejected: Vec<String> = done.rejected.iter().map(|(gate, count)| format!("{gate} {count}")).collect();
    let rejected = if rejected.is_empty() {
        "none refused".to_owned()
    } else {
        format!("refused by {}", rejected.join(", "))
    };
    printer.line(format_args!(
        "judged {} by {}: {} admitted, {rejected}",
        runs(done.runs as usize),
        judging.panel.join(" and "),
        done.admitted
    ));
    if judging.disagreements > 0 {
        printer.line(format_args!(
            "the judges hold different steps for decisive in {}",
            runs(judging.disagreements as usize)
        ));
    }
    if let Some(cost) = judging.cost_per_admitted_usd.filter(|cost| *cost > 0.0) {
        printer.line(format_args!("${cost:.4} an admitted diagnosis"));
    }
    for line in &judging.models {
        printer.line(took(line));
    }
    if let Some(quality) = &judging.quality {
        say_quality(quality, printer);
    }
}

/// What one model took, in a line.
fn took(line: &LedgerLine) -> String {
    let mut text = format!(
        "`{}`: {} answered, {} from before, {} tokens asked and {} answered",
        line.model, line.calls, line.cached, line.prompt_tokens, line.completion_tokens
    );
    if let Some(cost) = line.cost_usd.filter(|cost| *cost > 0.0) {
        let _ = write!(text, ", ${cost:.4}");
    }
    if let Some(cost) = line.cost_per_accepted_usd.filter(|cost| *cost > 0.0) {
        let _ = write!(text, " (${cost:.4} an admitted diagnosis)");
    }
    if line.calls > 0 {
        let [mean, p95] = [line.latency_ms.mean, line.latency_ms.p95].map(|took| took as f64 / 1000.0);
        let _ = write!(text, "; {mean:.1} s an answer, 95 of 100 within {p95:.1} s");
    }
    text
}

/// How far judges can be believed, in lines.
pub(super) fn say_quality(quality: &Quality, printer: Printer) {
    let line = |name: &str, share: Option<Share>| {
        if let Some(Share { k, n, rate, low, high }) = share {
            printer.line(format_args!(
                "{name:<22} {:.0}% ({:.0}–{:.0}%), {k} of {n}",
                rate * 100.0,
                low * 100.0,
                high * 100.0
            ));
        }
    };
    printer.line(format_args!("measured on {} that people looked at:", runs(quality.labelled as usize)));
    line("exact step", quality.exact_step);
    line("true positive rate", quality.true_positive);
    line("true negative rate", quality.true_negative);
    line("flip rate", quality.flips);
    line("abstention", quality.abstentions);
    line("contradiction", quality.contradictions);
    if let Some(corrected) = quality.corrected {
        let [rate, low, high] =
            [corrected.rate, corrected.interval.low, corrected.interval.high].map(|share| share * 100.0);
        printer.line(format_args!("{:<22} {rate:.0}% ({low:.0}–{high:.0}%), corrected", "right proposals"));
    }
    for agreement in &quality.agreement {
        let (first, second, kappa) = (&agreement.first, &agreement.second, agreement.kappa);
        printer.line(format_args!("{first} and {second}: κ = {:.2} on the decisive step", kappa.kappa));
    }
}

/// A flag that says something of judges, where none is named.
pub(super) fn no_judge(flag: &str) -> Failure {
    Failure::user(format!("`{flag}` is about judges, and none is named"))
        .hint("name one with `--judge MODEL`, or in `[models]` of the settings file")
}

/// How judging ended: what was not decided is listed.
///
/// # Errors
/// Where nothing at all could be judged.
pub(super) fn ended(done: &Diagnosing, printer: Printer) -> Result<Ended, Failure> {
    let Some(judging) = &done.judging else { return Ok(Ended::Done) };
    if done.runs == 0
        && let Some(error) = &judging.first_error
    {
        return Err(error.clone().into());
    }
    for (error, count) in &judging.errors {
        printer.warn(format_args!("{} not judged: {error}", runs(*count as usize)));
    }
    if judging.waiting > 0 {
        printer.warn(format_args!("{} wait; `--resume` goes on with them", runs(judging.waiting as usize)));
    }
    if judging.pending > 0 {
        printer.note(format_args!(
            "{} wait for a batch; the same command, run again, goes on with them",
            runs(judging.pending as usize)
        ));
    }
    Ok(if judging.errors.is_empty() && judging.waiting == 0 { Ended::Done } else { Ended::Partly })
}
