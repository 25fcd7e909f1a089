//! Runs that a student and a teacher share: labels, coins, outcomes, failures, and resuming.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use recoup::environments::{Environment, bundled};
use recoup::interleaving::{Interleaving, Mixing, RequestOutcome};
use recoup::models::cached::ReplyCache;
use recoup::models::pacer::{PaceOptions, Pacer};
use recoup::models::{
    Asking, Budget, ChatModel, ChatReply, ChatRequest, Finish, Limits, Logprobs, ManualClock, ModelCall,
    ModelError, Price, Role, Rules, ScriptedModel, TokenLogprob, Usage,
};
use recoup::rollout::forms::{self, Form};
use recoup::rollout::interleave::{
    Collection, LabelSettings, Pairing, Round, collect_round, pending_round, report,
};
use recoup::rollout::policies::{self, Chat, ChatSettings, Expert};
use recoup::rollout::{EpisodeLimits, Plan, Policy};
use recoup::store::{Filter, Page, Store};
use recoup::trajectory::{Part, Trajectory};
use recoup::verdict::{Actor, Content, LabelMark, RefusalCode, Side, StateLabel};

use crate::store::{assert_clean, project};

const NOW: &str = "2026-01-01T00:00:00Z";

fn quest() -> Box<dyn Environment> {
    bundled::open("quest").unwrap().unwrap()
}

fn form(name: &str) -> &'static dyn Form {
    forms::by_name(name).unwrap()
}

fn settings(form: &'static dyn Form) -> ChatSettings {
    ChatSettings { form, max_answer: 64, temperature: 0.0, version: 0, logprobs: false }
}

/// A model that looks around, whatever it is asked, in a form.
fn looks(form_name: &str) -> ScriptedModel {
    let content = match form_name {
        "native" => "",
        "hermes" => "I look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {}}\n</tool_call>",
        "qwen-xml" => "<tool_call>\n<function=look>\n</function>\n</tool_call>",
        "llama-json" => r#"{"name": "look", "parameters": {}}"#,
        _ => "Thought: I look.\nAction: look\nAction Input: {}",
    };
    let (content, is_native) = (content.to_owned(), form_name == "native");
    ScriptedModel::new("toy", move |_| {
        let call = ModelCall { id: "c9".to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() };
        Ok(ChatReply {
            calls: if is_native { vec![call] } else { Vec::new() },
            finish: Finish::Calls,
            usage: Some(Usage { prompt: 100, cached_prompt: 0, completion: 7 }),
            ..ChatReply::text(content.clone())
        })
    })
}

struct Setup<'a> {
    student: &'a dyn Policy,
    teacher: &'a dyn Policy,
    mixing: Mixing,
    form: &'static dyn Form,
    verify: bool,
    alone: bool,
    threads: usize,
    plan: Plan,
}

impl<'a> Setup<'a> {
    fn new(student: &'a dyn Policy, teacher: &'a dyn Policy, tasks: u64) -> Self {
        Self {
            student,
            teacher,
            mixing: Mixing::Turns { beta: 0.5 },
            form: form("native"),
            verify: false,
            alone: false,
            threads: 2,
            plan: Plan {
                limits: EpisodeLimits { turns: Some(12), ..EpisodeLimits::default() },
                ..Plan::new(tasks, 7)
            },
        }
    }

