"""An exported taskset, loaded by verifiers, with its tools called over MCP as a harness would."""

import asyncio
import sys

import pytest
from conftest import call
from twin import solved

vf = pytest.importorskip("verifiers.v1")
from mcp import Client  # noqa: E402
from mcp.server.mcpserver import MCPServer  # noqa: E402
from verifiers.v1.envs.single_agent import SingleAgentEnvConfig  # noqa: E402
from verifiers.v1.state import state_cls  # noqa: E402
from verifiers.v1.trace import AgentInfo, TraceTask  # noqa: E402

SEEDS = 12


@pytest.fixture(scope="module")
def tasks(binary, tmp_path_factory):
    out = tmp_path_factory.mktemp("verifiers")
    call(binary, "env", "export", "quest", "--to", "verifiers", "--out", out, "--seeds", str(SEEDS))
    sys.path.insert(0, str(out))
    environment = vf.load_environment(SingleAgentEnvConfig(taskset={"id": "recoup_quest"}))
    return list(environment.taskset)


def test_every_task_is_there(tasks):
    assert len(tasks) == SEEDS
    assert len({task.key for task in tasks}) == SEEDS
    goal, first, _ = solved("quest", tasks[5].data.seed, tasks[5].data.difficulty)
    assert tasks[5].data.prompt == f"{goal}\n\n{first}"


def test_a_scripted_solution_scores_1_and_nothing_scores_0(tasks):
    for task in tasks:
        _, _, transcript = solved("quest", task.data.seed, task.data.difficulty)
        assert asyncio.run(play(task, transcript)).rewards["solved"].value == 1.0
        assert asyncio.run(play(task, [])).rewards["solved"].value == 0.0


async def play(task, transcript):
    trace = vf.Trace(
        task=TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
        agent=AgentInfo(config=vf.AgentConfig()),
        state=state_cls(type(task))(),
    )
    (tools,) = type(task).toolsets(task.config)
    await tools.setup_task(task.data)
    server = MCPServer("tools")
    tools.register(server)

    async def state():
        return trace.state

    # Where the tools run in a process of their own, this goes through verifiers' state channel.
    tools._pull_state = state
    async with Client(server) as client:
        for exchange in transcript:
            action = exchange["action"]
            called = ("say", {"text": action["say"]}) if "say" in action else (action["tool"], action["arguments"])
            result = await client.call_tool(*called)
            assert result.content[0].text == exchange["observation"]
    await task.score(trace)
    return trace
