//! Methods of Python's strings, lists and dictionaries that templates call, beyond and before those of
//! `minijinja-contrib`, whose white space is Rust's and not Python's.

use minijinja::value::{Rest, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::text::{ends_line, is_space};

/// Calls a method that the engine does not know.
///
/// # Errors
/// Where there is no such method, or Python would raise.
pub(crate) fn call(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    if matches!(method, "append" | "extend" | "insert" | "pop" | "remove" | "clear" | "update" | "setdefault")
        && matches!(value.kind(), ValueKind::Seq | ValueKind::Map)
    {
        return Err(refused("templates cannot change what they are given"));
    }
    match (value.as_str(), value.kind()) {
        (Some(text), _) => match string_method(text, method, args) {
            Some(result) => result,
            None => unknown_method_callback(state, value, method, args),
        },
        (None, ValueKind::Seq) if method == "index" => {
            let (wanted,): (&Value,) = from_args(args)?;
            let position = value.try_iter()?.position(|item| item == *wanted);
            position.map(Value::from).ok_or_else(|| refused("the value is not in the list"))
        }
        (None, ValueKind::Seq | ValueKind::Map) if method == "copy" => Ok(value.clone()),
        _ => unknown_method_callback(state, value, method, args),
    }
}

/// `None` where the method is another's.
fn string_method(text: &str, method: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    let owned = |text: &str| Ok(Value::from(text));
    Some(match method {
        "strip" => stripped(args, |is_cut| text.trim_matches(is_cut)),
        "lstrip" => stripped(args, |is_cut| text.trim_start_matches(is_cut)),
        "rstrip" => stripped(args, |is_cut| text.trim_end_matches(is_cut)),
        "split" => split(text, args, false),
        "rsplit" => split(text, args, true),
        "splitlines" => from_args(args).map(|(keep,): (Option<bool>,)| split_lines(text, keep == Some(true))),
        "partition" => partition(text, args, false),
        "rpartition" => partition(text, args, true),
        "removeprefix" => {
            from_args(args).and_then(|(cut,): (&str,)| owned(text.strip_prefix(cut).unwrap_or(text)))
        }
        "removesuffix" => {
            from_args(args).and_then(|(cut,): (&str,)| owned(text.strip_suffix(cut).unwrap_or(text)))
        }
        "isspace" => Ok(Value::from(!text.is_empty() && text.chars().all(is_space))),
        "casefold" => owned(&text.to_lowercase()),
        "index" | "rindex" => from_args(args).and_then(|(wanted,): (&str,)| {
            let found = if method == "index" { text.find(wanted) } else { text.rfind(wanted) };
            let position = found.map(|at| text[..at].chars().count());
            position.map(Value::from).ok_or_else(|| refused("substring not found"))
        }),
        "ljust" | "rjust" | "zfill" => padded(text, method, args),
        _ => return None,
    })
}

fn stripped<'a>(
    args: &[Value],
    trim: impl Fn(&mut dyn FnMut(char) -> bool) -> &'a str,
) -> Result<Value, Error> {
    let (chars,): (Option<&str>,) = from_args(args)?;
    Ok(Value::from(match chars {
        Some(chars) => trim(&mut |c| chars.contains(c)),
        None => trim(&mut is_space),
    }))
}

fn split(text: &str, args: &[Value], from_the_right: bool) -> Result<Value, Error> {
    let (separator, most): (Option<&str>, Option<i64>) = from_args(args)?;
    // A negative number splits everywhere.
    let most = most.and_then(|most| usize::try_from(most).ok());
    let limit = most.map_or(usize::MAX, |most| most.saturating_add(1));
    let mut pieces: Vec<&str> = match separator {
        Some("") => return Err(refused("empty separator")),
        Some(separator) if from_the_right => text.rsplitn(limit, separator).collect(),
        Some(separator) => text.splitn(limit, separator).collect(),
        None => split_at_space(text, limit, from_the_right),
    };
    if from_the_right {
        pieces.reverse();
    }
    Ok(pieces.into_iter().map(Value::from).collect())
}

