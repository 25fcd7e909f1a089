//! Answers: what a command says under `--json` where no stage's own record says it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::artifact::{Body, Provenance};
use crate::environments::{Identity, Score};
use crate::evaluation::attribution::Attribution;
use crate::interleaving::RequestOutcome;
use crate::judges::quality::Quality;
use crate::models::{Amount, Estimate, Finish, LedgerLine, Usage};
use crate::pipeline::{AtifExport, Diagnosing, FlipAgreement, Injecting, Relabeling, Replaying, Summary};
use crate::replay::ReplaySummary;
use crate::rollout;
use crate::rollout::interleave::{self};
use crate::store::{ForgetReport, GcReport, Stats, VerifyReport};
use crate::synthesis::admission::Admission;
use crate::trajectory::Trajectory;
use crate::verdict::{Decision, PersonReview, Verdict};

/// The formats that can be read (`import --formats`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Formats {
    /// Their names.
    pub formats: Vec<&'static str>,
}

/// A file that was looked at (`import --dry-run`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Found<'a> {
    /// The file.
    pub uri: &'a str,
    /// Its format, `not a trace`, `beside a trace` (read with another file) or `unreadable`.
    pub format: &'a str,
}

/// What a look at a watched folder has brought (`import --watch`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Look<'a> {
    /// Files that were read: new ones, and those that have changed.
    pub files: Vec<&'a str>,
    /// Runs that were not stored before, revisions included.
    pub new: u64,
    /// New runs that are another revision of a stored one: sessions that went on.
    pub revisions: u64,
    /// Runs that were stored before, with the same content.
    pub duplicates: u64,
    /// Records that cannot be read.
    pub quarantined: u64,
    /// Records at the end of a file that are not whole yet; they are read when the file has grown.
    pub unfinished: u64,
}

/// What watching a folder has brought (`import --watch`): the last line.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Watched {
    /// Times that the folder was looked at.
    pub looks: u64,
    /// Files that were read, each as often as it was.
    pub files: u64,
    /// Runs that were not stored before, revisions included.
    pub new: u64,
    /// New runs that are another revision of a stored one.
    pub revisions: u64,
    /// Records and files that cannot be read, those that are still unfinished included.
    pub quarantined: u64,
}

/// What was labelled (`label`).
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Labelled {
    /// Runs whose label changed.
    pub labelled: u64,
}

/// What was exported, and where to (`export`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exported<'a> {
    /// What was exported.
    #[serde(flatten)]
    pub export: &'a AtifExport,
    /// The folder.
    pub out: &'a str,
}

/// A view that was exported (`export` of training rows); one a line. Its head is its manifest's: the format is
/// that of the rows.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExportedRows<'a> {
    /// The format that the rows were written in.
    pub format: &'a str,
    /// Version of this project's writing of the format.
    pub format_version: u32,
    /// Who made it, from what.
    #[serde(flatten)]
    pub provenance: &'a Provenance,
    /// The view.
    pub view: &'a str,
    /// Rows written.
    pub rows: u64,
    /// Runs that gave no example, by reason.
    pub excluded: &'a BTreeMap<String, u64>,
    /// Examples that became no row, by reason.
    pub refused: &'a BTreeMap<String, u64>,
    /// Examples dropped as equal to an earlier one.
    pub duplicates: u64,
    /// Tokens of all rows, where rows are tokens of a model.
    pub tokens: Option<u64>,
    /// Tokens that are learned, where rows are tokens of a model.
    pub trained_tokens: Option<u64>,
    /// Files written, in the folder: the rows, what a reader needs beside them, the manifest.
    pub files: Vec<&'a str>,
    /// The folder.
    pub out: &'a str,
    /// Whether the files were read again and found as they should be (`--check`).
    pub checked: bool,
}

/// A run with what was decided about it (`show`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shown {
    /// The run, with an outcome that was attached to it later in place.
    pub trajectory: Trajectory,
    /// The verdicts in force.
    pub verdicts: Vec<Verdict>,
}

