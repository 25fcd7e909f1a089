//! The failure report: hostile text stays text, the twins agree, the bytes are the same each time.

use std::collections::BTreeMap;

use recoup::artifact::Provenance;
use recoup::exporters::TokenCounts;
use recoup::report::{
    DetectorInfo, ExportRow, FindingRow, ImportRow, Piece, Preview, PreviewMessage, QuoteRow, Report,
    ReportInput, RunRow, SkippedRow, html, json, markdown, summarize,
};
use recoup::rollout::interleave::{self, Arm, LabelCounts, RoundReport, Shift};
use recoup::statistics::Bounds;
use recoup::trajectory::Status;
use recoup::verdict::{Class, LabelMark, Party, Side, Unscored};
use recoup::views::{Evidence, Objective, Tally};
use recoup::visible::is_invisible;
use recoup::warning::{Loss, Quarantine};

/// Tries every way out at once. `PWNED` must never stand outside a fence or an escape.
const HOSTILE: &str = "</title></style><script>PWNED()</script><img src=x onerror=PWNED()>\"' onload=PWNED \
    \x1b]0;PWNED\x07\x1b[2J\u{9b}31m\r\u{202e}PWNED\u{2066}\u{200b}\u{e0041}\n```\n````text\n# PWNED\n\
    [PWNED](javascript:PWNED) ![PWNED](https://evil.invalid/PWNED) <https://evil.invalid/PWNED> \\| PWNED \\` PWNED `` @PWNED\n~~~\n";

fn run(n: u32, outcome: Status) -> RunRow {
    RunRow {
        id: format!("{n:08x}{n:056x}"),
        uri: format!("traces/run-{n}.jsonl"),
        format: "openai-chat".to_owned(),
        task: format!("airline/{}", n % 3),
        agent: "agent".to_owned(),
        model: Some("model-a".to_owned()),
        harness: None,
        outcome,
        blame: None,
        blame_rule: None,
        suspected: false,
        class: None,
        mode: None,
        severity: None,
        nodes: 12,
        steps: 5,
        decisive_node: None,
        decisive_step: None,
        responsible: None,
        explanation: None,
        admitted: false,
        findings: Vec::new(),
        split: Some(Side::Train),
        scorers: None,
    }
}

fn failed(n: u32, outcome: Status, severity: f64) -> RunRow {
    RunRow {
        blame: Some(Party::Agent),
        blame_rule: Some("agent-acted".to_owned()),
        suspected: outcome == Status::Unknown,
        class: Some(Class::WrongResult),
        severity: Some(severity),
        decisive_node: Some(4),
        decisive_step: Some(1),
        responsible: Some("agent".to_owned()),
        explanation: Some("the reservation was never looked up".to_owned()),
        admitted: true,
        findings: vec![FindingRow {
            detector: "ungrounded-argument".to_owned(),
            capability: "state_tracking".to_owned(),
            message: "4WQ150 occurs in no earlier message".to_owned(),
            strength: 0.9,
            node: 4,
            step: Some(1),
            resolved: false,
            quotes: vec![QuoteRow { node: 4, text: "{\"reservation_id\": \"4WQ150\"}".to_owned() }],
        }],
        ..run(n, outcome)
    }
}

fn counts(items: &[(&str, u64)]) -> BTreeMap<String, u64> {
    items.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
}

