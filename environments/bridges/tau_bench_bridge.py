"""tau-bench (Yao et al. 2024), from a checkout of your own: retail and airline customer service.

    tau_bench_bridge.py CHECKOUT [--env retail] [--split test]

The seed is the task's index. No environment of recoup calls a model, so the user is scripted: it says its
instruction, agrees to every question and ends the talk when nothing is asked. The expert takes the task's own actions.
"""

import argparse
import copy
import sys
from pathlib import Path

from recoup_bridge import Bridge, scored, serve, shown, started

RESPOND, STOP = "respond", "###STOP###"


class ScriptedUser:
    """In the shape of tau-bench's users."""

    def reset(self, instruction=None):
        return instruction or "Hello."

    def step(self, content):
        return "Yes, please go ahead." if "?" in content else STOP

    def get_total_cost(self):
        return 0.0


def tool_of(info):
    """A tool as recoup wants it, from tau-bench's own form; of a property it keeps what a check can use."""
    function = info["function"]
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    properties = {
        name: {key: value for key, value in part.items() if key in ("type", "description", "enum", "items", "properties")}
        for name, part in schema.get("properties", {}).items()
    }
    parameters = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    return {"name": function["name"], "description": function["description"], "read_only": False, "parameters": parameters}


class TauBench(Bridge):
    def __init__(self, checkout, env, split):
        sys.path.insert(0, str(Path(checkout).resolve(strict=True)))
        from tau_bench.envs import get_env
        from tau_bench.types import Action

        self.action = Action
        self.env = get_env(env, user_strategy="human", user_model="none", task_split=split)
        self.env.user = ScriptedUser()
        self.version = f"tau-bench {env} {split} {len(self.env.tasks)} tasks"

    def reset(self, seed, difficulty, family):
        first = self.env.reset(task_index=seed % len(self.env.tasks))
        self.gold, self.taken, self.over = self.env.task.actions, [], False
        goal = "Serve the customer, by the policy and with the tools.\n\n" + self.env.wiki
        tools = [tool_of(info) for info in self.env.tools_info]
        return started(goal, family, 30, first.observation, tools, index=seed % len(self.env.tasks))

    def step(self, action):
        name, arguments = (RESPOND, {"content": action["say"]}) if "say" in action else (action["tool"], action["arguments"])
        # Not by the simulator's own step: the one that ends a talk scores it, which replaces the data.
        done = name in self.env.terminate_tools
        if name == RESPOND:
            observation = self.env.user.step(arguments["content"])
            done = STOP in observation
        else:
            try:
                observation = self.env.tools_map[name].invoke(data=self.env.data, **arguments)
            except Exception as error:  # as tau-bench itself reports it
                observation = f"Error: {error}"
        self.env.actions.append(self.action(name=name, kwargs=arguments))
        self.taken.append((name, arguments))
        return shown(str(observation), is_error=str(observation).startswith("Error"), done=done)

    def verify(self):
        # Scoring runs the task's own actions on fresh data: what the episode did is put back afterwards.
        data, actions = copy.deepcopy(self.env.data), list(self.env.actions)
        reward = float(self.env.calculate_reward().reward) if self.taken else 0.0
        self.env.data, self.env.actions = data, actions
        return scored(reward == 1.0, 1.0 if reward == 1.0 else 0.0, reward=reward == 1.0)

    def expert(self):
        gold = [(action.name, action.kwargs) for action in self.gold]
        calls = [taken for taken in self.taken if taken[0] != RESPOND]
        if calls != gold[: len(calls)]:
            return None
        if len(calls) < len(gold):
            name, arguments = gold[len(calls)]
            return {"tool": name, "arguments": arguments}
        outputs = " ".join(getattr(self.env.task, "outputs", []))
        return {"say": f"It is done. {outputs}".strip()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("checkout")
    parser.add_argument("--env", default="retail")
    parser.add_argument("--split", default="test")
    serve(TauBench(**vars(parser.parse_args())))
