"""Acts in the task's environment, and keeps what was done.

    act                          the observation now, and the tools
    act TOOL name=value ...      calls a tool
    act TOOL '{"name": value}'   the same, with its arguments as JSON
    act --say TEXT               says something
    act --from FILE              takes recorded actions, one JSON object a line

The log of actions is all that is kept: each call runs the episode again from its start.
"""

import json
import os
import sys
from pathlib import Path

from recoup_env import Package

HERE = Path(__file__).resolve().parent
LOG = Path(os.environ.get("RECOUP_ACTIONS", "/app/actions.jsonl"))


def episode_so_far():
    """The episode after the actions in the log."""
    which = json.loads((HERE / "task.json").read_text("utf-8"))
    package = Package(HERE / "package")
    task = package.generate(which["seed"], which["difficulty"])
    episode = package.start(task)
    for line in LOG.read_text("utf-8").splitlines() if LOG.exists() else ():
        if not over(episode):
            episode.step(json.loads(line))
    return episode


def over(episode):
    return episode.done or len(episode.transcript) >= episode.task["max_steps"]


def take(episode, action):
    if over(episode):
        sys.exit("the episode is over")
    print(episode.step(action))
    with LOG.open("a", encoding="utf-8") as log:
        log.write(json.dumps(action, ensure_ascii=False) + "\n")
    if over(episode):
        print("(the episode is over)")


def value(episode, tool, name, text):
    """An argument as its parameter wants it; what cannot be one is refused by the environment."""
    for known in episode.tools:
        if known["name"] == tool and known["parameters"]["properties"].get(name, {}).get("type", "string") == "string":
            return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse(episode, words):
    tool, rest = words[0], words[1:]
    if len(rest) == 1 and rest[0].lstrip().startswith("{"):
        return {"tool": tool, "arguments": json.loads(rest[0])}
    if unclear := [word for word in rest if "=" not in word]:
        sys.exit(f"{unclear[0]!r} is no argument; write name=value")
    pairs = (word.split("=", 1) for word in rest)
    return {"tool": tool, "arguments": {name: value(episode, tool, name, text) for name, text in pairs}}


def show(episode):
    print(episode.observation)
    print()
    for tool in episode.tools:
        properties = tool["parameters"].get("properties", {})
        print(tool["name"], *(f"{name}={about['type']}" for name, about in properties.items()))
        print("   ", tool["description"])


def main(words):
    episode = episode_so_far()
    if not words:
        show(episode)
    elif words[0] == "--from":
        for line in Path(words[1]).read_text("utf-8").splitlines():
            take(episode, json.loads(line))
    elif words[0] == "--say":
        take(episode, {"say": " ".join(words[1:])})
    else:
        take(episode, parse(episode, words))


if __name__ == "__main__":
    main(sys.argv[1:])
