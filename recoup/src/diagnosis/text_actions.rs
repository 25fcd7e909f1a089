//! Actions written in text: fenced code and `Action:` lines.

use std::ops::Range;

/// Languages whose blocks are run, as harnesses name them.
const RUN_LANGUAGES: &[&str] =
    &["bash", "sh", "shell", "python", "py", "mswea_bash_command", "tool_code", "execute"];

/// Where an action stands in a turn's text.
pub(crate) struct TextAction {
    /// Its verb or language.
    pub(crate) name: Range<usize>,
    /// The whole action: code, or the line after `Action:`.
    pub(crate) body: Range<usize>,
}

/// The action of a turn that calls no tool: its last `Action:` line, else its first block of code
/// that a harness would run, else the command in a plain block that ends the turn.
pub(crate) fn text_action(text: &str) -> Option<TextAction> {
    action_line(text).or_else(|| fenced(text)).or_else(|| closing_command(text))
}

/// A block without a language at the very end, whose first word is a command.
fn closing_command(text: &str) -> Option<TextAction> {
    let inner = text.trim_end().strip_suffix("```")?;
    let open = inner.rfind("```")?;
    let block = inner[open + 3..].strip_prefix('\n')?;
    let at = open + 4 + block.len() - block.trim_start().len();
    let body = block.trim();
    let name = body.split(|c: char| c.is_whitespace() || c == ':').next().filter(|name| !name.is_empty())?;
    let is_command = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte == b'-');
    is_command.then(|| TextAction { name: at..at + name.len(), body: at..at + body.len() })
}

/// `Action: search[x]`, `Action 3: Finish[y]`.
fn action_line(text: &str) -> Option<TextAction> {
    let mut offset = 0;
    let mut found = None;
    for line in text.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let Some(rest) = line.trim_start().strip_prefix("Action") else { continue };
        let numbered = rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
        let Some(body) = numbered.strip_prefix(':') else { continue };
        let body = body.trim();
        if body.is_empty() {
            continue;
        }
        let at = start + line.find(body).unwrap_or(0);
        let verb = body.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(body.len());
        if verb > 0 {
            found = Some(TextAction { name: at..at + verb, body: at..at + body.len() });
        }
    }
    found
}

fn fenced(text: &str) -> Option<TextAction> {
    let mut offset = 0;
    let mut open: Option<(Range<usize>, usize)> = None;
    for line in text.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let Some(info) = line.trim().strip_prefix("```") else { continue };
        match open.take() {
            Some((name, body)) if info.is_empty() => {
                let code = text.get(body..start)?;
                let inner = code.trim();
                if !name.is_empty() && !inner.is_empty() {
                    let at = body + code.len() - code.trim_start().len();
                    return Some(TextAction { name, body: at..at + inner.len() });
                }
            }
            _ => {
                let language = info.split_whitespace().next().unwrap_or("");
                let at = start + line.find("```").unwrap_or(0) + 3;
                let runs = RUN_LANGUAGES.contains(&language);
                open = Some((if runs { at..at + language.len() } else { at..at }, offset));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::text_action;

    fn found(text: &str) -> Option<(&str, &str)> {
        text_action(text).map(|action| (&text[action.name], &text[action.body]))
    }

    #[test]
    fn actions_are_found_where_harnesses_find_them() {
        assert_eq!(found("Thought 2: x\nAction 2: Search[Rome]\n"), Some(("Search", "Search[Rome]")));
        assert_eq!(found("run\n```python\nprint(1)\n```\nend"), Some(("python", "print(1)")));
        assert_eq!(found("```json\n{}\n```\n```sh\nls\n```"), Some(("sh", "ls")));
        assert_eq!(found("I edit.\n```\nedit 1:2\nx\n```\n"), Some(("edit", "edit 1:2\nx")));
    }

    #[test]
    fn prose_is_no_action() {
        assert_eq!(found("Action items are due. The action: none"), None);
        assert_eq!(found("```\nplain\n``` and more"), None);
        assert_eq!(found("```\nX = 3\n```"), None);
        assert_eq!(found("```bash\nnever closed"), None);
    }
}
