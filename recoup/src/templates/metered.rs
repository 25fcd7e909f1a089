//! Metered operators: `+` and `*` in a template's source, rewritten so that lists cost what they hold.
//!
//! The engine adds and repeats lists for nothing, by a note of what they are made of; a list that is added to itself
//! thirty times would fill any memory when it is written out. So each operand of `+` goes through a filter that
//! charges for a list's length, unless a text in quotes is added with it, which no list can be; and each operand of `*` through
//! one that takes no list.

use std::collections::BTreeMap;
use std::ops::Range;

/// Name of the filter of what is added.
pub(super) const TERM_FILTER: &str = "recoup_term";
/// Name of the filter of what is multiplied.
pub(super) const FACTOR_FILTER: &str = "recoup_factor";

/// What texts stand in.
const QUOTES: [char; 2] = ['"', '\''];

/// Words behind which an operator has no left operand.
const KEYWORDS: [&str; 9] = ["and", "or", "not", "in", "is", "if", "else", "elif", "set"];

/// Operands joined by operators, at one depth of brackets.
#[derive(Default)]
struct Chain {
    /// Where operands of `+` end.
    terms: Vec<usize>,
    /// Whether one of them is a text in quotes: then all are texts, or adding them fails.
    has_text: bool,
}

impl Chain {
    fn end(&mut self, filters: &mut BTreeMap<usize, &str>) {
        let Self { terms, has_text } = std::mem::take(self);
        for end in terms.into_iter().filter(|_| !has_text) {
            // What stands between `+` and `*` is multiplied.
            filters.entry(end).or_insert(TERM_FILTER);
        }
    }
}

/// Appends an expression or a tag, delimiters included, with its operands through their filters.
pub(super) fn meter(construct: &str, out: &mut String) {
    let mut filters: BTreeMap<usize, &str> = BTreeMap::new();
    let mut chains = vec![Chain::default()];
    let inner = inner(construct);
    // What stands before, where that can be an operand.
    let mut before: Option<Range<usize>> = None;
    let mut at = inner.start;
    while let Some(c) = construct.get(at..inner.end).and_then(|rest| rest.chars().next()) {
        let next = at + c.len_utf8();
        let Some(chain) = chains.last_mut() else { break };
        if c.is_whitespace() {
            at = next;
        } else if let Some(end) = word_or_text(construct, at) {
            let is_keyword = construct.get(at..end).is_some_and(|word| KEYWORDS.contains(&word));
            if is_keyword {
                chain.end(&mut filters);
            }
            before = (!is_keyword).then_some(at..end);
            at = end;
        } else if construct.get(at..).is_some_and(|rest| rest.starts_with("**")) {
            (before, at) = (None, at + 2);
        } else if matches!(c, '+' | '*') {
            if let Some(left) = before.take() {
                let left_text = construct.get(left.clone()).unwrap_or_default();
                let operands = [(!is_literal(left_text)).then_some(left.end), operand_end(construct, next)];
                let operands = operands.into_iter().flatten();
                if c == '*' {
                    filters.extend(operands.map(|end| (end, FACTOR_FILTER)));
                } else {
                    chain.has_text |= left_text.starts_with(QUOTES) || is_text(construct, next);
                    chain.terms.extend(operands);
                }
            }
            at = next;
        } else {
            match c {
                '(' | '[' | '{' => chains.push(Chain::default()),
                ')' | ']' | '}' => {
                    chain.end(&mut filters);
                    if chains.len() > 1 {
                        chains.pop();
                    }
                }
                '.' | '|' | '~' | '-' | '/' | '%' => {}
                _ => chain.end(&mut filters),
            }
            before = matches!(c, ')' | ']' | '}').then_some(at..next);
            at = next;
        }
    }
    for chain in &mut chains {
        chain.end(&mut filters);
    }
    let mut copied = 0;
    for (end, filter) in filters {
        out.push_str(construct.get(copied..end).unwrap_or_default());
        out.push('|');
        out.push_str(filter);
        copied = end;
    }
    out.push_str(construct.get(copied..).unwrap_or_default());
}

/// What stands between the delimiters and their `-` or `+`.
fn inner(construct: &str) -> Range<usize> {
    let is_sign = |at: usize| construct.as_bytes().get(at).is_some_and(|byte| matches!(byte, b'-' | b'+'));
    let start = if is_sign(2) { 3 } else { 2 };
    let end = construct.len().saturating_sub(2);
    let end = if end > start && is_sign(end - 1) { end - 1 } else { end };
    start..end.max(start)
}

/// Whether a piece is a number or a text in quotes: no list.
fn is_literal(piece: &str) -> bool {
    piece.starts_with(|c: char| c.is_ascii_digit() || QUOTES.contains(&c))
}

