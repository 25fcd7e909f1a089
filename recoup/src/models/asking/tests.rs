use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Asking, Rules};
use crate::id::Hash;
use crate::models::cached::{Kept, ReplyCache};
use crate::models::pacer::{PaceOptions, Pacer};
use crate::models::{
    Budget, ChatMessage, ChatModel, ChatReply, ChatRequest, Cost, Limits, ManualClock, ModelError,
    ModelIdentity, Price, ScriptedModel, Usage,
};

#[derive(Default)]
struct Memory(Mutex<BTreeMap<Hash, ChatReply>>);

impl ReplyCache for Memory {
    fn get(
        &self,
        key: &Hash,
        _run: Option<crate::id::TrajectoryId>,
    ) -> Result<Option<ChatReply>, ModelError> {
        Ok(self.0.lock().unwrap().get(key).cloned())
    }

    fn put(&self, kept: &Kept<'_>) -> Result<(), ModelError> {
        self.0.lock().unwrap().insert(*kept.key, kept.reply.clone());
        Ok(())
    }
}

fn asking(limits: Limits, cached: bool) -> Asking {
    let clock = Arc::new(ManualClock::default());
    let cache = cached.then(|| Arc::new(Memory::default()) as Arc<dyn ReplyCache>);
    Asking::new(Rules {
        budget: Arc::new(Budget::new(limits, clock.clone())),
        clock,
        cache,
        offline: false,
        concurrency: 8,
        hedge: None,
        on_retry: None,
    })
}

fn pacer() -> Arc<Pacer> {
    Arc::new(Pacer::new("h", PaceOptions::default(), Arc::new(ManualClock::default())))
}

fn question(number: usize) -> ChatRequest {
    ChatRequest::new(vec![ChatMessage::user(format!("question {number}"))], 100)
}

#[test]
fn equal_questions_are_asked_once_even_at_once() {
    let sent = Arc::new(AtomicU64::new(0));
    let mut asking = asking(Limits::default(), true);
    let counter = Arc::clone(&sent);
    let model = ScriptedModel::new("toy", move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(2));
        Ok(ChatReply::text("yes"))
    });
    asking.add(Arc::new(model), None, pacer(), None);
    let about = asking.models()[0].about("test", None);
    let items: Vec<usize> = (0..40).map(|number| number % 4).collect();
    let mut answers = Vec::new();
    asking.each(
        &items,
        |number| about.complete(&question(*number)).unwrap().text,
        |_, text| answers.push(text),
    );
    assert_eq!(answers, vec!["yes"; 40]);
    assert_eq!(sent.load(Ordering::SeqCst), 4);
    assert_eq!(asking.ledger().calls(), (4, 36));
    assert!(asking.models()[0].is_kept(&question(3)).unwrap());
}

#[test]
fn the_cap_on_cost_holds_whatever_the_provider_says() {
    let price = Price { input: 1.0, cached_input: 1.0, output: 1.0 };
    for usage in [
        None,
        Some(Usage::default()),
        Some(Usage { prompt: 40, cached_prompt: 0, completion: 100 }),
        Some(Usage { prompt: u64::MAX, cached_prompt: 0, completion: 0 }),
    ] {
        let cap = Cost::from_usd(0.01);
        let mut asking = asking(Limits { cost: Some(cap), ..Limits::default() }, false);
        let model =
            ScriptedModel::new("toy", move |_| Ok(ChatReply { usage, ..ChatReply::text("a".repeat(300)) }));
        asking.add(Arc::new(model), Some(price), pacer(), None);
        let about = asking.models()[0].about("test", None);
        let items: Vec<usize> = (0..400).collect();
        let mut answers = Vec::new();
        asking.each(
            &items,
            |number| about.complete(&question(*number)).is_ok(),
            |_, is_ok| answers.push(is_ok),
        );
        let answered = answers.iter().filter(|ok| **ok).count();
        let lied_high = usage.is_some_and(|usage| usage.prompt == u64::MAX);
        assert!(answered < 400, "{usage:?}");
        assert!(lied_high || asking.budget().spent().cost <= cap, "{usage:?}");
        assert!(!lied_high || answered <= 8, "no question is sent after it: {answered}");
    }
}

