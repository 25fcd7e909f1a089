#!/usr/bin/env python3
"""Measures asking a model 10,000 questions with 256 in flight, each answered after 200 ms by a server in its own
process, beside OpenAI's Python library under asyncio. Rounds are interleaved; compare only figures of one run.

    make bench-programs
    python3 benches/models.py target/release/recoup      # with the packages of peers/requirements.txt
"""

import argparse
import json
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import measuring

HERE = Path(__file__).resolve().parent


def figures(command):
    return measuring.run(command)[1]


def summarize(rounds):
    wall = statistics.median(entry["wall_s"] for entry in rounds)
    cpu = statistics.median(entry["user_s"] + entry["system_s"] for entry in rounds)
    return {"wall_s": wall, "cpu_s": cpu, "cores": cpu / wall,
            "rss_bytes": max(entry["rss_bytes"] for entry in rounds), "rounds": rounds}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recoup")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--limit", type=int, default=256)
    parser.add_argument("--latency-ms", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="file for the figures as JSON")
    args = parser.parse_args()
    ideal = args.calls / args.limit * args.latency_ms / 1000
    server = subprocess.Popen([sys.executable, HERE / "models_server.py", "--latency-ms", str(args.latency_ms)],
                              stdout=subprocess.PIPE, text=True)
    results = {"recoup": [], "openai, asyncio": []}
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            questions = folder / "questions.jsonl"
            text = "Which step of this run went wrong, and why? " * 30
            questions.write_text("".join(json.dumps(f"{number}: {text}") + "\n" for number in range(args.calls)))
            for number in range(args.rounds):
                project, store = folder / f"project-{number}", folder / f"store-{number}.sqlite"
                results["recoup"].append(figures([
                    args.recoup, "ask", f"{url}#scripted", "--prompts", questions, "--project", project,
                    "--concurrency", str(args.limit), "--json"]))
                results["openai, asyncio"].append(figures([
                    sys.executable, HERE / "models_peer.py", questions, url, store, "--limit", str(args.limit)]))
                shutil.rmtree(project)
    finally:
        server.kill()
    report = {
        "calls": args.calls, "limit": args.limit, "latency_ms": args.latency_ms, "ideal_s": ideal,
        "machine": measuring.machine(),
        "versions": {"python": platform.python_version(), "openai": metadata.version("openai")},
        "results": {name: summarize(rounds) for name, rounds in results.items()},
    }
    for name, result in report["results"].items():
        print(f"{name:16} {result['wall_s']:6.2f} s ({result['wall_s'] / ideal:.2f} x ideal), "
              f"{result['cpu_s']:6.2f} s CPU ({result['cores']:.2f} cores), {result['rss_bytes'] / 1e6:.0f} MB")
    ours, theirs = (report["results"][name] for name in ("recoup", "openai, asyncio"))
    report["ratios"] = {name: theirs[name] / ours[name] for name in ("wall_s", "cpu_s", "rss_bytes")}
    print("the library against recoup: " + ", ".join(f"{name} {ratio:.1f} x" for name, ratio in report["ratios"].items()))
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n")


main()
