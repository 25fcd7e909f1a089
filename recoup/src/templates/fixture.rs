//! A tokenizer of single bytes and a few words, and templates, for tests.

use serde_json::{Value, json};

use super::words::byte_character;
use super::{ChatFormat, FormatError, FormatOptions, ModelFiles};

/// ChatML that says what is generated, the end of the turn and the line's end with it.
pub(super) const MARKED: &str = "{%- for m in messages %}\n\
    {{- '<|im_start|>' + m.role + '\\n' }}\n\
    {%- if m.role == 'assistant' %}{% generation %}\n\
    {{- m.content }}{% for c in m.tool_calls %}{{ '<call>' + c.function.name + (c.function.arguments | tojson) }}{% endfor %}\n\
    {{- '<|im_end|>\\n' }}{% endgeneration %}\n\
    {%- else %}{{ m.content + '<|im_end|>\\n' }}{% endif %}\n\
    {%- endfor %}\n\
    {%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// The same without marks.
pub(super) fn plain_chatml() -> String {
    MARKED.replace("{% generation %}", "").replace("{% endgeneration %}", "")
}

/// ChatML that puts arguments between quotes that are tokens, as Gemma 4 does, and ends a turn of calls with a
/// token of its own.
pub(super) const QUOTING: &str = "{%- for m in messages %}\n\
    {{- '<|im_start|>' + m.role + '\n' + m.content }}\n\
    {%- for c in m.tool_calls %}{{- '<call>' + c.function.name }}\n\
    {%- for k, v in c.function.arguments.items() %}{{ k + ':<|\"|>' + v + '<|\"|>' }}{% endfor %}{{ '</call>' }}\n\
    {%- endfor %}{{- '<|tool|>' if m.tool_calls else '<|im_end|>\n' }}\n\
    {%- endfor %}\n\
    {%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// ChatML that drops the reasoning of all but the last message.
pub(super) const FORGETFUL: &str = "{%- for m in messages %}\n\
    {{- '<|im_start|>' + m.role + '\\n' }}\n\
    {%- if m.reasoning_content and loop.last %}{{ '<think>' + m.reasoning_content + '</think>' }}{% endif %}\n\
    {{- m.content + '<|im_end|>\\n' }}\n\
    {%- endfor %}\n\
    {%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// The pattern that Qwen's tokenizers split at.
pub(super) const SPLIT: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// `tokenizer.json` of single bytes, the pair `hi`, and ChatML's special tokens.
pub(super) fn tokenizer() -> Vec<u8> {
    stated().to_string().into_bytes()
}

/// The same behind a split at a pattern.
pub(super) fn tokenizer_that_splits(pattern: &str) -> Vec<u8> {
    let mut stated = stated();
    let bytes = stated["pre_tokenizer"].take();
    let split =
        json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    stated["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": [split, bytes]});
    stated["normalizer"] = json!({"type": "NFC"});
    stated.to_string().into_bytes()
}

fn stated() -> Value {
    let mut vocabulary: Vec<String> = (0..=255).map(|byte| byte_character(byte).to_string()).collect();
    vocabulary.push("hi".to_owned());
    let ids = vocabulary.iter().enumerate().map(|(id, token)| (token.clone(), json!(id)));
    let vocab: serde_json::Map<String, Value> = ids.collect();
    let added =
        ["<|im_start|>", "<|im_end|>", "<|\"|>", "<|tool|>"].iter().enumerate().map(|(index, token)| {
            json!({"id": 257 + index, "content": token, "special": true, "normalized": false,
            "single_word": false, "lstrip": false, "rstrip": false})
        });
    let bytes =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": added.collect::<Vec<_>>(),
        "pre_tokenizer": bytes, "post_processor": null, "decoder": bytes,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocab, "merges": ["h i"]},
    })
}

/// A chat format of the tokenizer and a template.
pub(super) fn format(template: &str, options: &FormatOptions) -> Result<ChatFormat, FormatError> {
    let files = ModelFiles { tokenizer: tokenizer(), config: None, template: Some(template.to_owned()) };
    ChatFormat::new(&files, options)
}
