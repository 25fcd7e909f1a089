use std::collections::HashSet;

use recoup::importers::recoup_proxy::Api;
use tokio::sync::watch;

use super::{Asking, ConversationId, Conversations, Durable, Given, Place, Restored, Shown};
use crate::proxy::fingerprint::Fingerprint;

const SCOPE: Fingerprint = Fingerprint(1);

fn said(text: &str, answer: bool) -> Shown {
    let particular = answer && text.len() > 8;
    Shown { fingerprint: Some(Fingerprint::of(&[text.as_bytes()])), answer, particular }
}

/// A history of questions (`?`) and answers.
fn history(texts: &[&str]) -> Vec<Shown> {
    texts.iter().map(|text| said(text, !text.ends_with('?'))).collect()
}

fn asking<'a>(
    api: Api,
    session: Option<&'a str>,
    previous: Option<&'a str>,
    held_out: Option<bool>,
) -> Asking<'a> {
    Asking { api, scope: SCOPE, held_out, session, again: false, previous, now: 0 }
}

fn ask(conversations: &mut Conversations, texts: &[&str]) -> Place {
    ask_in(conversations, texts, None)
}

fn ask_in(conversations: &mut Conversations, texts: &[&str], session: Option<&str>) -> Place {
    let asking = asking(Api::Chat, session, None, None);
    conversations.place(&asking, &history(texts), None)
}

fn given(last: Option<u32>, first: Option<u32>, alternatives: &[Vec<Shown>]) -> Given<'_> {
    Given { last, first, alternatives, id: None, scope: SCOPE, now: 0 }
}

fn answer(conversations: &mut Conversations, place: &Place, new: usize, text: &str) {
    let last = if new == 0 { place.parent } else { Some(place.first + new as u32 - 1) };
    conversations.answer(place.id, &given(last, None, &[vec![said(text, true)]]));
}

#[test]
fn equal_conversations_at_one_time_go_on_side_by_side() {
    let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
    let first = [ask(&mut conversations, &["a?"]), ask(&mut conversations, &["a?"])];
    assert_ne!(first[0].id, first[1].id);
    for place in &first {
        answer(&mut conversations, place, 1, "yes");
    }
    let second =
        [ask(&mut conversations, &["a?", "yes", "b?"]), ask(&mut conversations, &["a?", "yes", "b?"])];
    assert_ne!(second[0].id, second[1].id);
    assert_eq!([second[0].parent, second[1].parent], [Some(1), Some(1)]);
    assert_eq!([second[0].turn, second[1].turn], [1, 1]);
    // One answers, the other fails and is asked again.
    answer(&mut conversations, &second[0], 1, "no");
    conversations.answer(second[1].id, &given(Some(2), None, &[]));
    let again = ask(&mut conversations, &["a?", "yes", "b?"]);
    assert_eq!((again.id, again.parent, again.request), (second[1].id, Some(2), 2));
}

#[test]
fn an_edited_history_is_a_branch_and_examples_are_no_history() {
    let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
    let first = ask(&mut conversations, &["example?", "shown", "a?"]);
    answer(&mut conversations, &first, 3, "yes");
    let next = ask(&mut conversations, &["example?", "shown", "a?", "yes", "b?"]);
    answer(&mut conversations, &next, 1, "no");
    let edited = ask(&mut conversations, &["example?", "shown", "a?", "yes", "c?"]);
    assert_eq!((edited.id, edited.parent, edited.known), (first.id, Some(3), 4));
    let other = ask(&mut conversations, &["example?", "shown", "z?"]);
    assert_ne!(other.id, first.id, "examples in a prompt tie nobody together");
}

#[test]
fn a_journal_with_gaps_is_restored_by_its_numbers() {
    let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
    let restored = |request, parent, first| Restored {
        name: "s",
        api: Api::Chat,
        scope: SCOPE,
        session: Some("s"),
        request,
        parent,
        first,
        ordinal: 0,
    };
    // The lines of message 1 are lost, and those of 4 come before those of 3.
    let id = conversations.restore(&restored(0, None, 0), &history(&["a?"]));
    conversations.restore(&restored(1, Some(0), 4), &history(&["c?"]));
    conversations.answer(id, &given(Some(0), Some(2), &[vec![said("yes", true)]]));
    conversations.restore(&restored(2, Some(2), 3), &history(&["b?"]));
    conversations.answer(id, &given(Some(1), Some(5), &[vec![said("of nothing", true)]]));
    let place = ask_in(&mut conversations, &["a?", "yes", "b?", "no"], Some("s"));
    assert_eq!((place.parent, place.known, place.first, place.request), (Some(3), 3, 5, 3));
    assert_eq!(ask_in(&mut conversations, &["a?", "c?"], Some("s")).parent, Some(4));
    let far = restored(9, None, u32::MAX);
    conversations.restore(&far, &history(&["z?"]));
    assert_eq!(conversations.message_count(), 5);
}

