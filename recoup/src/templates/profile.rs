//! The engine as Hugging Face sets up Jinja for chat templates: whitespace, filters, tests, functions.
//!
//! What differs from the engine's own ways is Python's: what `str` prints, what counts as iterable, what
//! JSON looks like. Templates are foreign code: they get fuel, and nothing that reaches outside.

use std::borrow::Cow;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::metered::{FACTOR_FILTER, TERM_FILTER};
use super::python::clock::LocalTime;
use super::python::json::Layout;
use super::python::methods;
use super::python::repr::{str_of, whole_str_of};
use super::python::text::is_space;
use super::source::MARK_FILTER;

/// Work that one rendering may do, in the engine's units: an instruction costs one, and so do 64 bytes
/// that are made. Two hundred thousand tokens of conversation take a hundredth of it.
const FUEL: u64 = 4_000_000;

/// Fuel of a list that is added to another, whatever it holds.
const LIST_FUEL: u64 = 64;
/// Items of such a list that cost one more.
const LIST_ITEMS_PER_FUEL: u64 = 4;
/// Bytes of the text of a list or dictionary that cost one.
const TEXT_BYTES_PER_FUEL: u64 = 4;

/// Variable of a rendering that holds the two marks of generated text; without it none are written.
pub(super) const MARKS: &str = "recoup_marks";

/// What a message of [`ErrorKind::InvalidOperation`] starts with where the template itself refuses.
pub(super) const RAISED: &str = "raised by the template: ";

/// An engine in Hugging Face's profile. A template that asks for the date gets `now`, or an error where
/// there is none.
pub(super) fn environment(now: Option<LocalTime>) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_debug(false);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(methods::call);
    environment
        .set_formatter(|out, state, value| out.write_str(&text_of(state, value)?).map_err(Error::from));
    environment.remove_global("debug");
    environment.add_function("raise_exception", |message: Value| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{}", str_of(&message))))
    });
    environment.add_function("strftime_now", move |format: &str| {
        let now = now.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, NO_DATE))?;
        Ok::<_, Error>(now.format(format))
    });
    add_filters(&mut environment);
    add_tests(&mut environment);
    Ok(environment)
}

/// The error of a template that asks for the date where none was given.
pub(super) const NO_DATE: &str = "the template asks for the date, and none was given";

fn add_filters(environment: &mut Environment<'static>) {
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", |state: &State<'_, '_>, value: &Value| match value.as_str() {
        Some(_) => Ok(value.clone()),
        None => text_of(state, value).map(Value::from),
    });
    environment.add_filter("trim", |state: &State<'_, '_>, value: &Value, chars: Option<Cow<'_, str>>| {
        let text = text_of(state, value)?;
        Ok::<_, Error>(Value::from(match chars {
            Some(chars) => text.trim_matches(|c| chars.contains(c)),
            None => text.trim_matches(is_space),
        }))
    });
    environment.add_filter(TERM_FILTER, term);
    environment.add_filter(FACTOR_FILTER, |value: &Value| match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            Err(Error::new(ErrorKind::InvalidOperation, "lists are not repeated here"))
        }
        _ => Ok(value.clone()),
    });
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_filter("join", join);
    environment.add_filter(MARK_FILTER, |state: &State<'_, '_>, text: Cow<'_, str>| {
        let marks = state.lookup(MARKS);
        let mut marks = marks.as_ref().and_then(Value::as_str).unwrap_or_default().chars();
        match (marks.next(), marks.next()) {
            (Some(open), Some(close)) => Value::from(format!("{open}{text}{close}")),
            _ => Value::from(text.into_owned()),
        }
    });
}

/// `str(value)`. Text that has to be made costs more than the engine reckons for a copy.
fn text_of<'v>(state: &State<'_, '_>, value: &'v Value) -> Result<Cow<'v, str>, Error> {
    if let Some(text) = value.as_str() {
        return Ok(Cow::Borrowed(text));
    }
    let text = whole_str_of(value).ok_or_else(|| Error::from(ErrorKind::OutOfFuel))?;
    state.consume_fuel(text.len() as u64 / TEXT_BYTES_PER_FUEL)?;
    Ok(Cow::Owned(text))
}

/// What is added, as it is; a list costs a share of what it holds, since every so many sums the engine copies it.
fn term(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    if matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        state.consume_fuel(LIST_FUEL + value.len().unwrap_or(0) as u64 / LIST_ITEMS_PER_FUEL)?;
    }
    Ok(value.clone())
}

// The engine hands keyword arguments over by value.
#[allow(clippy::needless_pass_by_value)]
fn to_json(
    state: &State<'_, '_>,
    value: &Value,
    Rest(args): Rest<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let argument = |position: usize, name: &str| -> Result<Option<Value>, Error> {
        let named: Option<Value> = kwargs.get(name)?;
        let given = named.or_else(|| args.get(position).cloned());
        Ok(given.filter(|value| !value.is_none() && !value.is_undefined()))
    };
    let is_true = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let indent = argument(1, "indent")?.map(|indent| match indent.as_str() {
        Some(text) => text.to_owned(),
        None => " ".repeat(usize::try_from(indent.clone()).unwrap_or(0).min(64)),
    });
    let ensure_ascii = is_true(argument(0, "ensure_ascii")?);
    let mut layout = Layout::new(ensure_ascii, indent, is_true(argument(3, "sort_keys")?));
    if let Some(separators) = argument(2, "separators")? {
        let mut pair = separators.try_iter()?.map(|separator| str_of(&separator));
        let (Some(item), Some(key), None) = (pair.next(), pair.next(), pair.next()) else {
            return Err(Error::new(ErrorKind::InvalidOperation, "`separators` are two strings"));
        };
        (layout.item_separator, layout.key_separator) = (item, key);
    }
    kwargs.assert_all_used()?;
    let text = layout.dumps(value)?;
    state.consume_fuel(text.len() as u64 / TEXT_BYTES_PER_FUEL)?;
    Ok(Value::from(text))
}

