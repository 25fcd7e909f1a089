#!/usr/bin/env python3
"""Measures importing chat messages into the durable store, beside a Python importer that does the same
work and beside a bare parse of the same file. Rounds are interleaved, so that a slow minute of the machine
hits all alike; compare only figures of one run.

    make bench-programs
    python3 benches/make_chat_jsonl.py runs.jsonl --bytes 400M
    python3 benches/import.py target/release/recoup target/release/examples/bare_parse runs.jsonl
"""

import argparse
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import measuring

HERE = Path(__file__).resolve().parent
BARE, PEER, ONE, TWO = "serde_json parse", "python peer", "recoup, 1 thread", "recoup, 2 threads"


def variants(args, folder):
    """Name → command; each gets its own fresh folder for what it stores."""
    recoup = [args.recoup, "import", args.file, "--project", folder / "project", "--json", "--threads"]
    return {
        BARE: [args.bare_parse, args.file],
        ONE: [*recoup, "1"],
        TWO: [*recoup, "2"],
        PEER: [sys.executable, HERE / "import_peer.py", args.file, folder / "store.sqlite"],
    }


def summarize(rounds, size):
    walls = [entry["wall_s"] for entry in rounds]
    median = statistics.median(walls)
    return {
        "wall_s": median, "wall_min_s": min(walls), "wall_max_s": max(walls), "mb_per_s": size / 1e6 / median,
        "user_s": statistics.median(entry["user_s"] for entry in rounds),
        "rss_bytes": max(entry["rss_bytes"] for entry in rounds), "rounds": rounds,
    }


def versions(recoup):
    said = subprocess.run([recoup, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {"recoup": said, "python": platform.python_version(), "pydantic": metadata.version("pydantic"),
            "sqlite": sqlite3.sqlite_version}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recoup", help="the program")
    parser.add_argument("bare_parse", help="the example program")
    parser.add_argument("file", help="chat messages, a run a line")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "import.json")
    args = parser.parse_args()

    size = os.path.getsize(args.file)
    rounds = {}
    for number in range(-1, args.rounds):  # the first round only warms the file cache
        with tempfile.TemporaryDirectory(prefix="recoup-bench-") as temporary:
            for name, command in variants(args, Path(temporary)).items():
                _, figures = measuring.run(command)
                if number >= 0:
                    rounds.setdefault(name, []).append(figures)
                for stored in Path(temporary).iterdir():
                    shutil.rmtree(stored) if stored.is_dir() else stored.unlink()
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)

    results = {name: summarize(entries, size) for name, entries in rounds.items()}
    rate = {name: result["mb_per_s"] for name, result in results.items()}
    ratios = {
        "1 thread over a bare parse": rate[ONE] / rate[BARE],
        "2 threads over a bare parse": rate[TWO] / rate[BARE],
        "1 thread over the python peer": rate[ONE] / rate[PEER],
        "2 threads over 1": rate[TWO] / rate[ONE],
    }
    print(f"{size / 1e6:.0f} MB, median of {args.rounds} rounds")
    print(f"{'':20} {'MB/s':>7} {'wall s':>8} {'min–max':>15} {'user s':>8} {'peak MB':>8}")
    for name, result in results.items():
        spread = f"{result['wall_min_s']:.2f}–{result['wall_max_s']:.2f}"
        print(f"{name:20} {result['mb_per_s']:7.1f} {result['wall_s']:8.2f} {spread:>15} {result['user_s']:8.2f} "
              f"{result['rss_bytes'] / 1e6:8.0f}")
    for name, ratio in ratios.items():
        print(f"{ratio:6.2f} × {name}")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({
        "bench": "import", "bytes": size, "rounds": args.rounds, "machine": measuring.machine(),
        "versions": versions(args.recoup), "results": results, "ratios": ratios}, indent=1) + "\n")


if __name__ == "__main__":
    main()
