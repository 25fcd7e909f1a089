//! Families of models: models of one family tend to make the same mistakes.

/// How a model's name starts, and its family; the first that fits counts.
const PREFIXES: &[(&str, &str)] = &[
    ("gpt", "gpt"),
    ("chatgpt", "gpt"),
    ("o1", "gpt"),
    ("o3", "gpt"),
    ("o4", "gpt"),
    ("claude", "claude"),
    ("gemini", "gemini"),
    ("gemma", "gemma"),
    ("qwen", "qwen"),
    ("qwq", "qwen"),
    ("deepseek", "deepseek"),
    ("llama", "llama"),
    ("meta-llama", "llama"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("ministral", "mistral"),
    ("magistral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("kimi", "kimi"),
    ("moonshot", "kimi"),
    ("command", "command"),
];

/// The family of a model by its name: a known one, else the letters that the name starts with. A path
/// or an organization before the name does not count.
pub fn family_of(model: &str) -> String {
    let name = model.rsplit(['/', '\\']).next().unwrap_or(model).to_lowercase();
    if let Some((_, family)) = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        return (*family).to_owned();
    }
    let letters: String = name.chars().take_while(|c| c.is_alphabetic()).collect();
    if letters.is_empty() { name } else { letters }
}

#[cfg(test)]
mod tests {
    use super::family_of;

    #[test]
    fn names_of_one_family_say_so() {
        for (model, family) in [
            ("gpt-4o-mini", "gpt"),
            ("o3-mini", "gpt"),
            ("openai/gpt-oss-120b", "gpt"),
            ("Qwen/Qwen2.5-7B-Instruct", "qwen"),
            ("claude-sonnet-4", "claude"),
            ("SmolLM2-135M", "smollm"),
            ("7b", "7b"),
        ] {
            assert_eq!(family_of(model), family, "{model}");
        }
    }
}
