//! An explanation: who would take a file and why, what it would give, and what would be lost. Nothing is
//! stored.
//!
//! The reason is what the importer says it recognizes ([`Importer::recognizes`]). Of a file that nobody
//! takes, the keys that were seen are held against the keys in those phrases: the formats that share the
//! most are the nearest.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::importers::{Event, ImportError, Importer, Outline, Probe, Shape, Sink, SinkError, Source};
use crate::store::OutcomeCounts;
use crate::warning::{CountedLoss, Loss, Quarantine};

/// Keys of the first record that are listed.
const KEYS_MAX: usize = 12;
/// Formats that are named as near.
const NEAREST_MAX: usize = 3;
/// A near format shares at least one of so many of its keys.
const SHARE_LEAST: usize = 3;
/// Quarantined records that are listed one by one; beyond them they are only counted.
const QUARANTINED_MAX: usize = 100;

/// What an import of one file would do.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The file.
    pub uri: String,
    /// The format that it would be read as, and why; `None` where no importer takes it.
    pub taken: Option<Recognized>,
    /// Formats that recognize it too and come later.
    pub also: Vec<Recognized>,
    /// Where nobody takes it: the formats that share the most keys with it, nearest first.
    pub nearest: Vec<Near>,
    /// True for a file that belongs to other files' traces and holds none itself.
    pub companion: bool,
    /// What its first bytes look like.
    pub seen: Option<Seen>,
    /// Runs that it would give.
    pub runs: u64,
    /// Messages of these runs.
    pub nodes: u64,
    /// Tool calls in them.
    pub tool_calls: u64,
    /// Tool results in them.
    pub tool_results: u64,
    /// Labels about runs, in the runs or by name.
    pub labels: u64,
    /// The runs by outcome, as the file says.
    pub outcomes: OutcomeCounts,
    /// What the records could not carry.
    pub losses: Vec<CountedLoss>,
    /// The first hundred records that cannot be read.
    pub quarantined: Vec<Quarantine>,
    /// How many cannot be read.
    pub quarantined_count: u64,
    /// Why the file cannot be read at all.
    pub error: Option<String>,
}

/// A format that recognizes a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Recognized {
    /// Its name.
    pub format: String,
    /// What it recognizes.
    pub because: String,
}

/// A format that does not recognize a file, and shares keys with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Near {
    /// Its name.
    pub format: String,
    /// What it would recognize.
    pub wants: String,
    /// Keys of that which the file has.
    pub has: Vec<String>,
    /// Keys of that which the file's first records lack.
    pub lacks: Vec<String>,
}

/// What the first bytes of a file look like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Seen {
    /// `one JSON object`, `JSON lines` …
    pub shape: &'static str,
    /// Keys of the first record, in its order.
    pub keys: Vec<String>,
}

impl Explanation {
    /// True where an import would leave nothing out that a person should look at.
    pub fn is_clean(&self) -> bool {
        self.error.is_none() && self.quarantined_count == 0 && (self.taken.is_some() || self.companion)
    }
}

/// Says what an import of the file by the first of these importers that takes it would do.
pub fn explain(source: &Source, importers: &[&dyn Importer]) -> Explanation {
    let mut explanation = Explanation {
        uri: source.uri().to_owned(),
        taken: None,
        also: Vec::new(),
        nearest: Vec::new(),
        companion: false,
        seen: None,
        runs: 0,
        nodes: 0,
        tool_calls: 0,
        tool_results: 0,
        labels: 0,
        outcomes: OutcomeCounts::default(),
        losses: Vec::new(),
        quarantined: Vec::new(),
        quarantined_count: 0,
        error: None,
    };
    if let Err(error) = look(source, importers, &mut explanation) {
        explanation.error = Some(match error {
            ImportError::Unreadable { reason, .. } => reason,
            ImportError::Io { source, .. } => source.to_string(),
            ImportError::Sink(error) => error.to_string(),
        });
    }
    explanation
}

fn look(
    source: &Source,
    importers: &[&dyn Importer],
    explanation: &mut Explanation,
) -> Result<(), ImportError> {
    let probe = Probe::read(source)?;
    explanation.seen = Some(seen(&probe));
    let mut takers = importers.iter().filter(|importer| importer.detect(&probe));
    let Some(importer) = takers.next() else {
        explanation.companion = source.is_companion();
        explanation.nearest = nearest(&probe, importers);
        // An archive that cannot be opened is an error, not a file of no format.
        return crate::importers::detect_among(source, importers).map(|_| ());
    };
    let recognized = |importer: &dyn Importer| Recognized {
        format: importer.format().to_owned(),
        because: importer.recognizes().to_owned(),
    };
    explanation.taken = Some(recognized(*importer));
    explanation.also = takers.map(|importer| recognized(*importer)).collect();
    let mut tally = Tally { explanation, losses: BTreeMap::new() };
    let read = importer.import(source, &mut tally);
    let losses = tally.losses;
    explanation.losses = losses.into_iter().map(|(loss, count)| CountedLoss { loss, count }).collect();
    read
}

