#!/usr/bin/env python3
"""canonical-1 in Python: the rules at the top of `recoup/src/canonical.rs`, told a second time on top of
another JSON parser, so that neither side checks itself. Standard library only.

    python3 canonical.py > canonical.jsonl     # writes the golden file

The first line of the golden file says what wrote it; each other line is a case, an input text with its
canonical form or with the kind of its error.
"""

import hashlib
import json
import math
import platform
import random
import sys
from pathlib import Path

DEPTH_MAX = 128


class Refused(Exception):
    """A text without a canonical form; the argument is the kind."""


class Integer(str):
    """An integer's own digits: canonical-1 keeps any number of them."""


def read_integer(literal):
    return Integer("0" if literal == "-0" else literal)


def read_float(literal):
    value = float(literal)
    if not math.isfinite(value):
        raise Refused("non_finite")
    return value


def read_object(pairs):
    if len({key for key, _ in pairs}) < len(pairs):
        raise Refused("duplicate_key")
    return dict(pairs)


def refuse_constant(_):
    raise Refused("syntax")


def canonicalize(text):
    try:
        value = json.loads(text, parse_int=read_integer, parse_float=read_float, parse_constant=refuse_constant,
                           object_pairs_hook=read_object)
    except json.JSONDecodeError:
        raise Refused("syntax") from None
    except RecursionError:
        raise Refused("too_deep") from None
    return write(value, 0)


def write(value, depth):
    if depth > DEPTH_MAX:
        raise Refused("too_deep")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Integer):
        return str(value)
    if isinstance(value, float):
        return write_float(value)
    if isinstance(value, str):
        return write_string(value)
    if isinstance(value, list):
        return "[" + ",".join(write(element, depth + 1) for element in value) + "]"
    members = [(utf8(key), write_string(key), write(member, depth + 1)) for key, member in value.items()]
    return "{" + ",".join(f"{key}:{member}" for _, key, member in sorted(members)) + "}"


def write_float(value):
    """Python's shortest digits, with the exponent as Rust prints it: 1e-5 for 1e-05, 1e16 for 1e+16."""
    mantissa, exponent_sign, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent_sign else mantissa


ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def write_string(text):
    utf8(text)
    escaped = (ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text)
    return '"' + "".join(escaped) + '"'


def utf8(text):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("lone_surrogate") from None


# --- the cases -------------------------------------------------------------------------------------------

