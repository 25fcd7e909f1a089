//! Long runs: whatever their size, a question stays within its window and what is cited stays in sight.

use recoup::judges::{Case, JudgeConfig, Misquote};
use recoup::trajectory::{Citation, Node, Outcome, Part, Role, Trajectory};

use super::run;

/// A run of many turns, each with a long answer of a tool.
fn long(turns: usize, bytes: usize) -> Trajectory {
    let mut run = run();
    run.nodes.truncate(1);
    for turn in 0..turns {
        run.push(
            Node::new(Role::Assistant, "assistant", vec![Part::text(format!("I look at shelf {turn}."))])
                .sampled(),
        );
        let mut text = format!("shelf {turn}: ");
        while text.len() < bytes {
            text.push_str("nothing of note, dust and paper; ");
        }
        run.push(Node::new(Role::Tool, "look", vec![Part::text_result(None, text)]));
    }
    run.finish(Outcome::from_score(0.0, 1.0, "reward"));
    run
}

/// Bytes `start..end` of the only text of a tool's message.
fn cite(node: usize, start: usize, end: usize) -> Citation {
    Citation { node, part_path: vec![0, 0], start, end }
}

#[test]
fn five_megabytes_fit_any_window_with_task_tools_and_citations_in_sight() {
    let mut run = long(200, 25_000);
    let needle = "the brass key lies under the third stone";
    let Part::ToolResult(result) = &mut run.nodes[240].parts[0] else { panic!() };
    let text = result.parts[0].as_text().unwrap();
    let text = format!("{}{needle}{}", &text[..12_000], &text[12_000..]);
    result.parts[0] = Part::text(text);
    let cited = cite(240, 12_000, 12_000 + needle.len());
    let case = Case::new(&run, &[], false);
    for budget in [3_000, 12_000, 72_000, 600_000] {
        let shown = case.show(budget, std::slice::from_ref(&cited));
        assert!(shown.text.len() <= budget, "{} of {budget}", shown.text.len());
        assert!(shown.text.contains(needle), "{budget}");
        assert!(shown.text.contains("refund the order") && shown.text.contains("\"refund\""), "{budget}");
        assert!(shown.text.contains("left out") && shown.left_out > 1 << 20);
        assert_eq!(case.cite(&shown, 240, "brass key"), Ok(cite(240, 12_004, 12_013)));
        assert_eq!(
            case.cite(&shown, 241, "shelf 120"),
            Ok(Citation { node: 241, part_path: vec![0], start: 10, end: 19 })
        );
    }
}

#[test]
fn what_was_not_shown_cannot_be_quoted() {
    let run = long(200, 25_000);
    let case = Case::new(&run, &[], false);
    let shown = case.show(3_000, &[]);
    assert_eq!(case.cite(&shown, 240, "shelf 119"), Err(Misquote::Absent));
    assert_eq!(case.cite(&shown, 4_000, "shelf 119"), Err(Misquote::NoNode));
    assert_eq!(case.cite(&shown, 400, "nothing of note"), Err(Misquote::Ambiguous));
}

#[test]
fn a_message_of_twenty_megabytes_and_fifty_thousand_nodes_are_shown() {
    let mut huge = run();
    huge.nodes[2].parts = vec![Part::text_result(None, "x ".repeat(10 << 20))];
    let many = long(25_000, 40);
    for (run, node) in [(&huge, 2), (&many, 30_000)] {
        let case = Case::new(run, &[], false);
        let cited = cite(node, 2, 8);
        let shown = case.show(72_000, std::slice::from_ref(&cited));
        assert!(shown.text.len() <= 72_000, "{}", shown.text.len());
        assert!(shown.text.contains(&format!("node {node}, tool")), "the cited node is there");
        assert!(JudgeConfig::default().first_question(&case).messages[1].content.len() <= 72_000);
    }
}

#[test]
fn thousands_of_parts_and_tools_stay_within_the_window() {
    let mut run = run();
    run.nodes[3].parts = (0..20_000).map(|part| Part::text(format!("piece {part}"))).collect();
    let tool = run.tools[0].clone();
    run.tools = (0..5_000)
        .map(|number| recoup::trajectory::Tool { name: format!("tool_{number}"), ..tool.clone() })
        .collect();
    let shown = Case::new(&run, &[], false).show(12_000, &[]);
    assert!(shown.text.len() <= 12_000, "{}", shown.text.len());
    assert!(shown.text.contains("more tools") && shown.text.contains("parts left out"));
}
