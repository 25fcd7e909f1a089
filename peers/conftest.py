"""The program under test and a project with the examples in it, made once."""

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "failed-runs"


@dataclass
class Ran:
    """A finished run of the main job."""

    binary: str
    project: Path
    out: Path
    summary: dict

    def export_atif(self, folder):
        call(self.binary, "export", "--format", "atif", "--out", folder, "--project", self.project)
        return sorted(folder.rglob("*.atif.json"))


@dataclass
class Project:
    """A project to export from."""

    binary: str
    project: Path


def call(binary, *words):
    """Runs the program; returns the last line of its standard output."""
    done = subprocess.run([binary, *map(os.fspath, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words[0]} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout.rstrip("\n").rpartition("\n")[2]


@contextlib.contextmanager
def serving(binary, *words):
    """A server of an environment, at a free port; gives its address."""
    command = [binary, "env", "serve", *words, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.kill()


@pytest.fixture(scope="session")
def binary():
    path = os.environ.get("RECOUP_BIN")
    if not path:
        pytest.fail("set RECOUP_BIN to the program, for instance target/debug/recoup")
    return os.path.abspath(path)


@pytest.fixture(scope="session")
def repaired(binary, tmp_path_factory):
    """A project of failed runs in a bundled environment, some of them with a better step that passed when it was played."""
    project = tmp_path_factory.mktemp("repaired") / "project"
    call(binary, "collect", "--env", "quest", "--policy", "weak:wrong-variant@0.9", "--tasks", "16", "--seed", "7",
         "--project", project)
    call(binary, "diagnose", "--project", project)
    call(binary, "replay", "--candidate", "expert", "--continuations", "3", "--project", project)
    return Project(binary, project)


@pytest.fixture(scope="session")
def ran(binary, tmp_path_factory):
    project, out = tmp_path_factory.mktemp("project") / "p", tmp_path_factory.mktemp("out")
    last = call(binary, "run", EXAMPLES, "--project", project, "--out", out, "--json")
    return Ran(binary, project, out, json.loads(last))


@pytest.fixture(scope="session")
def answered(binary, tmp_path_factory):
    """A project of runs without tools: of each task a good and a bad answer to the same words, with reasoning."""
    folder = tmp_path_factory.mktemp("answered")
    lines = []
    for task in range(12):
        for is_good in [True, False]:
            asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"{task} + 1? — «bitte» 🗺️"}]
            answer = {"role": "assistant", "content": f"It is {task + 1 if is_good else task}.", "reasoning_content": "Add one.\nSo:"}
            lines.append(json.dumps({"id": f"{task}-{is_good}", "task_id": f"sum-{task}", "success": is_good,
                                     "messages": [*asked, answer if task % 2 else {**answer, "reasoning_content": None}]}))
    (folder / "runs.jsonl").write_text("\n".join(lines))
    call(binary, "run", folder / "runs.jsonl", "--project", folder / "project", "--out", folder / "out")
    return Project(binary, folder / "project")
