"""MiniGrid and BabyAI (Chevalier-Boisvert et al. 2019, 2023): `pip install minigrid`.

    minigrid_bridge.py FAMILY=ID …

A family stands for one environment id, for instance `go-to-red-ball=BabyAI-GoToRedBall-v0`; the seed is the
simulator's. The agent reads what it sees, not pixels. In BabyAI levels the expert is the simulator's bot.
"""

import sys
from importlib.metadata import version

import gymnasium
import minigrid
from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT
from minigrid.utils.baby_ai_bot import BabyAIBot
from recoup_bridge import Bridge, scored, serve, shown, started, tool

ACTIONS = ["turn left", "turn right", "go forward", "pick up", "drop", "toggle", "done"]
DIRECTIONS = ["east", "south", "west", "north"]
DOORS = ["open", "closed", "locked"]
TOOLS = [tool("act", "Takes one action in the grid.", action={"type": "string", "enum": ACTIONS})]


def described(view, carrying):
    """What stands in the field of view, nearest first. The agent is in the middle of the last row."""
    width, height = len(view), len(view[0])
    seen = []
    for x in range(width):
        for y in range(height):
            kind, color, state = IDX_TO_OBJECT[int(view[x][y][0])], int(view[x][y][1]), int(view[x][y][2])
            ahead, right = height - 1 - y, x - width // 2
            if kind in ("unseen", "empty", "floor", "agent") or (ahead, right) == (0, 0):
                continue
            name = kind if kind == "wall" else f"{IDX_TO_COLOR[color]} {kind}"
            if kind == "door":
                name = f"{DOORS[state]} {name}"
            # Walls count where they stop the next step.
            if kind == "wall" and (ahead, right) not in ((1, 0), (0, 1), (0, -1)):
                continue
            side = "" if right == 0 else f", {abs(right)} to the {'right' if right > 0 else 'left'}"
            seen.append((ahead + abs(right), ahead, right, f"{name} {ahead} ahead{side}"))
    lines = [text for *_, text in sorted(seen)] or ["nothing but floor"]
    held = f"{carrying.color} {carrying.type}" if carrying else "nothing"
    return "You see: " + "; ".join(lines) + f". You carry {held}."


class MiniGrid(Bridge):
    version = f"minigrid {version('minigrid')} gymnasium {version('gymnasium')}"

    def __init__(self, families):
        self.families = families

    def reset(self, seed, difficulty, family):
        self.env = gymnasium.make(self.families[family]).unwrapped
        view, _ = self.env.reset(seed=seed)
        self.reward, self.ended = 0.0, False
        self.bot = self._bot()
        self._advise(None)
        return started(self.env.mission, family, self.env.max_steps, self._text(view), TOOLS)

    def _text(self, view):
        facing = DIRECTIONS[int(view["direction"])]
        return f"You face {facing}. " + described(view["image"], self.env.carrying)

    def _bot(self):
        try:
            return BabyAIBot(self.env)
        except Exception:  # not a BabyAI level: it has no instructions to follow
            return None

    def _advise(self, taken):
        try:
            self.advice = None if self.bot is None else self.bot.replan(taken)
        except Exception:  # the bot gives up on levels that cannot be solved any more
            self.bot = self.advice = None

    def step(self, action):
        if "say" in action:
            return shown("", done=True)
        number = ACTIONS.index(action["arguments"]["action"])
        view, reward, terminated, truncated, _ = self.env.step(self.env.actions(number))
        self.reward, self.ended = self.reward + float(reward), terminated or truncated
        if not self.ended:
            self._advise(self.env.actions(number))
        return shown(self._text(view), done=bool(self.ended))

    def verify(self):
        return scored(self.reward > 0, 1.0 if self.reward > 0 else 0.0, reached=self.reward > 0)

    def expert(self):
        if self.reward > 0:
            return {"say": "Done."}
        return None if self.advice is None else {"tool": "act", "arguments": {"action": ACTIONS[int(self.advice)]}}


if __name__ == "__main__":
    minigrid.register_minigrid_envs() if "BabyAI-GoToRedBall-v0" not in gymnasium.registry else None
    serve(MiniGrid(dict(word.split("=", 1) for word in sys.argv[1:])))
