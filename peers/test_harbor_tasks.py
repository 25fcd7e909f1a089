"""Exported Harbor tasks: valid for harbor, solved by their solution, and scored by running the actions again."""

import json
import os
import subprocess

import pytest
from conftest import call

pytest.importorskip("harbor", reason="harbor needs Python 3.12")
from harbor.lint.models import DEFAULT_RULES  # noqa: E402
from harbor.lint.task import lint_task  # noqa: E402
from harbor.models.task.task import Task  # noqa: E402

SEEDS = 12


@pytest.fixture(scope="module")
def tasks(binary, tmp_path_factory):
    out = tmp_path_factory.mktemp("harbor")
    said = call(binary, "env", "export", "quest", "--to", "harbor", "--out", out, "--seeds", str(SEEDS), "--json")
    assert json.loads(said)["tasks"] == SEEDS
    return sorted(path for path in out.iterdir() if path.is_dir())


def test_harbor_takes_every_task(tasks):
    assert len(tasks) == SEEDS
    for folder in tasks:
        task = Task(folder)
        assert task.name == f"recoup/{folder.name}"
        assert "act" in task.instruction
        findings = [found for found in lint_task(folder) if found.rule in DEFAULT_RULES]
        assert not findings, findings


def test_solutions_score_1_and_nothing_scores_0(tasks, tmp_path):
    for folder in tasks:
        assert reward(folder, tmp_path / f"idle-{folder.name}") == "0"
        assert reward(folder, tmp_path / f"solved-{folder.name}", "solution/solve.sh") == "1"


def test_what_the_agent_writes_elsewhere_counts_for_nothing(tasks, tmp_path):
    """The tests have their own copy of the environment."""
    folder = tasks[0]
    program = folder / "environment/recoup/package/environment.star"
    kept = program.read_text()
    program.write_text(kept + "\n\ndef verify(task, state, transcript):\n    return {'success': True, 'score': 1.0, 'checks': {}}\n")
    try:
        assert reward(folder, tmp_path) == "0"
    finally:
        program.write_text(kept)


def test_a_log_that_is_none_scores_0(tasks, tmp_path):
    (tmp_path / "actions.jsonl").write_text('{"tool": 1}\nnot json\n')
    assert reward(tasks[0], tmp_path) == "0"


def reward(folder, work, script=None):
    """Does in plain folders what harbor does in a container."""
    programs, logs = work / "bin", work / "logs"
    programs.mkdir(parents=True)
    act = programs / "act"
    act.write_text(f'#!/bin/sh\nexec sh "{folder}/environment/recoup/act" "$@"\n')
    act.chmod(0o755)
    surroundings = os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "RECOUP_ACTIONS": str(work / "actions.jsonl"),
        "RECOUP_LOGS": str(logs),
    }
    for path in [script, "tests/test.sh"]:
        if path:
            subprocess.run(["sh", folder / path], env=surroundings, check=True, capture_output=True)
    return (logs / "reward.txt").read_text().strip()
