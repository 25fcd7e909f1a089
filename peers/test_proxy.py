"""Real clients and harnesses, unmodified, through the proxy: what they get, and what is recorded."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import call
from scripted_upstream import CALLS, FIRST, LAST, Upstream

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

TOOLS = [("get_weather", {"city": {"type": "string"}}), ("find_trains", {"to": {"type": "string"}, "limit": {"type": "integer"}})]
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
GOAL = "Plan a day in Zürich — 東京 later."


def schema(properties):
    return {"type": "object", "properties": properties}


CHAT_TOOLS = [{"type": "function", "function": {"name": name, "parameters": schema(fields)}} for name, fields in TOOLS]


class Proxied:
    """A proxy before a scripted upstream, with a project of its own."""

    def __init__(self, binary, folder, *flags):
        self.binary, self.project = binary, folder / "project"
        command = [binary, "proxy", "--port", "0", "--json", "--project", self.project, *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]

    def stop(self):
        """Ends the proxy and gives the runs of the project, each as `recoup show` has it."""
        self.process.send_signal(signal.SIGTERM)
        self.done = json.loads(self.process.stdout.read().splitlines()[-1])
        assert self.process.wait() == 0
        listed = subprocess.run([self.binary, "ls", "--json", "--project", self.project], capture_output=True, text=True, check=True)
        ids = [json.loads(line)["id"] for line in listed.stdout.splitlines()]
        return [json.loads(call(self.binary, "show", id, "--json", "--project", self.project))["trajectory"] for id in ids]


@pytest.fixture
def proxied(binary, tmp_path):
    with contextlib.ExitStack() as stack:

        def start(upstream, *flags):
            proxy = Proxied(binary, tmp_path, "--upstream", upstream.url, *flags)
            stack.callback(proxy.process.kill)
            return proxy

        yield start


def check(run, calls=CALLS):
    """The errand of the script, whatever API it was run in."""
    roles = [node["role"] for node in run["nodes"] if node["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"], roles
    acted = [node for node in run["nodes"] if node["occurrence"].get("sampled")]
    assert [part["type"] for part in acted[0]["parts"]] == ["text", *["tool_call"] * len(calls)]
    assert acted[0]["parts"][0]["text"] == FIRST and acted[1]["parts"][0]["text"] == LAST
    for part, (id, name, arguments) in zip(acted[0]["parts"][1:], calls):
        assert (part["call_id"], part["name"], json.loads(part["arguments_raw"])) == (id, name, json.loads(arguments))
    assert {tool["name"] for tool in run["tools"]} >= {name for name, _ in TOOLS}
    usage = acted[1]["occurrence"]["call"]["usage"]
    assert (usage["input"], usage["output"]) == (11, 7)
    assert len(run["leaves"]) == 1


def openai_history():
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    return [{"role": "system", "content": "You plan."}, {"role": "user", "content": [{"type": "text", "text": GOAL}, picture]}]


def test_openai_chat(proxied):
    with Upstream() as upstream:
        proxy = proxied(upstream)
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-test")
        history = openai_history()
        raw = client.chat.completions.with_raw_response.create(model="toy", messages=history, tools=CHAT_TOOLS)
        assert raw.http_response.content == upstream.exchanges[0].sent
        said = raw.parse().choices[0].message
        assert [call.function.arguments for call in said.tool_calls] == [arguments for _, _, arguments in CALLS]
        history.append(said)
        history += [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in said.tool_calls]
        last = client.chat.completions.create(model="toy", messages=history, tools=CHAT_TOOLS)
        assert last.choices[0].message.content == LAST
        assert last.model_extra["x_vendor"] == {"kept": [1.5]}
        assert [model.id for model in client.models.list()] == ["toy"]
        assert upstream.exchanges[0].headers["authorization"] == "Bearer sk-test"
    [run] = proxy.stop()
    check(run)
    assert run["nodes"][1]["parts"][1]["mime"] == "image/png"
    assert proxy.done["ended"]["pure_student"] == 2


def test_openai_chat_async_streams(proxied):
    async def errand(client, upstream):
        history = openai_history()
        stream = await client.chat.completions.create(
            model="toy", messages=history, tools=CHAT_TOOLS, stream=True, stream_options={"include_usage": True}
        )
        text, calls = "", {}
        async for chunk in stream:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or []:
                    call = calls.setdefault(piece.index, {"id": piece.id, "type": "function", "function": {"name": piece.function.name, "arguments": ""}})
                    call["function"]["arguments"] += piece.function.arguments or ""
        history.append({"role": "assistant", "content": text, "tool_calls": list(calls.values())})
        history += [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls.values()]
        async with client.chat.completions.stream(model="toy", messages=history, tools=CHAT_TOOLS, stream_options={"include_usage": True}) as stream:
            return (await stream.get_final_completion()).choices[0].message.content

    async def errands(proxy, upstream):
        client = openai.AsyncOpenAI(base_url=f"{proxy.url}/v1", api_key="sk-test")
        return await asyncio.gather(*(errand(client, upstream) for _ in range(5)))

    with Upstream() as upstream:
        proxy = proxied(upstream)
        assert asyncio.run(errands(proxy, upstream)) == [LAST] * 5
    runs = proxy.stop()
    assert len(runs) == 5, "equal conversations at one time are as many runs"
    for run in runs:
        check(run)


def test_openai_streams_are_byte_for_byte(proxied):
    with Upstream() as upstream:
        proxy = proxied(upstream)
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-test")
        with client.chat.completions.with_streaming_response.create(model="toy", messages=openai_history(), tools=CHAT_TOOLS, stream=True) as answer:
            got = b"".join(answer.iter_bytes())
        assert got == upstream.exchanges[0].sent


@pytest.mark.parametrize("stream", [False, True])
def test_openai_responses(proxied, stream):
    tools = [{"type": "function", "name": name, "parameters": schema(fields), "strict": False} for name, fields in TOOLS]

    def ask(client, **request):
        if not stream:
            return client.responses.create(**request)
        with client.responses.stream(**request) as events:
            return events.get_final_response()

    with Upstream() as upstream:
        proxy = proxied(upstream)
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-test")
        history = [{"role": "user", "content": GOAL}]
        first = ask(client, model="toy", instructions="You plan.", input=history, tools=tools)
        history += [item.to_dict() if hasattr(item, "to_dict") else item for item in first.output]
        history += [{"type": "function_call_output", "call_id": id, "output": "ok"} for id, _, _ in CALLS]
        last = ask(client, model="toy", instructions="You plan.", input=history, tools=tools)
        assert last.output_text == LAST
    [run] = proxy.stop()
    check(run)


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic(proxied, stream):
    tools = [{"name": name, "input_schema": schema(fields)} for name, fields in TOOLS]

    def ask(client, **request):
        if not stream:
            raw = client.messages.with_raw_response.create(**request)
            assert raw.http_response.content == upstream.exchanges[-1].sent
            return raw.parse()
        with client.messages.stream(**request) as events:
            return events.get_final_message()

    with Upstream() as upstream:
        proxy = proxied(upstream)
        client = anthropic.Anthropic(base_url=proxy.url, api_key="sk-test")
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
        history = [{"role": "user", "content": [{"type": "text", "text": GOAL}, picture]}]
        request = {"model": "toy", "max_tokens": 100, "system": "You plan.", "tools": tools}
        first = ask(client, messages=history, **request)
        assert [block.type for block in first.content] == ["text", "tool_use", "tool_use"]
        history.append({"role": "assistant", "content": first.content})
        history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id, _, _ in CALLS]})
        assert ask(client, messages=history, **request).content[0].text == LAST
        # Which header carries the key has changed between versions of the library.
        headers = upstream.exchanges[0].headers
        assert "sk-test" in (headers.get("x-api-key") or headers["authorization"])
    [run] = proxy.stop()
    check(run)


def test_anthropic_async_and_errors(proxied):
    async def ask(proxy):
        client = anthropic.AsyncAnthropic(base_url=proxy.url, api_key="sk-test", max_retries=0)
        with pytest.raises(anthropic.BadRequestError, match="recoup: `messages`"):
            await client.post("/v1/messages", body={"model": "toy"}, cast_to=object)
        message = await client.messages.create(model="toy", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
        return message.content[0].text

    with Upstream() as upstream:
        proxy = proxied(upstream)
        assert asyncio.run(ask(proxy)) == LAST
    assert len(proxy.stop()) == 1


def test_litellm(proxied):
    litellm = pytest.importorskip("litellm")
    with Upstream() as upstream:
        proxy = proxied(upstream)
        for model, base in [("openai/toy", f"{proxy.url}/v1"), ("anthropic/toy", proxy.url)]:
            history = [{"role": "system", "content": "You plan."}, {"role": "user", "content": GOAL}]
            for stream in [False, True]:
                answer = litellm.completion(
                    model=model, api_base=base, api_key="sk-test", messages=history, tools=CHAT_TOOLS, stream=stream,
                    stream_options={"include_usage": True} if stream else None, max_tokens=100,
                )
                said = (litellm.stream_chunk_builder(list(answer)) if stream else answer).choices[0].message
                if said.tool_calls:
                    history.append(said.model_dump())
                    history += [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in said.tool_calls]
            assert said.content == LAST
    runs = proxy.stop()
    assert len(runs) == 2
    for run in runs:
        check(run)


def test_a_teacher_labels_beside_the_student(proxied):
    with Upstream() as upstream, Upstream(prefix="Wisely: ") as wise:
        proxy = proxied(upstream, "--teacher", f"{wise.url}#wise")
        # A task that is for training.
        headers = {"x-recoup-task": "desk/trip-1"}
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-test", default_headers=headers)
        history = openai_history()
        said = client.chat.completions.create(model="toy", messages=history, tools=CHAT_TOOLS).choices[0].message
        history += [said, *({"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in said.tool_calls)]
        client.chat.completions.create(model="toy", messages=history, tools=CHAT_TOOLS)
        # Labels that are on their way are waited for.
        [run] = proxy.stop()
    check(run)
    with contextlib.closing(sqlite3.connect(proxy.project / "store.sqlite")) as store:
        bodies = store.execute("SELECT body FROM verdict WHERE kind = 'state_label'").fetchall()
    labels = [json.loads(body)["content"]["state_label"] for [body] in bodies]
    assert not any("refused" in label for label in labels), [label.get("refused") for label in labels]
    assert sorted(label["action"]["text"] for label in labels) == ["Wisely: " + FIRST, "Wisely: " + LAST]
    assert all(exchange.request["model"] == "wise" and "authorization" not in exchange.headers for exchange in wise.exchanges)


@pytest.mark.parametrize("stream", [False, True])
def test_a_teacher_of_another_api_takes_every_turn(proxied, stream):
    """Anthropic's library and OpenAI's responses, answered by a teacher that speaks chat completions."""
    messages = [{"name": name, "input_schema": schema(fields)} for name, fields in TOOLS]
    responses = [{"type": "function", "name": name, "parameters": schema(fields), "strict": False} for name, fields in TOOLS]
    headers = {"x-recoup-task": "desk/trip-1"}

    def message(client, **request):
        if not stream:
            return client.messages.create(**request)
        with client.messages.stream(**request) as events:
            return events.get_final_message()

    def response(client, **request):
        if not stream:
            return client.responses.create(**request)
        with client.responses.stream(**request) as events:
            return events.get_final_response()

    with Upstream() as upstream, Upstream(prefix="Wisely: ") as wise:
        proxy = proxied(upstream, "--teacher", f"{wise.url}#wise", "--mode", "mix", "--beta", "1")
        client = anthropic.Anthropic(base_url=proxy.url, api_key="sk-test", default_headers=headers)
        history = [{"role": "user", "content": GOAL}]
        request = {"model": "toy", "max_tokens": 100, "system": "You plan.", "tools": messages}
        first = message(client, messages=history, **request)
        assert [block.type for block in first.content] == ["text", "tool_use", "tool_use"] and first.stop_reason == "tool_use"
        assert [block.input for block in first.content[1:]] == [json.loads(arguments) for _, _, arguments in CALLS]
        history.append({"role": "assistant", "content": first.content})
        history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id, _, _ in CALLS]})
        last = message(client, messages=history, **request)
        assert (last.content[0].text, last.usage.output_tokens) == ("Wisely: " + LAST, 7)
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-test", default_headers=headers)
        history = [{"role": "user", "content": GOAL}]
        first = response(client, model="toy", instructions="You plan.", input=history, tools=responses)
        history += [item.to_dict() if hasattr(item, "to_dict") else item for item in first.output]
        history += [{"type": "function_call_output", "call_id": id, "output": "ok"} for id, _, _ in CALLS]
        last = response(client, model="toy", instructions="You plan.", input=history, tools=responses)
        assert last.output_text == "Wisely: " + LAST
        assert upstream.exchanges == [] and {exchange.request["model"] for exchange in wise.exchanges} == {"wise"}
    runs = proxy.stop()
    assert proxy.done["ended"]["pure_teacher"] == 4 and proxy.done["spent"]["requests"] == 4, proxy.done
    for run in runs:
        acted = [node for node in run["nodes"] if node["occurrence"].get("sampled")]
        assert [part["type"] for part in acted[0]["parts"]] == ["text", *["tool_call"] * len(CALLS)]
        assert acted[1]["parts"][0]["text"] == "Wisely: " + LAST


def test_a_cap_is_an_error_that_no_library_tries_again(proxied):
    with Upstream() as upstream, Upstream() as wise:
        proxy = proxied(upstream, "--teacher", f"{wise.url}#wise", "--mode", "mix", "--beta", "1", "--max-requests", "1")
        headers = {"x-recoup-task": "desk/trip-1"}
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-test", default_headers=headers)
        client.chat.completions.create(model="toy", messages=openai_history())
        with pytest.raises(openai.APIStatusError, match="the limit of 1 requests is reached") as refused:
            client.chat.completions.create(model="toy", messages=openai_history())
        assert refused.value.status_code == 402 and len(wise.exchanges) == 1
    proxy.stop()
    assert (proxy.done["requests"], proxy.done["ended"]["capped"]) == (2, 1)


def test_the_guide(binary, tmp_path):
    """docs/proxy.md, block by block, with scripted models."""
    guide = Path(__file__).resolve().parent.parent / "docs" / "proxy.md"
    blocks = re.findall(r"```(sh|python)\n(.*?)```", guide.read_text(), re.S)
    script = ["set -e"]
    for number, (language, text) in enumerate(blocks):
        if language == "python":
            (tmp_path / f"block{number}.py").write_text(text)
            text = f"python block{number}.py"
        script.append(text)
    script.append("kill %1; wait %1")
    with Upstream() as student, Upstream(prefix="Wisely: ") as teacher, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        free.close()
        path = os.pathsep.join([os.path.dirname(binary), os.path.dirname(sys.executable), os.environ["PATH"]])
        environment = {"PATH": path, "HOME": str(tmp_path), "STUDENT_URL": student.url, "TEACHER": f"{teacher.url}#wise"}
        words = "\n".join(script).replace("8080", port)
        for block in tmp_path.glob("block*.py"):
            block.write_text(block.read_text().replace("8080", port))
        done = subprocess.run(["bash", "-m", "-c", words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for file in (tmp_path / "training").rglob("*.jsonl") for line in file.read_text().splitlines()]
    assert [row["messages"][-1]["content"] for row in rows] == ["Wisely: " + FIRST, "Wisely: " + LAST], done.stdout + done.stderr


def test_mini_swe_agent(proxied, tmp_path):
    """A whole task of a real harness: its own prompts, its own shell, its own way of stopping."""
    pytest.importorskip("minisweagent")
    script = tmp_path / "errand.py"
    script.write_text(HARNESS)
    work = tmp_path / "work"
    work.mkdir()
    with Upstream(answers=MINI_ANSWERS) as upstream:
        proxy = proxied(upstream)
        environment = {**os.environ, "MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "MSWEA_COST_TRACKING": "ignore_errors",
                       "MSWEA_GLOBAL_CONFIG_DIR": str(tmp_path / "config")}
        done = subprocess.run([sys.executable, script, f"{proxy.url}/v1", work], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        assert (work / "note.txt").read_text() == "hello\n", done.stdout[-2000:]
    [run] = proxy.stop()
    acted = [node for node in run["nodes"] if node["occurrence"].get("sampled")]
    assert len(acted) == len(MINI_ANSWERS) == len(upstream.exchanges)
    assert len(run["leaves"]) == 1


def command(text, line):
    return f"THOUGHT: {text}\n\n```mswea_bash_command\n{line}\n```"


MINI_ANSWERS = [
    command("Write it.", "echo hello > note.txt"),
    command("Look.", "cat note.txt"),
    command("Done.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
]
HARNESS = """
import sys
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

