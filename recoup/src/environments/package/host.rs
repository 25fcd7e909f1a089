//! What packages are given: the language's own functions, and the host's.

#![expect(clippy::unnecessary_wraps, reason = "the macro wants a `Result` of every function")]

use std::collections::HashMap;
use std::num::NonZeroI32;
use std::sync::LazyLock;

use anyhow::anyhow;
use starlark::environment::{Globals, GlobalsBuilder};
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::Value;
use starlark::values::list::ListRef;
use starlark::values::none::NoneType;
use starlark::values::range::Range;

use super::tree;

/// Longest list, string or range that `*` and `range` make.
const PRODUCT_MAX: i64 = 1 << 20;

pub(super) static GLOBALS: LazyLock<Globals> =
    LazyLock::new(|| GlobalsBuilder::standard().with(host).build());

/// Parses a program for a host that counts: `*` becomes a call that refuses huge results.
pub(super) fn parse(source: &str) -> Result<AstModule, starlark::Error> {
    let dialect = Dialect { enable_load: false, ..Dialect::Standard };
    let mut module = AstModule::parse("environment.star", source.to_owned(), &dialect)?;
    module.replace_binary_operators(&HashMap::from([("*".to_owned(), "__product".to_owned())]));
    Ok(module)
}

#[starlark_module]
fn host(builder: &mut GlobalsBuilder) {
    /// A number from 0 to n - 1 that depends on the four values alone.
    fn rand(
        #[starlark(require = pos)] seed: i64,
        #[starlark(require = pos)] stream: &str,
        #[starlark(require = pos)] counter: i64,
        #[starlark(require = pos)] n: i64,
    ) -> anyhow::Result<i64> {
        if n < 1 {
            return Err(anyhow!("rand: n must be at least 1"));
        }
        Ok(crate::environments::rand(seed as u64, stream, counter as u64, n as u64) as i64)
    }

    /// The language's `range`, of at most [`PRODUCT_MAX`] numbers: functions that read one to its end
    /// count no ticks.
    fn range(
        #[starlark(require = pos)] first: i32,
        #[starlark(require = pos)] stop: Option<i32>,
        #[starlark(require = pos)] step: Option<i32>,
    ) -> anyhow::Result<Range> {
        let (start, stop) = stop.map_or((0, first), |stop| (first, stop));
        let step = NonZeroI32::new(step.unwrap_or(1)).ok_or_else(|| anyhow!("range: the step is 0"))?;
        let length = (i64::from(stop) - i64::from(start)) / i64::from(step.get());
        if length > PRODUCT_MAX {
            return Err(anyhow!("range: more than {PRODUCT_MAX} numbers"));
        }
        Ok(Range::new(start, stop, step))
    }

    /// The JSON kind of a value.
    fn kind<'v>(#[starlark(require = pos)] value: Value<'v>) -> anyhow::Result<&'static str> {
        Ok(match value.get_type() {
            "NoneType" => "none",
            "bool" => "bool",
            "int" => "int",
            "float" => "float",
            "string" => "str",
            "list" => "list",
            "dict" => "dict",
            other => other,
        })
    }

    /// Compact JSON in insertion order.
    fn to_json<'v>(#[starlark(require = pos)] value: Value<'v>) -> anyhow::Result<String> {
        let mut out = String::new();
        tree::write(&mut out, value, 0).map_err(|what| anyhow!("to_json: {what}"))?;
        Ok(out)
    }

    /// Ends the call with an environment error.
    fn fail(#[starlark(require = pos)] message: &str) -> anyhow::Result<NoneType> {
        Err(anyhow!("fail: {message}"))
    }

    /// `a * b`, unless one of them is a sequence that would become huge.
    fn __product<'v>(
        #[starlark(require = pos)] left: Value<'v>,
        #[starlark(require = pos)] right: Value<'v>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        for (sequence, times) in [(left, right), (right, left)] {
            let length = match (sequence.unpack_str(), ListRef::from_value(sequence)) {
                (Some(text), _) => text.len(),
                (_, Some(list)) => list.len(),
                _ if sequence.get_type() == "tuple" => sequence.length()? as usize,
                _ => continue,
            };
            let times = times.unpack_i32().map_or(PRODUCT_MAX, i64::from).max(0);
            if (length as i64).saturating_mul(times) > PRODUCT_MAX {
                return Err(starlark::Error::new_other(anyhow!(
                    "`*` would make more than {PRODUCT_MAX} elements"
                )));
            }
        }
        left.mul(right, eval.heap())
    }
}
