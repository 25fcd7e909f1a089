//! The tokens of a model call, in the names of each provider and framework.

use crate::importers::object::Object;
use crate::importers::value::is_object;
use crate::trajectory::Usage;

/// Names of the prompt's tokens, cached ones included.
const INPUT: [&str; 4] = ["input_tokens", "prompt_tokens", "promptTokenCount", "prompt_token_count"];
/// Names of the generated tokens.
const OUTPUT: [&str; 4] =
    ["output_tokens", "completion_tokens", "candidatesTokenCount", "candidates_token_count"];
/// Names of the objects in which the prompt's tokens are broken down.
const INPUT_DETAILS: [&str; 3] = ["input_tokens_details", "prompt_tokens_details", "input_token_details"];
/// Names of the objects in which the generated tokens are broken down.
const OUTPUT_DETAILS: [&str; 3] =
    ["output_tokens_details", "completion_tokens_details", "output_token_details"];

/// Takes the tokens out of a usage object; `None` where it names neither input nor output. What else
/// it says stays.
///
/// A [`Usage`] counts cached tokens into the input and reasoning into the output. Anthropic counts the
/// cached ones apart, Google the reasoning.
pub(in crate::importers) fn usage(tokens: &mut Object<'_>) -> Option<Usage> {
    let mut count = |key: &str| tokens.read::<u64>(key);
    let input = INPUT.into_iter().find_map(&mut count);
    let output = OUTPUT.into_iter().find_map(&mut count);
    if input.is_none() && output.is_none() {
        return None;
    }
    for total in ["total_tokens", "totalTokenCount", "total_token_count"] {
        count(total);
    }
    let read = count("cache_read_input_tokens");
    let apart = read.unwrap_or(0).saturating_add(count("cache_creation_input_tokens").unwrap_or(0));
    let thoughts = count("thoughtsTokenCount").or_else(|| count("thoughts_token_count"));
    let cached =
        read.or_else(|| count("cachedContentTokenCount")).or_else(|| count("cached_content_token_count"));
    let cached = cached.or_else(|| detail(tokens, &INPUT_DETAILS, &["cached_tokens", "cache_read"]));
    let reasoning = thoughts.or_else(|| detail(tokens, &OUTPUT_DETAILS, &["reasoning_tokens", "reasoning"]));
    Some(Usage {
        input: input.unwrap_or(0).saturating_add(apart),
        output: output.unwrap_or(0).saturating_add(thoughts.unwrap_or(0)),
        cached: cached.unwrap_or(0),
        reasoning: reasoning.unwrap_or(0),
    })
}

/// Takes a number out of the first object of these names; what else that object says stays.
fn detail(tokens: &mut Object<'_>, objects: &[&str], names: &[&str]) -> Option<u64> {
    let object = objects.iter().find(|key| tokens.get(key).is_some_and(is_object))?;
    let mut details = tokens.get(object).and_then(Object::of)?;
    let found = names.iter().find_map(|name| details.read(name));
    if details.members().values().all(|raw| raw.get() == "0") {
        tokens.take(object);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::usage;
    use crate::importers::object::Object;
    use crate::trajectory::Usage;

    fn read(text: &str) -> Option<Usage> {
        usage(&mut serde_json::from_str::<Object<'_>>(text).unwrap())
    }

    #[test]
    fn each_provider_counts_in_its_own_names() {
        let wanted = Some(Usage { input: 10, output: 5, cached: 4, reasoning: 2 });
        for text in [
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}"#,
            r#"{"input_tokens":10,"output_tokens":5,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":2}}"#,
            r#"{"input_tokens":10,"output_tokens":5,"input_token_details":{"cache_read":4},"output_token_details":{"reasoning":2}}"#,
            r#"{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2,"cachedContentTokenCount":4}"#,
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }

    #[test]
    fn anthropic_counts_cached_tokens_apart() {
        let text = r#"{"input_tokens":5,"cache_creation_input_tokens":1,"cache_read_input_tokens":4,"output_tokens":5}"#;
        assert_eq!(read(text), Some(Usage { input: 10, output: 5, cached: 4, reasoning: 0 }));
        assert_eq!(read(r#"{"service_tier":"standard"}"#), None);
    }
}
