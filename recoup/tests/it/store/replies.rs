//! What models answered: kept once, forgotten with its run.

use recoup::id::{Hash, TrajectoryId};
use recoup::store::Reply;

use super::{assert_clean, import, project, rows, run};

pub fn reply(key: &Hash, run: Option<TrajectoryId>) -> Reply<'_> {
    Reply {
        key,
        run,
        stage: "diagnose",
        model: "toy",
        prompt_tokens: 100,
        completion_tokens: 20,
        cost: Some(5),
        took_ms: 200,
        body: "{\"text\":\"yes\"}",
    }
}

#[test]
fn an_answer_is_kept_once_and_counted() {
    let (_dir, mut store) = project();
    import(&mut store, [run("first", &["q", "a"])]);
    let first = rows(&store)[0].id;
    let replies = store.replies().unwrap();
    let keys: Vec<Hash> = (0..3_u8).map(|number| Hash::of(&[number])).collect();
    for key in &keys {
        assert_eq!(replies.get(key, None).unwrap(), None);
        replies.put(&reply(key, Some(first))).unwrap();
        replies.put(&Reply { body: "another", ..reply(key, None) }).unwrap();
        assert_eq!(replies.get(key, None).unwrap().as_deref(), Some("{\"text\":\"yes\"}"));
    }
    let costs = store.reply_costs().unwrap();
    assert_eq!(costs.len(), 1);
    assert_eq!((costs[0].replies, costs[0].prompt_tokens, costs[0].cost_picodollars), (3, 300, Some(15)));
    assert_clean(&store);
}

#[test]
fn an_answer_is_forgotten_with_any_run_it_is_about() {
    let (_dir, mut store) = project();
    import(&mut store, [run("first", &["q", "a"]), run("second", &["q", "b"]), run("third", &["q", "c"])]);
    let ids: Vec<TrajectoryId> = rows(&store).iter().map(|row| row.id).collect();
    let [only_first, shared, of_third, of_none] = [b"1", b"2", b"3", b"0"].map(|text| Hash::of(text));
    let replies = store.replies().unwrap();
    replies.put(&reply(&only_first, Some(ids[0]))).unwrap();
    replies.put(&reply(&shared, Some(ids[0]))).unwrap();
    assert!(replies.get(&shared, Some(ids[1])).unwrap().is_some(), "asked again about another run");
    replies.put(&reply(&of_third, Some(ids[2]))).unwrap();
    replies.put(&reply(&of_none, None)).unwrap();
    replies
        .begin_batch(&Hash::of(b"batch"), "url", "toy", &[(Hash::of(b"later"), "s".to_owned(), Some(ids[1]))])
        .unwrap();
    assert!(replies.in_batch(&Hash::of(b"later")).unwrap());
    drop(replies);
    store.forget(&ids[1..2]).unwrap();
    let replies = store.replies().unwrap();
    let kept = |key: &Hash| replies.get(key, None).unwrap().is_some();
    assert_eq!(
        [kept(&only_first), kept(&shared), kept(&of_third), kept(&of_none)],
        [true, false, true, false]
    );
    assert!(!replies.in_batch(&Hash::of(b"later")).unwrap());
    assert_clean(&store);
}

#[test]
fn answers_that_come_at_once_are_all_kept() {
    let (_dir, store) = project();
    let replies = store.replies().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..16_u8 {
            let replies = &replies;
            scope.spawn(move || {
                for number in 0..20_u8 {
                    let key = Hash::of(&[thread, number]);
                    replies.put(&reply(&key, None)).unwrap();
                    assert!(replies.get(&key, None).unwrap().is_some(), "safe when it returns");
                }
            });
        }
    });
    assert_eq!(store.reply_costs().unwrap()[0].replies, 320);
}
