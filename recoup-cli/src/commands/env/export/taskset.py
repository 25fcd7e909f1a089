"""Tasks of a recoup environment package, for verifiers.

A rollout's state is the list of its actions: the tools run them again from the start, and so does the reward, which
is 1 where the goal was reached and 0 elsewhere. Nothing that a model writes is believed but its actions.
"""

import inspect
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import verifiers.v1 as vf
from pydantic import Field

from .recoup_env import Package

HERE = Path(__file__).resolve().parent
SAY = "say"
_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


@lru_cache(1)
def package():
    return Package(HERE / "package")


class RecoupData(vf.TaskData):
    seed: int
    difficulty: int


class RecoupState(vf.State):
    actions: list[dict[str, Any]] = Field(default_factory=list)


def episode_after(data, actions):
    """The episode of a task after some actions; those behind its end are not taken."""
    task = package().generate(data.seed, data.difficulty)
    episode = package().start(task)
    for action in actions:
        if not over(episode):
            episode.step(action)
    return episode


def over(episode):
    return episode.done or len(episode.transcript) >= episode.task["max_steps"]


class RecoupTools(vf.Toolset[vf.ToolsetConfig, RecoupState]):
    """The environment's own tools, and `say` for words to a user."""

    TOOL_PREFIX = None

    async def setup_task(self, task):
        self.data = task

    def register(self, mcp):
        tools = episode_after(self.data, []).tools
        for tool in tools:
            mcp.add_tool(self._with_state(self.function(tool)), name=tool["name"], description=tool["description"])
        if all(tool["name"] != SAY for tool in tools):
            mcp.add_tool(self._with_state(self.say), name=SAY, description=self.say.__doc__)

    def function(self, tool):
        """The tool as a function with its parameters, which is what the server reads its schema from."""
        schema = tool["parameters"]

        async def call(**arguments):
            given = {name: value for name, value in arguments.items() if value is not None}
            return self.take({"tool": tool["name"], "arguments": given})

        parameters = []
        for name, about in schema.get("properties", {}).items():
            kind = Literal[tuple(about["enum"])] if "enum" in about else _TYPES[about["type"]]
            needed = name in schema.get("required", [])
            default = inspect.Parameter.empty if needed else None
            annotation = Annotated[kind if needed else kind | None, Field(description=about.get("description"))]
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            )
        call.__name__ = tool["name"]
        call.__signature__ = inspect.Signature(parameters, return_annotation=str)
        return call

    async def say(self, text: str) -> str:
        """Says something to the user; where nobody is there to answer, that ends the task."""
        return self.take({"say": text})

    def take(self, action):
        episode = episode_after(self.data, self.state.actions)
        if over(episode):
            return "Error: the episode is over."
        shown = episode.step(action)
        self.state.actions = [*self.state.actions, action]
        return shown


class RecoupTaskConfig(vf.TaskConfig):
    tools: vf.ToolsetConfig = vf.ToolsetConfig()


class RecoupTask(vf.Task[RecoupData, RecoupState, RecoupTaskConfig]):
    @classmethod
    def toolsets(cls, config):
        return [RecoupTools(config.tools)]

    @vf.stop
    async def is_over(self, trace: vf.Trace) -> bool:
        return over(episode_after(self.data, trace.state.actions))

    @vf.reward
    async def solved(self, trace: vf.Trace) -> float:
        episode = episode_after(self.data, trace.state.actions)
        return 1.0 if episode.verify()["success"] else 0.0

    @vf.metric
    async def steps(self, trace: vf.Trace) -> float:
        return float(len(trace.state.actions))


class RecoupConfig(vf.TasksetConfig):
    num_tasks: int = json.loads((HERE / "tasks.json").read_text("utf-8"))["tasks"]
    """How many tasks: seeds from `first_seed` on."""
    first_seed: int = 0
    difficulty: int | None = None
    """1, 2 or 3; all in turn where it is not set."""
    task: RecoupTaskConfig = RecoupTaskConfig()


class RecoupTaskset(vf.Taskset[RecoupTask, RecoupConfig]):
    def load(self) -> Iterator[RecoupTask]:
        families = package().manifest["families"]
        for seed in range(self.config.first_seed, self.config.first_seed + self.config.num_tasks):
            # Families take turns first, then difficulties.
            difficulty = self.config.difficulty or seed // len(families) % 3 + 1
            task = package().generate(seed, difficulty)
            first = package().start(task).observation
            data = RecoupData(
                name=f"{package().manifest['name']}/{task['family']}/{difficulty}/{seed}",
                prompt=f"{task['goal']}\n\n{first}",
                system_prompt=package().policy,
                seed=seed,
                difficulty=difficulty,
            )
            yield RecoupTask(data, self.config.task)