/// Counts what comes and keeps nothing of it.
struct Tally<'a> {
    explanation: &'a mut Explanation,
    losses: BTreeMap<Loss, u64>,
}

impl Sink for Tally<'_> {
    fn event(&mut self, event: Event) -> Result<(), SinkError> {
        let told = &mut *self.explanation;
        match event {
            Event::Trajectory(run) => {
                told.runs += 1;
                told.nodes += run.bodies.len() as u64;
                told.tool_calls += run.tool_call_count as u64;
                told.tool_results += run.tool_result_count as u64;
                told.labels += run.labels.len() as u64;
                told.outcomes.add_many(run.head.outcome().status, 1);
            }
            Event::Label(_) => told.labels += 1,
            Event::Quarantine(quarantine) => {
                told.quarantined_count += 1;
                if told.quarantined.len() < QUARANTINED_MAX {
                    told.quarantined.push(quarantine);
                }
            }
            Event::Loss(loss) => *self.losses.entry(loss).or_default() += 1,
        }
        Ok(())
    }
}

fn seen(probe: &Probe) -> Seen {
    let shape = match probe.shape {
        Shape::Object => "one JSON object",
        Shape::Array => "a JSON array",
        Shape::Lines => "JSON lines",
        Shape::Zip => "a zip archive",
        Shape::Table => "rows of a table (Parquet or CSV)",
        Shape::Text if probe.head.is_empty() => "nothing, the file is empty",
        Shape::Text => "text",
        Shape::Binary => "binary data",
    };
    let keys = match probe.records().first() {
        Some(Outline::Object(members)) => members.iter().map(|(key, _)| key.clone()).take(KEYS_MAX).collect(),
        _ => Vec::new(),
    };
    Seen { shape, keys }
}

fn nearest(probe: &Probe, importers: &[&dyn Importer]) -> Vec<Near> {
    let mut keys = BTreeSet::new();
    for value in &probe.values {
        gather(value, &mut keys);
    }
    let mut near: Vec<Near> = importers
        .iter()
        .filter_map(|importer| {
            let wants = importer.recognizes();
            // A key that is named twice counts once.
            let mut named = BTreeSet::new();
            let wanted = wants.split('`').skip(1).step_by(2).filter(|key| named.insert(*key));
            let (has, lacks): (Vec<String>, Vec<String>) =
                wanted.map(str::to_owned).partition(|key| keys.contains(&**key));
            let wants = wants.to_owned();
            let enough = !has.is_empty() && has.len() * SHARE_LEAST >= has.len() + lacks.len();
            enough.then(|| Near { format: importer.format().to_owned(), wants, has, lacks })
        })
        .collect();
    // By the share of keys that are there, in thousandths; among equals the more particular format.
    near.sort_by_key(|near| {
        std::cmp::Reverse((near.has.len() * 1000 / (near.has.len() + near.lacks.len()), near.has.len()))
    });
    near.truncate(NEAREST_MAX);
    near
}

fn gather<'a>(value: &'a Outline, keys: &mut BTreeSet<&'a str>) {
    match value {
        Outline::Object(members) => {
            for (key, value) in members {
                keys.insert(key);
                gather(value, keys);
            }
        }
        Outline::Array(elements) => elements.iter().for_each(|element| gather(element, keys)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Explanation, explain};
    use crate::importers::{IMPORTERS, Source};

    fn explained(name: &str, text: &str) -> Explanation {
        explain(&Source::from_bytes(name, text.as_bytes(), Arc::default()), IMPORTERS)
    }

    #[test]
    fn every_format_says_what_it_recognizes() {
        for importer in IMPORTERS {
            let words = importer.recognizes();
            assert!(
                words.len() > 20 && words.matches('`').count() % 2 == 0,
                "{}: {words}",
                importer.format()
            );
        }
    }

    #[test]
    fn what_a_file_would_give_is_counted() {
        let text = "{\"success\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n{broken\n";
        let told = explained("a.jsonl", text);
        assert_eq!(told.taken.as_ref().map(|taken| taken.format.as_str()), Some("openai-chat"));
        assert_eq!((told.runs, told.nodes, told.outcomes.success, told.quarantined_count), (1, 1, 1, 1));
        assert!(!told.is_clean());
    }

    #[test]
    fn a_file_that_nobody_takes_has_neighbors() {
        let told = explained("a.jsonl", "{\"conversations\":[{\"who\":\"human\",\"value\":\"hi\"}]}\n{}\n");
        assert_eq!(told.taken, None);
        assert_eq!(told.nearest[0].format, "sharegpt");
        assert_eq!(
            (told.nearest[0].has.join(" "), told.nearest[0].lacks.join(" ")),
            ("conversations value".to_owned(), "from".to_owned())
        );
        assert_eq!(told.seen.unwrap().keys, ["conversations"]);
        assert!(explained("report.json", "{\"a\":1}").is_clean(), "a companion");
        let utf16 = explain(&Source::from_bytes("x", &b"\xff\xfe{\0"[..], Arc::default()), IMPORTERS);
        assert_eq!(utf16.error.as_deref(), Some("UTF-16 text; recoup reads UTF-8"));
    }
}
