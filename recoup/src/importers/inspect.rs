//! Inspect logs: `.eval`, a zip archive with one member a sample, and `.json`, one object with an array
//! of samples. Each sample is a run.
//!
//! A log of an evaluation that was stopped before its first sample holds no run; that is no error.

mod attachments;
mod log;
mod message;
mod model_event;
mod sample;
mod score;
mod scout;

use self::log::Log;
pub(super) use self::scout::InspectScout;
use super::slice::{self, Layout};
use super::source::Members;
use super::{Event, ImportError, Importer, Outline, Probe, RawRecord, RecordError, Shape, Sink, Source};
use crate::warning::{Loss, Quarantine};

const FORMAT: &str = "inspect";
/// Members of an archive that say something of the whole evaluation, the more complete first.
const HEADERS: [&str; 2] = ["header.json", "_journal/start.json"];

/// Inspect logs: `.eval` archives and `.json`.
pub(super) struct Inspect;

impl Importer for Inspect {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "an evaluation log with `version`, `status` and `eval`, or a zip archive with one member a sample"
    }

    fn detect(&self, probe: &Probe) -> bool {
        match probe.shape {
            Shape::Zip => first_member(&probe.head).is_some_and(|name| is_member(&name)),
            Shape::Object => probe.values.first().is_some_and(is_log),
            _ => false,
        }
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        if probe.shape == Shape::Zip { archive(source, sink) } else { json(source, sink) }
    }
}

fn is_log(value: &Outline) -> bool {
    value.has_all(&["version", "status", "eval"])
        && value.get("eval").is_some_and(|eval| eval.has_all(&["task", "model"]))
}

/// Name of an archive's first member, from its local header.
fn first_member(head: &[u8]) -> Option<String> {
    let length = head.get(26..28)?;
    let length = usize::from(u16::from_le_bytes([*length.first()?, *length.get(1)?]));
    Some(String::from_utf8_lossy(head.get(30..30 + length)?).into_owned())
}

fn is_member(name: &str) -> bool {
    is_sample(name)
        || name.starts_with("_journal/")
        || ["header.json", "summaries.json", "reductions.json"].contains(&name)
}

/// Member names are data: they are looked at and never become a path.
fn is_sample(name: &str) -> bool {
    name.strip_prefix("samples/").is_some_and(|name| name.strip_suffix(".json").is_some())
}

fn archive(source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let mut members = source.members()?;
    let names = members.names();
    let mut log = None;
    for name in HEADERS.into_iter().filter(|name| names.iter().any(|known| known == name)) {
        match members.read(name).map_err(|problem| RecordError::new(problem.code, problem.reason)) {
            Ok(member) => {
                let read = whole(&member).and_then(|record| Log::read(&record.bytes));
                match read {
                    Ok(read) => {
                        log = Some(read);
                        break;
                    }
                    Err(error) => sink.event(refused(member.uri(), &error))?,
                }
            }
            Err(error) => sink.event(refused(&format!("{}#{name}", source.uri()), &error))?,
        }
    }
    let log = log.ok_or_else(|| ImportError::Unreadable {
        uri: source.uri().to_owned(),
        code: "missing-field",
        reason: "the archive has no readable header".to_owned(),
    })?;
    note_shared_names(&members, sink)?;
    for name in &names {
        if !is_sample(name) {
            if !is_member(name) {
                sink.loss(Loss::new(FORMAT, "member", "the archive holds a file that is no part of a log"))?;
            }
            continue;
        }
        let record = members.read(name).map_err(|problem| RecordError::new(problem.code, problem.reason));
        match record.and_then(|member| whole(&member)) {
            Ok(record) => {
                record.attempt(sink, |record, sink| sample::read(record, &log, source.options(), sink))?;
            }
            Err(error) => sink.event(refused(&format!("{}#{name}", source.uri()), &error))?,
        }
    }
    Ok(())
}

/// Inspect itself reads the last of several members with one name; the others are said to be there.
fn note_shared_names(members: &Members, sink: &mut dyn Sink) -> Result<(), ImportError> {
    match members.shared_names() {
        Ok(names) => {
            for (name, count) in names {
                let reason = format!("{count} members have this name; the last one is read");
                let uri = format!("{}#{name}", members.uri());
                sink.event(refused(&uri, &RecordError::new("duplicate-name", reason)))?;
            }
        }
        Err(problem) => {
            sink.event(refused(&problem.uri, &RecordError::new("duplicate-name", problem.reason)))?;
        }
    }
    Ok(())
}

/// A member as one record.
fn whole(member: &Source) -> Result<RawRecord, RecordError> {
    let bytes = member.read_all(member.options().record_bytes_max).map_err(|error| {
        let code = if let ImportError::Unreadable { code, .. } = &error { code } else { "unreadable" };
        RecordError::new(code, error.to_string())
    })?;
    Ok(RawRecord::whole(member, bytes))
}

fn refused(uri: &str, error: &RecordError) -> Event {
    Event::Quarantine(Quarantine {
        uri: uri.to_owned(),
        line: None,
        span: None,
        code: error.code.to_owned(),
        reason: error.reason.clone(),
    })
}

fn json(source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let header = match slice::header(source, &["samples"]) {
        Ok(header) => header,
        // A log without its samples: nothing ran.
        Err(ImportError::Unreadable { code: "missing-field", .. }) => return Ok(()),
        // A log cut off among its samples: the complete ones are runs like any other.
        Err(ImportError::Unreadable { code: "truncated", .. }) => {
            slice::header_before_cut(source, &["samples"])?
        }
        Err(error) => return Err(error),
    };
    let log = match Log::read(&header.bytes) {
        Ok(log) => log,
        Err(error) => return Ok(sink.event(header.quarantine(&error))?),
    };
    slice::each(source, Layout::Elements(&["samples"]), sink, |record, sink| {
        sample::read(record, &log, source.options(), sink)
    })
}

#[cfg(test)]
mod tests {
    use super::{Inspect, first_member};
    use crate::importers::{Importer as _, Probe};

    #[test]
    fn an_archive_is_told_by_its_first_member() {
        let mut head = b"PK\x03\x04".to_vec();
        head.resize(26, 0);
        head.extend([19, 0, 0, 0]);
        head.extend(b"_journal/start.json");
        assert_eq!(first_member(&head).as_deref(), Some("_journal/start.json"));
        assert!(Inspect.detect(&Probe::of("x", head.clone(), true)));
        head.truncate(34);
        assert!(!Inspect.detect(&Probe::of("x", head, true)));
    }
}
