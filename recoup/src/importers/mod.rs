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
mod value;

mod adp;
mod agentrx;
mod anthropic_messages;
pub(crate) mod atif;
mod autogen;
mod claude_code;
mod codex;
mod gemini;
mod inspect;
mod labelled_chat;
mod langchain;
mod mini_swe_agent;
mod nebius;
mod openai_chat;
mod openai_responses;
mod openhands;
mod react_text;
mod reflexion;
mod sharegpt;
mod smolagents;
mod sts;
mod swe_agent;
mod tau2;
mod tau_bench;
mod toolbench;
mod webvoyager;
mod who_and_when;

use std::io;

pub use self::probe::{Outline, Probe, Shape};
pub use self::scoring::Scoring;
pub use self::sink::{Event, LooseLabel, Sink, SinkError};
pub use self::slice::{Layout, RawRecord, RecordError};
pub use self::source::{ImportOptions, Source, SourceProblem, sources_from_paths};
#[cfg(doc)]
use crate::warning::{Loss, Quarantine};

/// Reads one format.
pub trait Importer: Sync {
    /// The format's name in records and on the command line (`tau-bench`).
    fn format(&self) -> &'static str;

    /// Whether a file is of this format, from its first bytes.
    fn detect(&self, probe: &Probe) -> bool;

    /// Reads every run of a file.
    ///
    /// # Errors
    /// When the file cannot be read at all or the sink fails; a record that cannot be read is an
    /// event, not an error.
    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError>;
}

/// Every format, the most particular first: the first that recognizes a file reads it.
pub const IMPORTERS: &[&dyn Importer] = &[
    &inspect::Inspect,
    &tau2::Tau2,
    &tau_bench::TauBench,
    &agentrx::AgentRx,
    &who_and_when::WhoAndWhen,
    &toolbench::ToolBench,
    &atif::Atif,
    &swe_agent::SweAgent,
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
pub const COMPANIONS: &[&str] = &["report.json"];

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
}

/// The importer that recognizes a file, or `None` where it is no trace.
///
/// # Errors
/// When the file cannot be read, is text in an encoding other than UTF-8 or a broken archive.
pub fn detect(source: &Source) -> Result<Option<&'static dyn Importer>, ImportError> {
    let probe = Probe::read(source)?;
    let found = IMPORTERS.iter().copied().find(|importer| importer.detect(&probe));
    let extension = source.name().rsplit_once('.').map(|(_, extension)| extension);
    if found.is_none() && (probe.shape == Shape::Zip || extension == Some("eval")) {
        // No trace, unless it cannot be opened: then nobody can say.
        source.members()?;
    }
    Ok(found)
}
