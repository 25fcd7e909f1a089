//! Redaction over generated runs: nothing planted remains, twice is once, ranges come back.

use std::fs;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

use crate::harness::shared_data;
use recoup::redaction::{Kind, Placeholders, leftovers, redact, redact_text};
use recoup::task::Task;
use recoup::trajectory::{ArgumentsForm, Citation, Node, Outcome, Part, Role, ToolCall, Trajectory};

/// Made up for this test, or published by their makers as examples.
const PLANTED: &[&str] = &[
    "sk-proj-abcD3fghIjkLmn0pQrsTuv",
    "sk-ant-api03-abcdefgh1jklmnop-qrstuv",
    "ghp_0123456789abcdefABCDEF0123456789abcd",
    "github_pat_11ABCDEFG0abcdefghijkl_0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "xoxb-123456789012-abcdefABCDEF",
    "hf_abcdefghijklmnopqrstuvwxyz0123456789",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g",
    "mia.li3818@example.com",
    "(415) 555-0132",
    "+44 20 7946 0958",
    "4111 1111 1111 1111",
    "378282246310005",
    "078-05-1120",
    "GB82WEST12345698765432",
    "93.184.216.34",
    "2606:2800:220:1:248:1893:25c8:1946",
];

/// What stands around: nothing here is to be touched.
const ORDINARY: &[&str] = &[
    "the order #W1234567 of mia_li_3668",
    "2f1c1e0a-9f70-4b8e-a9a1-0c2d3e4f5a6b",
    "9fceb02d0ae598e95dc970b74767f19372d61af8",
    "2024-05-15T15:00:00Z",
    "{\"reservation\": \"4WQ150\", \"payments\": [\"credit_card_4421486\"]}",
    "python 3.12.1",
    "été 東京",
    "a",
];

const BETWEEN: &[&str] = &[" ", "\n", ", ", "\" , \"", " (", ") "];

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![3 => select(ORDINARY), 1 => select(PLANTED)];
    vec((piece, select(BETWEEN)), 0..12)
        .prop_map(|pieces| pieces.iter().flat_map(|(piece, between)| [*piece, *between]).collect())
}

/// Any characters, most of them those that shapes are made of.
fn noise() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        8 => select("0123456789abcdefABCDEFG@.:-+/ \n\"'\\=<>_%()[]n".chars().collect::<Vec<_>>()),
        1 => any::<char>(),
    ];
    let piece = prop_oneof![
        4 => vec(character, 0..12).prop_map(|characters| characters.into_iter().collect::<String>()),
        1 => select(PLANTED).prop_map(str::to_owned),
        1 => select(&["password=", "\"token\": \"", "phone: ", "Bearer ", "://", "-----BEGIN PRIVATE KEY-----", "eyJ"][..])
            .prop_map(str::to_owned),
    ];
    vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

fn run(texts: &[String]) -> Trajectory {
    let mut run = Trajectory::new("test", Task::from_goal("test"));
    for text in texts {
        run.push(Node::new(Role::User, "user", vec![Part::text(text)]));
        let call = ToolCall {
            call_id: None,
            name: "write".to_owned(),
            arguments_raw: serde_json::json!({"text": text, "again": [text, 1]}).to_string(),
            arguments_form: ArgumentsForm::Object,
        };
        run.push(Node::new(Role::Assistant, "assistant", vec![Part::ToolCall(call)]).sampled());
        run.push(Node::new(Role::Tool, "write", vec![Part::text_result(None, text)]));
    }
    run.finish(Outcome::unknown());
    run
}

fn cited(run: &Trajectory) -> Vec<(usize, Vec<usize>, &str)> {
    let mut texts = Vec::new();
    for (position, node) in run.nodes.iter().enumerate() {
        for path in [vec![0], vec![0, 0]] {
            texts.extend(node.part(&path).and_then(Part::cited_text).map(|text| (position, path, text)));
        }
    }
    texts
}