fn input(runs: Vec<RunRow>) -> ReportInput {
    ReportInput {
        shared: interleave::Report::default(),
        title: "failed-runs".to_owned(),
        project: "my project".to_owned(),
        provenance: Provenance {
            producer: "recoup 0.1.0".to_owned(),
            config_hash: "c0ffee".to_owned(),
            inputs_hash: "decade".to_owned(),
        },
        replay: None,
        judges: None,
        import: Some(ImportRow {
            files: 7,
            unrecognized: vec!["traces/README.md".to_owned()],
            trajectories: 6,
            new: 5,
            duplicates: 1,
            quarantined: vec![Quarantine {
                uri: "traces/bad.jsonl".to_owned(),
                line: Some(1412),
                span: None,
                code: "invalid-json".to_owned(),
                reason: "expected a comma".to_owned(),
            }],
            losses: vec![
                (Loss::new("openai-chat", "message.name", "no author beside the role"), 3),
                (Loss::new("openai-chat", "message.weight", "not a message"), 9),
            ],
            skipped: vec![SkippedRow {
                uri: "traces/latest".to_owned(),
                code: "symlink".to_owned(),
                reason: "symbolic links are not followed".to_owned(),
            }],
        }),
        runs,
        exports: vec![ExportRow {
            view: "step_masked_sft".to_owned(),
            format: "trl-prompt-completion".to_owned(),
            path: "views/step_masked_sft.jsonl".to_owned(),
            rows: 1204,
            considered: 6,
            excluded: counts(&[("outcome is unknown", 1)]),
            refused: counts(&[("no arguments", 2)]),
            duplicates: 3,
            built: Tally {
                examples: 1209,
                objectives: [(Objective::TokenSum, 1209)].into(),
                evidence: [(Evidence::Diagnosis, 1209)].into(),
                weights: counts(&[("1.00", 1209)]),
                bytes: 4_100_000,
                learned_bytes: 82_000,
                ..Tally::default()
            },
            tokens: Some(TokenCounts {
                tokens: 1_234_567,
                trained_tokens: 23_456,
                windows: 3,
                ..TokenCounts::default()
            }),
            redactions: counts(&[("EMAIL", 4)]),
            previews: vec![Preview {
                run: "ab".repeat(32),
                evidence: "diagnosis".to_owned(),
                word: None,
                messages: vec![
                    PreviewMessage {
                        role: "user".to_owned(),
                        pieces: vec![Piece { text: HOSTILE.to_owned(), left_out: 7, ..Piece::default() }],
                        ..PreviewMessage::default()
                    },
                    PreviewMessage {
                        left_out: 2,
                        role: "assistant".to_owned(),
                        label: Some("right, value 0.67".to_owned()),
                        pieces: vec![
                            Piece { text: "Looking. ".to_owned(), ..Piece::default() },
                            Piece {
                                text: HOSTILE.to_owned(),
                                learned: true,
                                continues: true,
                                ..Piece::default()
                            },
                        ],
                    },
                ],
            }],
        }],
        detectors: vec![
            DetectorInfo {
                name: "ungrounded-argument".to_owned(),
                capability: "state_tracking".to_owned(),
                description: "An identifier that occurs in no earlier message.".to_owned(),
            },
            DetectorInfo {
                name: "unknown-tool".to_owned(),
                capability: "tool_grounding".to_owned(),
                description: "A tool that the run does not have.".to_owned(),
            },
        ],
    }
}

/// Two of the agent's failures, one of infrastructure, two successes, one unknown.
fn small() -> ReportInput {
    let infrastructure = RunRow {
        blame: Some(Party::Infrastructure),
        blame_rule: Some("http-429".to_owned()),
        ..run(3, Status::Failure)
    };
    input(vec![
        failed(1, Status::Failure, 0.4),
        failed(2, Status::Failure, 0.9),
        infrastructure,
        run(4, Status::Success),
        RunRow { split: Some(Side::Test), ..run(5, Status::Success) },
        failed(6, Status::Unknown, 0.5),
    ])
}

fn hostile() -> ReportInput {
    let text = || HOSTILE.to_owned();
    let mut bad = failed(1, Status::Failure, f64::NAN);
    bad.findings[0] = FindingRow {
        detector: text(),
        capability: text(),
        message: text(),
        strength: f64::NAN,
        quotes: vec![QuoteRow { node: 4, text: text() }],
        ..bad.findings[0].clone()
    };
    let bad = RunRow {
        id: text(),
        uri: text(),
        format: text(),
        task: text(),
        agent: text(),
        model: Some(text()),
        harness: Some(text()),
        blame_rule: Some(text()),
        mode: Some(text()),
        responsible: Some(text()),
        explanation: Some(text()),
        ..bad
    };
    let unscored = RunRow {
        outcome: Status::Unknown,
        scorers: Some(text()),
        uri: format!("{HOSTILE}/b"),
        ..bad.clone()
    };
    let mut input = input(vec![bad, unscored]);
    "title".clone_into(&mut input.title);
    if let Some(import) = &mut input.import {
        import.unrecognized = vec![text()];
        import.quarantined =
            vec![Quarantine { uri: text(), line: Some(1), span: None, code: text(), reason: text() }];
        import.losses = vec![(Loss::new(HOSTILE, HOSTILE, HOSTILE), 1)];
        import.skipped = vec![SkippedRow { uri: text(), code: text(), reason: text() }];
    }
    let mixture = Arm { success: rate(0, 1, None), end_modes: counts(&[(HOSTILE, 1)]) };
    input.shared.rounds = vec![RoundReport { round: 1, mixture: Some(mixture), ..RoundReport::default() }];
    input.exports[0].excluded = counts(&[(HOSTILE, 1)]);
    input.exports[0].refused = counts(&[(HOSTILE, 1)]);
    input.exports[0].redactions = counts(&[(HOSTILE, 1)]);
    input
}

