"""A bridge for one's own simulator, as short as it can be: count to a number without passing it."""

from recoup_bridge import Bridge, scored, serve, shown, started, tool


class Counter(Bridge):
    version = "counter 1"

    def reset(self, seed, difficulty, family):
        self.count, self.goal = 0, 3 * difficulty + seed % 5
        goal = f"Count to {self.goal}, by steps of 1 or 2, and stop there."
        return started(goal, family, 40, "The counter shows 0.", [tool("add", "Adds 1 or 2.", by="integer")])

    def step(self, action):
        if "say" in action:
            return shown("", done=True)
        if action["arguments"]["by"] not in (1, 2):
            return shown("Only 1 or 2 can be added.", is_error=True)
        self.count += action["arguments"]["by"]
        return shown(f"The counter shows {self.count}.", done=self.count >= self.goal)

    def verify(self):
        return scored(self.count == self.goal, 1 if self.count == self.goal else 0, exact=self.count == self.goal)

    def expert(self):
        return {"tool": "add", "arguments": {"by": 1}} if self.count < self.goal else {"say": "Done."}


if __name__ == "__main__":
    serve(Counter())