/// 200 conversations with an airline's database: user names, payment ids, reservations, flights,
/// times and prices beside e-mail addresses.
#[test]
fn real_conversations_lose_their_addresses_and_nothing_else() {
    let Some(file) = shared_data("tau-bench/historical_trajectories/gpt-4o-airline.json") else { return };
    let text = fs::read_to_string(file).unwrap();
    let mut original = Trajectory::new("test", Task::from_goal("test"));
    original.push(Node::new(Role::User, "user", vec![Part::text(&text)]));
    original.finish(Outcome::unknown());
    let redacted = redact(&original);
    assert_eq!(redacted.counts.keys().copied().collect::<Vec<_>>(), [Kind::Email], "{:?}", redacted.counts);
    let left = redacted.trajectory.nodes[0].text();
    assert_eq!(leftovers(&left), []);
    // Each stands as often as before: only addresses are gone.
    for word in
        ["mia_li_3668", "credit_card_4421486", "certificate_4856383", "reservation_id", "2024-05-15T15:00:00"]
    {
        assert_eq!(left.matches(word).count(), text.matches(word).count(), "{word}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_planted_remains_and_everything_else_does(texts in vec(text(), 1..4)) {
        let original = run(&texts);
        let redacted = redact(&original);
        for (_, _, text) in cited(&redacted.trajectory) {
            for planted in PLANTED {
                prop_assert!(!text.contains(planted), "{planted} in {text}");
            }
            prop_assert_eq!(leftovers(text), []);
        }
        for ordinary in ORDINARY {
            let count = |run: &Trajectory| cited(run).iter().map(|(_, _, text)| text.matches(ordinary).count()).sum::<usize>();
            // A placeholder may hold the one letter `a`; everything longer is counted.
            prop_assert!(ordinary.len() == 1 || count(&original) == count(&redacted.trajectory), "{ordinary}");
        }
        for (node, path, _) in cited(&redacted.trajectory) {
            if let Some(Part::ToolCall(call)) = redacted.trajectory.nodes[node].part(&path) {
                prop_assert!(call.arguments().is_some(), "{}", call.arguments_raw);
            }
        }
    }

    #[test]
    fn one_value_has_one_placeholder(texts in vec(text(), 1..4)) {
        let redacted = redact(&run(&texts));
        let planted = PLANTED.iter().filter(|planted| texts.iter().any(|text| text.contains(**planted))).count();
        let mut placeholders: Vec<String> = cited(&redacted.trajectory)
            .iter()
            .flat_map(|(_, _, text)| text.match_indices('<').map(|(at, _)| text[at..].split_inclusive('>').next().unwrap_or_default().to_owned()))
            .collect();
        placeholders.sort();
        placeholders.dedup();
        prop_assert_eq!(placeholders.len(), planted, "{:?}", placeholders);
    }

    #[test]
    fn twice_is_once(text in noise()) {
        let once = redact_text(&text, &mut Placeholders::default());
        prop_assert_eq!(redact_text(&once, &mut Placeholders::default()), once);
        let redacted = redact(&run(&[text]));
        let again = redact(&redacted.trajectory);
        prop_assert_eq!(&again.trajectory, &redacted.trajectory);
        prop_assert!(again.counts.is_empty() && again.map.is_empty());
    }

    #[test]
    fn ranges_go_there_and_back(texts in vec(prop_oneof![text(), noise()], 1..3), from in any::<usize>(), length in any::<usize>()) {
        let original = run(&texts);
        let redacted = redact(&original);
        for (node, part_path, text) in cited(&redacted.trajectory) {
            let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let first = from % boundaries.len();
            let last = first + 1 + length % boundaries.len();
            let (Some(start), Some(end)) = (boundaries.get(first), boundaries.get(last)) else { continue };
            let here = Citation { node, part_path: part_path.clone(), start: *start, end: *end };
            let there = redacted.map.to_original(&here);
            prop_assert!(there.quote(&original).is_ok(), "{there:?}");
            let back = redacted.map.to_redacted(&there);
            prop_assert!(back.start <= here.start && here.end <= back.end, "{here:?} {there:?} {back:?}");
            prop_assert_eq!(redacted.map.to_original(&back), there.clone());
            if back == here && there.end - there.start == here.end - here.start && !here.quote(&redacted.trajectory).unwrap().contains('<') {
                prop_assert_eq!(here.quote(&redacted.trajectory).unwrap(), there.quote(&original).unwrap());
            }
        }
    }

    /// The map's ranges and the text between them are the original, without a gap and without a byte
    /// twice; with the values back in, the texts are the same.
    #[test]
    fn redacted_text_comes_back_whole(texts in vec(prop_oneof![text(), noise()], 1..4)) {
        let original = run(&texts);
        let redacted = redact(&original);
        for (node, part_path, text) in cited(&redacted.trajectory) {
            let before = original.nodes[node].part(&part_path).and_then(Part::cited_text).unwrap();
            if matches!(redacted.trajectory.nodes[node].part(&part_path), Some(Part::ToolCall(_))) {
                continue;
            }
            let mut at = 0;
            let mut from = 0;
            for (start, end) in placeholders_in(text).chain([(text.len(), text.len())]) {
                for (start, end) in [(from, start), (start, end)] {
                    if start == end {
                        continue;
                    }
                    let here = Citation { node, part_path: part_path.clone(), start, end };
                    let there = redacted.map.to_original(&here);
                    prop_assert_eq!(there.start, at, "{:?} in {}", here, text);
                    at = there.end;
                    if !text[start..end].starts_with('<') || !text[start..end].ends_with('>') {
                        prop_assert_eq!(&text[start..end], there.quote(&original).unwrap());
                    }
                }
                from = end;
            }
            prop_assert_eq!(at, before.len());
            prop_assert_eq!(redacted.placeholders.restore(text), before);
        }
    }
}

/// Ranges of `<EMAIL_1>` and the like.
fn placeholders_in(text: &str) -> impl Iterator<Item = (usize, usize)> {
    text.match_indices('<').filter_map(|(at, _)| {
        let word = text[at + 1..].split_once('>')?.0;
        let (kind, number) = word.rsplit_once('_')?;
        let known = Kind::ALL.iter().any(|known| known.word() == kind);
        (known && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
            .then_some((at, at + word.len() + 2))
    })
}
