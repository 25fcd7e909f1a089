//! Renders cases with a chat template, for comparison with `transformers`.
//!
//! `template_cases render TEMPLATE CASES.jsonl [--now TIME] [name=value …]` writes one JSON object a case:
//! the SHA-256 of the text and the generated ranges in characters, or the error.

use std::error::Error;
use std::fs;
use std::io::{BufWriter, Write as _, stdout};
use std::ops::Range;

use recoup::templates::{ChatTemplate, Conversation, LocalTime, RenderOptions};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [_, template, cases, rest @ ..] = arguments.as_slice() else {
        return Err("usage: template_cases render TEMPLATE CASES.jsonl [--now TIME] [name=value …]".into());
    };
    let now = rest.iter().position(|flag| flag == "--now").and_then(|at| rest.get(at + 1));
    let variables: Vec<(String, Value)> = rest
        .iter()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let now = now.and_then(|now| LocalTime::parse(now));
    let template = ChatTemplate::new(&fs::read_to_string(template)?, &variables, now)?;
    let mut out = BufWriter::new(stdout().lock());
    for line in fs::read_to_string(cases)?.lines() {
        let case: Value = serde_json::from_str(line)?;
        let options =
            RenderOptions { add_generation_prompt: case["add_generation_prompt"].as_bool().unwrap_or(false) };
        let conversation = Conversation {
            messages: case["messages"].as_array().map_or(&[], Vec::as_slice),
            tools: case["tools"].as_array().map(Vec::as_slice),
        };
        let answer = match template.render(&conversation, options) {
            Ok(rendering) => {
                if rest.iter().any(|flag| flag == "--text") {
                    writeln!(out, "{}", json!({"text": rendering.text}))?;
                    continue;
                }
                let generated = in_characters(&rendering.text, &rendering.generated);
                json!({"sha256": hex(&Sha256::digest(rendering.text.as_bytes())), "generated": generated})
            }
            Err(error) => json!({"error": error.to_string()}),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

fn in_characters(text: &str, ranges: &[Range<usize>]) -> Vec<[usize; 2]> {
    let mut characters = 0;
    let mut bytes = 0;
    let mut at = |to: usize| {
        characters += text[bytes..to].chars().count();
        bytes = to;
        characters
    };
    ranges.iter().map(|range| [at(range.start), at(range.end)]).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
