use std::io::{Cursor, Write as _};
use std::sync::Arc;

use recoup::importers::{Event, ImportError, ImportOptions, Scoring, Source, detect};
use recoup::trajectory::{Sealed, Status, body_from_bytes};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

const HEADER: &str =
    r#"{"version":2,"status":"success","eval":{"task":"t","model":"m","scorers":[{"name":"s"}]}}"#;

fn sample(id: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{id}","epoch":1,"uuid":"uuid-{id}","messages":[{{"role":"user","content":"q"}},
        {{"role":"assistant","source":"generate","content":"{text}"}}],"scores":{{"s":{{"value":"C"}}}}}}"#
    )
}

fn archive(members: &[(&str, &str, CompressionMethod)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text, method) in members {
        zip.start_file(*name, SimpleFileOptions::default().compression_method(*method)).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn import(bytes: Vec<u8>, options: ImportOptions) -> Result<Vec<Event>, ImportError> {
    let source = Source::from_bytes("log.eval", bytes, Arc::new(options));
    let importer = detect(&source)?.expect("an archive of a log is recognized");
    assert_eq!(importer.format(), "inspect");
    let mut events = Vec::new();
    importer.import(&source, &mut events)?;
    Ok(events)
}

fn runs(events: &[Event]) -> Vec<&Sealed> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Trajectory(run) => Some(&**run),
            _ => None,
        })
        .collect()
}

fn refusals(events: &[Event]) -> Vec<(&str, &str)> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Quarantine(entry) => Some((entry.uri.as_str(), entry.code.as_str())),
            _ => None,
        })
        .collect()
}

use CompressionMethod::{Deflated, Stored, Zstd};

#[test]
fn members_of_every_packing_are_runs() {
    let members = [
        ("_journal/start.json", "{}", Stored),
        ("samples/a_epoch_1.json", &*sample("a", "one"), Deflated),
        ("samples/b_epoch_1.json", &*sample("b", "two"), Zstd),
        ("summaries.json", "[]", Zstd),
        ("header.json", HEADER, Zstd),
    ];
    let events = import(archive(&members), ImportOptions::default()).unwrap();
    let runs = runs(&events);
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1].native_id.as_deref(), Some("uuid-b"));
    assert_eq!(runs[1].head.source.uri, "log.eval#samples/b_epoch_1.json");
    assert_eq!(runs[1].head.outcome().status, Status::Success);
    assert_eq!(body_from_bytes(runs[1].bodies[1].bytes.as_bytes()).unwrap().text(), "two");
    assert_eq!(refusals(&events), []);
}

#[test]
fn a_log_that_never_ended_has_its_journal() {
    let sample = sample("a", "one");
    let members = [("_journal/start.json", HEADER, Deflated), ("samples/a_epoch_1.json", &*sample, Deflated)];
    assert_eq!(runs(&import(archive(&members), ImportOptions::default()).unwrap()).len(), 1);
    let none = [("_journal/start.json", &*HEADER.replace("success", "cancelled"), Deflated)];
    assert!(
        import(archive(&none), ImportOptions::default()).unwrap().is_empty(),
        "no sample, no run, no error"
    );
}

#[test]
fn hostile_member_names_are_only_names() {
    let outside = tempfile::tempdir().unwrap();
    let absolute = outside.path().join("x.json");
    let (one, two) = (sample("a", "one"), sample("b", "two"));
    let members = [
        ("header.json", HEADER, Deflated),
        ("../../x.json", &*one, Deflated),
        (absolute.to_str().unwrap(), &*one, Deflated),
        ("samples/../../../y.json", &*two, Deflated),
    ];
    let events = import(archive(&members), ImportOptions::default()).unwrap();
    assert_eq!(runs(&events).len(), 1, "a sample is one whatever it is called");
    assert_eq!(
        events.iter().filter(|event| matches!(event, Event::Loss(loss) if loss.field == "member")).count(),
        2
    );
    assert_eq!(
        std::fs::read_dir(outside.path()).unwrap().count(),
        0,
        "nothing is written under a member's name"
    );
}

