//! One pass over runs: each is loaded once, redacted once, and shown to every view and its exporter.

use super::load::{Cleared, Goals, Loaded, Siblings};
use super::previews::preview;
use super::rows::run_row;
use crate::exporters::{Built, ExportWriter, Training, build_rows, natural};
use crate::id::TrajectoryId;
use crate::parallel;
use crate::pipeline::diagnose::text_len;
use crate::pipeline::selection::Selector;
use crate::pipeline::{ContentSettings, PipelineError};
use crate::redaction::Redacted;
use crate::report::{Preview, RunRow};
use crate::reporter::Reporter;
use crate::rollout::interleave::{self, Aggregate, Gathering};
use crate::store::{Filter, Page, Store};
use crate::verdict::Side;
use crate::views::{Exclusion, HindsightSft, Relabels, SuccessSft, Tally, ViewInput};

/// Text of one parallel batch of runs, in bytes.
const BATCH_BYTES: usize = 16 << 20;
/// Runs of one batch.
const BATCH_RUNS: u64 = 256;

/// What a pass leaves behind beside the rows.
pub(super) struct Passed {
    /// Every run as the report has it.
    pub runs: Vec<RunRow>,
    /// A few examples of each view.
    pub previews: Vec<Vec<Preview>>,
    /// The runs that gave something to a view, in order.
    pub given: Vec<TrajectoryId>,
    /// Text that each view teaches, in bytes times their weight.
    learned: Vec<f64>,
    /// What the runs that students and teachers share came to.
    pub shared: interleave::Report,
}

/// What one run gives to every outlet.
struct Given {
    redacted: Redacted,
    views: Vec<ViewGiven>,
    report: Option<RunRow>,
}

/// What one run gives to a view.
struct ViewGiven {
    rows: Result<Vec<Built>, Exclusion>,
    tally: Tally,
    learned: f64,
    previews: Vec<Preview>,
}

/// What holds for every run of a pass.
struct Frame<'a> {
    training: &'a [Training<'a>],
    settings: &'a ContentSettings,
    /// The one round whose labels count.
    round: Option<u32>,
    /// See [`ViewInput::repeats`].
    repeats: Option<f64>,
    is_reported: bool,
}