url, folder = sys.argv[1:]
model = LitellmTextbasedModel(
    model_name="openai/toy", model_kwargs={"api_base": url, "api_key": "sk-test"}, cost_tracking="ignore_errors"
)
agent = DefaultAgent(
    model, LocalEnvironment(cwd=folder), system_template="You use a shell.", instance_template="{{task}}",
    step_limit=10, cost_limit=0,
)
print(agent.run("Write hello into note.txt"))
"""


def test_inspect_ai(proxied, tmp_path):
    """A small task of Inspect with tools, three samples at a time."""
    pytest.importorskip("inspect_ai")
    script = tmp_path / "task.py"
    script.write_text(INSPECT)
    with Upstream() as upstream:
        proxy = proxied(upstream)
        environment = {**os.environ, "OPENAI_BASE_URL": f"{proxy.url}/v1", "OPENAI_API_KEY": "sk-test"}
        done = subprocess.run([sys.executable, script, tmp_path / "logs"], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.splitlines()[-1] == "success 1.0", done.stdout[-2000:]
    runs = proxy.stop()
    # Inspect first sees whether the model answers at all.
    planned = [run for run in runs if run["task"]["goal"].startswith("Plan")]
    assert {run["task"]["goal"] for run in planned} == {f"Plan day {day}." for day in range(3)}
    assert (len(planned), len(runs)) == (3, 4)
    assert all(len(run["leaves"]) == 1 for run in runs)


INSPECT = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

@tool
def get_weather():
    async def execute(city: str):
        '''The weather.

        Args:
            city: Where.
        '''
        return "foggy"
    return execute

@tool
def find_trains():
    async def execute(to: str, limit: int):
        '''Trains.

        Args:
            to: Where to.
            limit: How many.
        '''
        return "IC 1 at 08:02"
    return execute

task = Task(
    dataset=[Sample(input=f"Plan day {day}.", target="IC 1") for day in range(3)],
    solver=[use_tools(get_weather(), find_trains()), generate()],
    scorer=includes(),
)
[log] = eval(task, model="openai/toy", log_dir=sys.argv[1], display="none")
print(log.status, log.results.scores[0].metrics["accuracy"].value if log.results else log.error)
"""
