"""Runs a recoup environment package under plain Python, byte for byte as recoup runs it.

    from recoup_env import Package

    package = Package("environments/quest")
    task = package.generate(seed=7, difficulty=1)
    episode = package.start(task)
    while not episode.done and len(episode.transcript) < task["max_steps"]:
        episode.step(package.expert(task, episode.state))
    print(episode.verify())

`python recoup_env.py replay` reads recorded episodes on standard input, one JSON object a line, runs
each again and compares every byte; it exits with 1 at the first difference.

A package's file is trusted here: Python runs it without limits.
"""

import json
import math
import sys
import tomllib
from pathlib import Path

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(x):
    """The output function of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _fnv(text):
    """FNV-1a, 64 bits, of the UTF-8 bytes."""
    x = 0xCBF29CE484222325
    for byte in text.encode():
        x = ((x ^ byte) * 0x100000001B3) & _MASK
    return x


def rand(seed, stream, counter, n):
    """A number from 0 to n - 1 that depends on the four values alone."""
    if n < 1:
        raise ValueError("rand: n must be at least 1")
    x = _mix((seed + _GOLDEN) & _MASK)
    x = _mix(x ^ _fnv(stream))
    x = _mix((x + (counter + 1) * _GOLDEN) & _MASK)
    return (x * n) >> 64


def kind(value):
    """The JSON kind of a value."""
    if value is None:
        return "none"
    names = {bool: "bool", int: "int", float: "float", str: "str", list: "list", dict: "dict"}
    return names.get(type(value), type(value).__name__)


def _number(value):
    if not math.isfinite(value):
        raise ValueError("a float must be finite")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def to_json(value):
    """Compact JSON in insertion order."""
    name = kind(value)
    if name == "none":
        return "null"
    if name == "bool":
        return "true" if value else "false"
    if name == "int":
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError("an integer must fit in 64 bits")
        return str(value)
    if name == "float":
        return _number(value)
    if name == "str":
        return json.dumps(value, ensure_ascii=False)
    if name in ("list", "tuple"):
        return "[" + ",".join(to_json(item) for item in value) + "]"
    if name == "dict":
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a dict must have str keys")
        members = (json.dumps(key, ensure_ascii=False) + ":" + to_json(item) for key, item in value.items())
        return "{" + ",".join(members) + "}"
    raise TypeError(f"a {name} has no JSON form")


def fail(message):
    """Ends the call with an environment error."""
    raise RuntimeError(message)


_TYPES = {
    "string": ("str",),
    "integer": ("int",),
    "number": ("int", "float"),
    "boolean": ("bool",),
    "array": ("list",),
    "object": ("dict",),
}


def refusal(tools, action):
    """Why an action does not fit the tools, in words for the agent; None where it fits."""
    if "say" in action:
        return None
    name = action["tool"]
    tool = next((tool for tool in tools if tool["name"] == name), None)
    if tool is None:
        return f'Error: there is no tool "{name}". The tools are: ' + ", ".join(t["name"] for t in tools) + "."
    properties = tool["parameters"].get("properties", {})
    arguments = action["arguments"]
    for key in tool["parameters"].get("required", []):
        if key not in arguments:
            return f'Error: {name} needs the argument "{key}".'
    for key, value in arguments.items():
        if key not in properties:
            return f'Error: {name} has no argument "{key}".'
        if kind(value) not in _TYPES[properties[key]["type"]]:
            return f'Error: the argument "{key}" of {name} must be of type {properties[key]["type"]}.'
        enum = properties[key].get("enum")
        if enum is not None and to_json(value) not in [to_json(option) for option in enum]:
            options = ", ".join(option if kind(option) == "str" else to_json(option) for option in enum)
            return f'Error: the argument "{key}" of {name} must be one of: {options}.'
    return None


class Package:
    """A package, loaded from its folder."""

    def __init__(self, folder):
        folder = Path(folder)
        self.manifest = tomllib.loads((folder / "environment.toml").read_text(encoding="utf-8"))
        policy = self.manifest.get("policy")
        self.policy = (folder / policy).read_text(encoding="utf-8") if policy else None
        self._names = {"rand": rand, "kind": kind, "to_json": to_json, "fail": fail}
        path = folder / "environment.star"
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), self._names)

    def __getattr__(self, name):
        try:
            return self._names[name]
        except KeyError:
            raise AttributeError(name) from None

    def generate(self, seed, difficulty):
        """The task of a seed."""
        return self._names["generate"](seed, difficulty)

    def start(self, task):
        """A new episode of a task."""
        return Episode(self, task)


class Episode:
    """One run: its state, the last observation and what has happened."""

    def __init__(self, package, task):
        self.package = package
        self.task = task
        self.tools = package.tools(task)
        first = package._names["start"](task)
        self.state, self.observation = first["state"], first["observation"]
        self.is_error = self.done = False
        self.transcript = []

    def step(self, action):
        """Takes an action and returns the observation."""
        if self.done:
            raise RuntimeError("the episode has ended")
        self.observation = refusal(self.tools, action)
        self.is_error = self.observation is not None
        if not self.is_error:
            after = self.package._names["step"](self.task, self.state, action)
            self.state, self.observation = after["state"], after["observation"]
            self.is_error, self.done = after["is_error"], after["done"]
        self.transcript.append(
            {"action": action, "observation": self.observation, "is_error": self.is_error}
        )
        return self.observation

    def verify(self):
        """Scores the state."""
        return self.package.verify(self.task, self.state, self.transcript)


def _score(score):
    """A score as runs record it: a number with a fraction, and the checks by name."""
    return {"success": score["success"], "score": float(score["score"]), "checks": dict(sorted(score["checks"].items()))}


def _sorted(value):
    """A value with the keys of its dicts in order: schemas and arguments are recorded so."""
    if kind(value) == "list":
        return [_sorted(item) for item in value]
    return {key: _sorted(value[key]) for key in sorted(value)} if kind(value) == "dict" else value


def replay(package, recorded):
    """Runs a recorded episode again; the first difference in words, or None."""
    task = package.generate(recorded["seed"], recorded["difficulty"])
    episode = package.start(task)

    def compared():
        yield "task", task, recorded["task"]
        yield "tools", _sorted(episode.tools), _sorted(recorded["tools"])
        yield "start", [episode.state, episode.observation], recorded["start"]
        for number, step in enumerate(recorded["steps"]):
            if "expert" in step:
                expert = package.expert(task, episode.state)
                yield f"expert before step {number}", _sorted(expert), _sorted(step["expert"])
            episode.step(step["action"])
            after = [episode.state, episode.observation, episode.is_error, episode.done]
            yield f"step {number}", after, step["after"]
        yield "verify", _score(episode.verify()), recorded["verify"]
        if "achieved" in recorded:
            yield "achieved", package.achieved(task, episode.state), recorded["achieved"]

    for what, ours, theirs in compared():
        if to_json(ours) != to_json(theirs):
            return f"{what}: Python has {to_json(ours)}, the record {to_json(theirs)}"
    return None


def _main(arguments):
    if len(arguments) != 2 or arguments[0] != "replay":
        sys.exit("usage: recoup_env.py replay PACKAGE < episodes.jsonl")
    package, count = Package(arguments[1]), 0
    for line in sys.stdin:
        recorded = json.loads(line)
        if found := replay(package, recorded):
            sys.exit(f"seed {recorded['seed']}, difficulty {recorded['difficulty']}: {found}")
        count += 1
    print(f"{count} episodes, every byte alike")


if __name__ == "__main__":
    _main(sys.argv[1:])
