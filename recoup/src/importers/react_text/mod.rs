//! Plain-text ReAct transcripts, as the HotpotQA runs of ReAct and Reflexion print them:
//!
//! ```text
//! BEGIN TRIAL 1
//! Trial summary: Correct: 1, Incorrect: 0, Halted: 0
//! ------------- BEGIN CORRECT AGENTS -------------
//!
//! Question: …
//! Thought 1: …
//! Action 1: Search[…]
//! Observation 1: …
//! Correct answer: …
//! ```
//!
//! A run reaches from its question to the next question or banner; texts go on over several lines.
//! Thought and action are one turn of the policy: the thought as text, the action as a call of
//! `Search`, `Lookup` or whatever the word is, whose raw arguments are the bracket's text. `Answer is
//! CORRECT` after the last action is the scorer speaking, not the environment: it is the outcome and
//! hidden, as the correct answer is. Without it the heading decides; an agent that was HALTED was never
//! scored, so its outcome is unknown.
//!
//! The heads print some runs twice: one that answers wrongly with its last permitted step stands under
//! INCORRECT and again under HALTED. Equal text under another heading of the same trial is the same
//! run, printed again; it is noted, not imported.
//!
//! A run's text does not hold its trial: the banner above it does. A greedy policy gives the same text
//! in several trials and files, so trial and heading are part of the run's identity.

mod transcript;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};

use self::transcript::{Line, transcript};
use super::slice::RawRecord;
use super::{Event, ImportError, Importer, Probe, Shape, Sink, Source};
use crate::warning::{ByteSpan, Loss, Quarantine};

/// Plain-text ReAct transcripts.
pub(super) struct ReactText;

impl Importer for ReactText {
    fn format(&self) -> &'static str {
        "react-text"
    }

    /// Nothing but banners may stand before the first question, and a thought and an action must
    /// follow it: text that merely shows such a run is not recognized.
    fn recognizes(&self) -> &'static str {
        "a text of lines that begin with Question, Thought 1 and Action 1"
    }

    fn detect(&self, probe: &Probe) -> bool {
        if matches!(probe.shape, Shape::Zip | Shape::Binary) {
            return false;
        }
        let text = probe.text();
        let mut lines = text
            .lines()
            .map(Line::of)
            .skip_while(|line| matches!(line, Line::Banner | Line::Trial(_) | Line::Section(_)));
        if !matches!(lines.next(), Some(Line::Question(_))) {
            return false;
        }
        let mut labels = lines.filter(|line| !matches!(line, Line::More(_) | Line::Banner));
        matches!(labels.next(), Some(Line::Thought(_))) && matches!(labels.next(), Some(Line::Action(_)))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let limit = source.options().record_bytes_max;
        let mut reader = BufReader::new(source.open()?);
        let mut pages = Pages::new(source);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.by_ref().take(limit + 1).read_until(b'\n', &mut line);
            if read.map_err(|error| ImportError::io(source, error))? == 0 {
                return pages.close(sink);
            }
            pages.line(&line, sink)?;
        }
    }
}

/// A transcript while it is read: the run at hand and what was seen before it.
struct Pages<'a> {
    source: &'a Source,
    offset: u64,
    number: u64,
    trial: Option<i64>,
    section: Option<String>,
    run: Option<Open>,
    /// How often each run, by the name made of its trial, heading and text, was imported.
    imported: BTreeMap<String, u64>,
    /// Under which headings of this trial it was printed.
    printed: BTreeMap<String, Option<String>>,
}

/// A run whose end has not been seen.
struct Open {
    bytes: Vec<u8>,
    start: u64,
    line: u64,
    too_large: bool,
}

impl<'a> Pages<'a> {
    fn new(source: &'a Source) -> Self {
        Self {
            source,
            offset: 0,
            number: 0,
            trial: None,
            section: None,
            run: None,
            imported: BTreeMap::new(),
            printed: BTreeMap::new(),
        }
    }