/// Shows every run to the writers, each of which has its view, and returns what the report says of it; or only the
/// runs named, of which there is no report. A view without a writer is built all the same.
pub(super) fn pass(
    store: &Store,
    ids: Option<&[TrajectoryId]>,
    training: &[Training<'_>],
    settings: &ContentSettings,
    threads: usize,
    writers: &mut [ExportWriter<'_>],
    reporter: &mut dyn Reporter,
) -> Result<Passed, PipelineError> {
    let total = ids.map_or_else(|| store.count(&Filter::default()), |ids| Ok(ids.len() as u64))?;
    reporter.stage("write", Some(total));
    let mut passed = Passed {
        runs: Vec::new(),
        previews: vec![Vec::new(); training.len()],
        given: Vec::new(),
        learned: vec![0.0; training.len()],
        shared: interleave::Report::default(),
    };
    let mut gathering = Gathering::default();
    let mut siblings = Siblings::default();
    let draws_goals = training.iter().any(|training| training.view.draws_goals());
    let goals = if draws_goals { Goals::read(store)? } else { Goals::default() };
    let round = match settings.views.labels.aggregate {
        Aggregate::All => None,
        Aggregate::Latest => store.latest_round()?,
    };
    let is_matched = training.iter().any(|training| training.view.matches_hindsight());
    let repeats = if is_matched { repeats(store, ids, settings, threads, reporter)? } else { None };
    let frame = Frame { training, settings, round, repeats, is_reported: ids.is_none() };
    let mut selector = Selector::new(&settings.selection, store)?;
    let mut offset = 0;
    loop {
        let page = match ids {
            None => store.list(&Filter::default(), Page { offset, limit: BATCH_RUNS })?,
            Some(ids) => {
                let named = ids.iter().skip(offset as usize).take(BATCH_RUNS as usize);
                named.map(|id| store.row(*id)).collect::<Result<_, _>>()?
            }
        };
        if page.is_empty() {
            passed.shared = gathering.finish();
            return Ok(passed);
        }
        offset += page.len() as u64;
        let mut batch = Vec::new();
        let mut bytes = 0;
        let mut page = page.into_iter().peekable();
        while let Some(row) = page.next() {
            let mut loaded = Loaded::read(store, &row, &goals)?;
            if settings.views.sibling_pairs {
                loaded.add_siblings(store, &selector, &mut siblings)?;
            }
            bytes += loaded.runs().map(text_len).sum::<usize>();
            batch.push(loaded);
            if bytes < BATCH_BYTES && page.peek().is_some() {
                continue;
            }
            reporter.advance(batch.len() as u64);
            let batch = std::mem::take(&mut batch);
            let lacking = training.iter().zip(&passed.previews);
            let wanted: Vec<usize> =
                lacking.map(|(training, shown)| training.options.previews - shown.len()).collect();
            let give = |loaded: &Loaded| give(loaded, &frame, &selector, &wanted);
            for (given, loaded) in parallel::map(&batch, threads, give).into_iter().zip(&batch) {
                let Given { redacted, views, report } = given;
                let mut gives = false;
                let outlets = views.into_iter().zip(training).zip(&mut passed.previews);
                for (index, ((view, training), shown)) in outlets.enumerate() {
                    let rows = selector.once(index, loaded.row.id, view.rows);
                    if rows.is_ok() {
                        passed.learned[index] += view.learned;
                        shown.extend(view.previews);
                        shown.truncate(training.options.previews);
                    }
                    gives |= rows.as_ref().is_ok_and(|rows| !rows.is_empty());
                    if let Some(writer) = writers.get_mut(index) {
                        if rows.is_ok() {
                            writer.count(&view.tally);
                        }
                        writer.offer(&redacted, rows)?;
                    }
                }
                passed.given.extend(gives.then_some(loaded.row.id));
                passed.runs.extend(report);
                if ids.is_none() {
                    let labels = loaded.labels.iter().map(|(_, label)| label);
                    gathering.add(&redacted.trajectory, labels, &settings.views.labels);
                }
            }
            bytes = 0;
        }
    }
}

/// How often successful runs must be repeated to teach as much as goals in hindsight do; `None` where either teaches
/// nothing.
fn repeats(
    store: &Store,
    ids: Option<&[TrajectoryId]>,
    settings: &ContentSettings,
    threads: usize,
    reporter: &mut dyn Reporter,
) -> Result<Option<f64>, PipelineError> {
    let training = [natural(&HindsightSft), natural(&SuccessSft)];
    let passed = pass(store, ids, &training, settings, threads, &mut [], reporter)?;
    let [hindsight, success] = passed.learned.as_slice() else { return Ok(None) };
    Ok((*hindsight > 0.0 && *success > 0.0).then(|| hindsight / success))
}

/// `wanted` are the previews that each view still lacks.
fn give(loaded: &Loaded, frame: &Frame<'_>, selector: &Selector<'_>, wanted: &[usize]) -> Given {
    let Frame { training, settings, round, repeats, is_reported } = *frame;
    let Cleared { mut redacted, diagnosis, reviews, forks, siblings, relabel, shuffled, labels } =
        loaded.clear();
    let side = loaded.row.split.as_deref().and_then(Side::from_word);
    let input = ViewInput {
        blame: loaded.blame.as_ref(),
        class: loaded.class.as_ref(),
        diagnosis: diagnosis.as_ref(),
        reviews: &reviews,
        forks: &forks,
        sweep: loaded.sweep.as_ref(),
        siblings: &siblings,
        labels: &labels,
        round,
        repeats,
        relabels: Relabels { accepted: relabel.as_ref(), shuffled: shuffled.as_deref() },
        ..ViewInput::new(&redacted.trajectory, side.unwrap_or(Side::Excluded), &settings.views)
    };
    let selected = selector.check(&loaded.run, loaded.row.native_id.as_deref());
    let views = training.iter().enumerate().map(|(index, Training { view, exporter, options })| {
        let built = selected.and_then(|()| view.build(&input));
        let examples = built.as_deref().unwrap_or_default();
        let mut tally = Tally::default();
        for example in examples {
            tally.add(example);
        }
        let segments = examples.iter().flat_map(|example| &example.segments);
        let learned = segments.map(|segment| segment.weight * (segment.end - segment.start) as f64).sum();
        let lacking = wanted.get(index).copied().unwrap_or(0);
        let previews = examples.iter().filter_map(preview).take(lacking).collect();
        let rows = built.map(|examples| build_rows(*exporter, examples, *options));
        ViewGiven { rows, tally, learned, previews }
    });
    let views = views.collect();
    let report = is_reported.then(|| run_row(loaded, side, &mut redacted));
    Given { redacted, views, report }
}
