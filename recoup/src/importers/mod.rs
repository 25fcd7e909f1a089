//! Importers: one file a format, each turning what a harness wrote into trajectories.
//!
//! Adding a format is one new file here, one line in [`IMPORTERS`] and a fixture folder
//! `recoup/tests/fixtures/importers/<format>/<case>/`. An importer
//!
//! * recognizes its files by their content ([`Importer::detect`]), never by their name alone;
//! * reads through [`Source`] and hands each run to a [`Sink`] as soon as it is complete;
//! * drops nothing in silence: what the records cannot carry is a [`Loss`], what cannot be read is a
//!   [`Quarantine`] with its bytes' range, and the rest of the file goes on;
//! * treats every byte as hostile: no panic, no path from a trace reaches the file system.

mod beside;
pub(crate) mod data_url;
mod dialect;
mod function_call;
mod harness_message;
mod histories;
mod instance;
mod object;
mod probe;
mod prompts;
pub(crate) mod row;
mod scoring;
mod sink;
pub mod slice;
mod source;
mod table;
mod value;

mod adp;
mod agenterrorbench;
mod agentrx;
mod anthropic_messages;
pub(crate) mod atif;
mod autogen;
mod bfcl;
mod claude_code;
mod codex;
mod gemini;
mod harbor;
mod inspect;
mod labelled_chat;
mod langchain;
pub mod mapped;
mod mini_swe_agent;
mod nebius;
mod nemo_gym;
mod openai_chat;
mod openai_responses;
mod openhands;
mod openhands_v1;
mod react_text;
pub mod recoup_proxy;
mod reflexion;
mod sharegpt;
mod smolagents;
mod spans;
mod sts;
mod swe_agent;
mod tau2;
mod tau_bench;
mod terminal_bench;
mod toolbench;
mod tracertraj;
mod trail;
mod trajerrbench;
mod verifiers;
mod webvoyager;
mod who_and_when;

use std::io;

pub use self::probe::{Outline, Probe, Shape};
pub use self::scoring::Scoring;
pub use self::sink::{Event, LooseLabel, Sink, SinkError};
pub use self::slice::{Layout, RawRecord, RecordError};
pub use self::source::{ImportOptions, Source, SourceProblem, sources_from_paths, wanted_sources};
pub(crate) use self::spans::message_of_span;
#[cfg(doc)]
use crate::warning::Loss;
use crate::warning::Quarantine;

/// Reads one format.
pub trait Importer: Sync {
    /// The format's name in records and on the command line (`tau-bench`).
    fn format(&self) -> &str;

    /// What tells its files, as one phrase: how the records look, with the keys that decide in
    /// backticks. It is what `import --explain` gives as the reason, and what it compares a file with
    /// that no format takes.
    fn recognizes(&self) -> &str;

    /// Whether a file is of this format, from its first bytes.
    fn detect(&self, probe: &Probe) -> bool;

    /// Reads every run of a file.
    ///
    /// # Errors
    /// When the file cannot be read at all or the sink fails; a record that cannot be read is an
    /// event, not an error.
    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError>;

    /// Where a run may be spread over several files: the formats among whose files it may be, by a name
    /// that they share.
    fn family(&self) -> Option<&str> {
        None
    }

    /// Reads every run of files of this format, or of its family, that were named together.
    ///
    /// # Errors
    /// As [`Importer::import`].
    fn import_together(&self, sources: &[&Source], sink: &mut dyn Sink) -> Result<(), ImportError> {
        each_file(sources, sink, |source, sink| self.import(source, sink))
    }
}

/// Reads files one after the other; of several, one that cannot be read costs only itself.
///
/// # Errors
/// When the only one cannot be read or the sink fails.
fn each_file(
    sources: &[&Source],
    sink: &mut dyn Sink,
    mut read: impl FnMut(&Source, &mut dyn Sink) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    for source in sources {
        match read(source, sink) {
            Err(error) if sources.len() > 1 => sink.event(Event::Quarantine(error.of_file(source)?))?,
            read => read?,
        }
    }
    Ok(())
}

