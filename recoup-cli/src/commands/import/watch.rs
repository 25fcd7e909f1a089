//! `import --watch`: follows folders and imports what is new or has grown.
//!
//! A look costs one `stat` a file. What has come to rest is read whole: runs that are stored already are known by
//! their content, so a file that grew adds only what is new, and a watch that was killed goes on where it was. A
//! record that is not whole at the end of a file is no error yet; it is one when the file has stayed so for long, or
//! the watch ends.

mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use recoup::answers::{Look, Watched};
use recoup::artifact::Artifact;
use recoup::importers::{Source, detect_among};
use recoup::pipeline::{self, Imported, Unmatched};
use recoup::store::Store;
use recoup::warning::Quarantine;

use self::files::{Files, Stamp};
use super::said::say_unmatched_outcomes;
use super::{Input, open_store, project, say_problems};
use crate::Ended;
use crate::args::ImportArgs;
use crate::clock::now;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::printer::{Printer, counted, runs};
use crate::settings::Settings;

/// Looks after which a record that is still not whole counts as broken.
const UNFINISHED_LOOKS: u64 = 30;

/// Follows the folders until the time is over or somebody interrupts.
pub(super) fn watch(flags: &ImportArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let interrupt = Interrupt::listen();
    let mut input = Input::unopened(&flags.outcomes, settings)?;
    let begun = Instant::now();
    let mut watch = Watch {
        flags,
        settings,
        printer,
        files: Files::default(),
        store: None,
        unfinished: BTreeMap::new(),
        complained: BTreeSet::new(),
        unmatched: None,
        total: Watched::default(),
        broken: false,
    };
    loop {
        watch.look(&mut input)?;
        let left = flags.watch.during.map(|during| during.saturating_sub(begun.elapsed()));
        let pause = left.map_or(flags.watch.interval, |left| left.min(flags.watch.interval));
        if left.is_some_and(|left| left.is_zero()) || interrupt.comes_within(pause) {
            return Ok(watch.end(&input));
        }
    }
}

/// A watch under way.
struct Watch<'a> {
    flags: &'a ImportArgs,
    settings: &'a Settings,
    printer: Printer,
    files: Files,
    /// The project, from the first file on that holds runs.
    store: Option<Store>,
    /// What stands unfinished at the end of a file, by the file, with the look that found it.
    unfinished: BTreeMap<String, (u64, Vec<Quarantine>)>,
    /// Paths that were complained about.
    complained: BTreeSet<String>,
    /// Lines of the outcome file that no look has attached; `None` before the first that read something.
    unmatched: Option<Vec<Unmatched>>,
    total: Watched,
    broken: bool,
}