#[allow(clippy::needless_pass_by_value)]
fn default(value: &Value, Rest(args): Rest<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let other: Option<Value> = kwargs.get("default_value")?;
    let lax: Option<Value> = kwargs.get("boolean")?;
    kwargs.assert_all_used()?;
    let lax = lax.or_else(|| args.get(1).cloned()).is_some_and(|lax| lax.is_true());
    let is_missing = value.is_undefined() || lax && !value.is_true();
    let other = other.or_else(|| args.first().cloned()).unwrap_or_else(|| Value::from(""));
    Ok(if is_missing { other } else { value.clone() })
}

#[allow(clippy::needless_pass_by_value)]
fn join(
    state: &State<'_, '_>,
    value: &Value,
    joiner: Option<Cow<'_, str>>,
    attribute: Option<&str>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let joiner = match (joiner, kwargs.get::<Option<Cow<'_, str>>>("d")?) {
        (Some(joiner), _) | (None, Some(joiner)) => joiner,
        (None, None) => Cow::Borrowed(""),
    };
    let attribute = match attribute {
        Some(attribute) => Some(attribute),
        None => kwargs.get::<Option<&str>>("attribute")?,
    };
    kwargs.assert_all_used()?;
    let mut out = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        let before = out.len();
        if index > 0 {
            out.push_str(&joiner);
        }
        match attribute {
            Some(attribute) => out.push_str(&text_of(state, &item.get_attr(attribute)?)?),
            None => out.push_str(&text_of(state, &item)?),
        }
        state.consume_fuel(1 + (out.len() - before) as u64 / 64)?;
    }
    Ok(Value::from(out))
}

fn add_tests(environment: &mut Environment<'static>) {
    environment.add_test("iterable", |value: &Value| {
        use ValueKind::{Iterable, Map, Seq, String, Undefined};
        matches!(value.kind(), Iterable | Map | Seq | String | Undefined)
    });
    environment.add_test("sequence", |value: &Value| {
        use ValueKind::{Map, Seq, String, Undefined};
        matches!(value.kind(), Map | Seq | String | Undefined)
    });
    environment
        .add_test("number", |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool));
    environment.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
}

#[cfg(test)]
mod tests {
    use minijinja::Value;

    use super::environment;
    use crate::templates::LocalTime;
    use crate::templates::conversation::plain;
    use crate::templates::source::rewrite;

    fn rendered(source: &str) -> Result<String, minijinja::Error> {
        let environment = environment(LocalTime::parse("2026-11-29")).unwrap();
        let d = plain(&serde_json::json!({"k": [1.0, "é", null], "n": null}));
        environment.render_str(&rewrite(source).source, Value::from_pairs([("d", d)]))
    }

    #[test]
    fn values_print_as_in_python() {
        for (source, expected) in [
            ("{{ d }}", "{'k': [1.0, 'é', None], 'n': None}"),
            ("{{ d | tojson }}", "{\"k\": [1.0, \"é\", null], \"n\": null}"),
            ("{{ d.k | tojson(separators=(',', ':')) }}", "[1.0,\"é\",null]"),
            ("{{ d.k | tojson(true) }}", "[1.0, \"\\u00e9\", null]"),
            ("{{ none | trim }}|{{ ' a\u{1f}' | trim }}", "None|a"),
            ("{{ none is iterable }} {{ 'a' is sequence }} {{ d is sequence }}", "False True True"),
            ("{{ d.missing | default('x') }}{{ d.n | default('y', boolean=true) }}", "xy"),
            ("{{ d.k | join('-') }}", "1.0-é-None"),
            ("{{ 1e20 }} {{ (1, 'a') }} {{ true }}", "1e+20 (1, 'a') True"),
            ("{{ strftime_now('%d %b %Y') }}", "29 Nov 2026"),
            ("{% if true %}\n  {% set x = 1 %}\n{{ x }}\n{% endif %}\n", "1\n"),
        ] {
            assert_eq!(rendered(source).unwrap(), expected, "{source}");
        }
    }

    #[test]
    fn what_python_refuses_is_refused() {
        for source in [
            "{{ d.missing | tojson }}",
            "{{ d.missing.more }}",
            "{{ raise_exception('no') }}",
            "{{ d.k.append(1) }}",
        ] {
            assert!(rendered(source).is_err(), "{source}");
        }
    }

    #[test]
    fn no_template_runs_forever() {
        let nested = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
        assert_eq!(rendered(nested).unwrap_err().kind(), minijinja::ErrorKind::OutOfFuel);
        for bomb in [
            "{% set x = [1] %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
            "{% for i in range(40) %}{% set ns.x = [1] + ns.x %}{% set ns.x = (ns.x) + ns.x %}{% endfor %}{{ ns.x }}",
            "{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
            "{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
        ] {
            for leaf in ["'a' * 100000", "[]"] {
                let bomb = format!("{{% set ns = namespace(x=[{leaf}]) %}}{bomb}");
                assert_eq!(rendered(&bomb).unwrap_err().kind(), minijinja::ErrorKind::OutOfFuel, "{bomb}");
            }
        }
        let often = "{% set ns = namespace(x=[]) %}{% for i in range(14) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}\
                     {% for i in range(99999) %}{{ (ns.x | string | length) + (ns.x | tojson | length) }}{% endfor %}";
        assert_eq!(rendered(often).unwrap_err().kind(), minijinja::ErrorKind::OutOfFuel);
        assert!(rendered("{% set x = [1] * 1000000000 %}").is_err());
        assert!(rendered("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").is_err());
    }
}
