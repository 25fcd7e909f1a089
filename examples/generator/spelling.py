"""What the writers of `formats.py` share: chat messages, ids that look drawn and are not, times, JSON."""

import hashlib
import json
import uuid
from datetime import datetime, timedelta, timezone

START = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)


def chat(run, system, identify=None):
    """The run as chat messages; `content` is null beside calls, as models answer."""
    messages = [{"role": "system", "content": system}]
    pending, made = [], 0
    for index, turn in enumerate(run.turns):
        if turn.role == "assistant" and turn.calls:
            calls = [function_call(run, index, at, call) for at, call in enumerate(turn.calls)]
            for call in calls:
                if identify:
                    call["id"] = identify(made)
                made += 1
            pending = list(calls)
            messages.append({"role": "assistant", "content": turn.text or None, "tool_calls": calls})
        elif turn.role == "tool":
            call = pending.pop(0)
            messages.append({"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"],
                             "content": turn.text})
        else:
            messages.append({"role": turn.role, "content": turn.text})
    return messages


def function_call(run, index, at, call):
    name, given = call
    text = given if isinstance(given, str) else as_text(given)
    return {"id": call_id(run, index, at), "type": "function", "function": {"name": name, "arguments": text}}


def native_id(run):
    return f"{run.task}-{run.trial}"


def session_id(run):
    return str(uuid.uuid5(uuid.NAMESPACE_URL, native_id(run)))


def call_id(run, index, at):
    return f"call_{digest(run.task, run.trial, index, at)}"


def digest(*parts):
    """An id that looks drawn and is not: the same parts, the same id."""
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:22]


def moment(number):
    return (START + timedelta(seconds=20 * number)).isoformat().replace("+00:00", "Z")


def as_text(value):
    return json.dumps(value, ensure_ascii=False)


def pretty(value):
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