/// Every tag of a page, without `<` and `>`; the style sheet is skipped.
fn tags(page: &str) -> Vec<&str> {
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, body) = rest.split_once("</style>").unwrap();
    [head, body]
        .iter()
        .flat_map(|part| part.split('<').skip(1))
        .map(|tag| tag.split('>').next().unwrap())
        .collect()
}

#[test]
fn hostile_text_is_no_markup_on_the_page() {
    let page = html(&summarize(&hostile()));
    assert!(page.contains("&lt;script&gt;PWNED()"), "the text itself is shown");
    let known = [
        "a",
        "article",
        "b",
        "bdi",
        "blockquote",
        "body",
        "circle",
        "code",
        "dd",
        "defs",
        "desc",
        "details",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "h1",
        "h2",
        "h3",
        "h4",
        "head",
        "header",
        "html",
        "i",
        "li",
        "line",
        "main",
        "mark",
        "nav",
        "meta",
        "ol",
        "p",
        "pattern",
        "pre",
        "rect",
        "section",
        "small",
        "span",
        "summary",
        "svg",
        "table",
        "tbody",
        "td",
        "text",
        "th",
        "thead",
        "title",
        "tr",
        "ul",
        "!doctype",
    ];
    for tag in tags(&page) {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        assert!(known.contains(&name), "an unknown tag: <{tag}>");
        // Attribute values that hold foreign text are quoted; without them no foreign word is left.
        let bare: String = tag.split('"').step_by(2).collect();
        assert!(!bare.contains("PWNED") && !bare.contains(" on"), "a broken attribute: <{tag}>");
        if let Some((_, target)) = tag.split_once("href=") {
            assert!(target.starts_with("\"#"), "a foreign link: <{tag}>");
        }
    }
    assert_eq!(page.matches("<title>title</title>").count(), 1);
    assert!(page.contains("default-src 'none'"));
    assert!(page.chars().all(|c| c == '\n' || !is_invisible(c)), "an invisible character came through");
}

/// Markdown without its fenced blocks and code spans, as CommonMark reads them.
fn outside_code(text: &str) -> String {
    let run_of_backticks = |text: &str| text.len() - text.trim_start_matches('`').len();
    let mut out = String::new();
    let mut fence = 0;
    for line in text.lines() {
        let ticks = run_of_backticks(line);
        if fence > 0 {
            if ticks >= fence && line.trim_start_matches('`').trim().is_empty() {
                fence = 0;
            }
            continue;
        }
        if ticks >= 3 && !line[ticks..].contains('`') {
            fence = ticks;
            continue;
        }
        let mut rest = line;
        while let Some(start) = rest.find('`') {
            // A backslash before the first backtick makes it a character.
            let ticks = if rest[..start].ends_with('\\') { 0 } else { run_of_backticks(&rest[start..]) };
            out.push_str(&rest[..start]);
            rest = &rest[start + ticks.max(1)..];
            let closing = rest.match_indices('`').map(|(at, _)| at).find(|&at| {
                ticks > 0 && !rest[..at].ends_with('`') && run_of_backticks(&rest[at..]) == ticks
            });
            if let Some(at) = closing {
                rest = &rest[at + ticks..];
            }
        }
        out.push_str(rest);
        out.push('\n');
    }
    assert_eq!(fence, 0, "a block stays open");
    out
}

