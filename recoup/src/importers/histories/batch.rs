//! A batch's requests, which lie in a file beside its results.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::importers::object::Object;
use crate::importers::slice::{Places, RawRecord, Records};
use crate::importers::value::text;
use crate::importers::{Layout, Outline, Probe, Source};
use crate::warning::ByteSpan;

/// Names that tell results from requests: a word of the results' file and what stands in its place in
/// that of the requests.
const PAIRS: [(&str, &str); 7] = [
    ("results", "requests"),
    ("result", "request"),
    ("results", "request"),
    ("responses", "requests"),
    ("output", "input"),
    ("predictions", "requests"),
    ("predictions", "input"),
];
/// What OpenAI and Anthropic call a request within its batch.
pub(super) const CUSTOM_ID: &str = "custom_id";
/// Members that name a request within its batch; the second is Google's.
const NAMES: [&str; 2] = [CUSTOM_ID, "key"];

/// The requests of a batch by their names; each is read when it is asked for.
pub(super) struct Requests {
    spans: BTreeMap<String, ByteSpan>,
    places: RefCell<Places>,
    source: Source,
}

impl Requests {
    /// Finds the requests beside a file of results.
    pub(super) fn beside(results: &Source) -> Option<Self> {
        let name = results.name();
        let siblings = PAIRS.iter().filter_map(|(word, other)| {
            let (before, after) = name.rsplit_once(word)?;
            let stem = format!("{before}{other}{after}");
            results.sibling(&stem).ok()
        });
        siblings.into_iter().find_map(Self::open)
    }

    /// True for a file of requests beside which their results lie, with which they are read.
    pub(super) fn are_answered(requests: &Source, probe: &Probe) -> bool {
        let asks = |record: &Outline| {
            let named = NAMES.iter().any(|key| record.get(key).is_some());
            named && ["response", "result", "error"].iter().all(|key| record.get(key).is_none())
        };
        if probe.records().is_empty() || !probe.records().iter().all(asks) {
            return false;
        }
        let name = requests.name();
        PAIRS.iter().any(|(other, word)| {
            let results = name.rsplit_once(word).map(|(before, after)| format!("{before}{other}{after}"));
            results.is_some_and(|results| requests.has_sibling(&results))
        })
    }

    fn open(source: Source) -> Option<Self> {
        let layout = match Probe::read(&source).ok()? {
            probe if probe.records().iter().any(|record| record.get("requests").is_some()) => {
                Layout::Elements(&["requests"])
            }
            probe => probe.layout(),
        };
        let mut spans = BTreeMap::new();
        let mut records = Records::new(&source, layout).ok()?;
        while let Some(Ok(item)) = records.next_raw() {
            let Ok(record) = item else { continue };
            let name = record.parse().ok().and_then(|request| name(&request));
            if let Some(name) = name {
                spans.insert(name, record.span);
            }
        }
        let places = RefCell::new(Places::new(source.open_seekable().ok()?));
        (!spans.is_empty()).then_some(Self { spans, places, source })
    }

    /// The request that a result answers, as it stands in its file.
    pub(super) fn of(&self, result: &Object<'_>) -> Option<RawRecord> {
        let span = *self.spans.get(&name(result)?)?;
        let mut bytes = Vec::new();
        self.places.borrow_mut().append(span, &mut bytes).ok()?;
        let mut record = RawRecord::at(&self.source, bytes, span.start, 1);
        record.rewrite();
        Some(record)
    }
}

/// The name of a request or a result within its batch.
fn name(object: &Object<'_>) -> Option<String> {
    NAMES.iter().find_map(|key| object.get(key).and_then(text)).map(Cow::into_owned)
}
