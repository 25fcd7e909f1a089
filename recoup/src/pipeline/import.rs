//! Import: from sources to the store, one file after the other, each read in parallel.

use crate::importers::{Event, ImportError, Sink, SinkError, Source, SourceProblem, detect};
use crate::reporter::Reporter;
use crate::warning::Quarantine;

/// What happened to the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Files of a known format.
    pub read: u64,
    /// The same by format.
    pub by_format: std::collections::BTreeMap<&'static str, u64>,
    /// Files that are no traces, by the user's name for them.
    pub unrecognized: Vec<String>,
    /// Files that could not be read, with the reason.
    pub unreadable: Vec<SourceProblem>,
}

/// Reads every source into the sink. A file that cannot be read costs only itself; a sink that fails
/// ends the import.
///
/// # Errors
/// When the sink fails.
pub fn import(
    sources: &[Source],
    sink: &mut dyn Sink,
    reporter: &mut dyn Reporter,
) -> Result<Files, SinkError> {
    let mut files = Files::default();
    reporter.stage("import", Some(sources.len() as u64));
    for source in sources {
        let imported = match detect(source) {
            Ok(None) => {
                files.unrecognized.push(source.uri().to_owned());
                Ok(())
            }
            Ok(Some(importer)) => {
                files.read += 1;
                *files.by_format.entry(importer.format()).or_default() += 1;
                importer.import(source, sink)
            }
            Err(error) => Err(error),
        };
        match imported {
            Ok(()) => {}
            Err(ImportError::Sink(error)) => return Err(error),
            Err(ImportError::Unreadable { uri, code, reason }) => {
                sink.event(Event::Quarantine(Quarantine {
                    uri,
                    line: None,
                    span: None,
                    code: code.to_owned(),
                    reason,
                }))?;
            }
            Err(ImportError::Io { uri, source: error }) => {
                files.unreadable.push(SourceProblem { uri, code: "unreadable", reason: error.to_string() });
            }
        }
        reporter.advance(1);
    }
    Ok(files)
}
