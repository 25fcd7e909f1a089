#!/usr/bin/env python3
"""Measures near-duplicates among generated runs: sketching them, and finding the clusters.

    make bench-programs
    python3 benches/make_runs.py runs/
    python3 benches/near_duplicates.py target/release/examples/near_duplicates runs/

The aim is under two minutes for 50,000 runs on two cores, both steps on one thread together.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

import measuring

HERE = Path(__file__).resolve().parent
SECONDS_MAX = 120


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the example program")
    parser.add_argument("runs", help="folder of runs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "near_duplicates.json")
    args = parser.parse_args()

    rounds = []
    for number in range(args.rounds):
        said, figures = measuring.run([args.program, args.runs])
        rounds.append({**json.loads(said), **figures})
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    sketch = statistics.median(entry["sketch_s"] for entry in rounds)
    cluster = statistics.median(entry["cluster_s"] for entry in rounds)
    first = rounds[0]
    print(f"{first['runs']} runs, {first['bytes'] / 1e6:.0f} MB of messages: sketches {sketch:.2f} s "
          f"({first['bytes'] / 1e6 / sketch:.0f} MB/s), clusters {cluster:.2f} s, {first['near_duplicates']} near-duplicates")
    if sketch + cluster > SECONDS_MAX:
        print(f"MISSED: {sketch + cluster:.0f} s of {SECONDS_MAX}")
    args.out.write_text(json.dumps({
        "bench": "near_duplicates", "machine": measuring.machine(), "sketch_s": sketch, "cluster_s": cluster,
        "rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
