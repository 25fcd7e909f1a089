//! Volatile text: what an environment says may differ between two executions of the same actions.

use std::borrow::Cow;

use regex::Regex;

use crate::environments::Manifest;

/// What stands for volatile text, so that its presence is compared and its content is not.
const PLACEHOLDER: &str = "\u{1A}";

/// The declared patterns of an environment, compiled. Nothing else is ever normalized.
#[derive(Clone, Debug, Default)]
pub struct Volatile(Vec<Regex>);

impl Volatile {
    /// The patterns of a manifest. One that does not compile matches nothing: the manifest's check has
    /// refused it before, and a comparison must rather fail than pass.
    pub fn of(manifest: &Manifest) -> Self {
        Self(manifest.volatile.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect())
    }

    /// Whether two observations are the same but for volatile text.
    pub fn same(&self, left: &str, right: &str) -> bool {
        left == right || !self.0.is_empty() && self.normalized(left) == self.normalized(right)
    }

    fn normalized<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for pattern in &self.0 {
            if let Cow::Owned(replaced) = pattern.replace_all(&text, PLACEHOLDER) {
                text = Cow::Owned(replaced);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::Volatile;

    #[test]
    fn only_declared_text_may_differ() {
        let volatile = Volatile(vec![Regex::new(r"\d\d:\d\d").unwrap()]);
        assert!(volatile.same("at 10:01 it rang", "at 11:59 it rang"));
        assert!(!volatile.same("at 10:01 it rang", "at 10:01 it hung"));
        assert!(!volatile.same("at 10:01", "at "));
        assert!(!Volatile::default().same("a 10:01", "a 10:02"));
    }
}