/// Every format, the most particular first: the first that recognizes a file reads it.
pub const IMPORTERS: &[&dyn Importer] = &[
    &recoup_proxy::RecoupProxy,
    &inspect::Inspect,
    &spans::OpenInference,
    &spans::OtelGenAi,
    &spans::Langfuse,
    &inspect::InspectScout,
    &harbor::Harbor,
    &terminal_bench::TerminalBench,
    &nemo_gym::NemoGym,
    &verifiers::Verifiers,
    &bfcl::Bfcl,
    &spans::LangSmith,
    &spans::MlFlow,
    &spans::OpenAiAgents,
    &tau2::Tau2,
    &tau_bench::TauBench,
    &agentrx::AgentRx,
    &agenterrorbench::AgentErrorBench,
    &trajerrbench::TrajErrBench,
    &trail::Trail,
    &tracertraj::TracerTraj,
    &who_and_when::WhoAndWhen,
    &toolbench::ToolBench,
    &atif::Atif,
    &swe_agent::SweAgent,
    &openhands_v1::OpenHandsV1,
    &openhands::OpenHands,
    &nebius::Nebius,
    &adp::Adp,
    &reflexion::Reflexion,
    &codex::Codex,
    &claude_code::ClaudeCode,
    &webvoyager::WebVoyager,
    &langchain::LangChain,
    &autogen::AutoGen,
    &smolagents::SmolAgents,
    &sts::Sts,
    &gemini::Gemini,
    &openai_responses::OpenAiResponses,
    &anthropic_messages::AnthropicMessages,
    &labelled_chat::LabelledChat,
    &mini_swe_agent::MiniSweAgent,
    &sharegpt::ShareGpt,
    &openai_chat::OpenAiChat,
    &react_text::ReactText,
];

/// Names of files that belong to other files' traces and hold none themselves: outcomes and settings
/// that importers read as siblings.
const COMPANIONS: &[&str] = &["report.json"];

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Reading failed.
    #[error("cannot read {uri}")]
    Io {
        /// The file.
        uri: String,
        /// Cause.
        source: io::Error,
    },
    /// What receives the runs failed; nothing can go on.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The file is one record or archive that cannot be read.
    #[error("{uri}: {reason}")]
    Unreadable {
        /// The file.
        uri: String,
        /// Stable word for the cause.
        code: &'static str,
        /// For a person.
        reason: String,
    },
}

impl ImportError {
    /// An I/O error with its file.
    pub fn io(source: &Source, error: io::Error) -> Self {
        Self::Io { uri: source.uri().to_owned(), source: error }
    }

    /// The entry for a file that cannot be read.
    ///
    /// # Errors
    /// The error itself, where it is the sink's.
    fn of_file(self, source: &Source) -> Result<Quarantine, Self> {
        let (code, reason) = match self {
            Self::Sink(_) => return Err(self),
            Self::Unreadable { code, reason, .. } => (code, reason),
            Self::Io { source, .. } => ("unreadable", source.to_string()),
        };
        Ok(Quarantine { uri: source.uri().to_owned(), line: None, span: None, code: code.to_owned(), reason })
    }
}

/// The importer that recognizes a file, or `None` where it is no trace.
///
/// # Errors
/// When the file cannot be read, is text in an encoding other than UTF-8 or a broken archive.
pub fn detect(source: &Source) -> Result<Option<&'static dyn Importer>, ImportError> {
    detect_among(source, IMPORTERS)
}

/// As [`detect`], among these importers: [`IMPORTERS`], perhaps with importers of one's own before them.
///
/// # Errors
/// As [`detect`].
pub fn detect_among<'a>(
    source: &Source,
    importers: &[&'a dyn Importer],
) -> Result<Option<&'a dyn Importer>, ImportError> {
    let probe = Probe::read(source)?;
    let found = importers.iter().copied().find(|importer| importer.detect(&probe));
    let extension = source.name().rsplit_once('.').map(|(_, extension)| extension);
    if found.is_none() && (probe.shape == Shape::Zip || extension == Some("eval")) {
        // No trace, unless it cannot be opened: then nobody can say.
        source.members()?;
    }
    Ok(found)
}