/// What a policy has done in an environment (`collect`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Collected<'a> {
    /// Runs that were asked for, all of which are now stored.
    pub episodes: u64,
    /// Those that were made by this call.
    pub new: u64,
    /// Runs that a verifier passed.
    pub success: Success,
    /// Runs by how they ended.
    pub end_modes: &'a BTreeMap<String, u64>,
    /// Runs that an error of the environment or the policy ended, by its code.
    pub errors: BTreeMap<&'a str, u64>,
}

/// How many runs passed.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Success {
    /// Runs that a verifier passed.
    pub passed: u64,
    /// Runs that a verifier scored: all but those that an error ended.
    pub n: u64,
    /// Their quotient.
    pub rate: f64,
    /// Lower bound at 95 % (Wilson).
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl<'a> From<&'a rollout::Collected> for Collected<'a> {
    fn from(collected: &'a rollout::Collected) -> Self {
        let success = collected.success();
        Self {
            episodes: collected.episodes,
            new: collected.new,
            success: Success {
                passed: collected.passed,
                n: collected.scored,
                rate: success.rate,
                low: success.low,
                high: success.high,
            },
            end_modes: &collected.end_modes,
            errors: collected.errors.iter().map(|(code, (count, _))| (code.as_str(), *count)).collect(),
        }
    }
}

/// What would be collected (`collect --dry-run`).
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CollectPlan {
    /// Runs that are asked for.
    pub episodes: u64,
    /// Those that are not in the project yet.
    pub new: u64,
}

/// What a round of runs that a student and a teacher share has made (`collect --student --teacher`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RoundCollected<'a> {
    /// Runs that were asked for.
    pub requests: u64,
    /// Those that were made by this call.
    pub new: u64,
    /// Tasks that are held out of training, which the student ran alone.
    pub held_out: u64,
    /// Requests by what became of them: they sum to `requests`.
    pub outcomes: &'a BTreeMap<RequestOutcome, u64>,
    /// Runs that a model's failure ended, by its message: the same command makes them again.
    pub unfinished: &'a BTreeMap<String, u64>,
    /// The rounds that count, from all that is stored of the environment.
    pub report: &'a interleave::Report,
    /// What asking models took in this call.
    pub spent: Amount,
    /// The same by stage and model.
    pub ledger: Vec<LedgerLine>,
}

/// What a round would make (`collect --student --teacher --dry-run`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RoundPlan {
    /// Runs that are asked for.
    pub requests: u64,
    /// Those that are not in the project with all their labels.
    pub new: u64,
    /// Tasks that are held out of training.
    pub held_out: u64,
    /// What asking models may take.
    pub estimate: Estimate,
}

/// What matched arms have shown (`replay`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Replayed<'a> {
    /// What the pairs show together.
    #[serde(flatten)]
    pub summary: &'a ReplaySummary,
    /// Runs looked at.
    pub runs: u64,
    /// Pairs made by this call, unsupported ones included.
    pub new: u64,
    /// Runs whose score or observations could not be reproduced.
    pub regraded: u64,
    /// Diagnoses by the rung that they stand on.
    pub claims: &'a BTreeMap<&'static str, u64>,
    /// Sweeps that were made or found.
    pub sweeps: u64,
    /// Sweeps that found a decisive turn.
    pub decisive: u64,
}

impl<'a> From<&'a Replaying> for Replayed<'a> {
    fn from(done: &'a Replaying) -> Self {
        Self {
            summary: &done.summary,
            runs: done.runs,
            new: done.new,
            regraded: done.regraded,
            claims: &done.claims,
            sweeps: done.decisive.1,
            decisive: done.decisive.0,
        }
    }
}

/// What would be re-executed (`replay --dry-run`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayPlanned {
    /// Runs.
    pub runs: u64,
    /// Runs by the name of their environment.
    pub environments: BTreeMap<String, u64>,
    /// Most continuations.
    pub continuations_max: u64,
}

