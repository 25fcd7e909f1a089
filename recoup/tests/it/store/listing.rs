//! Listing, resolving, searching.

use recoup::store::{Filter, Page, StoreError};
use recoup::trajectory::{ArgumentsForm, Node, Part, Role, ToolCall};

use super::{draft, import, project, rows, run, sealed};

#[test]
fn pages_follow_import_order() {
    let (_dir, mut store) = project();
    let names: Vec<String> = (0..25).map(|i| format!("run-{i}")).collect();
    import(&mut store, names.iter().map(|name| run(name, &["q", name])));
    let mut seen = Vec::new();
    for offset in (0..30).step_by(10) {
        let page = store.list(&Filter::default(), Page { offset, limit: 10 }).unwrap();
        seen.extend(page.into_iter().filter_map(|row| row.native_id));
    }
    assert_eq!(seen, names);
    assert_eq!(store.count(&Filter::default()).unwrap(), 25);
}

#[test]
fn filters_hold_together() {
    let (_dir, mut store) = project();
    let mut other = draft("task/b", "", &["q", "a"]);
    other.agents[0].model = Some("gpt".to_owned());
    other.source.uri = "folder/b.json".to_owned();
    import(&mut store, [run("a", &["q", "a"]), sealed("b", other)]);
    let count = |filter: Filter| store.count(&filter).unwrap();
    assert_eq!(count(Filter { model: Some("gpt".to_owned()), ..Filter::default() }), 1);
    assert_eq!(count(Filter { uri: Some("folder/".to_owned()), ..Filter::default() }), 1);
    assert_eq!(count(Filter { agent: Some("assistant".to_owned()), ..Filter::default() }), 2);
    assert_eq!(count(Filter { agent: Some("assist".to_owned()), ..Filter::default() }), 0);
    assert_eq!(count(Filter { outcome: Some("failure".to_owned()), ..Filter::default() }), 2);
    let both = Filter { task: Some("task/a".to_owned()), model: Some("gpt".to_owned()), ..Filter::default() };
    assert_eq!(count(both), 0);
}

#[test]
fn a_prefix_names_one_run() {
    let (_dir, mut store) = project();
    import(&mut store, (0..40).map(|i| run(&format!("run-{i}"), &["q", "a"])));
    for row in rows(&store) {
        assert_eq!(store.resolve(&row.id.to_string()[..16].to_uppercase()).unwrap(), row.id);
    }
    assert!(matches!(store.resolve("xyz"), Err(StoreError::NotFound { .. })));
    assert!(matches!(store.resolve(""), Err(StoreError::NotFound { .. })));
    let ambiguous = ('0'..='9').chain('a'..='f').find_map(|digit| match store.resolve(&digit.to_string()) {
        Err(StoreError::Ambiguous { matches, .. }) => Some(matches.len()),
        _ => None,
    });
    assert!(ambiguous.is_some_and(|matches| matches > 1));
}

#[test]
fn text_is_found_as_written_and_nothing_else() {
    let (_dir, mut store) = project();
    let mut calling = draft("task/call", "", &["please"]);
    let call = ToolCall {
        call_id: Some("call_77".to_owned()),
        name: "search".to_owned(),
        arguments_raw: r#"{"query":"a \"quoted\" word"}"#.to_owned(),
        arguments_form: ArgumentsForm::String,
    };
    calling.push(Node::new(Role::Assistant, "assistant", vec![Part::ToolCall(call)]));
    calling.push(Node::new(Role::Tool, "search", vec![Part::text_result(None, "line one\nline two ä")]));
    calling.finish(recoup::trajectory::Outcome::unknown());
    import(&mut store, [sealed("call", calling), run("plain", &["line one", "nothing"])]);
    let found = |needle: &str| {
        let ids = store.search_text(needle, 2).unwrap();
        let rows = rows(&store).into_iter().filter(|row| ids.contains(&row.id));
        rows.filter_map(|row| row.native_id).collect::<Vec<_>>()
    };
    assert_eq!(found("line one"), ["call", "plain"]);
    assert_eq!(found("one\nline"), ["call"]);
    assert_eq!(found("two ä"), ["call"]);
    assert_eq!(found(r#""a \"quoted"#), ["call"]);
    // Keys, escapes and ids of calls are not text.
    for absent in ["Line one", "parts", "nline two", "call_77", ""] {
        assert!(found(absent).is_empty(), "{absent}");
    }
    let filter = Filter { text: Some("line one".to_owned()), ..Filter::default() };
    assert_eq!(store.count(&filter).unwrap(), 2);
    let page = store.list(&filter, Page { offset: 1, limit: 5 }).unwrap();
    assert_eq!(page.len(), 1);
    assert_eq!(page[0].native_id.as_deref(), Some("plain"));
}