    fn round<R>(&self, with: impl FnOnce(&Round<'_>) -> R) -> R {
        with(&Round {
            plan: &self.plan,
            number: 1,
            pairing: Pairing {
                scores: true,
                student: self.student,
                teacher: self.teacher,
                mixing: self.mixing,
                form: self.form,
                context: None,
                verify: self.verify,
            },
            alone: self.alone,
            threads: self.threads,
            now: NOW,
        })
    }

    fn collect(&self, store: &mut Store) -> Collection {
        self.round(|round| collect_round(store, &*quest(), round, &mut ()).unwrap())
    }
}

/// Every stored run with its labels.
fn stored(store: &Store) -> Vec<(Trajectory, Vec<StateLabel>)> {
    let rows = store.list(&Filter::default(), Page::ALL).unwrap();
    rows.iter()
        .map(|row| {
            let mut labels: Vec<StateLabel> = Vec::new();
            for verdict in store.of_run(row.id, "state_label").unwrap() {
                if let Content::StateLabel(label) = verdict.content {
                    labels.push(label);
                }
            }
            labels.sort_by_key(|label| label.turn);
            (store.load(row.id).unwrap(), labels)
        })
        .collect()
}

fn shared(store: &Store) -> Vec<(Trajectory, Vec<StateLabel>)> {
    let is_shared = |run: &Trajectory| Interleaving::of(run).is_some_and(|shared| shared.alone.is_none());
    stored(store).into_iter().filter(|(run, _)| is_shared(run)).collect()
}

#[test]
fn every_visited_state_has_the_teachers_label() {
    let (_dir, mut store) = project();
    let student = Chat::new(looks("native"), Some(Price::FREE), settings(form("native")));
    let setup = Setup::new(&student, &Expert, 20);
    let done = setup.collect(&mut store);
    assert_eq!(done.outcomes.values().sum::<u64>(), done.requests);
    assert_eq!((done.requests, done.new, done.stopped), (20, 20, None));
    let runs = shared(&store);
    assert!(runs.len() > 10);
    for (run, labels) in &runs {
        let about = Interleaving::of(run).unwrap();
        let steps = run.main_branch().steps();
        assert_eq!(labels.len(), steps.len());
        assert_eq!(about.labels, labels.len() as u64);
        assert_eq!(about.student_turns + about.teacher_turns, steps.len() as u64);
        for (label, step) in labels.iter().zip(&steps) {
            assert_eq!(label.executed, Some(*step));
            assert_eq!(Some(label.state), run.nodes[*step].parent);
            let action = label.action.as_ref().expect("the expert is always readable");
            let executed = run.nodes[*step].tool_calls().next().map(|(_, call)| call.name.clone());
            let called = action.calls.first().map(|call| call.name.clone());
            assert_eq!(label.agrees.unwrap(), executed == called);
            assert!(label.actor == Actor::Student || executed == called);
            let acted = run.nodes[*step].occurrence.call.as_ref().unwrap().model.clone();
            assert_eq!(
                acted.as_deref(),
                Some(if label.actor == Actor::Teacher { "expert" } else { student.name() })
            );
        }
    }
    // Both acted, about as often.
    let report = report(&store, &done.runs, &LabelSettings::default()).unwrap();
    let round = &report.rounds[0];
    let fraction = round.delivered_teacher_fraction.unwrap();
    assert!((0.4..0.6).contains(&fraction), "{fraction}");
    assert_eq!(round.labels.accepted + round.labels.marked.values().sum::<u64>(), round.labels.states);
    assert!(round.readings.strict > 0 && round.readings.lenient == 0, "{:?}", round.readings);
    assert!(round.shift.disagreement.unwrap().rate > 0.5);
    assert_clean(&store);
}

#[test]
fn every_text_form_acts() {
    for name in ["hermes", "qwen-xml", "llama-json", "react"] {
        let (_dir, mut store) = project();
        let student = Chat::new(looks(name), None, settings(form(name)));
        let setup = Setup { form: form(name), ..Setup::new(&student, &Expert, 4) };
        setup.collect(&mut store);
        for (run, labels) in shared(&store) {
            let about = Interleaving::of(&run).unwrap();
            assert_eq!(
                (about.readings.strict, about.readings.unreadable),
                (about.student_turns, 0),
                "{name}"
            );
            assert!(labels.iter().all(|label| label.action.is_some()), "{name}");
        }
    }
}

#[test]
fn the_number_of_threads_does_not_show() {
    let mut seen = Vec::new();
    for threads in [1, 2, 8] {
        let (_dir, mut store) = project();
        let student = policies::parse("weak:premature-stop@0.2").unwrap();
        let setup = Setup { threads, alone: true, ..Setup::new(&*student, &Expert, 12) };
        setup.collect(&mut store);
        let verdicts =
            |id| store.verdicts(id).unwrap().into_iter().map(|verdict| verdict.id).collect::<Vec<_>>();
        let rows = store.list(&Filter::default(), Page::ALL).unwrap();
        seen.push(rows.iter().map(|row| (row.id, verdicts(row.id))).collect::<Vec<_>>());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
}

#[test]
fn held_out_tasks_are_never_shared() {
    let (_dir, mut store) = project();
    let student = policies::parse("random").unwrap();
    let setup = Setup { alone: true, ..Setup::new(&*student, &Expert, 60) };
    let done = setup.collect(&mut store);
    assert!(done.held_out > 0 && done.held_out < 30, "{}", done.held_out);
    for row in store.list(&Filter::default(), Page::ALL).unwrap() {
        let run = store.load(row.id).unwrap();
        let about = Interleaving::of(&run).unwrap();
        let labels = store.of_run(row.id, "state_label").unwrap().len();
        if row.split.as_deref() == Some(Side::Train.as_str()) {
            assert!(about.alone.is_some() || labels > 0);
        } else {
            assert_eq!((about.alone, about.teacher_turns, labels), (Some(Actor::Student), 0, 0));
        }
    }
    let again = setup.round(|round| pending_round(Some(&store), &*quest(), round).unwrap());
    assert_eq!((again.requests, again.missing, again.held_out), (done.requests, 0, done.held_out));
}

#[test]
fn a_prefix_is_the_students_and_the_rest_the_teachers() {
    let (_dir, mut store) = project();
    let student = Chat::new(looks("native"), None, settings(form("native")));
    let setup = Setup { mixing: Mixing::Prefix { most: 4 }, ..Setup::new(&student, &Expert, 30) };
    let done = setup.collect(&mut store);
    let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
    for (run, labels) in shared(&store) {
        let students = labels.iter().take_while(|label| label.actor == Actor::Student).count();
        assert!(labels[students..].iter().all(|label| label.actor == Actor::Teacher));
        *lengths.entry(students as u64).or_default() += 1;
        assert!(Interleaving::of(&run).unwrap().mixing == Some(setup.mixing));
    }
    assert!(lengths.len() >= 4 && *lengths.keys().last().unwrap() <= 4, "{lengths:?}");
    assert!(done.outcomes.contains_key(&RequestOutcome::PureTeacher), "κ = 0");
}

/// An answer of a teacher that plays by the tools it is offered.
fn teacher_of(
    script: impl Fn(&ChatRequest) -> Result<ChatReply, ModelError> + Send + Sync + 'static,
) -> ScriptedModel {
    ScriptedModel::new("wise", script)
}

#[test]
fn a_teacher_that_fails_stops_the_round_and_nothing_is_lost_or_asked_twice() {
    let (dir, mut store) = project();
    let asked = Arc::new(AtomicUsize::new(0));
    let model = |fails_at: usize| {
        let asked = Arc::clone(&asked);
        let first = asked.load(Ordering::SeqCst);
        teacher_of(move |request| {
            let number = asked.fetch_add(1, Ordering::SeqCst) - first;
            if number >= fails_at {
                asked.fetch_sub(1, Ordering::SeqCst);
                return Err(ModelError::Unsupported("out of order".to_owned()));
            }
            // Answers differ from state to state, so that a state that is asked about again would show.
            let count = request.messages.len();
            Ok(ChatReply::text(if count > 8 { "I am done.".to_owned() } else { String::new() })).map(
                |reply| ChatReply {
                    calls: if reply.text.is_empty() {
                        vec![ModelCall {
                            id: "x".to_owned(),
                            name: "look".to_owned(),
                            arguments: "{}".to_owned(),
                        }]
                    } else {
                        Vec::new()
                    },
                    ..reply
                },
            )
        })
    };
    let collect = |store: &mut Store, model: ScriptedModel| {
        let clock = Arc::new(ManualClock::default());
        let mut asking = Asking::new(Rules {
            budget: Arc::new(Budget::new(Limits::default(), clock.clone())),
            clock: clock.clone(),
            cache: Some(Arc::new(store.replies().unwrap()) as Arc<dyn ReplyCache>),
            offline: false,
            concurrency: 1,
            hedge: None,
            on_retry: None,
        });
        let pacer = Arc::new(Pacer::new("wise", PaceOptions::default(), clock));
        asking.add(Arc::new(model) as Arc<dyn ChatModel>, Some(Price::FREE), pacer, None);
        let about = asking.models()[0].about("teacher", None);
        let teacher = Chat::new(about, Some(Price::FREE), settings(form("native")));
        let student = policies::parse("weak:loop@0.2").unwrap();
        let setup = Setup { threads: 1, ..Setup::new(&*student, &teacher, 10) };
        setup.collect(store)
    };
    let first = collect(&mut store, model(12));
    assert!(first.stopped.as_deref().unwrap().contains("out of order"), "{:?}", first.stopped);
    assert_eq!(first.outcomes.values().sum::<u64>(), first.requests);
    assert_eq!(first.outcomes[&RequestOutcome::Aborted], first.requests - first.runs.len() as u64);
    let paid = asked.load(Ordering::SeqCst);
    assert_eq!(paid, 12);
    let second = collect(&mut store, model(usize::MAX));
    assert_eq!((second.stopped, second.runs.len() as u64), (None, second.requests));
    let all = asked.load(Ordering::SeqCst);
    drop(dir);
    // The same round without any failure asks as often as both together.
    let (_dir, mut fresh) = project();
    asked.store(0, Ordering::SeqCst);
    collect(&mut fresh, model(usize::MAX));
    assert_eq!(asked.load(Ordering::SeqCst), all);
    assert_eq!(stored(&fresh).len(), stored(&store).len());
    for ((ours, labels), (theirs, others)) in stored(&store).iter().zip(stored(&fresh)) {
        assert_eq!((ours.id, labels), (theirs.id, &others));
    }
}

#[test]
fn what_is_no_label_is_refused_by_name() {
    let refusals = |teacher: ScriptedModel, teachers: &'static str, students: &'static str| {
        let (_dir, mut store) = project();
        let teacher = Chat::new(teacher, None, settings(form(teachers)));
        let student = Chat::new(looks(students), None, settings(form(students)));
        let setup = Setup {
            form: form(students),
            mixing: Mixing::Turns { beta: 0.0 },
            ..Setup::new(&student, &teacher, 3)
        };
        setup.collect(&mut store);
        let mut codes: Vec<RefusalCode> = shared(&store)
            .iter()
            .flat_map(|(_, labels)| {
                labels.iter().filter_map(|label| label.refused.as_ref().map(|it| it.code))
            })
            .collect();
        codes.dedup();
        codes
    };
    let calls = |name: &'static str, text: &'static str| {
        teacher_of(move |_| {
            let call = ModelCall { id: "x".to_owned(), name: name.to_owned(), arguments: "{}".to_owned() };
            Ok(ChatReply { calls: vec![call], ..ChatReply::text(text) })
        })
    };
    assert_eq!(refusals(calls("fly", ""), "native", "native"), [RefusalCode::ForeignTool]);
    assert_eq!(refusals(calls("look", "so:"), "native", "llama-json"), [RefusalCode::ParseBack]);
    assert_eq!(refusals(calls("look", ""), "native", "llama-json"), []);
    let garbled = teacher_of(|_| Ok(ChatReply::text("<tool_call>look")));
    assert_eq!(refusals(garbled, "hermes", "native"), [RefusalCode::Unreadable]);
}

#[test]
fn filters_mark_what_should_not_be_learned() {
    let (_dir, mut store) = project();
    let student = Chat::new(looks("native"), None, settings(form("native")));
    // It gives up at once, whatever the state.
    let teacher = teacher_of(|_| Ok(ChatReply::text("I give up.")));
    let teacher = Chat::new(teacher, None, settings(form("native")));
    let setup =
        Setup { mixing: Mixing::Turns { beta: 0.0 }, verify: true, ..Setup::new(&student, &teacher, 4) };
    let done = setup.collect(&mut store);
    let labels: Vec<StateLabel> = shared(&store).into_iter().flat_map(|(_, labels)| labels).collect();
    assert!(labels.iter().all(|label| label.marks.contains(&LabelMark::UnsolvedFinish)));
    assert!(labels.iter().all(|label| label.verified == Some(false)));
    // Looking again and again goes in circles.
    assert!(labels.iter().any(|label| label.turn > 3 && label.marks.contains(&LabelMark::Loop)));
    assert!(
        labels.iter().filter(|label| label.turn < 3).all(|label| !label.marks.contains(&LabelMark::Loop))
    );
    let accepted =
        |settings: &LabelSettings| report(&store, &done.runs, settings).unwrap().rounds[0].labels.accepted;
    assert_eq!(accepted(&LabelSettings::default()), 0);
    let off =
        LabelSettings { off: vec![LabelMark::Loop, LabelMark::UnsolvedFinish], ..LabelSettings::default() };
    assert_eq!(accepted(&off), labels.len() as u64);
    assert_eq!(accepted(&LabelSettings { verified: true, ..off }), 0);
}

#[test]
fn labels_that_pass_when_executed_are_verified() {
    let (_dir, mut store) = project();
    let student = Chat::new(looks("native"), None, settings(form("native")));
    let setup = Setup { verify: true, ..Setup::new(&student, &Expert, 6) };
    let setup = Setup { plan: Plan { limits: EpisodeLimits::default(), ..setup.plan.clone() }, ..setup };
    setup.collect(&mut store);
    let labels: Vec<StateLabel> = shared(&store).into_iter().flat_map(|(_, labels)| labels).collect();
    assert!(labels.iter().filter(|label| label.turn < 4).all(|label| label.verified == Some(true)));
}

#[test]
fn the_teachers_thoughts_are_kept_apart() {
    let (_dir, mut store) = project();
    let student = Chat::new(looks("native"), None, settings(form("native")));
    let teacher = teacher_of(|request| {
        let shown: Vec<&str> = request.messages.iter().map(|message| message.content.as_str()).collect();
        assert!(!shown.iter().any(|text| text.contains("a secret plan")), "thoughts are shown to nobody");
        assert!(request.messages.iter().any(|message| message.role == Role::User));
        let call = ModelCall { id: "x".to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() };
        let reasoning = Some("a secret plan".to_owned());
        Ok(ChatReply { calls: vec![call], reasoning, ..ChatReply::text("I look.") })
    });
    let teacher = Chat::new(teacher, None, settings(form("native")));
    Setup::new(&student, &teacher, 4).collect(&mut store);
    for (run, labels) in shared(&store) {
        assert!(labels.iter().all(|label| label.reasoning.as_deref() == Some("a secret plan")));
        let thinks = |part: &Part| matches!(part, Part::Reasoning { .. });
        assert!(run.nodes.iter().all(|node| !node.parts.iter().any(thinks)));
        // Its words beside a call are part of the turn, and replay does not take them for an action.
        let said = run.nodes.iter().filter(|node| node.parts.first() == Some(&Part::text("I look."))).count();
        assert_eq!(said as u64, Interleaving::of(&run).unwrap().teacher_turns);
    }
}

#[test]
fn reverse_kl_is_told_where_both_say_how_likely_the_same_tokens_are() {
    let (_dir, mut store) = project();
    let tokens = |logprob: f64| {
        let token = |text: &str| TokenLogprob { token: text.to_owned(), logprob, id: None };
        Some(vec![token("lo"), token("ok")])
    };
    let student = ScriptedModel::new("toy", move |request| {
        assert_eq!(request.logprobs, Logprobs::Answer);
        let call = ModelCall { id: "x".to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() };
        Ok(ChatReply { calls: vec![call], tokens: tokens(-0.5), ..ChatReply::text("look") })
    });
    let teacher = teacher_of(move |request| {
        if request.logprobs == Logprobs::Given {
            assert_eq!(request.messages.last().map(|message| message.role), Some(Role::Assistant));
            return Ok(ChatReply { tokens: tokens(-2.0), ..ChatReply::text("") });
        }
        let call = ModelCall { id: "x".to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() };
        Ok(ChatReply { calls: vec![call], ..ChatReply::text("") })
    });
    let student = Chat::new(student, None, ChatSettings { logprobs: true, ..settings(form("native")) });
    let teacher = Chat::new(teacher, None, settings(form("native")));
    let done = Setup::new(&student, &teacher, 3).collect(&mut store);
    let shift = report(&store, &done.runs, &LabelSettings::default()).unwrap().rounds[0].shift.clone();
    assert!((shift.reverse_kl.unwrap() - 1.5).abs() < 1e-12 && shift.tokens > 0, "{shift:?}");
    assert_eq!(shift.disagreement.unwrap().passed, 0);
}
