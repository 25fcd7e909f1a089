//! A template's source, with `{% generation %}` rewritten to what the engine knows, and operators metered.
//!
//! Hugging Face's tag says which part of a rendering the model writes. It becomes a scoped block whose
//! filter puts a mark before and after its content. A `call` block would do neither: assignments to a
//! namespace inside it must reach outside, plain ones must not.

use std::fmt::Write as _;

use super::metered::meter;

/// Name of the filter that marks generated text.
pub(super) const MARK_FILTER: &str = "recoup_generation";

/// Whether a template says what the model writes, and whether the template could notice the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// It has no `{% generation %}`.
    Absent,
    /// Every block stands where its content goes straight to the output.
    Direct,
    /// A block stands inside a macro or a captured block: what it writes may be trimmed, measured or
    /// compared before it is printed.
    Captured,
}

/// The source for the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub source: String,
    pub generation: Generation,
}

/// Rewrites a source. What is no well-formed tag is left for the engine to refuse. Line ends become line
/// feeds, as Jinja makes them before it reads anything.
pub(super) fn rewrite(source: &str) -> Rewritten {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len() + 256);
    let mut generation = Generation::Absent;
    let mut captures = 0_usize;
    let mut rest = source.as_str();
    while let Some(at) = rest.find('{') {
        let (text, construct) = rest.split_at(at);
        out.push_str(text);
        let end = match construct.as_bytes().get(1) {
            Some(b'#') => construct.find("#}").map(|end| end + 2),
            Some(b'{') => closing(construct, "}}"),
            Some(b'%') => closing(construct, "%}"),
            _ => Some(1),
        };
        let Some(end) = end.filter(|end| *end <= construct.len()) else {
            out.push_str(construct);
            return Rewritten { source: out, generation };
        };
        let (construct, after) = construct.split_at(end);
        rest = after;
        let Some(tag) = Tag::parse(construct) else {
            if construct.starts_with("{{") {
                meter(construct, &mut out);
            } else {
                out.push_str(construct);
            }
            continue;
        };
        match tag.name {
            "generation" => {
                let _ = write!(out, "{{%{} with %}}{{% filter {MARK_FILTER} {}%}}", tag.before, tag.after);
                if generation != Generation::Captured {
                    generation = if captures > 0 { Generation::Captured } else { Generation::Direct };
                }
                continue;
            }
            "endgeneration" => {
                let _ = write!(out, "{{%{} endfilter %}}{{% endwith {}%}}", tag.before, tag.after);
                continue;
            }
            "raw" => {
                let end = end_of_raw(rest);
                out.push_str(construct);
                let (raw, after) = rest.split_at(end);
                out.push_str(raw);
                rest = after;
                continue;
            }
            "macro" | "call" | "filter" => captures += 1,
            "set" if !tag.assigns => captures += 1,
            "endmacro" | "endcall" | "endfilter" | "endset" => captures = captures.saturating_sub(1),
            _ => {}
        }
        meter(construct, &mut out);
    }
    out.push_str(rest);
    Rewritten { source: out, generation }
}

/// `{%- name … -%}`, whole.
struct Tag<'a> {
    name: &'a str,
    /// `-`, `+` or nothing.
    before: &'a str,
    after: &'a str,
    /// Whether there is a `=` in it.
    assigns: bool,
}

impl<'a> Tag<'a> {
    fn parse(construct: &'a str) -> Option<Self> {
        let inner = construct.strip_prefix("{%")?.strip_suffix("%}")?;
        let content = inner.trim_start_matches(['-', '+']);
        let before = &inner[..inner.len() - content.len()];
        let trimmed = content.trim_end_matches(['-', '+']);
        let after = &content[trimmed.len()..];
        let content = trimmed.trim();
        let name_len = content.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(content.len());
        Some(Self { name: &content[..name_len], before, after, assigns: content.contains('=') })
    }
}

/// Length up to and with the first `end` outside of quotes.
fn closing(construct: &str, end: &str) -> Option<usize> {
    let mut quote = None;
    let mut chars = construct.char_indices().skip(2);
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, _) if construct[at..].starts_with(end) => return Some(at + end.len()),
            _ => {}
        }
    }
    None
}

/// Length of what stands before the tag `endraw`; all of it where there is none.
fn end_of_raw(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("{%").map(|at| from + at) {
        let word = text[at + 2..].trim_start_matches(['-', '+']).trim_start();
        if word.starts_with("endraw") {
            return at;
        }
        from = at + 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{Generation, rewrite};

    #[test]
    fn only_real_tags_are_rewritten() {
        let rewritten =
            rewrite("{%- generation %}{{ '{% generation %}' }}{%endgeneration -%}{# {% generation %} #}");
        assert_eq!(
            rewritten.source,
            "{%- with %}{% filter recoup_generation %}{{ '{% generation %}' }}{% endfilter %}{% endwith -%}{# {% generation %} #}"
        );
        assert_eq!(rewritten.generation, Generation::Direct);
        assert_eq!(rewrite("a\r\nb\rc").source, "a\nb\nc");
        let raw = "{% raw %}{% generation %}{% endraw %}";
        assert_eq!(rewrite(raw).source, raw);
        assert_eq!(rewrite(raw).generation, Generation::Absent);
    }

    #[test]
    fn a_block_that_is_captured_is_known() {
        for (source, generation) in [
            ("{% set x = 1 %}{% generation %}", Generation::Direct),
            ("{% set x %}{% generation %}", Generation::Captured),
            ("{% set x %}{% endset %}{% generation %}", Generation::Direct),
            ("{% macro m(a=1) %}{% generation %}", Generation::Captured),
        ] {
            assert_eq!(rewrite(source).generation, generation, "{source}");
        }
        for broken in ["{% generation", "{{ 'a", "{", "{#", "{% raw %}{%", "{%%}"] {
            assert_eq!(rewrite(broken).source, broken);
        }
    }
}
