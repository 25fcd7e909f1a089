#!/usr/bin/env python3
"""Writes `failed-runs/`, about seventy runs of imaginary agents in seven formats, and
`expected_findings.json`, what a reader should find in them. Standard library only.

    python3 examples/make_failed_runs.py            # write
    python3 examples/make_failed_runs.py --check    # fail unless the files on disk are these
"""

import argparse
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True

from generator import (  # noqa: E402
    code_repository, formats, sales_questions, sessions, spelling, stock_room, support_desk, travel_desk,
)
from generator.run import DETECTORS  # noqa: E402

HERE = Path(__file__).resolve().parent

# (format, place, what it is about, runs, writer)
SETS = [
    ("openai-chat", "support_desk.jsonl", "a shop's support desk: tools with schemas, a policy", support_desk.RUNS,
     lambda place, runs: formats.openai_chat(place, runs, support_desk.SYSTEM, support_desk.TOOLS)),
    ("tau-bench", "travel_desk.json", "a rail desk with a simulated customer and gold actions", travel_desk.RUNS,
     lambda place, runs: formats.tau_bench(place, runs, travel_desk.SYSTEM, travel_desk.TASKS)),
    ("tau2", "travel_desk_tau2.json", "the same desk under the next harness, which says whose error ended a run",
     travel_desk.TAU2_RUNS,
     lambda place, runs: formats.tau2(place, runs, travel_desk.SYSTEM, travel_desk.TASKS)),
    ("atif", "stock_room", "a stock-room agent alone with its tools", stock_room.RUNS,
     lambda place, runs: formats.atif(place, runs, stock_room.SYSTEM, stock_room.TOOLS)),
    ("swe-agent", "code_repository", "two issues in a small repository, a test report beside each run",
     code_repository.RUNS, lambda place, runs: formats.swe_agent(place, runs, code_repository.SYSTEM)),
    ("inspect", "sales_questions.json", "questions about a table: a scorer, an error, a limit", sales_questions.RUNS,
     lambda place, runs: formats.inspect(place, runs, sales_questions.SYSTEM)),
    ("claude-code", "sessions", "a developer's sessions, which carry no outcome", sessions.RUNS,
     lambda place, runs: formats.claude_code(place, runs)),
]


def build():
    """All files by their path below `examples/`."""
    files, expected = {}, []
    for name, place, _, runs, write in SETS:
        written = write(place, runs)
        files |= {f"failed-runs/{path}": text for path, text in written.items()}
        expected += [finding(name, place, run) for run in runs]
        assert {entry["file"] for entry in expected[-len(runs):]} <= set(written)
    for detector in DETECTORS:
        assert any(detector in entry["detectors_fire"] for entry in expected), f"no run shows {detector}"
    files["expected_findings.json"] = spelling.pretty(expected)
    files["failed-runs/README.md"] = readme()
    return files


def finding(format_name, place, run):
    return {
        "format": format_name, "file": file_of(format_name, place, run), "task": run.task, "trial": run.trial,
        "goal": next(turn.text for turn in run.turns if turn.role == "user"),
        "outcome": run.outcome, "blame": run.blame or None,
        "detectors_fire": list(run.fires), "detectors_silent": list(run.silent), "shows": run.shows,
    }


def file_of(format_name, place, run):
    """The file below `failed-runs/` that holds the run."""
    return {
        "atif": f"{place}/{spelling.native_id(run)}.json",
        "swe-agent": f"{place}/trial-{run.trial}/{run.task}/{run.task}.traj",
        "claude-code": f"{place}/{spelling.session_id(run)}.jsonl",
    }.get(format_name, place)


def readme():
    rows = [f"| `{place}` | {name} | {len(runs)} | {about} |" for name, place, about, runs, _ in SETS]
    shown = [f"| `{place}` | {run.task} / {run.trial} | {run.outcome} | {run.shows} |"
             for _, place, _, runs, _ in SETS for run in runs]
    total = sum(len(runs) for _, _, _, runs, _ in SETS)
    return "\n".join([
        "# Failed runs to try recoup on", "",
        f"{total} runs of imaginary agents. Every name, key, number and address is made up.", "",
        "    cargo run -- run examples/failed-runs", "",
        "`examples/make_failed_runs.py` writes this folder; change a run there, in `examples/generator/`.", "",
        "| file | format | runs | about |", "| --- | --- | --- | --- |", *rows, "",
        "| file | task / trial | outcome | what it shows |", "| --- | --- | --- | --- |", *shown, "",
    ])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="compare with the files on disk, write nothing")
    check = arguments.parse_args().check
    files = build()
    on_disk = {str(path.relative_to(HERE)) for path in (HERE / "failed-runs").rglob("*") if path.is_file()}
    orphans = sorted(on_disk - set(files))
    if check:
        stale = [path for path, text in files.items()
                 if not (HERE / path).is_file() or (HERE / path).read_text("utf-8") != text]
        for path in stale + orphans:
            print(f"not current: {path}", file=sys.stderr)
        return 1 if stale or orphans else 0
    for path, text in files.items():
        (HERE / path).parent.mkdir(parents=True, exist_ok=True)
        (HERE / path).write_text(text, "utf-8")
    for path in orphans:
        (HERE / path).unlink()
    print(f"{len(files)} files, {sum(len(text.encode()) for text in files.values()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
