"""The loop of a bridge: one JSON object a line in, one out. `README.md` beside this file has the protocol.

    class Counter(Bridge):
        version = "counter 1"
        def reset(self, seed, difficulty, family): ...
        def step(self, action): ...
        def verify(self): ...

    serve(Counter())
"""

import json
import os
import sys
import traceback

PROTOCOL = "recoup-bridge-1"


class Bridge:
    """A simulator that recoup drives. `expert` and `snapshot` are there where a subclass defines them."""

    version = "1"  # name and version of all that decides the simulator's behavior
    expert = None  # expert() -> action, or None where there is none to take
    snapshot = None  # snapshot() -> name; then restore(name) goes back to it

    def reset(self, seed, difficulty, family):
        """The task of a seed, at its start: `started(…)`. The same seed gives the same task, always."""
        raise NotImplementedError

    def step(self, action):
        """Takes `{"tool", "arguments"}` or `{"say"}`; returns `shown(…)`."""
        raise NotImplementedError

    def verify(self):
        """Scores the state: `scored(…)`."""
        raise NotImplementedError


def started(goal, family, max_steps, observation, tools, **more):
    """What `reset` returns. `more` are further fields of the task; what agents must not read goes under `hidden`."""
    task = {"goal": goal, "family": family, "max_steps": max_steps, **more}
    return {"task": task, "observation": observation, "tools": tools}


def shown(observation, is_error=False, done=False, hash=None):
    """What `step` returns. `hash` is one of the whole state, where the simulator can tell."""
    step = {"observation": observation, "is_error": is_error, "done": done}
    return step if hash is None else {**step, "hash": hash}


def scored(success, score, **checks):
    """What `verify` returns. A success scores above 0.5, a failure at most 0.5, doing nothing 0."""
    return {"success": bool(success), "score": float(score), "checks": {k: bool(v) for k, v in checks.items()}}


def tool(name, description, read_only=False, **properties):
    """A tool. A property is its JSON type, or a schema; all are required."""
    properties = {key: {"type": value} if isinstance(value, str) else value for key, value in properties.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "read_only": read_only, "parameters": schema}


def _answer(bridge, request):
    verb = request["do"]
    if verb == "hello":
        abilities = {"expert": bridge.expert is not None, "snapshots": bridge.snapshot is not None}
        return {"protocol": PROTOCOL, "version": bridge.version, **abilities}
    if verb == "reset":
        answer = bridge.reset(request["seed"], request["difficulty"], request["family"])
        if "snapshot" in request:
            bridge.restore(request["snapshot"])
        return answer
    if verb == "step":
        return bridge.step(request["action"])
    if verb == "verify":
        return bridge.verify()
    if verb == "expert":
        return {"action": bridge.expert()}
    if verb == "snapshot":
        return {"snapshot": bridge.snapshot()}
    if verb == "close":
        return {}
    raise ValueError(f"unknown request {verb!r}")


def serve(bridge):
    """Answers requests until the input ends."""
    # Simulators print: their standard output becomes standard error, the protocol keeps the real one.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(bridge, request)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps({"id": request["id"], **answer}, ensure_ascii=False) + "\n")
        out.flush()
        if request["do"] == "close":
            break
    # Simulators leave threads behind that a normal exit would wait for.
    os._exit(0)
