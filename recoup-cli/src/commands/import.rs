//! `recoup import`: reads runs into the project.

mod explain;
mod map;
mod said;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::answers::{Formats, Found};
use recoup::artifact::Artifact;
use recoup::importers::mapped::Mapping;
use recoup::importers::{
    IMPORTERS, ImportError, ImportOptions, Importer, Source, SourceProblem, detect_among, wanted_sources,
};
use recoup::pipeline::{self, ContentSettings, Imported, OutcomeLine, PipelineConfig};
use recoup::store::Store;

pub(crate) use self::said::{LISTED_MAX, more, say_imported, say_left_out, say_problems, say_waiting_labels};
use super::project;
use crate::Ended;
use crate::args::{ImportArgs, OutcomeArgs};
use crate::clock::now;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// Imports, or lists what could be imported.
pub(crate) fn import(flags: &ImportArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    if flags.formats {
        let formats: Vec<&str> = IMPORTERS.iter().map(|importer| importer.format()).collect();
        if printer.is_json() {
            printer.json(&settings.answer(Formats { formats }));
        } else {
            printer.line(formats.join("\n"));
        }
        return Ok(Ended::Done);
    }
    if flags.map_template {
        printer.line(map::TEMPLATE.trim_end());
        return Ok(Ended::Done);
    }
    if flags.watch.watch {
        return watch::watch(flags, settings, printer);
    }
    let input = Input::open(&flags.paths, &flags.outcomes, settings)?;
    if flags.explain {
        return Ok(explain::explain(&input, printer));
    }
    if flags.dry_run {
        return Ok(dry_run(&input, printer));
    }
    input.require_runs()?;
    let mut store = open_store(flags, settings)?;
    let now = now();
    let importers = input.importers();
    let config = input.config(&now, settings, Path::new(""), &importers);
    let mut progress = printer.progress();
    let imported =
        pipeline::import(&mut store, &input.sources, input.problems.clone(), &config, &mut progress)?;
    progress.finish();
    let summary = pipeline::summarize(&store, &imported, None, None)?;
    if printer.is_json() {
        printer.json(&Artifact::new(project::provenance(&store, &config.settings), summary));
    } else {
        say_imported(&summary, printer);
    }
    say_problems(&imported, printer);
    input.say_unmatched(&imported, printer);
    say_waiting_labels(&store, printer)?;
    Ok(ended(&imported))
}

/// The project, with the split that the flags ask for.
fn open_store(flags: &ImportArgs, settings: &Settings) -> Result<Store, Failure> {
    let mut store = project::create_or_open(settings)?;
    if settings.is_split_strict(&flags.split) {
        store.make_split_strict()?;
    }
    Ok(store)
}

/// What the user named, opened, and how to read it.
pub(crate) struct Input {
    /// Files and archive members.
    pub sources: Vec<Source>,
    /// Paths that did not become sources.
    pub problems: Vec<SourceProblem>,
    options: Arc<ImportOptions>,
    mapping: Option<(PathBuf, Mapping)>,
    outcomes: Vec<OutcomeLine>,
    assume_failure: bool,
}

impl Input {
    /// Opens paths (`-` for standard input) and the outcome file.
    pub(crate) fn open(paths: &[String], flags: &OutcomeArgs, settings: &Settings) -> Result<Self, Failure> {
        let mut input = Self::unopened(flags, settings)?;
        let (stdin, named): (Vec<String>, Vec<String>) = paths.iter().cloned().partition(|path| path == "-");
        input.find(&named, settings, &mut |_| true);
        if !stdin.is_empty() {
            let source = Source::from_reader("-", std::io::stdin().lock(), input.options.clone())
                .map_err(|error| Failure::machine("cannot read standard input", &error))?;
            let unpacked = source.unpacked();
            let (members, bad) =
                unpacked.map_err(|error| Failure::machine("cannot read standard input", &error))?;
            input.sources.extend(members);
            input.problems.extend(bad);
        }
        input.require_paths()?;
        Ok(input)
    }

    /// How to read, without anything to read yet.
    fn unopened(flags: &OutcomeArgs, settings: &Settings) -> Result<Self, Failure> {
        let options = settings.import_options(flags);
        let mapping = match &flags.map {
            Some(path) => Some((path.clone(), map::read(path)?)),
            None => None,
        };
        let outcomes = match &flags.outcomes {
            None => Vec::new(),
            Some(path) => outcome_lines(path, options.scoring.success_at)?,
        };
        let (sources, problems) = (Vec::new(), Vec::new());
        Ok(Self { sources, problems, options, mapping, outcomes, assume_failure: flags.assume.is_some() })
    }

    /// Puts the wanted files beneath the paths in place of what was there; what recoup wrote is none.
    fn find(&mut self, paths: &[String], settings: &Settings, wanted: &mut dyn FnMut(&Path) -> bool) {
        (self.sources, self.problems) = wanted_sources(paths, &self.options, wanted);
        let own = own_folders(settings);
        self.sources.retain(|source| !lies_in(source, &own));
    }

