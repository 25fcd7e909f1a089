//! The example of an importer of one's own does what its page says.

#[path = "../../examples/custom_importer.rs"]
#[expect(unreachable_pub, reason = "what the example shows is public there")]
mod example;

use recoup::store::{Filter, Page, Store};
use recoup::trajectory::Status;

const LOG: &str = "== run 7 | task parking | solved
USER Where can I park?
CALL find_parking {\"near\": \"station\"}
RESULT deck B, 2nd floor
AGENT Deck B has room.

== run 8 | task parking | failed
USER And a bicycle?
SHRUG
AGENT No.
";

#[test]
fn an_importer_of_ones_own_stands_beside_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("protocol.log"), LOG).unwrap();
    std::fs::write(place("chat.json"), r#"{"messages":[{"role":"user","content":"hi"}]}"#).unwrap();
    let paths = [folder.path().to_string_lossy().into_owned()];
    let imported = example::import(&paths, &place("project"), "2026-01-01T00:00:00Z").unwrap();
    let formats: Vec<(&str, u64)> =
        imported.files.iter().map(|(name, files)| (name.as_str(), *files)).collect();
    assert_eq!(formats, [("openai-chat", 1), ("protocol", 1)]);
    assert_eq!((imported.stored.counts.new, imported.stored.counts.tool_calls), (3, 1));
    assert_eq!(imported.stored.quarantined[0].line, Some(9));

    let store = Store::open(&place("project")).unwrap();
    let rows = store.list(&Filter::default(), Page::ALL).unwrap();
    let run = rows.iter().find(|row| row.native_id.as_deref() == Some("7")).unwrap();
    let run = store.load(run.id).unwrap();
    assert_eq!(run.outcome().status, Status::Success);
    assert_eq!((run.task.goal.as_str(), run.nodes.len()), ("Where can I park?", 4));

    std::fs::write(place("protocol.log"), LOG.to_owned() + "AGENT Or yes.\n").unwrap();
    let again = example::import(&paths, &place("project"), "2026-01-01T00:00:00Z").unwrap();
    assert_eq!((again.stored.counts.duplicates, again.stored.counts.revisions), (2, 1), "run 8 went on");
}
