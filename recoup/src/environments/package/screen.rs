//! The screen: what a package's source may not contain, checked before anything of it runs.

use super::super::{EnvironmentError, Fault};

/// Longest source, in bytes.
pub(super) const SOURCE_MAX: u64 = 512 << 10;
/// Deepest nesting of brackets and indentation: the parser and the compiler recurse.
const DEPTH_MAX: usize = 64;
/// Names that reach past the values they are given.
const FORBIDDEN: [&str; 5] = ["load", "getattr", "hasattr", "dir", "breakpoint"];

/// Refuses a source that uses what packages may not.
///
/// # Errors
/// A [`Fault::Load`] with the line.
pub(super) fn screen(environment: &str, source: &str) -> Result<(), EnvironmentError> {
    let refuse = |line: usize, message: String| EnvironmentError {
        at: Some(format!("environment.star:{line}")),
        ..EnvironmentError::new(environment, Fault::Load, message)
    };
    if source.len() as u64 > SOURCE_MAX {
        return Err(refuse(1, format!("{} bytes of source; at most {SOURCE_MAX} are read", source.len())));
    }
    let mut depth = 0_usize;
    for token in Tokens::new(source) {
        let line = token.line;
        match token.kind {
            TokenKind::Indent(columns) if columns > DEPTH_MAX * 4 => {
                return Err(refuse(line, format!("indented deeper than {DEPTH_MAX} levels")));
            }
            TokenKind::Open => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return Err(refuse(line, format!("brackets nested deeper than {DEPTH_MAX}")));
                }
            }
            TokenKind::Close => depth = depth.saturating_sub(1),
            TokenKind::Name | TokenKind::Text if token.text.contains("__") => {
                return Err(refuse(line, "`__` in a name or string is not allowed".to_owned()));
            }
            TokenKind::Name if FORBIDDEN.contains(&token.text) => {
                return Err(refuse(line, format!("`{}` is not allowed", token.text)));
            }
            TokenKind::Text if reads_fields(token.text) => {
                let message = "attribute or index access in a format string is not allowed";
                return Err(refuse(line, message.to_owned()));
            }
            TokenKind::TimesAssign => {
                return Err(refuse(line, "`*=` is not allowed; write `a = a * b`".to_owned()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a format string would look into its arguments: `{0.x}` or `{a[b]}`.
fn reads_fields(text: &str) -> bool {
    let replacement_fields = text.split('{').skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
    replacement_fields
        .filter(|name| !name.contains(['"', ' ', ',', ':']))
        .any(|name| name.contains('.') || name.contains('['))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Name,
    Text,
    Open,
    Close,
    TimesAssign,
    Indent(usize),
}

struct Token<'s> {
    kind: TokenKind,
    text: &'s str,
    line: usize,
}

/// The tokens that the screen looks at. Comments are passed over; what is no valid source at all is
/// left to the parser.
struct Tokens<'s> {
    source: &'s str,
    at: usize,
    line: usize,
    line_start: bool,
}

impl<'s> Tokens<'s> {
    fn new(source: &'s str) -> Self {
        Self { source, at: 0, line: 1, line_start: true }
    }

    fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, kind: TokenKind, length: usize) -> Token<'s> {
        let text = self.source.get(self.at..self.at + length).unwrap_or_default();
        let line = self.line;
        self.line += text.bytes().filter(|byte| *byte == b'\n').count();
        self.at += length;
        Token { kind, text, line }
    }
}

impl<'s> Iterator for Tokens<'s> {
    type Item = Token<'s>;

    fn next(&mut self) -> Option<Token<'s>> {
        loop {
            let rest = self.rest();
            let first = rest.chars().next()?;
            if std::mem::take(&mut self.line_start) {
                let columns = rest.len() - rest.trim_start_matches([' ', '\t']).len();
                return Some(self.take(TokenKind::Indent(columns), columns));
            }
            match first {
                '\n' => {
                    self.line_start = true;
                    self.at += 1;
                    self.line += 1;
                }
                '#' => self.at += rest.find('\n').unwrap_or(rest.len()),
                '"' | '\'' => return Some(self.take(TokenKind::Text, string_length(rest))),
                '(' | '[' | '{' => return Some(self.take(TokenKind::Open, 1)),
                ')' | ']' | '}' => return Some(self.take(TokenKind::Close, 1)),
                '*' if rest.starts_with("*=") => return Some(self.take(TokenKind::TimesAssign, 2)),
                _ if first.is_alphanumeric() || first == '_' => {
                    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                    return Some(self.take(TokenKind::Name, length));
                }
                _ => self.at += first.len_utf8(),
            }
        }
    }
}

/// Length of the string literal that a text begins with.
fn string_length(text: &str) -> usize {
    let quote = &text[..1];
    let triple = quote.repeat(3);
    let close = if text.starts_with(&triple) { triple.as_str() } else { quote };
    let mut at = close.len();
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(close) {
            return at + close.len();
        }
        let escaped = rest.starts_with('\\');
        at += usize::from(escaped) + rest.chars().nth(usize::from(escaped)).map_or(0, char::len_utf8);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::screen;

    #[test]
    fn what_packages_may_not_use_is_refused_with_its_line() {
        let nested = format!("a = {}", "[".repeat(65));
        for (source, line) in [
            ("x = 1\nload('a', 'b')\n", 2),
            ("x = getattr(1, 'a')\n", 1),
            ("x = 'a__b'\n", 1),
            ("def f():\n  return __import__\n", 2),
            ("x = '{0.y}'.format(1)\n", 1),
            ("x = '{a[b]}'.format(a = 1)\n", 1),
            ("x = 2\n\nx *= 3\n", 3),
            (nested.as_str(), 1),
        ] {
            let error = screen("test", source).unwrap_err();
            assert_eq!(error.at.as_deref(), Some(format!("environment.star:{line}").as_str()), "{source}");
        }
    }

    #[test]
    fn text_and_comments_are_no_code() {
        let source =
            "# load, __x__\nx = \"load 'a'\"\ny = 'it\\'s {}: {\"a.b\": [1]}'.format(x)\nz = '''\n#\n'''\n";
        assert!(screen("test", source).is_ok());
    }
}
