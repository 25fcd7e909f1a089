//! The model that rows are made or proved for, read from its files.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use recoup::templates::{ChatFormat, FormatError, FormatOptions, ModelFiles, TemplateError};

use crate::args::ModelFilesArgs;
use crate::failure::Failure;

/// Bytes of a model's file that are read; the largest tokenizers have a sixth of them.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Reads the files that the flags name; rows have at most so many tokens, or what the tokenizer says.
pub(super) fn read(flags: &ModelFilesArgs, max_tokens: Option<u32>) -> Result<ChatFormat, Failure> {
    let of_model = |name: &str| flags.model.as_ref().map(|folder| folder.join(name));
    let beside_template = || flags.template.as_ref().map(|path| path.with_file_name("tokenizer.json"));
    let tokenizer = flags.tokenizer.clone().or_else(|| of_model("tokenizer.json")).or_else(beside_template);
    let Some(tokenizer) = tokenizer else {
        return Err(Failure::user("rows are made or proved for a model, and none is named").hint(
            "`--model DIR` names its folder; `--template FILE` names its template, with tokenizer.json beside it \
             unless `--tokenizer FILE` says where",
        ));
    };
    let optional = |path: Option<PathBuf>| match path {
        Some(path) if path.is_file() => bytes(&path).map(Some),
        _ => Ok(None),
    };
    // A tokenizer's settings lie beside it.
    let config = optional(Some(tokenizer.with_file_name("tokenizer_config.json")))?;
    let template = match &flags.template {
        Some(path) => Some(bytes(path)?),
        None => optional(of_model("chat_template.jinja"))?,
    };
    let template = template.map(String::from_utf8).transpose();
    let template =
        template.map_err(|_| Failure::user("the chat template is not UTF-8").code("chat-format"))?;
    let files = ModelFiles { tokenizer: bytes(&tokenizer)?, config, template };
    let options = FormatOptions {
        now: flags.date,
        variables: Vec::new(),
        tokens_max: max_tokens.map(|most| most as usize),
        is_strict: flags.strict,
    };
    ChatFormat::new(&files, &options)
        .map_err(|error| Failure::user(error.to_string()).code("chat-format").hint(hint(&error)))
}

fn hint(error: &FormatError) -> &'static str {
    match error {
        FormatError::Template(TemplateError::NoDate) => "`--date 2026-11-29` gives it one",
        FormatError::Template(_) => "`--template FILE` names another chat template",
        FormatError::NoTemplate | FormatError::SeveralTemplates => "`--template FILE` names the one to use",
        FormatError::Tokenizer(_) => "`--tokenizer FILE` names another tokenizer.json",
        _ => "`--model DIR` names a folder whose template and tokenizer belong together",
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::machine("cannot read", &error).within(path);
    let mut out = Vec::new();
    fs::File::open(path).map_err(failed)?.take(FILE_BYTES_MAX).read_to_end(&mut out).map_err(failed)?;
    Ok(out)
}
