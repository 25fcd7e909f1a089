"""One run of an agent, before any harness has written it down.

A domain file tells runs with the five words below; `formats.py` writes them as the harnesses would.
"""

import copy
import json
from dataclasses import dataclass, field

# Every detector that has a run in these examples; expected_findings.json may name no other.
DETECTORS = (
    "unknown-tool", "schema-violation", "unparsable-arguments", "ungrounded-argument", "repeated-call",
    "unaddressed-error", "ignored-error", "unsupported-answer", "claimed-action",
    "mutation-without-lookup", "wrong-order", "missing-submission", "unverified-mutation", "loop",
    "premature-stop", "limit-reached", "broken-fence", "deviating-mutation", "admitted-mistake",
)


@dataclass
class Turn:
    """What one party did: said something, called tools, or answered a call."""

    role: str
    text: str = ""
    calls: list = field(default_factory=list)  # (name, arguments as a dict, or as raw text)
    error: bool = False


@dataclass
class Run:
    """A run and what a reader should find in it."""

    task: str
    trial: int
    outcome: str  # success | failure | unknown
    turns: list
    shows: str
    blame: str = ""  # of a run that did not succeed; empty where none is expected
    fires: tuple = ()  # detectors that must have a finding
    silent: tuple = ()  # detectors that must have none left open, though a naive one would
    model: str = "juniper-8b"
    ended: str = ""  # the harness's own word for the end, in its format's place
    extra: dict = field(default_factory=dict)

    def __post_init__(self):
        unknown = (set(self.fires) | set(self.silent)) - set(DETECTORS)
        assert not unknown, f"{self.task}/{self.trial}: {unknown}"
        assert self.outcome in ("success", "failure", "unknown"), self.outcome
        assert (self.outcome == "success") == (not self.blame), f"{self.task}/{self.trial}: blame"


def user(text):
    return [Turn("user", text)]


def say(text):
    return [Turn("assistant", text)]


def do(name, arguments, result, text="", error=False):
    """A call and its result; `arguments` as text where the model wrote no JSON."""
    body = result if isinstance(result, str) else json.dumps(result)
    return [Turn("assistant", text, [(name, arguments)]), Turn("tool", body, error=error)]


def fails(name, arguments, message, text=""):
    """A call that the tool refuses."""
    return do(name, arguments, f"Error: {message}", text, error=True)


def story(*parts):
    """Joins the parts of a run into its turns."""
    return [copy.deepcopy(turn) for part in parts for turn in part]


def function(name, description, required, optional=None):
    """A tool's definition; a parameter is its JSON type, or the list of words it may be."""
    def schema(kind):
        return {"type": "string", "enum": kind} if isinstance(kind, list) else {"type": kind}

    properties = {key: schema(kind) for key, kind in {**required, **(optional or {})}.items()}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(required),
                "additionalProperties": False,
            },
        },
    }
