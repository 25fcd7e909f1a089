//! Writes a report of invented runs, to look at while changing its design:
//! `cargo run --example report_preview -- [runs] [scored|unknown|unscored|passed] [html|md|json] > report.html`;
//! no runs make the empty report.

#![allow(clippy::print_stdout)]

use recoup::artifact::Provenance;
use recoup::report::{
    DetectorInfo, ExportRow, FindingRow, ImportRow, QuoteRow, ReportInput, RunRow, SkippedRow, html, json,
    markdown, summarize,
};
use recoup::trajectory::Status;
use recoup::verdict::{Class, Party, Side};
use recoup::warning::{Loss, Quarantine};

const DETECTORS: [(&str, &str, &str, &str, &str); 9] = [
    (
        "ungrounded-argument",
        "state_tracking",
        "An identifier in an argument that occurs in no earlier message.",
        "reservation 4WQ150 occurs in no earlier message",
        "{\"reservation_id\": \"4WQ150\", \"payment_id\": \"credit_card_4421486\"}",
    ),
    (
        "repeated-call",
        "progress_monitoring",
        "The same call again with the same result.",
        "search_direct_flight was called 4 times with the same arguments and result",
        "{\"origin\": \"JFK\", \"destination\": \"SEA\", \"date\": \"2024-05-20\"}",
    ),
    (
        "error-unaddressed",
        "error_recovery",
        "A tool's error that no later step takes up.",
        "the error of update_reservation_flights was never addressed",
        "Error: payment method not found\n  in user profile mia_li_3668",
    ),
    (
        "schema-violation",
        "tool_grounding",
        "Arguments that the tool's schema refuses.",
        "missing required property: cabin",
        "{\"reservation_id\": \"ZFA04Y\"}",
    ),
    (
        "claimed-not-done",
        "faithfulness",
        "An action that is claimed and was never executed.",
        "the refund was announced, but no tool that refunds was called",
        "I have processed your refund of $412; it will arrive within 5 to 7 business days.",
    ),
    (
        "mutation-without-lookup",
        "policy_adherence",
        "A change without the look-up that the task's policy makes first.",
        "cancel_reservation before get_reservation_details",
        "cancel_reservation({\"reservation_id\": \"NQNU5R\"})",
    ),
    (
        "verification-skipped",
        "self_verification",
        "A change that nothing checks.",
        "no step after the edit runs the tests",
        "edit 412:418\n-    return None\n+    return result",
    ),
    (
        "unknown-tool",
        "tool_grounding",
        "A tool that the run does not have.",
        "no tool named transfer_to_manager",
        "transfer_to_manager({\"summary\": \"…\"})",
    ),
    ("fence-broken", "format", "An action outside the format that the harness reads.", "", ""),
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let count: usize = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(300);
    let kind = args.get(2).map_or("scored", String::as_str);
    let mut dice = Dice(7);
    let models = ["gpt-4o-2024-08-06", "claude-sonnet-4-20250514", "qwen3-32b", "llama-3.3-70b-instruct"];
    let harnesses = [
        ("tau-bench", "tau-bench"),
        ("swe-agent", "SWE-agent 1.1"),
        ("inspect", "inspect_ai 0.3"),
        ("openai-chat", ""),
    ];
    let parties = [
        Party::Infrastructure,
        Party::UserSimulator,
        Party::Verifier,
        Party::Environment,
        Party::Task,
        Party::Unknown,
    ];
    let runs: Vec<RunRow> = (0..count)
        .map(|i| {
            let m = dice.roll(4) as usize;
            let h = if dice.chance(45) { 0 } else { dice.roll(4) as usize };
            let outcome = match kind {
                "unknown" if dice.chance(82) => Status::Unknown,
                "unscored" => Status::Unknown,
                "passed" => Status::Success,
                _ if dice.chance(8) => Status::Unknown,
                _ if dice.chance(70 - 12 * m as u64) => Status::Failure,
                _ => Status::Success,
            };
            let steps = 3 + dice.roll(28) as usize;
            let bad = outcome != Status::Success && dice.chance(88);
            let agent_fault = dice.chance(80);
            let step = bad.then(|| {
                (dice.roll(steps as u64).max(dice.roll(steps as u64)).min(dice.roll(steps as u64 + 4)))
                    as usize
            });
            let findings: Vec<FindingRow> =
                (0..if bad { 1 + dice.roll(2) } else { u64::from(dice.chance(18)) })
                    .map(|k| {
                        let d = (dice.roll(8).min(dice.roll(8))) as usize;
                        let step = if k == 0 { step.unwrap_or(1) } else { dice.roll(steps as u64) as usize };
                        FindingRow {
                            detector: DETECTORS[d].0.into(),
                            capability: DETECTORS[d].1.into(),
                            message: DETECTORS[d].3.into(),
                            strength: 0.5 + dice.roll(50) as f64 / 100.0,
                            node: 2 * step + 2,
                            step: Some(step),
                            resolved: dice.chance(if bad { 15 } else { 70 }),
                            quotes: vec![QuoteRow { node: 2 * step + 2, text: DETECTORS[d].4.into() }],
                        }
                    })
                    .collect();
            let class = bad.then(|| Class::ALL[(dice.roll(6).min(dice.roll(6))) as usize]);
            let several = outcome == Status::Unknown && h == 2;
            RunRow {
                id: format!("{:016x}{:048x}", (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15), i),
                uri: if several {
                    format!("logs/2025-06-0{}_cyber-range.eval#samples/{i}.json", 1 + i % 3)
                } else {
                    format!("traces/{}/run-{i:04}.jsonl", harnesses[h].0)
                },
                format: harnesses[h].0.into(),
                task: match h {
                    0 => format!("tau-bench/airline/{}", dice.roll(50)),
                    1 => format!("swe-bench/django__django-{}", 11_000 + dice.roll(40)),
                    2 => format!("inspect/cyber-range/{}", dice.roll(12)),
                    _ => format!("derived/{:08x}", dice.roll(30)),
                },
                agent: ["tool-calling", "react", "orchestrator"][dice.roll(3) as usize].into(),
                model: (!dice.chance(6)).then(|| models[m].into()),
                harness: (!harnesses[h].1.is_empty()).then(|| harnesses[h].1.into()),
                outcome,
                blame: bad.then(|| {
                    if agent_fault { Party::Agent } else { parties[dice.roll(6).min(dice.roll(6)) as usize] }
                }),
                blame_rule: bad.then(|| {
                    if agent_fault {
                        "agent-acted".into()
                    } else {
                        ["http-429", "termination", "no-agent-action"][dice.roll(3) as usize].into()
                    }
                }),
                suspected: outcome == Status::Unknown && bad,
                class,
                mode: (class == Some(Class::Incomplete)).then(|| {
                    ["step_limit", "repetitive_loop", "context_overflow"][dice.roll(3) as usize].into()
                }),
                severity: class.map(|_| (dice.roll(50) + dice.roll(51)) as f64 / 100.0),
                nodes: 2 * steps + 2,
                steps,
                decisive_node: step.map(|s| 2 * s + 2),
                decisive_step: step,
                responsible: step
                    .map(|_| ["tool-calling", "web_surfer", "orchestrator"][dice.roll(3) as usize].into()),
                explanation: findings.first().filter(|_| bad).map(|f| {
                    format!(
                        "At this step {}. Nothing later takes it back, and the final answer rests on it.",
                        f.message
                    )
                }),
                admitted: bad && dice.chance(85),
                findings,
                split: Some(match dice.roll(20) {
                    0 | 1 => Side::Validation,
                    2 => Side::Test,
                    3 if dice.chance(20) => Side::Excluded,
                    _ => Side::Train,
                }),
                scorers: several.then(|| "several scorers, none chosen: includes, model_graded_qa".into()),
            }
        })
        .collect();
    let map = |items: &[(&str, u64)]| items.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
    let empty = count == 0;
    let input = ReportInput {
        title: "examples/failed-runs".into(),
        project: "recoup-project".into(),
        provenance: Provenance::new("8d1f0a6c2b7e44a0".into(), "51b7c0dd9a1e33f2".into()),
        replay: None,
        judges: None,
        shared: recoup::rollout::interleave::Report::default(),
        import: Some(ImportRow {
            files: 214,
            unrecognized: vec!["traces/README.md".into(), "traces/plot.png".into()],
            trajectories: count as u64,
            new: count as u64 - count as u64 / 20,
            duplicates: count as u64 / 20,
            quarantined: if empty {
                vec![]
            } else {
                vec![
                    Quarantine {
                        uri: "traces/openai-chat/run-0031.jsonl".into(),
                        line: Some(1_412),
                        span: None,
                        code: "invalid-json".into(),
                        reason: "expected `,` or `}` at column 80".into(),
                    },
                    Quarantine {
                        uri: "traces/tau-bench/gpt-4o.json".into(),
                        line: None,
                        span: Some(recoup::warning::ByteSpan { start: 88_213, end: 1_204_331 }),
                        code: "missing-field".into(),
                        reason: "no `traj` in the record".into(),
                    },
                ]
            },
            losses: if empty {
                vec![]
            } else {
                vec![
                    (Loss::new("openai-chat", "message.name", "no author beside the role"), 1_204),
                    (Loss::new("inspect", "sample.store", "state of the solver is not a message"), 96),
                    (Loss::new("swe-agent", "info.model_stats", "kept in extra only"), 41),
                ]
            },
            skipped: vec![SkippedRow {
                uri: "traces/latest".into(),
                code: "symlink".into(),
                reason: "symbolic links are not followed".into(),
            }],
        }),
        exports: if empty {
            vec![]
        } else {
            vec![
                ExportRow {
                    view: "success_sft".into(),
                    format: "trl-messages".into(),
                    path: "views/success_sft.jsonl".into(),
                    rows: 97,
                    considered: count as u64,
                    excluded: map(&[
                        ("outcome is failure", 158),
                        ("outcome is unknown", 24),
                        ("on the validation side", 11),
                        ("on the test side", 7),
                    ]),
                    refused: map(&[]),
                    redactions: map(&[("EMAIL", 212), ("PHONE", 31), ("CARD", 9)]),
                    ..ExportRow::default()
                },
                ExportRow {
                    view: "step_masked_sft".into(),
                    format: "trl-prompt-completion".into(),
                    path: "views/step_masked_sft.jsonl".into(),
                    rows: 1_204,
                    considered: count as u64,
                    excluded: map(&[
                        ("blame is not agent", 32),
                        ("diagnosis not admitted", 19),
                        ("outcome is success", 118),
                        ("outcome is unknown", 24),
                    ]),
                    refused: map(&[("tool call without arguments", 3)]),
                    redactions: map(&[("EMAIL", 388), ("API_KEY", 2)]),
                    ..ExportRow::default()
                },
            ]
        },
        detectors: DETECTORS
            .iter()
            .map(|d| DetectorInfo { name: d.0.into(), capability: d.1.into(), description: d.2.into() })
            .collect(),
        runs,
    };
    let report = summarize(&input);
    match args.get(3).map(String::as_str) {
        Some("md") => print!("{}", markdown(&report)),
        Some("json") => print!("{}", json(&report)),
        _ => print!("{}", html(&report)),
    }
}