/// An environment that comes with the program (`env list`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Listed<'a> {
    /// Its name.
    pub name: &'a str,
    /// The version that runs record.
    pub version: String,
    /// One line about it.
    pub description: &'a str,
    /// What kind of tools it offers.
    pub interface: &'a str,
    /// Kinds of task.
    pub families: &'a [String],
    /// Licence of its text.
    pub licence: &'a str,
    /// Hash of everything that decides its behavior.
    pub hash: String,
}

impl<'a> From<&'a Identity> for Listed<'a> {
    fn from(identity: &'a Identity) -> Self {
        let manifest = &identity.manifest;
        Self {
            name: &manifest.name,
            version: identity.version(),
            description: &manifest.description,
            interface: &manifest.interface,
            families: &manifest.families,
            licence: &manifest.licence,
            hash: identity.hash.to_string(),
        }
    }
}

/// An environment with its version.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Versioned<'a> {
    /// Its name.
    pub name: &'a str,
    /// The version that runs record.
    pub version: String,
}

impl<'a> From<&'a Identity> for Versioned<'a> {
    fn from(identity: &'a Identity) -> Self {
        Self { name: &identity.manifest.name, version: identity.version() }
    }
}

/// How a task that was played by hand ended: the last line of `env play`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Played<'a> {
    /// Where.
    pub environment: Versioned<'a>,
    /// Seed of the task.
    pub seed: u64,
    /// Its difficulty.
    pub difficulty: u8,
    /// Its family.
    pub family: &'a str,
    /// Steps taken.
    pub steps: u64,
    /// What the verifier says.
    #[serde(flatten)]
    pub score: &'a Score,
}

/// Tasks that were written for other programs (`env export`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExportedTasks<'a> {
    /// Name of the environment.
    pub package: &'a str,
    /// Who reads them: `harbor` or `verifiers`.
    pub to: &'static str,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of files.
    pub files: u64,
    /// Files that were not there yet.
    pub new: u64,
    /// The folder.
    pub out: String,
}

/// What is served, and where (`env serve`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Serving<'a> {
    /// Name and version of the environment.
    pub environment: &'a str,
    /// Where to.
    pub url: &'a str,
}

/// Where the proxy listens (`proxy`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Proxying<'a> {
    /// Its address; OpenAI's clients want `/v1` behind it.
    pub url: &'a str,
}

/// What the proxy has done when it ends (`proxy`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Proxied<'a> {
    /// Requests for a turn.
    pub requests: u64,
    /// Requests by how they ended; the counts sum to `requests`.
    pub ended: BTreeMap<&'a str, u64>,
    /// What teachers took.
    pub spent: Amount,
}

/// A run shown without outcome and verdicts (`review`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Blind<'a> {
    /// Trajectory id in full.
    pub run: String,
    /// Its messages, for a person.
    pub text: &'a str,
}

/// What people said of runs (`review`).
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reviewed {
    /// Runs shown.
    pub shown: u64,
    /// Answers kept.
    pub recorded: u64,
    /// Of them, those that say that nothing went wrong.
    pub admitted: u64,
    /// Those that say that the run failed.
    pub rejected: u64,
    /// Those that say that it cannot be told.
    pub abstained: u64,
    /// Those that name a step.
    pub with_step: u64,
    /// How far the project's judges can be believed, on all that people have said.
    pub quality: Option<Quality>,
}

impl Reviewed {
    /// Counts an answer.
    pub fn count(&mut self, review: &PersonReview) {
        self.recorded += 1;
        self.with_step += u64::from(review.node.is_some());
        match review.verdict {
            Decision::Admit => self.admitted += 1,
            Decision::Reject => self.rejected += 1,
            Decision::Abstain => self.abstained += 1,
        }
    }
}

/// Why a command could not do its work: the last line where the exit code is 2, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failed<'a> {
    /// The failure.
    pub error: Problem<'a>,
}

