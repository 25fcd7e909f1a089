"""Any Gymnasium environment that can be read: `pip install gymnasium`.

    gymnasium_bridge.py [--import MODULE] [--actions a,b,c] [--success-at X] FAMILY=ID …

An observation is text, or has a `text`, or the environment renders itself as text (`ansi`). An action is text, or
a number that `--actions` may name. A run succeeds when its rewards add up to X or more [default: above 0].
"""

import argparse
import importlib
import re
from importlib.metadata import version

import gymnasium
from recoup_bridge import Bridge, scored, serve, shown, started, tool

COLORS = re.compile(r"\x1b\[[0-9;]*m")


class Gymnasium(Bridge):
    version = f"gymnasium {version('gymnasium')}"

    def __init__(self, families, names, success_at):
        self.families, self.names, self.success_at = families, names, success_at

    def reset(self, seed, difficulty, family):
        spec = gymnasium.spec(self.families[family])
        try:
            self.env = gymnasium.make(spec, render_mode="ansi")
        except (TypeError, gymnasium.error.Error):  # it has no such mode
            self.env = gymnasium.make(spec)
        first, info = self.env.reset(seed=seed)
        self.env.action_space.seed(seed)
        self.total = 0.0
        goal = str(info.get("goal") or info.get("mission") or f"Reach the goal of {self.families[family]}.")
        return started(goal, family, spec.max_episode_steps or 200, self._text(first), [self._tool()])

    def _tool(self):
        space = self.env.action_space
        if not hasattr(space, "n"):
            return tool("act", "Sends text to the environment.", text="string")
        names = self.names or [str(number) for number in range(int(space.n))]
        return tool("act", "Takes one action.", action={"type": "string", "enum": names})

    def _text(self, seen):
        if isinstance(seen, dict) and "text" in seen:
            seen = seen["text"]
        if isinstance(seen, str):
            return seen
        # The highlighted character is where the agent is: brackets keep it without colors.
        drawn = self.env.render() if self.env.render_mode == "ansi" else None
        if isinstance(drawn, str):
            return COLORS.sub("", re.sub(r"\x1b\[41m(.)\x1b\[0m", r"[\1]", drawn)).strip()
        return repr(seen)

    def step(self, action):
        if "say" in action:
            return shown("", done=True)
        arguments = action["arguments"]
        if "text" in arguments:
            choice = arguments["text"]
        else:
            names = self.names or [str(number) for number in range(int(self.env.action_space.n))]
            choice = names.index(arguments["action"])
        seen, reward, terminated, truncated, _ = self.env.step(choice)
        self.total += float(reward)
        return shown(self._text(seen), done=bool(terminated or truncated))

    def verify(self):
        success = self.total > 0 if self.success_at is None else self.total >= self.success_at
        return scored(success, 1.0 if success else 0.0, rewarded=success)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--import", dest="module")
    parser.add_argument("--actions", default="")
    parser.add_argument("--success-at", type=float)
    parser.add_argument("families", nargs="+")
    asked = parser.parse_args()
    if asked.module:
        importlib.import_module(asked.module)
    families = dict(word.split("=", 1) for word in asked.families)
    serve(Gymnasium(families, [name for name in asked.actions.split(",") if name], asked.success_at))