#[test]
fn conversations_that_begin_alike_are_counted_across_processes() {
    let none = || Conversations::new("x".to_owned(), HashSet::new());
    let mut before = none();
    let names: Vec<String> = (0..2).map(|_| ask(&mut before, &["a?"]).name.to_string()).collect();
    // One is in the project and let go of, the other goes on.
    let mut after = Conversations::new("y".to_owned(), names.iter().cloned().collect());
    let restored = Restored {
        name: &names[1],
        api: Api::Chat,
        scope: SCOPE,
        session: None,
        request: 0,
        parent: None,
        first: 0,
        ordinal: 1,
    };
    let id = after.restore(&restored, &history(&["a?"]));
    after.answer(id, &given(Some(0), None, &[vec![said("yes", true)]]));
    assert_eq!(ask(&mut after, &["a?", "yes", "b?"]).ordinal, 1, "its coins are what they were");
    let third = ask(&mut after, &["a?"]);
    assert_eq!(third.ordinal, 2);
    after.answer(third.id, &given(Some(0), None, &[]));
    assert!(after.forget(third.id));
    assert_eq!(ask(&mut after, &["a?"]).ordinal, 3);
    assert_eq!(ask(&mut none(), &["a?"]).ordinal, 0);
}

#[test]
fn a_request_that_is_not_in_the_log_is_nobodys_parent() {
    let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
    let lost = ask_in(&mut conversations, &["a?", "b?"], Some("s"));
    conversations.withdraw(&lost, Some(1));
    conversations.answer(lost.id, &given(Some(1), None, &[]));
    let again = ask_in(&mut conversations, &["a?", "b?"], Some("s"));
    assert_eq!((again.parent, again.known), (None, 0));
    assert!(again.tools_changed);
    assert_eq!(conversations.message_count(), 2);
    // An answer whose line is lost is what the client brings along.
    let (durable, state) = watch::channel(Durable::NotYet);
    answer(&mut conversations, &again, 2, "yes");
    let first = again.first + 2;
    conversations.wait(again.id, first, state);
    durable.send_replace(Durable::Unwritten);
    let next = ask_in(&mut conversations, &["a?", "b?", "yes", "c?"], Some("s"));
    assert_eq!((next.parent, next.known), (Some(first - 1), 2));
    assert!(next.waits.is_empty());
}

#[test]
fn what_two_have_said_is_nobodys_and_a_held_out_task_is_its_own() {
    let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
    let first = ask(&mut conversations, &["a?"]);
    answer(&mut conversations, &first, 1, "a long answer");
    conversations.holds_out(first.id, || true);
    let train = asking(Api::Chat, None, None, Some(false));
    let told = history(&["summary?", "a long answer", "b?"]);
    assert_ne!(conversations.place(&train, &told, None).id, first.id);
    let held_out = asking(Api::Chat, None, None, Some(true));
    assert_eq!(conversations.place(&held_out, &told, None).id, first.id);
    let second = ask(&mut conversations, &["other?"]);
    answer(&mut conversations, &second, 1, "a long answer");
    let neither = ask(&mut conversations, &["short?", "a long answer", "b?"]);
    assert!(neither.id != first.id && neither.id != second.id);
}

#[test]
fn a_previous_answer_belongs_to_its_client_api_and_session() {
    let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
    let first = conversations.place(&asking(Api::Responses, Some("s"), None, None), &history(&["a?"]), None);
    let yes = [vec![said("yes", true)]];
    conversations.answer(first.id, &Given { id: Some("r"), ..given(Some(0), None, &yes) });
    let mut place = |asking: Asking<'_>| conversations.place(&asking, &history(&["b?"]), None).id;
    assert_eq!(place(asking(Api::Responses, None, Some("r"), None)), first.id);
    assert_eq!(place(asking(Api::Responses, Some("s"), Some("r"), None)), first.id);
    assert_ne!(place(asking(Api::Responses, Some("t"), Some("r"), None)), first.id);
    assert_ne!(place(asking(Api::Chat, None, Some("r"), None)), first.id);
    // What was said after it does not begin a history.
    assert_ne!(place(asking(Api::Responses, None, None, None)), first.id);
    let stranger = Asking { scope: Fingerprint(2), ..asking(Api::Responses, None, Some("r"), None) };
    assert_ne!(place(stranger), first.id);
}

#[test]
fn sessions_and_particular_messages_survive_a_new_context() {
    let mut conversations = Conversations::new("x".to_owned(), HashSet::new());
    let first = ask_in(&mut conversations, &["a?"], Some("s"));
    answer(&mut conversations, &first, 1, "yes");
    assert_eq!(ask_in(&mut conversations, &["short?"], Some("s")).id, first.id);
    let open = ask(&mut conversations, &["long?"]);
    answer(&mut conversations, &open, 1, "a long answer");
    let compacted = ask(&mut conversations, &["summary?", "a long answer", "b?"]);
    assert_eq!((compacted.id, compacted.parent, compacted.known), (open.id, None, 0));
    assert!(!conversations.forget(open.id), "a request is under way");
    conversations.answer(open.id, &given(Some(0), None, &[]));
    assert!(conversations.forget(open.id));
    assert_ne!(ask(&mut conversations, &["again?", "a long answer", "b?"]).id, open.id);
    assert_eq!(conversations.idle(u64::MAX), [] as [ConversationId; 0], "something is open in each");
}