VALUES = [
    # numbers: integers keep their digits, the rest are doubles
    "0", "-0", "7", "-7", "123456789012345678901234567890", "-9007199254740993", "9" * 400, "0.0", "-0.0", "1.0",
    "1.50", "100.000", "1e0", "1E2", "1e+2", "1e-2", "-1e-2", "0.1", "0.30000000000000004", "1e15", "1e16", "1e17",
    "123456789012345.6", "1234567890123456.7", "12345678901234567.8", "9999999999999998.0", "9999999999999999.0",
    "0.0001", "0.00012345", "0.00001", "0.00009999", "1e-5", "1.5e-5", "1e-7", "1e21", "1e22", "1e23", "8.5e300",
    "5e-324", "4.9e-324", "2e-324", "1e-400", "2.2250738585072014e-308", "2.2250738585072011e-308",
    "1.7976931348623157e308", "179769313486231570000.0", "0.1e1", "10e-1", "1e000002", "3.141592653589793238462643",
    "1e999", "-1e999", "1.8e308", "1" + "0" * 400 + ".0",
    "1.", ".5", "-", "+1", "01", "-01", "1e", "1e+", "0x10", "1_000", "NaN", "Infinity", "-Infinity", "nan",
    # words
    "true", "false", "null", "True", "nul", "truefalse", "None", "undefined",
    # strings
    '""', '"plain"', '"é"', '"\\u00e9"', '"e\\u0301"', '"\\/"', '"/"', '"\\"\\\\"', '"\\b\\f\\n\\r\\t"',
    '"\\u0000"', '"\\u001F"', '"\\u007f"', '"\x7f"', '"\u0080"', '"\u2028\u2029"', '"\\u2028"', '"\ufeff"',
    '"\\ud83d\\ude00"', '"\\uD83D\\uDE00"', '"😀"', '"\\ud800"', '"\\udc00"', '"\\ud800\\ud800"', '"\\ud800x"',
    '"\\ud800\\n"', '"\\ude00\\ud83d"', '"a\\ud83d"', '"\\uffff"', '"\uffff"', '"\\u12"', '"\\u12g4"', '"\\x41"',
    '"\\\'"', "'single'", '"open', '"', '"a\nb"', '"a\tb"', '"\\"', '"nul\x00"', '"<&>\'"',
    # arrays
    "[]", "[ ]", "[1]", "[1,2]", "[ 1 ,\t2\r\n]", "[1,]", "[,1]", "[1 2]", "[", "]", "[1", "[[],[[]],{}]",
    "[1,1.0,1e0,-0,-0.0]",
    # objects
    "{}", "{ }", '{"a":1}', '{"b":1,"a":2}', '{"a":{"c":1,"b":2}}', '{"":0}', '{"A":1,"a":2,"B":3}',
    '{"10":1,"9":2,"1":3}', '{"é":1,"e":2,"z":3}', '{"\uffff":1,"😀":2}', '{"\\uffff":1,"\\ud83d\\ude00":2}',
    '{"a b":1,"a":2,"a\\u0000":3}', '{"\\n":1," ":2}', '{"a":1,"a":1}', '{"a":1,"\\u0061":2}',
    '{"a":{"b":1,"b":2}}', '[{"a":1},{"a":1}]', '{"a":1,"b":2,"a":3}', '{"\\ud800":1}', '{"a":1,}', '{"a"}', '{"a":}',
    '{a:1}', "{1:1}", '{"a":1 "b":2}', '{"a" : 1 }', '{"a":1}}', "{", "}", '{"a":[1,{"b":null}]}',
    # the whole text
    "", " ", "\n1\n", "1 1", "1,", "\ufeff1", "\u00a01", "// no\n1", "/**/1", "[1]#", "\x0b1",
    # depth: a value inside more than 128 brackets is refused
    "[" * 128 + "1" + "]" * 128, "[" * 129 + "]" * 129, "[" * 129 + "1" + "]" * 129, "[" * 130 + "]" * 130,
    '{"a":' * 128 + "1" + "}" * 128, '{"a":' * 129 + "1" + "}" * 129, '[{"a":' * 64 + "0" + "}]" * 64,
    '[{"a":' * 65 + "0" + "}]" * 65, "[" * 5000,
]


def drawn(rng, depth=0):
    """A value as text, with the spellings that JSON leaves free."""
    space = rng.choice(["", "", " ", "\n\t"])
    kind = rng.randrange(7 if depth < 4 else 5)
    if kind == 0:
        return rng.choice(["null", "true", "false"])
    if kind == 1:
        return str(rng.randrange(-(10 ** rng.randrange(1, 40)), 10 ** rng.randrange(1, 40)))
    if kind == 2:
        return f"{rng.uniform(-10, 10) * 10.0 ** rng.randrange(-320, 308):.{rng.randrange(1, 20)}{rng.choice('eE')}}"
    if kind in (3, 4):
        return drawn_string(rng)
    if kind == 5:
        elements = f"{space},{space}".join(drawn(rng, depth + 1) for _ in range(rng.randrange(5)))
        return f"[{space}{elements}{space}]"
    keys = list(dict.fromkeys(drawn_string(rng) for _ in range(rng.randrange(6))))
    return "{" + ",".join(f"{space}{key}{space}:{space}{drawn(rng, depth + 1)}" for key in keys) + "}"


def drawn_string(rng):
    alphabet = ["a", "Z", "0", " ", "/", "\\/", '\\"', "\\\\", "\\n", "\\u0001", "\\u00e9", "é", "ß", "語",
                "\\ud83d\\ude00", "😀", "\\u007f", "'"]
    return '"' + "".join(rng.choice(alphabet) for _ in range(rng.randrange(8))) + '"'


def case(text):
    try:
        return {"input": text, "canonical": canonicalize(text)}
    except Refused as refused:
        return {"input": text, "error": str(refused)}


def main():
    rng = random.Random(20260302)
    script = Path(__file__)
    header = {
        "script": script.name, "sha256": hashlib.sha256(script.read_bytes()).hexdigest(),
        "python": platform.python_version(),
    }
    print(json.dumps(header))
    for text in VALUES + [drawn(rng) for _ in range(200)]:
        print(json.dumps(case(text)))


if __name__ == "__main__":
    sys.exit(main())