#[test]
fn a_bad_member_costs_only_itself() {
    let damaged = sample("broken", "these bytes are damaged");
    let (good, large) = (sample("good", "fine"), sample("large", &"x".repeat(5000)));
    let members = [
        ("header.json", HEADER, Stored),
        ("samples/broken_epoch_1.json", &*damaged, Stored),
        ("samples/cut_epoch_1.json", "{\"id\": 1, \"mess", Stored),
        ("samples/large_epoch_1.json", &*large, Deflated),
        ("samples/good_epoch_1.json", &*good, Deflated),
    ];
    let mut bytes = archive(&members);
    let at = bytes.windows(7).position(|window| window == b"damaged").unwrap();
    bytes[at] ^= 1;
    let options = ImportOptions { record_bytes_max: 4000, ..ImportOptions::default() };
    let events = import(bytes, options).unwrap();
    assert_eq!(runs(&events).len(), 1);
    assert_eq!(
        refusals(&events),
        [
            ("log.eval#samples/broken_epoch_1.json", "bad-archive"),
            ("log.eval#samples/cut_epoch_1.json", "truncated"),
            ("log.eval#samples/large_epoch_1.json", "too-large"),
        ]
    );
}

#[test]
fn without_a_header_nothing_says_what_the_samples_are() {
    let sample = sample("a", "one");
    let bytes = archive(&[("samples/a_epoch_1.json", &*sample, Deflated)]);
    let error = import(bytes, ImportOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "log.eval: the archive has no readable header");
    let mut cut =
        archive(&[("header.json", HEADER, Deflated), ("samples/a_epoch_1.json", &*sample, Deflated)]);
    cut.truncate(cut.len() / 2);
    assert!(matches!(
        import(cut, ImportOptions::default()),
        Err(ImportError::Unreadable { code: "bad-archive", .. })
    ));
}

#[test]
fn the_users_choice_of_scorer_decides() {
    let scored = r#"{"id":1,"epoch":1,"messages":[],"scores":{"a":{"value":"C"},"b":{"value":{"x":0.4}}}}"#;
    let bytes = archive(&[("header.json", HEADER, Deflated), ("samples/1_epoch_1.json", scored, Deflated)]);
    let outcome = |score: Option<&str>, success_at: Option<f64>| {
        let scoring = Scoring { score: score.map(str::to_owned), success_at };
        let events = import(bytes.clone(), ImportOptions { scoring, ..ImportOptions::default() }).unwrap();
        runs(&events)[0].head.outcome().status
    };
    assert_eq!(outcome(None, None), Status::Unknown);
    assert_eq!(outcome(Some("a"), None), Status::Success);
    assert_eq!(outcome(Some("b/x"), None), Status::Failure);
    assert_eq!(outcome(Some("b/x"), Some(0.3)), Status::Success);
}

#[test]
fn references_to_one_attachment_do_not_fill_the_memory() {
    let hash = "0123456789abcdef0123456789abcdef";
    let many = format!("attachment://{hash} ").repeat(20_000);
    let bomb = format!(
        r#"{{"id":1,"epoch":1,"messages":[{{"role":"user","content":"{many}"}}],"attachments":{{"{hash}":"{}"}}}}"#,
        "x".repeat(100_000)
    );
    let bytes = archive(&[("header.json", HEADER, Deflated), ("samples/1_epoch_1.json", &bomb, Stored)]);
    let options = ImportOptions { record_bytes_max: 2 << 20, ..ImportOptions::default() };
    let events = import(bytes, options).unwrap();
    let stored: usize = runs(&events)[0].bodies.iter().map(|body| body.bytes.len()).sum();
    assert!(stored < 4 << 20, "{stored} bytes");
    assert!(events.iter().any(|event| matches!(event, Event::Loss(loss) if loss.field == "attachments")));
}

/// The archive's index knows the last of several members with one name; that there are others is said.
#[test]
fn members_that_share_a_name_are_said_to() {
    let (first, last) = (sample("a", "first"), sample("a", "last"));
    let members = [
        ("header.json", HEADER, Stored),
        ("samples/a_epoch_1.json", &*first, Deflated),
        ("samples/b_epoch_1.json", &*last, Deflated),
    ];
    let mut bytes = archive(&members);
    while let Some(at) = bytes.windows(9).position(|window| window == b"samples/b") {
        bytes[at + 8] = b'a';
    }
    let events = import(bytes, ImportOptions::default()).unwrap();
    let runs = runs(&events);
    assert_eq!(runs.len(), 1);
    assert_eq!(body_from_bytes(runs[0].bodies[1].bytes.as_bytes()).unwrap().text(), "last");
    assert_eq!(refusals(&events), [("log.eval#samples/a_epoch_1.json", "duplicate-name")]);
}