/// A failure in words.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Problem<'a> {
    /// Stable word for the cause.
    pub code: &'a str,
    /// Who can do something about it.
    pub origin: Origin,
    /// Whether trying again may help.
    pub retryable: bool,
    /// For a person.
    pub message: &'a str,
    /// What to do about it.
    pub hint: Option<&'a str>,
}

/// Who can do something about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The command line, the settings, the place it was started in.
    User,
    /// The machine: disk, memory, permissions.
    Machine,
    /// An environment that was named.
    Environment,
    /// A model's provider.
    Provider,
}

/// What a model answered (`ask`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModelAnswer<'a> {
    /// The model that was asked.
    pub model: &'a str,
    /// The model that answered, as the provider names it.
    pub answered_by: &'a str,
    /// Its answer.
    pub text: &'a str,
    /// Why the answer does not fit the schema that was asked for, where it does not.
    pub wrong: Option<&'a str>,
    /// Its reasoning, where the provider gives it apart.
    pub reasoning: Option<&'a str>,
    /// Why the answer ended.
    pub finish: Finish,
    /// Tokens, as the provider counts them.
    pub usage: Option<Usage>,
    /// Money, in dollars; `None` without a price.
    pub cost_usd: Option<f64>,
    /// Time until the answer was whole, in milliseconds.
    pub latency_ms: u64,
}

/// An answer to one of several questions (`ask --prompts`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NumberedAnswer<'a> {
    /// Which question, from 0.
    pub index: usize,
    /// The answer; `None` where there is none.
    pub text: Option<&'a str>,
    /// Why the answer does not fit the schema that was asked for, where it does not.
    pub wrong: Option<&'a str>,
    /// Why the answer ended.
    pub finish: Option<Finish>,
    /// Why there is no answer.
    pub error: Option<String>,
}

/// What several questions took (`ask --prompts`): the last line.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Questioned {
    /// Questions.
    pub prompts: u64,
    /// Questions without an answer.
    pub failed: u64,
    /// Answers that do not fit the schema that was asked for.
    pub unfit: u64,
    /// Questions that are answered later.
    pub pending: u64,
    /// Questions that the model answered now.
    pub calls: u64,
    /// Questions that were answered from before.
    pub cached: u64,
    /// What was spent now.
    pub spent: Amount,
    /// What it took, by stage and model.
    pub ledger: Vec<LedgerLine>,
}

macro_rules! bodies {
    ($($body:ty: $format:literal,)*) => {$(
        impl Body for $body {
            const FORMAT: &'static str = $format;
        }
    )*};
}

bodies! {
    Summary: "recoup.summary",
    Formats: "recoup.formats",
    Watched: "recoup.watched",
    Diagnosing: "recoup.diagnosing",
    Stats: "recoup.stats",
    VerifyReport: "recoup.verification",
    GcReport: "recoup.collection",
    ForgetReport: "recoup.forgetting",
    Labelled: "recoup.labelling",
    Shown: "recoup.run",
    AtifExport: "recoup.export",
    Exported<'_>: "recoup.exported",
    ModelAnswer<'_>: "recoup.answer",
    Reviewed: "recoup.reviewing",
    Collected<'_>: "recoup.collected",
    CollectPlan: "recoup.collect-plan",
    RoundCollected<'_>: "recoup.round",
    RoundPlan: "recoup.round-plan",
    Replayed<'_>: "recoup.replayed",
    ReplayPlanned: "recoup.replay-plan",
    Injecting: "recoup.injected",
    Admission: "recoup.admission",
    Played<'_>: "recoup.played",
    ExportedTasks<'_>: "recoup.exported-tasks",
    Serving<'_>: "recoup.serving",
    Proxying<'_>: "recoup.proxying",
    Proxied<'_>: "recoup.proxied",
    Estimate: "recoup.estimate",
    Questioned: "recoup.questioned",
    Attribution: "recoup.attribution",
    FlipAgreement: "recoup.flip-agreement",
    Relabeling: "recoup.relabeling",
}
