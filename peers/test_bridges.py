"""Real simulators, driven by recoup through its bridges: their own teachers win, and the verifier says so."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import call

BRIDGES = Path(__file__).resolve().parent.parent / "environments" / "bridges"
MANIFEST = """name = "{name}"
version = "1.0.0"
description = "A test's own"
interface = "test"
licence = "own"
families = {families}
volatile = {volatile}

[bridge]
command = {command}
start_seconds = 300
call_seconds = 300
"""


def needs(module):
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"{module} is not installed (peers/requirements.txt)")


def bridge(folder, name, adapter, *arguments, families=("one",), volatile=()):
    """A bridge's folder that starts an adapter with this Python."""
    command = [sys.executable, str(BRIDGES / adapter), *map(str, arguments)]
    folder.mkdir(exist_ok=True)
    text = MANIFEST.format(
        name=name, families=json.dumps(families), volatile=json.dumps(volatile), command=json.dumps(command)
    )
    (folder / "environment.toml").write_text(text)
    return folder


def families_of(name):
    """The families that the shipped bridge has."""
    import tomllib

    return tomllib.loads((BRIDGES / name / "environment.toml").read_text())["families"]


def collected(binary, folder, tmp_path, tasks, policy="expert"):
    words = ["--policy", policy, "--tasks", str(tasks), "--seed", "7", "--difficulty", "3", "--threads", "2"]
    last = call(binary, "collect", "--env", folder, "--trust", *words, "--project", tmp_path / "project", "--json")
    return json.loads(last)


def forks_alike(binary, folder, seeds):
    """Runs of the teacher and random ones, each taken up again at a step that a coin says, show the same bytes to the end."""
    words = ["--gate", "deterministic", "--seeds", str(seeds), "--threads", "2", "--json"]
    gate, = json.loads(call(binary, "env", "check", folder, "--trust", *words))["gates"]
    assert gate["passed"] and gate["figure"] == f"0 of {seeds} seeds differ", gate


@needs("scienceworld")
@pytest.mark.skipif(shutil.which("java") is None, reason="ScienceWorld needs Java")
def test_gold_paths_of_scienceworld_score_100(binary, tmp_path):
    families = families_of("scienceworld")
    assert len(families) == 30
    folder = bridge(tmp_path / "env", "scienceworld", "scienceworld_bridge.py", families=families)
    summary = collected(binary, folder, tmp_path, 30)
    assert summary["episodes"] == 30
    assert summary["success"]["passed"] >= 25, summary
    forks_alike(binary, folder, 2)


@needs("textworld")
def test_a_game_of_textworld_is_won_by_its_walkthrough(binary, tmp_path):
    make = Path(sys.executable).parent / "tw-make"
    for seed in ("7", "8"):
        words = ["custom", "--world-size", "3", "--nb-objects", "4", "--quest-length", "4", "--seed", seed]
        game = tmp_path / "games" / f"{seed}.z8"
        subprocess.run([make, *words, "--output", game], check=True, capture_output=True)
    folder = bridge(tmp_path / "env", "textworld", "textworld_bridge.py", tmp_path / "games")
    summary = collected(binary, folder, tmp_path, 2)
    assert summary["success"]["passed"] == 2, summary
    forks_alike(binary, folder, 2)


@needs("minigrid")
def test_the_bot_of_babyai_solves_two_levels(binary, tmp_path):
    levels = {"go-to-red-ball": "BabyAI-GoToRedBall-v0", "pickup-loc": "BabyAI-PickupLoc-v0"}
    words = [f"{family}={level}" for family, level in levels.items()]
    folder = bridge(tmp_path / "env", "babyai", "minigrid_bridge.py", *words, families=list(levels))
    summary = collected(binary, folder, tmp_path, 20)
    assert summary["success"]["passed"] == 20, summary
    forks_alike(binary, folder, 6)


@needs("gymnasium")
def test_a_text_environment_of_gymnasium_is_played(binary, tmp_path):
    words = ["--actions", "left,down,right,up", "frozen=FrozenLake-v1"]
    folder = bridge(tmp_path / "env", "frozen", "gymnasium_bridge.py", *words, families=["frozen"])
    summary = collected(binary, folder, tmp_path, 10, policy="random")
    assert summary["episodes"] == summary["success"]["n"] == 10, summary


def test_the_actions_of_a_tau_bench_task_earn_its_reward(binary, tmp_path):
    checkout = Path(__file__).parent / "tau_bench_stand_in"
    folder = bridge(tmp_path / "env", "tau-bench", "tau_bench_bridge.py", checkout)
    summary = collected(binary, folder, tmp_path, 4)
    assert summary["success"]["passed"] == 4, summary
    idle = collected(binary, folder, tmp_path / "idle", 4, policy='scripted:[{"say":"Goodbye."}]')
    assert idle["success"] | {"low": 0, "high": 0} == {"passed": 0, "n": 4, "rate": 0.0, "low": 0, "high": 0}


SESSION = [
    {"tool": "shell", "arguments": {"command": f"{sys.executable} -m pytest -q"}},
    {"tool": "read_file", "arguments": {"path": "calc.py"}},
    {"tool": "edit_file", "arguments": {"path": "calc.py", "old": "a - b", "new": "a + b"}},
    {"tool": "write_file", "arguments": {"path": "notes/done.md", "text": "Adds now.\n"}},
    {"tool": "shell", "arguments": {"command": f"{sys.executable} -m pytest -q && cat notes/done.md"}},
    {"say": "The tests pass."},
]


def workspace(tmp_path):
    template = tmp_path / "template"
    template.mkdir()
    (template / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (template / "test_calc.py").write_text("from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n")
    words = ["--template", template, "--test", f"{sys.executable} -m pytest -q"]
    return bridge(tmp_path / "env", "workspace", "workspace_bridge.py", *words, volatile=["in [0-9.]+s"])


@pytest.mark.skipif(shutil.which("unshare") is None, reason="a workspace needs unshare (util-linux)")
def test_a_session_in_a_workspace_makes_the_tests_pass(binary, tmp_path):
    folder = workspace(tmp_path)
    summary = collected(binary, folder, tmp_path, 1, policy="scripted:" + json.dumps(SESSION))
    assert summary["success"]["passed"] == 1, summary
    half = collected(binary, folder, tmp_path / "half", 1, policy="scripted:" + json.dumps(SESSION[:2]))
    assert half["success"]["passed"] == 0, half