/// Whether the operand that begins here is a text in quotes, of which nothing is taken or made.
fn is_text(text: &str, from: usize) -> bool {
    operand_end(text, from).is_none()
        && text.get(from..).is_some_and(|rest| rest.trim_start().starts_with(QUOTES))
}

/// Where the word, number or text in quotes ends that begins here.
fn word_or_text(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let first = rest.chars().next()?;
    if matches!(first, '"' | '\'') {
        let mut is_escaped = false;
        for (index, c) in rest.char_indices().skip(1) {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                c if c == first => return Some(at + index + 1),
                _ => {}
            }
        }
        return Some(text.len());
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    (len > 0).then_some(at + len)
}

/// Where the operand ends that begins here, what is called, taken or filtered of it included; `None` where it is a
/// literal, or nothing is there.
fn operand_end(text: &str, from: usize) -> Option<usize> {
    let skip = |at: usize| text.get(at..).map_or(at, |rest| at + (rest.len() - rest.trim_start().len()));
    let starts = |at: usize, what: &[char]| text.get(at..).is_some_and(|rest| rest.starts_with(what));
    let start = skip(from);
    let first = match word_or_text(text, start) {
        Some(end) => end,
        None if starts(start, &['(', '[', '{']) => group_end(text, start),
        None => return None,
    };
    let mut end = first;
    loop {
        let next = skip(end);
        if starts(next, &['(', '[']) {
            end = group_end(text, next);
        } else if starts(next, &['.', '|'])
            && let Some(word) = word_or_text(text, skip(next + 1))
        {
            end = word;
        } else {
            break;
        }
    }
    // `1.5` looks like a word of which something is taken.
    let is_plain = |piece: &str| is_literal(piece) && (end == first || piece.parse::<f64>().is_ok());
    (!text.get(start..end).is_some_and(is_plain)).then_some(end)
}

/// Where the brackets close that open here.
fn group_end(text: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        if matches!(c, '"' | '\'') {
            at = word_or_text(text, at).unwrap_or(text.len());
            continue;
        }
        at += c.len_utf8();
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::meter;

    #[test]
    fn every_operand_that_may_be_a_list_is_metered() {
        for (source, expected) in [
            ("{{ a + b }}", "{{ a|T + b|T }}"),
            ("{{ 'x + y' + m.role + \"\\\"\" + n }}", "{{ 'x + y' + m.role + \"\\\"\" + n }}"),
            ("{{ a + b + 'c' }}{{ a + 'c'|list + b }}", "{{ a + b + 'c' }}{{ a|T + 'c'|list|T + b|T }}"),
            (
                "{{ 'x' + (a + b)[0] + f(c + d, 'y' + e) }}",
                "{{ 'x' + (a|T + b|T)[0] + f(c|T + d|T, 'y' + e) }}",
            ),
            ("{{ [a + 'x', b + c] + d }}", "{{ [a + 'x', b|T + c|T]|T + d|T }}"),
            ("{{ a + b if 'x' + c else d + e }}", "{{ a|T + b|T if 'x' + c else d|T + e|T }}"),
            ("{%- set ns.x = ns.x + ns.x -%}", "{%- set ns.x = ns.x|T + ns.x|T -%}"),
            (
                "{%+ set x = (a+b)[1:] + f(c + 1)|d(2) +%}",
                "{%+ set x = (a|T+b|T)[1:]|T + f(c|T + 1)|d(2)|T +%}",
            ),
            ("{{ [1] * n }}{{ n * 2 }}", "{{ [1]|F * n|F }}{{ n|F * 2 }}"),
            ("{{ a + b * c + d }}{{ 'a' + b * c }}", "{{ a|T + b|F * c|F + d|T }}{{ 'a' + b|F * c|F }}"),
            ("{{ f(*args, **more) + -1 ** 2 }}", "{{ f(*args, **more)|T + -1 ** 2 }}"),
            ("{{ a if b else +1 }}{{ 1.5 + x.y }}", "{{ a if b else +1 }}{{ 1.5 + x.y|T }}"),
            ("{{ 'a' + 'b'.upper() + 1.5 }}", "{{ 'a' + 'b'.upper() + 1.5 }}"),
        ] {
            let mut out = String::new();
            for construct in source.split_inclusive("}}") {
                meter(construct, &mut out);
            }
            let expected = expected.replace("|T", "|recoup_term").replace("|F", "|recoup_factor");
            assert_eq!(out, expected, "{source}");
        }
        for broken in ["{{", "{{ +", "{{ a + 'b", "{{ (a + }}", "{%+%}"] {
            meter(broken, &mut String::new());
        }
    }
}