    /// Stops where a path leads nowhere.
    fn require_paths(&self) -> Result<(), Failure> {
        match self.problems.iter().find(|problem| problem.code == "not-found") {
            Some(missing) => {
                let message = format!("`{}`: {}", missing.uri, missing.reason);
                Err(Failure::user(message).code("not-found"))
            }
            None => Ok(()),
        }
    }

    /// Who may read the files: the mapping that the user gave comes first.
    pub(crate) fn importers(&self) -> Vec<&dyn Importer> {
        let own = self.mapping.iter().map(|(_, mapping)| mapping as &dyn Importer);
        own.chain(IMPORTERS.iter().copied()).collect()
    }

    /// Warns where a mapping was given and read nothing.
    pub(crate) fn say_unmatched(&self, imported: &Imported, printer: Printer) {
        if let Some((path, mapping)) = &self.mapping
            && !imported.files.contains_key(mapping.format())
        {
            printer.warn(format_args!("no file has what the mapping `{}` looks for", path.display()));
        }
    }

    /// The pipeline's configuration; `out` is where the main job writes.
    pub(crate) fn config<'a>(
        &'a self,
        now: &'a str,
        settings: &'a Settings,
        out: &'a Path,
        importers: &'a [&'a dyn Importer],
    ) -> PipelineConfig<'a> {
        PipelineConfig {
            now,
            importers,
            threads: settings.threads,
            outcomes: &self.outcomes,
            assume_failure: self.assume_failure,
            project: &settings.project_name,
            settings: ContentSettings::of(&self.options, settings.views.clone()),
            out,
            training: &[],
        }
    }

    /// Stops where no file is a trace, before a project is made.
    pub(crate) fn require_runs(&self) -> Result<(), Failure> {
        let importers = self.importers();
        let (mut readable, mut unreadable) = (Vec::new(), None);
        for source in &self.sources {
            match detect_among(source, &importers) {
                Ok(None) => readable.push(source.uri()),
                Err(ImportError::Io { uri, source }) => {
                    unreadable.get_or_insert_with(|| format!("`{uri}`: {source}"));
                }
                // What can be read and makes no sense is quarantined, as part of the work.
                Ok(Some(_)) | Err(_) => return Ok(()),
            }
        }
        let said = |problem: &SourceProblem| format!("`{}`: {}", problem.uri, problem.reason);
        let unreadable =
            unreadable.or_else(|| self.problems.iter().find(|problem| !problem.is_skip()).map(said));
        let hint = match &self.mapping {
            Some((path, mapping)) => format!(
                "the mapping `{}` looks for {}; `--explain` says what is there",
                path.display(),
                mapping.recognizes()
            ),
            None => "`recoup import --formats` lists what recoup reads, `recoup import --explain PATH` says what is there, \
                     and `recoup import --map FILE` reads a format of your own"
                .to_owned(),
        };
        let message = match (unreadable, readable.as_slice()) {
            (Some(unreadable), _) => unreadable,
            (None, []) => self.problems.first().map_or_else(|| "there is nothing to read".to_owned(), said),
            (None, [only]) => format!("`{only}` is in no format that recoup knows"),
            (None, [first, ..]) => {
                format!(
                    "none of {} files is in a format that recoup knows, `{first}` for one",
                    readable.len()
                )
            }
        };
        Err(Failure::user(message).code("no-traces").hint(hint))
    }
}

/// The folders that recoup itself writes: what lies there is not read back in.
fn own_folders(settings: &Settings) -> Vec<PathBuf> {
    [&settings.project, &settings.out].into_iter().filter_map(|folder| folder.canonicalize().ok()).collect()
}

fn lies_in(source: &Source, folders: &[PathBuf]) -> bool {
    let path = Path::new(source.uri()).canonicalize();
    path.is_ok_and(|path| folders.iter().any(|folder| path.starts_with(folder)))
}

fn outcome_lines(path: &Path, success_at: Option<f64>) -> Result<Vec<OutcomeLine>, Failure> {
    let shown = path.display();
    let bytes =
        std::fs::read(path).map_err(|error| Failure::user(format!("cannot read `{shown}`: {error}")))?;
    pipeline::parse_outcomes(&bytes, success_at)
        .map_err(|reason| Failure::user(format!("`{shown}`: {reason}")).code("bad-outcomes"))
}

fn dry_run(input: &Input, printer: Printer) -> Ended {
    let importers = input.importers();
    let mut unreadable = input.problems.iter().filter(|problem| !problem.is_skip()).count();
    for source in &input.sources {
        let format = match detect_among(source, &importers) {
            Ok(Some(importer)) => importer.format(),
            Ok(None) if source.is_companion() => "beside a trace",
            Ok(None) => "not a trace",
            Err(_) => {
                unreadable += 1;
                "unreadable"
            }
        };
        if printer.is_json() {
            printer.json(&Found { uri: source.uri(), format });
        } else {
            printer.line(recoup::visible::visible_controls(&format!("{format:<16} {}", source.uri())));
        }
    }
    for problem in &input.problems {
        printer.warn(format_args!("`{}`: {}", problem.uri, problem.reason));
    }
    if unreadable > 0 { Ended::Partly } else { Ended::Done }
}

/// The exit code that an import asks for.
pub(crate) fn ended(imported: &Imported) -> Ended {
    if imported.is_partial() { Ended::Partly } else { Ended::Done }
}