    fn line(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), ImportError> {
        let start = self.offset;
        self.offset += bytes.len() as u64;
        self.number += 1;
        let text = String::from_utf8_lossy(bytes);
        match Line::of(&text) {
            Line::Trial(trial) => {
                self.close(sink)?;
                (self.trial, self.section) = (Some(trial), None);
                self.printed.clear();
            }
            Line::Section(section) => {
                self.close(sink)?;
                self.section = Some(section.to_owned());
            }
            Line::Question(_) => {
                self.close(sink)?;
                self.run = Some(Open { bytes: bytes.to_vec(), start, line: self.number, too_large: false });
            }
            Line::Banner if text.trim_start().starts_with('#') => self.close(sink)?,
            _ => {
                let limit = self.source.options().record_bytes_max;
                let blank = text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty();
                if self.run.is_none() && !blank && !matches!(Line::of(&text), Line::Banner) {
                    let reason = "text outside of any run";
                    sink.loss(Loss::new(ReactText.format(), "transcript", reason))?;
                }
                if let Some(run) = &mut self.run {
                    run.too_large |= (run.bytes.len() + bytes.len()) as u64 > limit;
                    if !run.too_large {
                        run.bytes.extend_from_slice(bytes);
                    }
                }
            }
        }
        Ok(())
    }

    /// Hands on the run at hand, if there is one.
    fn close(&mut self, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let Some(mut open) = self.run.take() else { return Ok(()) };
        if open.too_large {
            sink.event(Event::Quarantine(Quarantine {
                uri: self.source.uri().to_owned(),
                line: Some(open.line),
                span: Some(ByteSpan { start: open.start, end: self.offset }),
                code: "too-large".to_owned(),
                reason: "larger than a record may be; raise `--max-record` to read it".to_owned(),
            }))?;
            return Ok(());
        }
        let tail = open.bytes.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
        open.bytes.truncate(open.bytes.len() - tail);
        let mut record = RawRecord::at(self.source, open.bytes, open.start, open.line);
        record.hash();
        if let Some(heading) = self.printed.get(&record.sha256)
            && *heading != self.section
        {
            let reason = "a run printed again under another heading of its trial";
            return Ok(sink.loss(Loss::new(ReactText.format(), "transcript", reason))?);
        }
        self.printed.insert(record.sha256.clone(), self.section.clone());
        if std::str::from_utf8(&record.bytes).is_err() {
            record.losses.push("invalid UTF-8 became U+FFFD");
        }
        let mut run = transcript(&String::from_utf8_lossy(&record.bytes), self.section.as_deref());
        run.trial = self.trial;
        let trial = self.trial.map_or_else(String::new, |trial| format!("trial {trial}/"));
        let heading = self.section.as_ref().map_or_else(String::new, |section| format!("{section}/"));
        let name = format!("{trial}{heading}{}", record.sha256);
        let before = self.imported.entry(name.clone()).or_default();
        let native = if *before > 0 { format!("{name}/{before}") } else { name };
        *before += 1;
        Ok(record.emit(sink, run, Some(native), Vec::new(), 0)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::ReactText;
    use crate::id::TrajectoryKey;
    use crate::importers::{Event, Importer as _, Probe, Source};

    const RUN: &str = "Question: Who?\nThought 1: hm\nAction 1: Search[x]\nObservation 1: y\n";

    fn detected(text: &str) -> bool {
        ReactText.detect(&Probe::of("x.txt", text.as_bytes().to_vec(), true))
    }

    fn keys(text: &str) -> Vec<TrajectoryKey> {
        let source = Source::from_bytes("x.txt", text.as_bytes(), Arc::default());
        let mut events: Vec<Event> = Vec::new();
        ReactText.import(&source, &mut events).unwrap();
        let run = |event| if let Event::Trajectory(run) = event { Some(run.head.key) } else { None };
        events.into_iter().filter_map(run).collect()
    }

    #[test]
    fn equal_text_in_another_trial_is_another_run() {
        let trials = format!("BEGIN TRIAL 1\n{RUN}{RUN}BEGIN TRIAL 2\n{RUN}");
        let told = keys(&trials);
        assert_eq!(told.iter().collect::<BTreeSet<_>>().len(), 3);
        assert_eq!(told, keys(&trials), "and the same one when it is read again");
        assert!(!told.contains(&keys(RUN)[0]), "nor is it the run of a file without trials");
    }

    #[test]
    fn only_a_transcript_is_recognized() {
        assert!(detected(RUN));
        assert!(detected(&format!("####\nBEGIN TRIAL 1\n---- BEGIN CORRECT AGENTS ---\n\n{RUN}")));
        assert!(!detected(&format!("# ReAct\n\nAn example:\n\n{RUN}")));
        assert!(!detected("Question: Who?\nAnswer: me\n"));
        assert!(!detected(""));
    }
}