/// Words between white space; the last of `limit` pieces keeps what is left, but for space at its ends.
fn split_at_space(text: &str, limit: usize, from_the_right: bool) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_matches(is_space);
    while !rest.is_empty() {
        if pieces.len() + 1 >= limit {
            pieces.push(rest);
            break;
        }
        let found = if from_the_right { rest.rfind(is_space) } else { rest.find(is_space) };
        let Some(at) = found else {
            pieces.push(rest);
            break;
        };
        let (before, after) = rest.split_at(at);
        let (word, left) = if from_the_right { (after, before) } else { (before, after) };
        pieces.push(word.trim_matches(is_space));
        rest = left.trim_matches(is_space);
    }
    pieces
}

fn split_lines(text: &str, keep_ends: bool) -> Value {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(ends_line) {
        let end = rest[at..].chars().next().map_or(0, char::len_utf8);
        let end = if rest[at..].starts_with("\r\n") { 2 } else { end };
        let (line, left) = rest.split_at(at + end);
        lines.push(Value::from(if keep_ends { line } else { &line[..at] }));
        rest = left;
    }
    if !rest.is_empty() {
        lines.push(Value::from(rest));
    }
    Value::from(lines)
}

fn partition(text: &str, args: &[Value], from_the_right: bool) -> Result<Value, Error> {
    let (separator,): (&str,) = from_args(args)?;
    if separator.is_empty() {
        return Err(refused("empty separator"));
    }
    let found = if from_the_right { text.rsplit_once(separator) } else { text.split_once(separator) };
    let pieces = match found {
        Some((before, after)) => [before, separator, after],
        None if from_the_right => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(Tuple::from(pieces.map(Value::from))))
}

fn padded(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    /// Characters that a string is padded to at most.
    const WIDTH_MAX: usize = 1 << 16;
    let (width, Rest(fill)): (usize, Rest<String>) = from_args(args)?;
    if width > WIDTH_MAX {
        return Err(refused("too wide"));
    }
    let fill = fill.first().and_then(|fill| fill.chars().next());
    let fill = fill.unwrap_or(if method == "zfill" { '0' } else { ' ' });
    let padding: String = std::iter::repeat_n(fill, width.saturating_sub(text.chars().count())).collect();
    Ok(Value::from(match method {
        "ljust" => format!("{text}{padding}"),
        "rjust" => format!("{padding}{text}"),
        _ => {
            let digits = text.trim_start_matches(['+', '-']);
            let sign = &text[..text.len() - digits.len()];
            format!("{sign}{padding}{digits}")
        }
    }))
}

fn refused(why: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}

#[cfg(test)]
mod tests {
    use minijinja::Value;

    use super::string_method;

    fn called(text: &str, method: &str, args: &[Value]) -> String {
        string_method(text, method, args).unwrap().unwrap().to_string()
    }

    #[test]
    fn strings_are_cut_as_in_python() {
        let two = [Value::from(()), Value::from(1)];
        assert_eq!(called("\u{1f} a \u{a0}", "strip", &[]), "a");
        assert_eq!(called("xxaxx", "lstrip", &[Value::from("x")]), "axx");
        assert_eq!(called("  a b  c ", "split", &[]), "['a', 'b', 'c']");
        assert_eq!(called("  a b  c ", "split", &two), "['a', 'b  c']");
        assert_eq!(called(" a  b c ", "rsplit", &two), "['a  b', 'c']");
        assert_eq!(called("a,b,c", "rsplit", &[Value::from(","), Value::from(1)]), "['a,b', 'c']");
        assert_eq!(called("a\r\nb\u{2028}", "splitlines", &[]), "['a', 'b']");
        assert_eq!(called("k=v=w", "partition", &[Value::from("=")]), "('k', '=', 'v=w')");
        assert_eq!(called("-7", "zfill", &[Value::from(4)]), "-007");
        assert!(string_method("a", "split", &[Value::from("")]).unwrap().is_err());
        assert!(string_method("a", "upper", &[]).is_none());
    }
}
