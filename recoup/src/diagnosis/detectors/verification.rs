//! An edit that nothing runs, reads or tests before the run ends.

use super::{Detector, Run, finding};
use crate::diagnosis::actions::Action;
use crate::diagnosis::effects::{Effect, words};
use crate::verdict::Finding;

/// Commands that write files, where one opens a line of a shell action.
const WRITING_COMMANDS: &[&str] = &["sed -i", "cat >", "cat <<", "tee ", "patch ", "git apply", "applypatch"];

/// See the module.
pub(super) struct UnverifiedMutation;

impl Detector for UnverifiedMutation {
    fn name(&self) -> &'static str {
        "unverified-mutation"
    }

    fn capability(&self) -> &'static str {
        "verification"
    }

    fn describe(&self) -> &'static str {
        "the last edit is neither run nor read nor tested"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        // Where there is no way to run anything, and no success verifies, verification is not asked for.
        let can_run = run.actions.iter().any(|action| !is_edit(action) && is_shell(action));
        let Some(last) = run.actions.iter().rposition(|action| is_edit(action) && !action.failed()) else {
            return;
        };
        let by_success = !run.successes.is_empty() && run.successes.iter().all(|success| verifies(success));
        if !(can_run || by_success) || verifies(&run.actions[last..]) {
            return;
        }
        let action = &run.actions[last];
        let message =
            format!("The last edit, by `{}`, is neither run nor read again before the end.", action.name);
        let strength = if by_success { 0.5 } else { 0.35 };
        findings.push(finding(self, action.node, strength, message, action.citation()));
    }
}

/// Something after the last edit looks at the world again.
fn verifies(actions: &[Action<'_>]) -> bool {
    let Some(last) = actions.iter().rposition(is_edit) else { return true };
    actions[last + 1..]
        .iter()
        .any(|action| action.effect != Effect::Submit && !is_edit(action) && action.raw.trim() != "submit")
}

/// It changes a file: an editor's tool, or a shell that writes one and runs nothing after.
fn is_edit(action: &Action<'_>) -> bool {
    let names = words(action.name);
    let has = |word: &str| names.iter().any(|name| name == word);
    if is_shell(action) {
        let mut lines = action.raw.lines().map(str::trim_start);
        let writes =
            lines.next().is_some_and(|line| WRITING_COMMANDS.iter().any(|form| line.starts_with(form)));
        return writes && !action.raw.contains("&&");
    }
    if has("editor") {
        let command = action.arguments.as_ref().and_then(|arguments| arguments.get("command")?.as_str());
        return matches!(command, Some("create" | "str_replace" | "insert"));
    }
    has("edit") || has("patch") || (has("file") && (has("write") || has("create"))) || names == ["write"]
}

fn is_shell(action: &Action<'_>) -> bool {
    words(action.name).iter().any(|word| {
        matches!(
            word.as_str(),
            "bash" | "sh" | "shell" | "python" | "ipython" | "exec" | "execute" | "run" | "mswea"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::UnverifiedMutation;
    use crate::diagnosis::fixture::{calls, chat, detect, say, user};

    const LOOK: (&str, &str) = ("bash", r#"{"command":"ls"}"#);
    const EDIT: (&str, &str) = ("edit_file", r#"{"path":"a.py"}"#);

    #[test]
    fn an_edit_at_the_end_is_unverified() {
        let found = detect(&UnverifiedMutation, &calls(&[LOOK, EDIT, ("submit", "{}")]), &[]);
        assert_eq!((found.len(), found[0].node), (1, 3));
        let text = chat(vec![
            user("fix"),
            say("```bash\nls\n```"),
            user("a"),
            say("```bash\nsed -i s/a/b/ x\n```"),
            user(""),
            say("done"),
        ]);
        assert_eq!(detect(&UnverifiedMutation, &text, &[])[0].node, 3);
    }

    #[test]
    fn a_later_run_or_no_shell_is_silent() {
        assert!(detect(&UnverifiedMutation, &calls(&[EDIT, LOOK]), &[]).is_empty());
        assert!(detect(&UnverifiedMutation, &calls(&[EDIT]), &[]).is_empty());
        assert!(detect(&UnverifiedMutation, &calls(&[LOOK]), &[]).is_empty());
    }
}
