//! `recoup collect`: a policy alone, or a student with its teacher.

use super::SpendArgs;
use super::values::parse_aggregate;
use super::values::parse_difficulties;
use super::values::parse_form;
use super::values::parse_label_filter;
use super::values::parse_temperature;
use clap::Args;
use recoup::interleaving::Prefixes;
use recoup::interleaving::Schedule;
use recoup::rollout::Difficulties;
use recoup::rollout::forms::Form;
use recoup::rollout::interleave::Aggregate;
use recoup::rollout::interleave::LabelSettings;
use recoup::verdict::LabelMark;
use std::time::Duration;

/// Who acts where, and how often.
#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    /// Environment: the name of a bundled one, or the folder of a package or bridge
    #[arg(long, value_name = "NAME")]
    pub env: String,
    /// Run a bridge's program, and a package where the system cannot shut it in
    #[arg(long)]
    pub trust: bool,
    /// Who acts: `expert`, `random`, `weak:<style>@<rate>`, `mixture:<a>+<b>@<p>`, `scripted:<JSON>`
    #[arg(long, value_name = "POLICY", required_unless_present = "student")]
    pub policy: Option<String>,
    /// Number of tasks
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub tasks: u64,
    /// Seed of the choice of tasks and of the policy's luck
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Difficulty: 1, 2, 3 or all
    #[arg(long, value_name = "D", value_parser = parse_difficulties, default_value = "all")]
    pub difficulty: Difficulties,
    /// One family of tasks only
    #[arg(long, value_name = "NAME")]
    pub family: Option<String>,
    /// Runs of each task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub trials: u32,
    /// Most turns of a run [default: what the task allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// Keep the state after every step, not its hash only
    #[arg(long)]
    pub checkpoints: bool,
    #[command(flatten)]
    pub round: RoundArgs,
    #[command(flatten)]
    pub labels: StateLabelArgs,
    #[command(flatten)]
    pub spend: SpendArgs,
}

/// A round of runs that a student and a teacher share.
#[derive(Debug, Args)]
#[command(next_help_heading = "Teacher and student")]
pub(crate) struct RoundArgs {
    /// Who is to learn: a model, named as in `--judge`, or a policy. It shares its runs with `--teacher`
    #[arg(long, value_name = "NAME", requires = "teacher", conflicts_with = "policy")]
    pub student: Option<String>,
    /// Who labels every visited state and acts at times: a model, `expert` or another policy
    #[arg(long, value_name = "NAME", requires = "student")]
    pub teacher: Option<String>,
    /// Round, from 1: schedules go by it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), requires = "student")]
    pub round: u32,
    /// How often a turn is the teacher's: a list for the rounds (`1,0.8,0.6`) or `linear:FIRST,FALL,FLOOR`
    /// [default: linear:1,0.2,0.6]
    #[arg(long, value_name = "SCHEDULE", requires = "student", conflicts_with = "prefix")]
    pub beta: Option<Schedule>,
    /// The student acts first, for a number of turns drawn from 0 to this, and then the teacher: a list for the
    /// rounds [default: 2,4,8,16,32]
    #[arg(long, value_name = "TURNS", requires = "student", num_args = 0..=1, default_missing_value = "2,4,8,16,32")]
    pub prefix: Option<Prefixes>,
    /// The form that a student's model writes calls in: native, hermes, qwen-xml, llama-json or react
    #[arg(long, value_name = "FORM", value_parser = parse_form, default_value = "native", requires = "student")]
    pub student_form: FormName,
    /// The same of a teacher's model
    #[arg(long, value_name = "FORM", value_parser = parse_form, default_value = "native", requires = "student")]
    pub teacher_form: FormName,
    /// Sampling temperature of the student; a teacher is asked for its likeliest answer
    #[arg(long, value_name = "T", default_value_t = 0.0, value_parser = parse_temperature, requires = "student")]
    pub temperature: f64,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..), requires = "student")]
    pub max_answer: u32,
    /// Most tokens of a run's turns, prompts and answers; the turn that passes them is its last
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), requires = "student")]
    pub max_episode_tokens: Option<u64>,
    /// Most time that the models of a run's turns may take to answer; the turn that passes it is its last
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, requires = "student")]
    pub max_episode_time: Option<Duration>,
    /// Tokens that the student's context holds: states beyond are marked `context_overflow`
    #[arg(long, value_name = "TOKENS", requires = "student")]
    pub context: Option<u64>,
    /// Ask the student's model how likely it finds what it writes, and the teacher's how likely it finds the same: the
    /// reverse KL divergence, where their servers say (vLLM and llama.cpp do)
    #[arg(long, requires = "student")]
    pub logprobs: bool,
    /// Let student and teacher also run every task alone, for the report
    #[arg(long, requires = "student")]
    pub alone: bool,
}

/// Which labels of visited states are learned from; each also a key of `[views.labels]` in the settings file.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StateLabelArgs {
    /// Turn a filter of labels on: `verified` executes each label and has the teacher go on from it, and takes
    /// those that pass; the others are on
    #[arg(long = "label-filter", value_name = "FILTER", value_parser = parse_label_filter, help_heading = "Views")]
    pub label_filters: Vec<LabelFilter>,
    /// Turn a filter off: non_parsing, context_overflow, loop, unsolved_finish or verified
    #[arg(long = "no-label-filter", value_name = "FILTER", value_parser = parse_label_filter, help_heading = "Views")]
    pub no_label_filters: Vec<LabelFilter>,
    /// Rounds that count: `all`, or the `latest`
    #[arg(long, value_name = "ROUNDS", value_parser = parse_aggregate, help_heading = "Views")]
    pub aggregate: Option<Aggregate>,
    /// Let `dagger` learn the teacher's reasoning too
    #[arg(long, help_heading = "Views")]
    pub teacher_reasoning: bool,
}

/// A filter of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabelFilter {
    /// One that marks labels.
    Mark(LabelMark),
    /// A label must have been executed and passed.
    Verified,
}

impl StateLabelArgs {
    /// The settings file's choice with what flags say.
    pub(crate) fn over(&self, file: &LabelSettings) -> LabelSettings {
        let mut labels = file.clone();
        for (filters, is_on) in [(&self.label_filters, true), (&self.no_label_filters, false)] {
            for filter in filters {
                match filter {
                    LabelFilter::Verified => labels.verified = is_on,
                    LabelFilter::Mark(mark) => {
                        labels.off.retain(|off| off != mark);
                        labels.off.extend((!is_on).then_some(*mark));
                    }
                }
            }
        }
        labels.off.sort();
        labels.aggregate = self.aggregate.unwrap_or(labels.aggregate);
        labels.teacher_reasoning |= self.teacher_reasoning;
        labels
    }
}

/// The name of a form.
#[derive(Clone, Copy)]
pub(crate) struct FormName(pub &'static dyn Form);

impl std::fmt::Debug for FormName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}
