//! Import: from sources to the store, one file after the other, each read in parallel; then the
//! outcomes that come from elsewhere.

use std::collections::BTreeMap;

use super::outcomes::{self, Attached};
use super::{PipelineConfig, PipelineError};
use crate::importers::{Event, ImportError, Importer, Sink, SinkError, Source, SourceProblem, detect_among};
use crate::reporter::Reporter;
use crate::store::{Import, ImportSummary, LargestComponent, Store};
use crate::warning::Quarantine;

/// What an import did.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Files of a known format, by format.
    pub files: BTreeMap<String, u64>,
    /// Records that could not be read, by format.
    pub quarantined: BTreeMap<String, u64>,
    /// Files that are no traces, by the user's name for them.
    pub unrecognized: Vec<String>,
    /// Paths that could not be read or were passed over, with the reason.
    pub problems: Vec<SourceProblem>,
    /// What the store counted.
    pub stored: ImportSummary,
    /// The tied tasks that are the most, where they are so many that the split is lopsided.
    pub lopsided: Option<LargestComponent>,
    /// What an outcome file did.
    pub attached: Attached,
}

impl Imported {
    /// Files of a known format.
    pub fn file_count(&self) -> u64 {
        self.files.values().sum()
    }

    /// True where something was left out that a person should look at.
    pub fn is_partial(&self) -> bool {
        self.stored.quarantined_count > 0
            || !self.attached.unmatched.is_empty()
            || self.problems.iter().any(|problem| !problem.is_skip())
    }
}

/// Reads every source into the store, then attaches outcomes. A file that cannot be read costs only
/// itself. `problems` are the paths that did not become sources.
///
/// # Errors
/// When the store fails.
pub fn import(
    store: &mut Store,
    sources: &[Source],
    problems: Vec<SourceProblem>,
    config: &PipelineConfig<'_>,
    reporter: &mut dyn Reporter,
) -> Result<Imported, PipelineError> {
    let mut imported = Imported { problems, ..Imported::default() };
    reporter.stage("import", Some(sources.len() as u64));
    let mut sink = store.import(config.now)?.threads(config.threads);
    let mut together = Vec::new();
    for source in sources {
        read(source, config.importers, &mut sink, &mut imported, &mut together)?;
        reporter.advance(1);
    }
    for (importer, sources) in together {
        let result =
            counted(importer, &mut sink, &mut imported, |sink| importer.import_together(&sources, sink));
        settle(result, &mut sink, &mut imported)?;
    }
    imported.stored = sink.finish()?;
    imported.lopsided = store.largest_component()?.filter(LargestComponent::is_too_large);
    if !config.outcomes.is_empty() {
        imported.attached = outcomes::attach(store, config.outcomes, &imported.stored.runs, config.now)?;
    }
    if config.assume_failure {
        outcomes::assume_failure(store, &imported.stored.runs, config.now)?;
    }
    Ok(imported)
}

/// Files of formats whose runs may be spread over several, by family, in order of the first file.
type Together<'s> = Vec<(&'s dyn Importer, Vec<&'s Source>)>;

/// Reads a file, or keeps it to be read with others.
fn read<'s>(
    source: &'s Source,
    importers: &[&'s dyn Importer],
    sink: &mut Import<'_>,
    imported: &mut Imported,
    together: &mut Together<'s>,
) -> Result<(), SinkError> {
    let result = match detect_among(source, importers) {
        Ok(None) => {
            if !source.is_companion() {
                imported.unrecognized.push(source.uri().to_owned());
            }
            return Ok(());
        }
        Ok(Some(importer)) => {
            *imported.files.entry(importer.format().to_owned()).or_default() += 1;
            if importer.family().is_some() {
                match together.iter_mut().find(|(known, _)| known.family() == importer.family()) {
                    Some((_, sources)) => sources.push(source),
                    None => together.push((importer, vec![source])),
                }
                return Ok(());
            }
            counted(importer, sink, imported, |sink| importer.import(source, sink))
        }
        Err(error) => Err(error),
    };
    settle(result, sink, imported)
}

/// Counts what an importer quarantines.
fn counted(
    importer: &dyn Importer,
    sink: &mut Import<'_>,
    imported: &mut Imported,
    import: impl FnOnce(&mut Import<'_>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let before = sink.summary().quarantined_count;
    let result = import(sink);
    let quarantined = sink.summary().quarantined_count - before;
    *imported.quarantined.entry(importer.format().to_owned()).or_default() += quarantined;
    result
}

/// Notes why a file was not read to its end.
fn settle(
    result: Result<(), ImportError>,
    sink: &mut Import<'_>,
    imported: &mut Imported,
) -> Result<(), SinkError> {
    match result {
        Ok(()) => Ok(()),
        Err(ImportError::Sink(error)) => Err(error),
        Err(ImportError::Unreadable { uri, code, reason }) => sink.event(Event::Quarantine(Quarantine {
            uri,
            line: None,
            span: None,
            code: code.to_owned(),
            reason,
        })),
        Err(ImportError::Io { uri, source: error }) => {
            imported.problems.push(SourceProblem { uri, code: "unreadable", reason: error.to_string() });
            Ok(())
        }
    }
}
