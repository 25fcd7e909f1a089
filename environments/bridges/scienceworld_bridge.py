"""ScienceWorld (Wang et al. 2022): `pip install scienceworld`, and Java 17 or later.

A family is one of its 30 tasks, the seed chooses the variation. The expert is the simulator's own gold path,
from the start and as long as it is followed.
"""

from importlib.metadata import version

from recoup_bridge import Bridge, scored, serve, shown, started, tool
from scienceworld import ScienceWorldEnv

TOOLS = [tool("act", "Takes one action, such as `open door to kitchen`, `pick up thermometer` or `look around`.", command="string")]
# What the simulator itself would do to the run.
REFUSED = ("reset task",)
# Enough for gold paths. It does not follow from the one at hand, for the simulator may find another one of another length when it
# loads a task again, and a task must be the same each time.
STEPS = 500


class ScienceWorld(Bridge):
    version = f"scienceworld {version('scienceworld')}"

    def __init__(self):
        self.env = ScienceWorldEnv("", envStepLimit=1_000_000)
        self.loaded = None

    def reset(self, seed, difficulty, family):
        variation = seed // 30 % self.env.get_max_variations(family)
        if self.loaded != (family, variation, difficulty):
            # `easy` teleports and opens doors; the hardest is the world as it is.
            simplified = {1: "easy", 2: "openDoors"}.get(difficulty, "")
            self.env.load(family, variation, simplified, generateGoldPath=True)
            self.loaded = (family, variation, difficulty)
        # What `ScienceWorldEnv.reset` and `step` do, but for listing all valid actions, which takes most of their time.
        self.env.server.reset()
        observation = self.env.server.step("look around")
        self.gold, self.followed = self.env.get_gold_action_sequence(), 0
        goal = self.env.taskdescription().removeprefix("Task Description:").strip()
        return started(goal, family, STEPS, observation, TOOLS, variation=variation)

    def step(self, action):
        if "say" in action:
            return shown("", done=True)
        command = action["arguments"]["command"]
        if command.strip().lower() in REFUSED:
            return shown("This is not allowed.", is_error=True)
        observation = self.env.server.step(command)
        if self.followed is not None:
            on_path = self.followed < len(self.gold) and self.gold[self.followed] == command
            self.followed = self.followed + 1 if on_path else None
        return shown(observation, done=self.env.server.getCompleted() or self._points() < 0)

    def _points(self):
        return round(100 * self.env.server.getScore())

    def verify(self):
        points = self._points()
        return scored(points >= 100, 1.0 if points >= 100 else max(points, 0) / 200, points_100=points >= 100)

    def expert(self):
        if self.followed is None:
            return None
        if self.followed >= len(self.gold):
            return {"say": "Done."}
        return {"tool": "act", "arguments": {"command": self.gold[self.followed]}}


if __name__ == "__main__":
    serve(ScienceWorld())
