//! One scripted run, written by each format's own library, imported and compared with the script field by
//! field. The table is `docs/formats.md`; `UPDATE_FORMATS=1 cargo test -p recoup --test it scripted_run`
//! writes it again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use recoup::id::Hash;
use recoup::trajectory::{Node, Part, Role, ToolCall, ToolResult, Trajectory};
use serde_json::Value;

use crate::harness::{Imported, import};

/// Where the table begins in the page.
const MARK: &str = "| format |";

/// A field of the script: its name in the table and how well a run carries it.
type Field = (&'static str, fn(&Value, &Trajectory) -> Carried);

/// How a field came through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carried {
    /// As it was written.
    Whole,
    /// In another form: other bytes of the same value, one text with another, without what it belongs to.
    Changed,
    No,
}

const FIELDS: &[Field] = &[
    ("system", system),
    ("user text", |script, run| texts(run, Role::User, &script["user"]["text"])),
    ("image", image),
    ("reasoning", reasoning),
    ("text", |script, run| texts(run, Role::Assistant, &script["turns"][0]["text"])),
    ("parallel calls", parallel),
    ("call ids", ids),
    ("arguments", arguments),
    ("results", results),
    ("tool error", tool_error),
    ("answer", |script, run| texts(run, Role::Assistant, &script["turns"][2]["text"])),
    ("tools", tools),
    ("model", model),
    ("tokens", tokens),
    ("times", times),
];

#[test]
fn each_format_carries_what_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers");
    let script: Value =
        serde_json::from_str(&fs::read_to_string(root.join("writers/scripted_run.json")).unwrap()).unwrap();
    let mut table = String::from(MARK);
    for (name, _) in FIELDS {
        let _ = write!(table, " {name} |");
    }
    let _ = write!(table, "\n{}\n", "| --- ".repeat(FIELDS.len() + 1) + "|");
    let mut losses = String::from("\n| format | what is lost |\n| --- | --- |\n");
    let mut formats = 0;
    for (format, case) in cases(&root) {
        let input = fs::read_dir(&case).unwrap().map(|entry| entry.unwrap().path());
        let input =
            input.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("input"));
        let imported = import(&[&input.unwrap()]);
        assert!(imported.quarantined.is_empty(), "{format}: {:?}", imported.quarantined);
        let run = imported.trajectories().max_by_key(|run| run.nodes.len()).unwrap();
        let _ = write!(table, "| `{format}` |");
        for (_, carried) in FIELDS {
            table.push_str(match carried(&script, run) {
                Carried::Whole => " ✓ |",
                Carried::Changed => " ≈ |",
                Carried::No => " – |",
            });
        }
        table.push('\n');
        let _ = writeln!(losses, "| `{format}` | {} |", lost(&imported));
        formats += 1;
    }
    assert!(formats > 5, "only {formats} formats have a scripted run");
    table.push_str(&losses);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/formats.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, shown) = text.split_at(text.find(MARK).expect("the page has the table"));
    if std::env::var_os("UPDATE_FORMATS").is_some() {
        fs::write(&page, format!("{before}{table}")).unwrap();
    } else {
        assert_eq!(shown, table, "docs/formats.md is stale; UPDATE_FORMATS=1 writes it again");
    }
}

/// Every format that has the case, in alphabetical order.
fn cases(root: &Path) -> Vec<(String, PathBuf)> {
    let mut cases: Vec<(String, PathBuf)> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path.join("scripted-run")))
        .filter(|(_, case)| case.is_dir())
        .collect();
    cases.sort();
    cases
}

fn lost(imported: &Imported) -> String {
    let fields = imported.losses.keys().map(|loss| format!("`{}`: {}", loss.field, loss.reason));
    let shown: Vec<String> = fields.collect();
    if shown.is_empty() { "nothing that it says".to_owned() } else { shown.join("; ") }
}

fn nodes(run: &Trajectory, role: Role) -> impl Iterator<Item = &Node> {
    run.nodes.iter().filter(move |node| node.role == role)
}

/// A text of a role: a part of its own, or a piece of another.
fn texts(run: &Trajectory, role: Role, wanted: &Value) -> Carried {
    let wanted = wanted.as_str().unwrap();
    let parts = || nodes(run, role).flat_map(|node| &node.parts);
    if parts().any(|part| part.as_text() == Some(wanted)) {
        return Carried::Whole;
    }
    let quoted = serde_json::to_string(wanted).unwrap();
    let within = |text: &str| text.contains(wanted) || text.contains(&quoted);
    if parts().any(|part| part.cited_text().is_some_and(within)) { Carried::Changed } else { Carried::No }
}

fn system(script: &Value, run: &Trajectory) -> Carried {
    let wanted = script["system"].as_str();
    if run.agents.iter().any(|agent| agent.system_prompt.as_deref() == wanted) {
        return Carried::Whole;
    }
    texts(run, Role::System, &script["system"])
}

fn image(script: &Value, run: &Trajectory) -> Carried {
    let encoded = script["user"]["image"]["base64"].as_str().unwrap();
    let wanted = blob(encoded);
    let held = run.nodes.iter().flat_map(|node| &node.parts).filter_map(|part| match part {
        Part::Media(media) => Some(media.blob),
        _ => None,
    });
    held.fold(Carried::No, |best, blob| match blob {
        Some(blob) if blob == wanted => Carried::Whole,
        _ if best == Carried::Whole => best,
        _ => Carried::Changed,
    })
}

