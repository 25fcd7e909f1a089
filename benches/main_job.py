#!/usr/bin/env python3
"""Measures the main job: `recoup run` over 50,228 generated runs in five formats, offline, from nothing to the report.

    make bench-programs
    python3 benches/make_runs.py runs/
    python3 benches/main_job.py target/release/recoup runs/

The aim is under ten minutes of wall time and under 1 GB of memory on two cores. A second call of the same command is
timed too: it finds nothing new. The two calls of a round share a project, rounds do not.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import measuring

HERE = Path(__file__).resolve().parent
WALL_MAX_S = 600
RSS_MAX = 10**9
COUNTS = ["files", "trajectories", "nodes", "tool_calls", "quarantined", "excluded_by_split", "outcomes", "blame", "diagnosed",
          "exported"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recoup", help="the program")
    parser.add_argument("runs", help="folder of runs")
    parser.add_argument("--rounds", type=int, default=1, help="one takes minutes")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "main_job.json")
    args = parser.parse_args()

    rounds, summary, stored = [], {}, 0
    for number in range(args.rounds):
        folder = Path(tempfile.mkdtemp(prefix="recoup-bench-"))
        try:
            command = [args.recoup, "run", args.runs, "--project", folder / "project", "--out", folder / "out", "--offline",
                       "--threads", str(args.threads), "--json"]
            said, first = measuring.run(command)
            _, second = measuring.run(command)
            summary = json.loads(said.splitlines()[-1])
            stored = sum(path.stat().st_size for path in (folder / "project").iterdir())
            rounds.append({"first": first, "again": second})
        finally:
            shutil.rmtree(folder)
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)

    def median(call, name):
        return statistics.median(entry[call][name] for entry in rounds)

    for call in ["first", "again"]:
        cpu = median(call, "user_s") + median(call, "system_s")
        print(f"{call:6} {median(call, 'wall_s'):7.1f} s wall, {cpu:7.1f} s processor, "
              f"{median(call, 'rss_bytes') / 1e6:6.0f} MB at most")
    wall, rss = median("first", "wall_s"), max(entry["first"]["rss_bytes"] for entry in rounds)
    for name, value, most in [("wall seconds", wall, WALL_MAX_S), ("bytes of memory", rss, RSS_MAX)]:
        if value > most:
            print(f"MISSED: {value:.0f} {name}, the aim is {most}")
    said = subprocess.run([args.recoup, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    args.out.write_text(json.dumps({
        "bench": "main_job", "machine": measuring.machine(), "version": said, "threads": args.threads,
        "counts": {name: summary.get(name) for name in COUNTS}, "store_bytes": stored, "rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
