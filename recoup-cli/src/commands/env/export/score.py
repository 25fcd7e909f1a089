"""Scores the actions that the agent took, by running them again in this folder's own copy of the environment.

Nothing that the agent could have changed is believed but the log of its actions. Prints the reward.
"""

import json
import os
import sys
from pathlib import Path

from recoup_env import Package

HERE = Path(__file__).resolve().parent
LOG = Path(os.environ.get("RECOUP_ACTIONS", "/app/actions.jsonl"))


def actions():
    """The actions of the log, up to the first line that is none: the agent can write what it likes there."""
    for line in LOG.read_text("utf-8", errors="replace").splitlines() if LOG.exists() else ():
        try:
            action = json.loads(line)
        except ValueError:
            return
        kinds = {name: type(value) for name, value in action.items()} if isinstance(action, dict) else {}
        if kinds not in ({"say": str}, {"tool": str, "arguments": dict}):
            return
        yield action


def main():
    which = json.loads((HERE / "task.json").read_text("utf-8"))
    package = Package(HERE / "package")
    task = package.generate(which["seed"], which["difficulty"])
    episode = package.start(task)
    for action in actions():
        if episode.done or len(episode.transcript) >= task["max_steps"]:
            break
        episode.step(action)
    score = episode.verify()
    print(json.dumps({"score": score["score"], "checks": score["checks"]}), file=sys.stderr)
    print(1 if score["success"] else 0)


if __name__ == "__main__":
    main()