fn blob(base64: &str) -> Hash {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for byte in base64.bytes().filter(|byte| *byte != b'=') {
        bits = bits << 6 | digits.iter().position(|digit| *digit == byte).unwrap() as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Hash::of(&bytes)
}

fn reasoning(script: &Value, run: &Trajectory) -> Carried {
    let wanted = script["turns"][0]["reasoning"].as_str().unwrap();
    let mut parts = run.nodes.iter().flat_map(|node| &node.parts);
    if parts.any(|part| matches!(part, Part::Reasoning { text, .. } if text == wanted)) {
        return Carried::Whole;
    }
    let mut parts = run.nodes.iter().flat_map(|node| &node.parts);
    let within = |part: &Part| part.cited_text().is_some_and(|text| text.contains(wanted));
    if parts.any(within) { Carried::Changed } else { Carried::No }
}

/// The script's calls with those that a run holds of the same tool, in order.
fn calls<'r>(script: &Value, run: &'r Trajectory) -> Vec<(Value, Option<&'r ToolCall>)> {
    let wanted =
        script["turns"].as_array().unwrap().iter().flat_map(|turn| turn["tool_calls"].as_array().unwrap());
    let held: Vec<&ToolCall> = run.nodes.iter().flat_map(Node::tool_calls).map(|(_, call)| call).collect();
    wanted.enumerate().map(|(index, call)| (call.clone(), held.get(index).copied())).collect()
}

fn worst(carried: impl IntoIterator<Item = Carried>) -> Carried {
    let carried: Vec<Carried> = carried.into_iter().collect();
    if carried.is_empty() || carried.iter().all(|one| *one == Carried::No) {
        Carried::No
    } else if carried.iter().all(|one| *one == Carried::Whole) {
        Carried::Whole
    } else {
        Carried::Changed
    }
}

fn parallel(_: &Value, run: &Trajectory) -> Carried {
    let names = |node: &Node| node.tool_calls().map(|(_, call)| call.name.clone()).collect::<Vec<_>>();
    let together = run.nodes.iter().any(|node| names(node) == ["get_weather", "find_trains"]);
    let some = run.nodes.iter().any(|node| !names(node).is_empty());
    if together {
        Carried::Whole
    } else if some {
        Carried::Changed
    } else {
        Carried::No
    }
}

fn ids(script: &Value, run: &Trajectory) -> Carried {
    worst(calls(script, run).into_iter().map(|(wanted, call)| {
        let id = call.and_then(|call| call.call_id.as_deref());
        if id.is_none() {
            Carried::No
        } else if id == wanted["id"].as_str() {
            Carried::Whole
        } else {
            Carried::Changed
        }
    }))
}

fn arguments(script: &Value, run: &Trajectory) -> Carried {
    worst(calls(script, run).into_iter().map(|(wanted, call)| {
        let Some(call) = call else { return Carried::No };
        let wanted = wanted["arguments"].as_str().unwrap();
        if call.arguments_raw == wanted {
            Carried::Whole
        } else if call.arguments() == serde_json::from_str(wanted).ok() {
            Carried::Changed
        } else {
            Carried::No
        }
    }))
}

/// Whether a run holds each result's text, and as the answer of its call.
fn results(script: &Value, run: &Trajectory) -> Carried {
    let wanted =
        script["turns"].as_array().unwrap().iter().flat_map(|turn| turn["results"].as_array().unwrap());
    worst(wanted.map(|wanted| {
        let output = wanted["output"].as_str().unwrap();
        let text = |result: &ToolResult| {
            result.parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
        };
        let mut held = run.nodes.iter().flat_map(Node::tool_results).map(|(_, result)| result);
        let exact =
            held.any(|result| text(result) == output && result.call_id.as_deref() == wanted["id"].as_str());
        let mut held = run.nodes.iter().flat_map(Node::tool_results).map(|(_, result)| result);
        if exact {
            Carried::Whole
        } else if held.any(|result| text(result).contains(output)) {
            Carried::Changed
        } else {
            Carried::No
        }
    }))
}

fn tool_error(_: &Value, run: &Trajectory) -> Carried {
    let failed: Vec<&ToolResult> = run
        .nodes
        .iter()
        .flat_map(Node::tool_results)
        .map(|(_, result)| result)
        .filter(|result| result.is_error == Some(true))
        .collect();
    match failed.as_slice() {
        [] => Carried::No,
        [only] if only.call_id.as_deref() == Some("call_t1") => Carried::Whole,
        _ => Carried::Changed,
    }
}

fn tools(script: &Value, run: &Trajectory) -> Carried {
    worst(script["tools"].as_array().unwrap().iter().map(|wanted| {
        let Some(tool) = run.tool(wanted["name"].as_str().unwrap()) else { return Carried::No };
        let schema = tool.parameters.as_ref().map(recoup::json::Json::to_value);
        if schema.as_ref() == Some(&wanted["parameters"]) { Carried::Whole } else { Carried::Changed }
    }))
}

fn model(_: &Value, run: &Trajectory) -> Carried {
    if run.agents.iter().any(|agent| agent.model.is_some()) { Carried::Whole } else { Carried::No }
}

fn tokens(script: &Value, run: &Trajectory) -> Carried {
    let mut held = run.nodes.iter().filter_map(|node| node.occurrence.call.as_ref()?.usage);
    worst(script["turns"].as_array().unwrap().iter().map(|turn| match held.next() {
        None => Carried::No,
        Some(usage) => {
            let counted = (Some(usage.input), Some(usage.output));
            let wanted = &turn["usage"];
            let same = counted == (wanted["input_tokens"].as_u64(), wanted["output_tokens"].as_u64());
            if same { Carried::Whole } else { Carried::Changed }
        }
    }))
}

fn times(_: &Value, run: &Trajectory) -> Carried {
    worst(
        run.nodes.iter().map(|node| if node.occurrence.at.is_some() { Carried::Whole } else { Carried::No }),
    )
}
