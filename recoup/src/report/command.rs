//! Command lines that a person may copy: every foreign word quoted for the shell.

use crate::visible::is_invisible;

/// A word as a POSIX shell reads it back. Characters that act on the screen are replaced, since what is
/// copied from a report must be what was read there.
pub(super) fn shell_word(word: &str) -> String {
    let shown: String = word.chars().map(|c| if is_invisible(c) { '\u{fffd}' } else { c }).collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:@%+,".contains(c);
    if !shown.is_empty() && !shown.starts_with('-') && shown.chars().all(plain) {
        return shown;
    }
    // A leading dash would be an option, even within quotes.
    let guard = if shown.starts_with('-') { "./" } else { "" };
    format!("'{guard}{}'", shown.replace('\'', r"'\''"))
}

/// Enough of an id to name its run: 12 hexadecimal digits are 48 bits.
pub(super) fn short_id(id: &str) -> String {
    id.chars().take(12).collect()
}

/// Shows one run.
pub(super) fn show(id: &str, project: &str) -> String {
    format!("recoup show {} --project {}", shell_word(&short_id(id)), shell_word(project))
}

/// Lists runs by some filters of `recoup ls`.
pub(super) fn list(filters: &str, project: &str) -> String {
    format!("recoup ls {filters} --project {}", shell_word(project))
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn hostile_words_stay_one_word() {
        assert_eq!(shell_word("logs/run-1.jsonl"), "logs/run-1.jsonl");
        assert_eq!(shell_word("a'; rm -rf ~ #"), r"'a'\''; rm -rf ~ #'");
        assert_eq!(shell_word("$(id)\n"), "'$(id)\u{fffd}'");
        assert_eq!(shell_word("--yes"), "'./--yes'");
        assert_eq!(shell_word(""), "''");
    }
}
