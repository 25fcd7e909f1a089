//! Renders, tokenizes and masks cases, for comparison with `transformers`, and times it.
//!
//! ```text
//! template_cases render TEMPLATE CASES.jsonl [name=value …]      SHA-256 of the text, generated ranges
//! template_cases mask TEMPLATE CASES.jsonl MODEL_DIR             ids, mask, and the reason of a refusal; fails where
//!                                                                our tokens are not the library's
//! template_cases time TEMPLATE CASES.jsonl MODEL_DIR THREADS     processor seconds of each step
//! ```
//!
//! A case is `{"messages", "tools", "add_generation_prompt"}`; the answer to each is one JSON object a line.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write as _, stdout};
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Instant;

use recoup::templates::{
    ChatFormat, ChatTemplate, Conversation, FormatOptions, LocalTime, ModelFiles, RenderOptions, Target,
    Tokenizer, mask,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Answer<T> = Result<T, Box<dyn Error>>;

/// The clock that both sides of the comparison are given.
const NOW: &str = "2026-11-29T12:00:00";
/// Rounds of a timing, of which the fastest counts.
const ROUNDS: usize = 5;

fn main() -> Answer<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, template, cases, rest @ ..] = arguments.as_slice() else {
        return Err("usage: template_cases render|mask|time TEMPLATE CASES.jsonl …".into());
    };
    let source = fs::read_to_string(template)?;
    let cases: Vec<Value> =
        fs::read_to_string(cases)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    match (what.as_str(), rest) {
        ("render", variables) => render(&source, &cases, variables),
        ("mask", [model]) => masks(&source, &cases, Path::new(model)),
        ("time", [model, threads]) => time(&source, &cases, Path::new(model), threads.parse()?),
        _ => Err("usage: see the head of the source".into()),
    }
}

fn conversation(case: &Value) -> Conversation<'_> {
    Conversation {
        messages: case["messages"].as_array().map_or(&[], Vec::as_slice),
        tools: case["tools"].as_array().map(Vec::as_slice),
    }
}

fn options(case: &Value) -> RenderOptions {
    RenderOptions { add_generation_prompt: case["add_generation_prompt"].as_bool().unwrap_or(false) }
}

/// Every message of the model.
fn targets(case: &Value) -> Vec<Target<'static>> {
    let messages = conversation(case).messages.iter().enumerate();
    let own = messages.filter(|(_, message)| message["role"] == "assistant");
    own.map(|(message, _)| Target { message, weight: 1.0, completion_ids: None }).collect()
}

fn render(source: &str, cases: &[Value], variables: &[String]) -> Answer<()> {
    let variables = variables.iter().filter_map(|pair| pair.split_once('='));
    let variables: Vec<_> = variables.map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let template = ChatTemplate::new(source, &variables, LocalTime::parse(NOW))?;
    let mut out = BufWriter::new(stdout().lock());
    for case in cases {
        let answer = match template.render(&conversation(case), options(case)) {
            Ok(rendering) => json!({
                "sha256": sha256(rendering.text.as_bytes()),
                "generated": in_characters(&rendering.text, &rendering.generated),
                "text": std::env::var_os("SHOW_TEXT").map(|_| rendering.text),
            }),
            Err(error) => json!({"error": error.to_string()}),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

fn files(source: &str, model: &Path) -> Answer<ModelFiles> {
    Ok(ModelFiles {
        tokenizer: fs::read(model.join("tokenizer.json"))?,
        config: fs::read(model.join("tokenizer_config.json")).ok(),
        template: Some(source.to_owned()),
    })
}

fn format(source: &str, model: &Path) -> Answer<ChatFormat> {
    let options = FormatOptions {
        now: LocalTime::parse(NOW),
        tokens_max: Some(usize::MAX),
        ..FormatOptions::default()
    };
    Ok(ChatFormat::new(&files(source, model)?, &options)?)
}

fn masks(source: &str, cases: &[Value], model: &Path) -> Answer<()> {
    let ModelFiles { tokenizer, config, .. } = files(source, model)?;
    let tokenizer = Tokenizer::new(&tokenizer, config.as_deref())?;
    let template = ChatTemplate::new(source, tokenizer.named_tokens(), LocalTime::parse(NOW))?;
    let format = format(source, model);
    let mut out = BufWriter::new(stdout().lock());
    for case in cases {
        let Ok(rendering) = template.render(&conversation(case), RenderOptions::default()) else {
            writeln!(out, "{}", json!({"error": "not rendered"}))?;
            continue;
        };
        let encoded = tokenizer.encode(&rendering.text)?;
        if encoded != tokenizer.encode_by_library(&rendering.text)? {
            return Err("the words of a text are not the library's tokens".into());
        }
        let ids = encoded.ids;
        let (learned, refused) = match &format {
            Ok(format) => match mask(&conversation(case), &targets(case), format) {
                Ok(row) => {
                    let learned =
                        row.weights.iter().map(|weight| u8::from(*weight != 0.0)).collect::<Vec<_>>();
                    (Some(learned), None)
                }
                Err(refused) => (None, Some(refused.reason().to_owned())),
            },
            Err(error) => (None, Some(error.to_string())),
        };
        writeln!(out, "{}", json!({"ids": ids, "learned": learned, "refused": refused}))?;
    }
    Ok(())
}

fn time(source: &str, cases: &[Value], model: &Path, threads: usize) -> Answer<()> {
    let format = format(source, model)?;
    let rows: Vec<Option<usize>> = cases
        .iter()
        .map(|case| mask(&conversation(case), &targets(case), &format).ok().map(|row| row.ids.len()))
        .collect();
    let render = |case: &Value| drop(format.render(&conversation(case), RenderOptions::default()));
    let encode = |case: &Value| {
        let text = format.render(&conversation(case), RenderOptions::default()).unwrap_or_default().text;
        drop(format.tokenizer().encode(&text));
    };
    let prove = |case: &Value| drop(mask(&conversation(case), &targets(case), &format));
    let answer = json!({
        "threads": threads,
        "rows": cases.len(),
        "proved": rows.iter().flatten().count(),
        "tokens": rows.iter().flatten().sum::<usize>(),
        "render_seconds": fastest(cases, threads, &render),
        "render_and_encode_seconds": fastest(cases, threads, &encode),
        "mask_seconds": fastest(cases, threads, &prove),
    });
    writeln!(stdout().lock(), "{answer}")?;
    Ok(())
}

/// Seconds that the busiest thread worked, whatever else the machine did meanwhile.
fn fastest(cases: &[Value], threads: usize, work: &(dyn Fn(&Value) + Sync)) -> f64 {
    let share = |number: usize| {
        let (start, worked) = (Instant::now(), worked_seconds());
        cases.iter().skip(number).step_by(threads).for_each(work);
        match (worked, worked_seconds()) {
            (Some(before), Some(after)) => after - before,
            _ => start.elapsed().as_secs_f64(),
        }
    };
    let round = || {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || share(number))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).fold(0.0, f64::max)
        })
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// Seconds that this thread has had a processor, where the system says so.
fn worked_seconds() -> Option<f64> {
    let stated = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = stated.split(' ').next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

fn in_characters(text: &str, ranges: &[Range<usize>]) -> Vec<[usize; 2]> {
    let (mut characters, mut bytes) = (0, 0);
    let mut at = |to: usize| {
        characters += text[bytes..to].chars().count();
        bytes = to;
        characters
    };
    ranges.iter().map(|range| [at(range.start), at(range.end)]).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