#[test]
fn hostile_text_is_no_markup_in_markdown() {
    let text = markdown(&summarize(&hostile()));
    assert!(text.contains("<script>PWNED()"), "the text itself is shown");
    assert!(text.chars().all(|c| c == '\n' || !is_invisible(c)), "an invisible character came through");
    let outside = outside_code(&text);
    for markup in ["evil", "<script", "<img", "](", "@PWNED", "# PWNED"] {
        assert!(!outside.contains(markup), "{markup} outside code:\n{outside}");
    }
    // A capability is named in a piece of advice, which is prose; its markup is escaped there.
    let mut columns = None;
    for line in text.lines() {
        let bars = line.matches('|').count();
        match columns {
            _ if !line.starts_with("| ") => columns = None,
            None => columns = Some(bars),
            Some(columns) => assert_eq!(columns, bars, "a cell is broken: {line}"),
        }
    }
}

#[test]
fn hostile_text_survives_in_json_without_acting() {
    let report = summarize(&hostile());
    let text = json(&report);
    assert!(text.chars().all(|c| c == '\n' || !is_invisible(c)));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let unrecognized = &value["import"]["unrecognized"]["items"][0];
    assert_eq!(unrecognized, HOSTILE, "the exact text is kept");
}

#[test]
fn the_twins_give_the_same_figures() {
    let report = summarize(&small());
    let value: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    let (page, text) = (html(&report), markdown(&report));
    let figure = |pointer: &str| value.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}")).clone();
    assert_eq!(figure("/headline/runs"), 6);
    assert_eq!(figure("/headline/outcomes"), serde_json::json!({"success": 2, "failure": 3, "unknown": 1}));
    let percent = |pointer: &str| format!("{:.0}", figure(pointer).as_f64().unwrap() * 100.0);
    let rate = |at: &str| {
        format!(
            "{}% ({}–{}%)",
            percent(&format!("{at}/rate")),
            percent(&format!("{at}/low")),
            percent(&format!("{at}/high"))
        )
    };
    assert_eq!(rate("/headline/success_rate"), "40% (12–77%)");
    for at in ["/blame/0/share", "/blame/1/share", "/breakdowns/2/groups/0/success_rate"] {
        assert!(page.contains(&rate(at)), "{at} is not on the page");
        assert!(text.contains(&rate(at)), "{at} is not in the Markdown");
    }
    assert!(page.contains("3 of 5 scored runs failed, 2 by the agent’s own fault."));
    assert!(text.contains("3 of 5 scored runs failed, 2 by the agent’s own fault."));
    for outcome in [("Failed", 3), ("Passed", 2), ("Outcome unknown", 1)] {
        assert!(page.contains(&format!("<span>{}</span> <b>{}</b>", outcome.0, outcome.1)));
    }
    assert!(text.contains("| 6 | 2 | 3 | 1 | 40% (12–77%) |"));
    assert_eq!(figure("/exports/0/rows"), 1204);
    assert!(page.contains("<b>1,204</b> rows") && text.contains("| 1,204 |"));
}

#[test]
fn every_run_stands_once_in_learning() {
    let report = summarize(&small());
    let learning = &report.learning;
    let reasons: Vec<(&str, u64)> =
        learning.kept_out.iter().map(|kept| (kept.code.as_str(), kept.runs)).collect();
    assert_eq!((learning.successes, learning.failures), (1, 2));
    assert_eq!(reasons, [("unknown_outcome", 1), ("blame_infrastructure", 1), ("split_test", 1)]);
    let kept_out: u64 = reasons.iter().map(|(_, runs)| runs).sum();
    assert_eq!(learning.successes + learning.failures + kept_out, report.headline.runs);
}

#[test]
fn markdown_of_a_small_project() {
    insta::assert_snapshot!(markdown(&summarize(&small())));
}

#[test]
fn order_of_the_rows_does_not_show() {
    let (first, mut other) = (small(), small());
    other.runs.reverse();
    other.detectors.reverse();
    if let Some(import) = &mut other.import {
        import.losses.reverse();
    }
    let all = |input: &ReportInput| {
        let report: Report = summarize(input);
        [html(&report), markdown(&report), json(&report)]
    };
    assert_eq!(all(&first), all(&other));
}

#[test]
fn many_runs_leave_a_readable_report() {
    let runs = (0..1200).map(|n| failed(n, Status::Failure, f64::from(n % 100) / 100.0)).collect();
    let report = summarize(&input(runs));
    assert_eq!(report.runs.items.len(), 500);
    assert_eq!(report.runs.left_out, 700);
    assert!(report.runs.items.iter().all(|entry| entry.run.severity >= Some(0.58)), "the worst are kept");
    assert_eq!(report.detectors[0].examples.len(), 3);
    assert_eq!(report.detectors[0].runs.failure, 1200);
    assert!(html(&report).contains("500 of 1,200 runs are listed"));
    assert!(json(&report).len() < 1 << 20);
}

