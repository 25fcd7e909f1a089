"""A directory with shell and edit tools, scored by the user's own test command.

    workspace_bridge.py --template DIR --test "python -m pytest -q" --goal "Make the tests pass." [--seconds 60]

Each episode works on a fresh copy of DIR. Commands run shut in, by Linux's namespaces and Landlock: no network,
no other processes, nothing to write but the copy; where that cannot be had there is no workspace. A snapshot
is a copy, named by the hash of the tree.
"""

import argparse
import ctypes
import hashlib
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # also where Python is told to look nowhere
from recoup_bridge import Bridge, scored, serve, shown, started, tool  # noqa: E402

# What commands leave behind that is no work of theirs.
IGNORED = ("__pycache__", ".pytest_cache", ".git", ".tmp")
OUTPUT_MAX = 20_000
TOOLS = [
    tool("shell", "Runs a shell command in the workspace.", command="string"),
    tool("read_file", "Shows a file.", True, path="string"),
    tool("write_file", "Writes a file, whole.", path="string", text="string"),
    tool("edit_file", "Replaces one exact piece of a file's text.", path="string", old="string", new="string"),
]


def walls(folder):
    """The words that start a command shut in: namespaces first, then this file again for `only_writes`."""
    spaces = ["unshare", "--user", "--map-current-user", "--net", "--pid", "--ipc", "--fork", "--kill-child"]
    return [*spaces, sys.executable, "-I", __file__, "--only-writes", str(folder)]


def only_writes(folder):
    """Landlock: from now on this process and its children change files in `folder` alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    create, add, restrict, version, beneath = 444, 445, 446, 1, 1
    if (newest := libc.syscall(create, None, 0, version)) < 1:
        sys.exit("the workspace needs Landlock (Linux 5.13)")
    # Write, remove and make; of later versions also rename between folders and truncate.
    changes = 1 << 1 | 0b111111111 << 4 | (1 << 13 if newest >= 2 else 0) | (1 << 14 if newest >= 3 else 0)
    ruleset = libc.syscall(create, struct.pack("Q", changes), 8, 0)
    of_files = changes & (1 << 1 | 1 << 14)
    for path, allowed in [(folder, changes), *((f"/dev/{name}", of_files) for name in ("null", "zero", "full", "tty"))]:
        if os.path.exists(path):
            rule = struct.pack("=Qi", allowed, os.open(path, os.O_PATH))
            libc.syscall(add, ruleset, beneath, rule, 0)
    no_new_privileges = 38
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.syscall(restrict, ruleset, 0):
        sys.exit("Landlock refused: " + os.strerror(ctypes.get_errno()))


def tree_hash(folder):
    """SHA-256 of paths, modes and contents."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if any(part in IGNORED for part in relative.parts):
            continue
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        header = f"{relative}\0{path.lstat().st_mode:o}\0{len(content)}\0"
        digest.update(header.encode("utf-8", "surrogateescape") + content)
    return digest.hexdigest()


def copy(source, target):
    """A copy that shares blocks where the file system can (reflink)."""
    subprocess.run(["cp", "-a", "--reflink=auto", f"{source}/.", str(target)], check=True)


class Workspace(Bridge):
    def __init__(self, template, test, goal, seconds):
        self.template, self.test, self.goal, self.seconds = Path(template).resolve(strict=True), test, goal, seconds
        self.base = Path(tempfile.mkdtemp(prefix="workspace-"))
        self.folder, self.task = self.base / "work", None
        self.version = f"workspace {tree_hash(self.template)[:16]} {hashlib.sha256(test.encode()).hexdigest()[:8]}"
        self._fill(self.template)
        code, output = self._run("true", self.folder)
        if code != 0:
            sys.exit(f"commands cannot be shut in here: {output}")

    def reset(self, seed, difficulty, family):
        if self.task != (seed, difficulty):  # snapshots are of one task
            shutil.rmtree(self.base / "snapshots", ignore_errors=True)
            self.task = (seed, difficulty)
        self._fill(self.template)
        names = sorted(p.name for p in self.folder.iterdir() if p.name not in IGNORED)
        return started(self.goal, family, 60, "The workspace holds: " + ", ".join(names), TOOLS, test=self.test)

    def _fill(self, source):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        copy(source, self.folder)

    def snapshot(self):
        name = tree_hash(self.folder)
        target = self.base / "snapshots" / name
        if not target.exists():
            target.mkdir(parents=True)
            copy(self.folder, target)
        return name

    def restore(self, name):
        self._fill(self.base / "snapshots" / Path(name).name)

    def step(self, action):
        if "say" in action:
            return shown("", done=True, hash=tree_hash(self.folder))
        arguments = action["arguments"]
        try:
            observation, is_error = getattr(self, "_" + action["tool"])(**arguments)
        except (OSError, UnicodeError, ValueError) as error:
            observation, is_error = f"Error: {self._plain(str(error))}", True
        return shown(observation, is_error, hash=tree_hash(self.folder))

    def _plain(self, text):
        text = text.replace(str(self.folder), ".")
        return text if len(text) <= OUTPUT_MAX else text[:OUTPUT_MAX] + f"\n[{len(text) - OUTPUT_MAX} characters left out]"

    def _inside(self, path):
        found = (self.folder / path).resolve()
        if not found.is_relative_to(self.folder.resolve()):
            raise ValueError(f"{path} is outside the workspace")
        return found

    def _read_file(self, path):
        return self._plain(self._inside(path).read_text(encoding="utf-8")), False

    def _write_file(self, path, text):
        found = self._inside(path)
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text(text, encoding="utf-8")
        return f"Wrote {path}.", False

    def _edit_file(self, path, old, new):
        found = self._inside(path)
        text = found.read_text(encoding="utf-8")
        if text.count(old) != 1:
            return f"Error: the old text occurs {text.count(old)} times in {path}.", True
        found.write_text(text.replace(old, new), encoding="utf-8")
        return f"Edited {path}.", False

    def _shell(self, command):
        code, output = self._run(command, self.folder)
        return self._plain(output) + f"\n[exit code {code}]", code != 0

    def _run(self, command, folder):
        home = {"HOME": "/nonexistent", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
                "PYTEST_ADDOPTS": "-p no:cacheprovider", "TMPDIR": str(folder / ".tmp"),
                "PATH": os.environ.get("PATH", "/usr/bin:/bin")}
        (folder / ".tmp").mkdir(exist_ok=True)
        process = subprocess.Popen([*walls(folder), "sh", "-c", command], cwd=folder, env=home, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=self.seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return 124, f"[stopped after {self.seconds} seconds]"

    def verify(self):
        # In a copy: a test that writes must not change what it scores.
        with tempfile.TemporaryDirectory(dir=self.base) as folder:
            copy(self.folder, folder)
            code, _ = self._run(self.test, Path(folder))
        return scored(code == 0, 1.0 if code == 0 else 0.0, tests=code == 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--only-writes"]:
        only_writes(sys.argv[2])
        os.execvp(sys.argv[3], sys.argv[3:])
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--template", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--goal", default="Make the tests pass.")
    parser.add_argument("--seconds", type=float, default=60)
    serve(Workspace(**vars(parser.parse_args())))