#[test]
fn a_model_elsewhere_without_a_price_is_not_asked_under_a_cap() {
    let sent = Arc::new(AtomicU64::new(0));
    let mut capped = asking(Limits { cost: Some(Cost(1)), ..Limits::default() }, false);
    for price in [None, Some(Price::FREE)] {
        capped.add(Arc::new(Slow { identity: elsewhere(), sent: Arc::clone(&sent) }), price, pacer(), None);
    }
    let ask = |index: usize| capped.models()[index].about("test", None).complete(&question(1));
    assert!(ask(0).unwrap_err().to_string().contains("`toy` has no price"));
    assert_eq!(sent.load(Ordering::SeqCst), 0);
    assert!(ask(1).is_ok());
}

/// A model elsewhere whose first answer is slow and whose second is not.
struct Slow {
    identity: ModelIdentity,
    sent: Arc<AtomicU64>,
}

fn elsewhere() -> ModelIdentity {
    ModelIdentity {
        provider: "openai".to_owned(),
        model: "toy".to_owned(),
        base_url: "http://h/v1".to_owned(),
        family: "toy".to_owned(),
    }
}

impl ChatModel for Slow {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn complete(&self, _request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let number = self.sent.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(if number == 0 { 400 } else { 1 }));
        Ok(ChatReply::text(if number == 0 { "late" } else { "soon" }))
    }
}

fn hedged(limits: Limits) -> (Asking, Arc<AtomicU64>) {
    let sent = Arc::new(AtomicU64::new(0));
    let clock = Arc::new(ManualClock::default());
    let mut asking = Asking::new(Rules {
        budget: Arc::new(Budget::new(limits, clock.clone())),
        clock,
        cache: None,
        offline: false,
        concurrency: 8,
        hedge: Some(Duration::from_millis(20)),
        on_retry: None,
    });
    let price = Price { input: 1.0, cached_input: 1.0, output: 1.0 };
    let model = Slow { identity: elsewhere(), sent: Arc::clone(&sent) };
    asking.add(Arc::new(model), Some(price), pacer(), None);
    (asking, sent)
}

#[test]
fn a_slow_answer_is_hedged_and_both_are_paid_for() {
    let (asking, sent) = hedged(Limits::default());
    let model = &asking.models()[0];
    let reply = model.about("test", None).complete(&question(1)).unwrap();
    assert_eq!((reply.text.as_str(), sent.load(Ordering::SeqCst)), ("soon", 2));
    let (spent, claim) = (asking.budget().spent(), model.at_most(&question(1)));
    assert_eq!(spent.requests, 2);
    assert!(spent.cost > claim.cost, "the slower one counts in full: {spent:?}");
    let line = &asking.ledger().lines()[0];
    assert_eq!((line.hedged, line.calls, line.failed_attempts), (1, 1, 0));
    assert!((line.cost_usd.unwrap() - spent.cost.to_usd()).abs() < 1e-9, "{line:?}");
}

#[test]
fn what_a_cap_does_not_allow_is_not_hedged() {
    let (asking, sent) = hedged(Limits { requests: Some(1), ..Limits::default() });
    let reply = asking.models()[0].about("test", None).complete(&question(1)).unwrap();
    assert_eq!((reply.text.as_str(), sent.load(Ordering::SeqCst)), ("late", 1));
    assert_eq!((asking.budget().spent().requests, asking.ledger().lines()[0].hedged), (1, 0));
}

#[test]
fn an_answer_in_time_and_a_script_are_asked_once() {
    let (asking, sent) = hedged(Limits::default());
    let about = asking.models()[0].about("test", None);
    sent.store(1, Ordering::SeqCst);
    assert_eq!(about.complete(&question(1)).unwrap().text, "soon");
    assert_eq!((sent.load(Ordering::SeqCst), asking.ledger().lines()[0].doubtful_usage), (2, 1));
    let (mut asking, _) = hedged(Limits::default());
    let script = ScriptedModel::new("script", |_| {
        std::thread::sleep(Duration::from_millis(60));
        Ok(ChatReply::text("yes"))
    });
    asking.add(Arc::new(script), None, pacer(), None);
    asking.models()[1].about("test", None).complete(&question(1)).unwrap();
    let line = &asking.ledger().lines()[0];
    assert_eq!((line.calls, line.hedged, line.doubtful_usage), (1, 0, 0), "a script counts no tokens");
}
