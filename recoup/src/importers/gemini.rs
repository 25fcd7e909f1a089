//! Google's Gemini and Vertex APIs: contents, requests with their responses, and batches.
//!
//! A record is `{request, response}` (which Vertex writes a line for each prediction), `{contents, …}`,
//! a response with `candidates`, or a list of contents. A batch's result names its request by `key`; the
//! request is looked for beside it. Requests that repeat what came before make one run
//! ([`super::histories`]).

use super::dialect::Dialect;
use super::histories::import_log;
use super::{ImportError, Importer, Outline, Probe, Sink, Source};

/// Members of which a part of a content has one.
const PARTS: [&str; 10] = [
    "text",
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
    "executableCode",
];

/// Logs of Google's APIs.
pub(super) struct Gemini;

impl Importer for Gemini {
    fn format(&self) -> &'static str {
        "gemini"
    }

    fn recognizes(&self) -> &'static str {
        "requests or responses with `contents` or `candidates`, whose turns have `parts`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.is_one_list(is_contents) || probe.records().iter().any(is_record)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        let layout = probe.layout_or_list(is_contents);
        import_log(source, &probe, layout, Dialect::Gemini, self.format(), sink)
    }
}

fn is_record(record: &Outline) -> bool {
    let holds = |value: &Outline| {
        let content = value.get("contents").is_some_and(|contents| {
            is_contents(contents) || contents.get("parts").is_some_and(Outline::is_array)
        });
        let candidates = value.get("candidates").and_then(Outline::first);
        content || candidates.is_some_and(|first| first.get("content").is_some_and(is_content))
    };
    holds(record) || ["request", "response"].iter().any(|key| record.get(key).is_some_and(holds))
}

fn is_contents(list: &Outline) -> bool {
    list.first().is_some_and(is_content)
}

fn is_content(content: &Outline) -> bool {
    let part = content.get("parts").and_then(Outline::first);
    part.is_some_and(|part| part.get("type").is_none() && PARTS.iter().any(|key| part.get(key).is_some()))
}