#[test]
fn mostly_unknown_outcomes_open_with_the_way_to_attach_them() {
    let unknown = |n| RunRow {
        uri: format!("logs/it's.eval#samples/{n}.json"),
        scorers: Some("several scorers, none chosen: includes, model_graded_qa".to_owned()),
        ..failed(n, Status::Unknown, 0.5)
    };
    let report = summarize(&input(vec![unknown(1), unknown(2), run(3, Status::Success)]));
    let choose = r"recoup run 'logs/it'\''s.eval' --project 'my project' --score includes --success-at 1";
    let attach = report.attach.as_ref().unwrap();
    assert!(attach.opens);
    assert_eq!(attach.ways[0].commands, [choose]);
    assert_eq!(
        (attach.ambiguous.items[0].uri.as_str(), attach.ambiguous.items[0].runs),
        ("logs/it's.eval", 2)
    );
    for (text, blame) in [(html(&report), "id=blame"), (markdown(&report), "## Who failed")] {
        let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}"));
        assert!(place("First, attach outcomes") < place(blame));
        for flag in ["--outcomes outcomes.csv", "--assume failure", "recoup label", "--success-at 1"] {
            assert!(place(flag) < place(blame), "{flag} comes late");
        }
    }
    let known = summarize(&small());
    assert!(!known.attach.as_ref().unwrap().opens);
    assert!(known.next[0].commands.iter().any(|command| command.contains("--outcomes")));
}

#[test]
fn an_empty_project_and_a_perfect_one_have_a_report_too() {
    let empty = summarize(&ReportInput { detectors: small().detectors, ..ReportInput::default() });
    assert!(html(&empty).contains("No runs to report on."));
    assert!(markdown(&empty).contains("recoup run PATH"));
    assert!(!html(&empty).contains("NaN") && !json(&empty).contains("NaN"));
    let perfect = summarize(&input(vec![run(1, Status::Success), run(2, Status::Success)]));
    assert!(html(&perfect).contains("All 2 runs passed."));
    assert!(!html(&perfect).contains("id=blame"));
}

fn rate(passed: u64, n: u64, interval: Option<Bounds>) -> interleave::Rate {
    interleave::Rate { passed, n, tasks: n, rate: passed as f64 / n as f64, interval }
}

#[test]
fn shared_runs_are_plotted_round_by_round() {
    let round = |round: u32, disagreed: u64, reverse_kl: Option<f64>| RoundReport {
        round,
        labels: LabelCounts {
            states: 50,
            accepted: 45,
            held_back: 5,
            marked: BTreeMap::from([(LabelMark::Loop, 4), (LabelMark::ContextOverflow, 1)]),
            ..LabelCounts::default()
        },
        shift: Shift {
            disagreement: Some(rate(disagreed, 50, Some(Bounds { low: 0.1, high: 0.9 }))),
            reverse_kl,
            tokens: 800,
            unscored: BTreeMap::from([(Unscored::Teacher, 3)]),
        },
        ..RoundReport::default()
    };
    let mut input = small();
    input.shared.rounds = vec![round(1, 30, None), round(2, 20, Some(0.25)), round(3, 12, Some(-0.01))];
    let report = summarize(&input);
    let page = html(&report);
    for said in [
        "<section id=shared>",
        "round 1: 60% (10% to 90%), round 2: 40% (10% to 90%), round 3: 24% (10% to 90%)",
        "<desc>round 2: 0.25, round 3: -0.01</desc>",
        "not available: the teacher does not score given tokens (3 turns)",
        "1 context_overflow, 4 loop; 5 held back by filters that are on",
    ] {
        assert!(page.contains(said), "{said}");
        assert!(said.contains("round 1") || said.contains('<') || markdown(&report).contains(said), "{said}");
    }
    assert_eq!(page.matches("<figure class=curves>").count(), 2);
    assert!(json(&report).contains("\"held_back\": 5"));
    assert!(!html(&summarize(&small())).contains("id=shared"));
}
