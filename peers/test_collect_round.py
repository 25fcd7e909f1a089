"""Student and teacher share runs in real simulators: ScienceWorld's gold paths and TextWorld's walkthroughs label."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import call
from test_bridges import bridge, families_of, needs


def shared(binary, folder, tmp_path, *more):
    words = ["--student", "random", "--teacher", "expert", "--seed", "7", "--difficulty", "3", "--threads", "2"]
    project = tmp_path / "project"
    last = call(binary, "collect", "--env", folder, "--trust", *words, *more, "--project", project, "--json")
    done = json.loads(last)
    assert sum(done["outcomes"].values()) == done["requests"], done
    rows = call(binary, "export", "dagger", "--format", "trl", "--out", tmp_path / "rows", "--project", project, "--json")
    return done, json.loads(rows)


@needs("scienceworld")
@pytest.mark.skipif(shutil.which("java") is None, reason="ScienceWorld needs Java")
def test_scienceworld_labels_the_states_that_a_student_visits(binary, tmp_path):
    folder = bridge(tmp_path / "env", "scienceworld", "scienceworld_bridge.py", families=families_of("scienceworld"))
    done, rows = shared(binary, folder, tmp_path, "--tasks", "6", "--beta", "0.9", "--max-steps", "30")
    (round,) = done["report"]["rounds"]
    assert round["labels"]["accepted"] > 30, round
    assert round["delivered_teacher_fraction"] > 0.7, round
    assert rows["rows"] > 30, rows


@needs("textworld")
def test_textworld_labels_the_states_that_a_student_visits(binary, tmp_path):
    make = Path(sys.executable).parent / "tw-make"
    for seed in range(4):
        words = ["custom", "--world-size", "3", "--nb-objects", "4", "--quest-length", "4", "--seed", str(seed)]
        game = tmp_path / "games" / f"{seed}.z8"
        subprocess.run([make, *words, "--output", game], check=True, capture_output=True)
    folder = bridge(tmp_path / "env", "textworld", "textworld_bridge.py", tmp_path / "games")
    done, rows = shared(binary, folder, tmp_path, "--tasks", "4", "--prefix", "4")
    (round,) = done["report"]["rounds"]
    # The teacher acts to the end, and it wins from wherever the student has led.
    mixture = round["mixture"]["success"]
    assert mixture["passed"] >= mixture["n"] - 1, round
    assert rows["rows"] > 4, rows