impl Watch<'_> {
    fn look(&mut self, input: &mut Input) -> Result<(), Failure> {
        let (files, interval) = (&mut self.files, self.flags.watch.interval);
        let now = SystemTime::now();
        input.find(&self.flags.paths, self.settings, &mut |path| {
            Stamp::of(path).is_some_and(|stamp| files.is_due(path, stamp, now, interval))
        });
        self.files.forget_unseen();
        self.total.looks += 1;
        if self.total.looks == 1 {
            input.require_paths()?;
            let interval = humantime::format_duration(interval);
            self.printer.note(format_args!("watching; a look every {interval}, Ctrl-C ends it"));
        }
        self.join_neighbors(input);
        let complained = &mut self.complained;
        input.problems.retain(|problem| complained.insert(problem.uri.clone()));
        if !input.sources.is_empty() || !input.problems.is_empty() {
            self.take(input)?;
        }
        self.give_up(UNFINISHED_LOOKS);
        Ok(())
    }

    /// Adds the files of a folder that share runs with what is due there: those of its format.
    fn join_neighbors(&self, input: &mut Input) {
        let shared: BTreeSet<_> = input.sources.iter().filter_map(|source| shares(source, input)).collect();
        if shared.is_empty() {
            return;
        }
        let problems = std::mem::take(&mut input.problems);
        let due = std::mem::take(&mut input.sources);
        let known: BTreeSet<&str> = due.iter().map(Source::uri).collect();
        input.find(&self.flags.paths, self.settings, &mut |path| {
            shared.iter().any(|(_, folder)| path.parent() == Some(folder))
        });
        let others = std::mem::take(&mut input.sources).into_iter().filter(|source| {
            !known.contains(source.uri()) && shares(source, input).is_some_and(|own| shared.contains(&own))
        });
        let others: Vec<Source> = others.collect();
        drop(known);
        input.sources = due.into_iter().chain(others).collect();
        input.sources.sort_by(|one, other| one.uri().cmp(other.uri()));
        input.problems = problems;
    }

    /// Reads what is due.
    fn take(&mut self, input: &Input) -> Result<(), Failure> {
        let importers = input.importers();
        for source in &input.sources {
            // Whatever was unfinished there is read again now.
            self.unfinished.remove(source.uri());
        }
        let is_trace = |source: &Source| !matches!(detect_among(source, &importers), Ok(None));
        if self.store.is_none() && !input.sources.iter().any(is_trace) {
            return Ok(());
        }
        let store = match &mut self.store {
            Some(store) => store,
            none => none.insert(open_store(self.flags, self.settings)?),
        };
        let now = now();
        let config = input.config(&now, self.settings, Path::new(""), &importers);
        let problems = input.problems.clone();
        let mut imported = pipeline::import(store, &input.sources, problems, &config, &mut ())?;
        let unfinished = self.set_aside(&mut imported);
        let unmatched = std::mem::take(&mut imported.attached.unmatched);
        self.unmatched = Some(match self.unmatched.take() {
            None => unmatched,
            // The runs of a line may come in any look.
            Some(mut lines) => {
                lines.retain(|known| unmatched.iter().any(|other| other.line == known.line));
                lines
            }
        });
        let stored = &imported.stored;
        let quarantined = stored.quarantined_count;
        self.total.files += imported.file_count();
        self.total.new += stored.counts.new;
        self.total.revisions += stored.counts.revisions;
        self.total.quarantined += quarantined;
        self.broken |= imported.is_partial();
        let unrecognized: BTreeSet<&str> = imported.unrecognized.iter().map(String::as_str).collect();
        let files = input.sources.iter().map(Source::uri).filter(|uri| !unrecognized.contains(uri));
        let files: Vec<&str> = files.collect();
        if imported.file_count() > 0 && self.printer.is_json() {
            self.printer.json(&Look {
                files,
                new: stored.counts.new,
                revisions: stored.counts.revisions,
                duplicates: stored.counts.duplicates,
                quarantined,
                unfinished,
            });
        } else if stored.counts.new > 0 {
            let grown = match stored.counts.revisions {
                0 => String::new(),
                revisions => format!(", {revisions} of them grown"),
            };
            let first = files.first().copied().unwrap_or_default();
            let others = match files.len() {
                0 | 1 => String::new(),
                files => format!(" and {} more", files - 1),
            };
            let new = runs(stored.counts.new as usize);
            self.printer.note(format_args!("{new} new{grown}: {first}{others}"));
        }
        // What the records cannot carry is said once, by `--explain` or a plain import.
        imported.stored.losses.clear();
        say_problems(&imported, self.printer);
        Ok(())
    }

    /// Takes out what stands unfinished at a file's end, and says how much that is.
    fn set_aside(&mut self, imported: &mut Imported) -> u64 {
        let (unfinished, broken): (Vec<_>, Vec<_>) =
            std::mem::take(&mut imported.stored.quarantined).into_iter().partition(is_unfinished);
        let count = unfinished.len() as u64;
        imported.stored.quarantined = broken;
        imported.stored.quarantined_count -= count;
        for entry in unfinished {
            let looks = self.total.looks;
            self.unfinished.entry(entry.uri.clone()).or_insert((looks, Vec::new())).1.push(entry);
        }
        count
    }

    /// What has stayed unfinished for so many looks is broken.
    fn give_up(&mut self, looks: u64) {
        let now = self.total.looks;
        let printer = self.printer;
        let mut given_up = 0;
        self.unfinished.retain(|_, (since, entries)| {
            let goes = now - *since >= looks;
            for entry in entries.iter().filter(|_| goes) {
                given_up += 1;
                let place = entry.line.map_or_else(String::new, |line| format!(":{line}"));
                printer
                    .warn(format_args!("unfinished {}{place}: {} ({})", entry.uri, entry.reason, entry.code));
            }
            !goes
        });
        self.total.quarantined += given_up;
        self.broken |= given_up > 0;
    }

    fn end(mut self, input: &Input) -> Ended {
        self.give_up(0);
        let unmatched = self.unmatched.take().unwrap_or_default();
        say_unmatched_outcomes(&unmatched, self.printer);
        self.broken |= !unmatched.is_empty();
        let total = self.total;
        if self.printer.is_json() {
            let provenance = match &self.store {
                Some(store) => {
                    let importers = input.importers();
                    let config = input.config("", self.settings, Path::new(""), &importers);
                    Artifact::new(project::provenance(store, &config.settings), total)
                }
                None => self.settings.answer(total),
            };
            self.printer.json(&provenance);
        } else {
            self.printer.line(format_args!(
                "looked {} times: {} new from {} read, {} grown; {} records left out",
                total.looks,
                runs(total.new as usize),
                counted(total.files as usize, "file"),
                total.revisions,
                total.quarantined,
            ));
        }
        if self.broken { Ended::Partly } else { Ended::Done }
    }
}

/// The family of formats and the folder of a file whose runs may be spread over several.
fn shares(source: &Source, input: &Input) -> Option<(String, PathBuf)> {
    let importer = detect_among(source, &input.importers()).ok().flatten()?;
    let folder = Path::new(source.uri()).parent()?.to_path_buf();
    Some((importer.family()?.to_owned(), folder))
}

/// Whether what cannot be read stands at the end of its file, where more may come: a line that is being
/// written, an archive without its index.
fn is_unfinished(entry: &Quarantine) -> bool {
    let Some(span) = entry.span else { return true };
    let packed = [".gz", ".zst"].iter().any(|ending| entry.uri.ends_with(ending));
    match std::fs::metadata(&entry.uri) {
        // Behind what is cut off stands at most the end of its line.
        Ok(metadata) if !packed => span.end + 2 >= metadata.len(),
        _ => entry.code == "truncated",
    }
}
