#!/usr/bin/env python3
"""Measures repairs and diagnoses on failed runs of the bundled environments: every arm with the expert's
repairs and with those of the rules, beside how often the diagnosed turn is the one that a sweep finds.

    make bench-programs
    python3 benches/repairs.py target/release/recoup --out benches/results/repairs.json

Eleven weak policies act at rate 0.3. Everything follows from the seed; nothing is timed but for orientation.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PACKAGES = ["desk", "quest", "shop", "toolchain", "repo"]
STYLES = ["skip-step", "ungrounded-id", "wrong-variant", "premature-stop", "ignored-error", "budget-overrun",
          "lost-state", "hallucinated-tool", "malformed-call", "false-claim", "loop"]


def last_object(recoup, project, *arguments):
    command = [recoup, "--project", project, *arguments, "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr or done.stdout}")
    return json.loads(done.stdout.splitlines()[-1])


def summary(answer, source):
    """The groups whose repairs come from a source (a group is a policy; only within one are pairs comparable),
    with their intervals, and what they add up to."""
    groups = [group for group in answer["groups"] if ("expert" in group["candidates"]) == (source == "expert")]
    arms = {}
    for group in groups:
        for name, arm in group["arms"].items():
            total = arms.setdefault(name, {"passed": 0, "n": 0})
            total["passed"] += arm["passed"]
            total["n"] += arm["n"]
    return {"pairs": sum(group["pairs"] for group in groups), "unsupported": answer["unsupported"],
            "reasons": answer["reasons"], "arms": arms, "groups": [slim(group) for group in groups]}


def slim(group):
    """What a reader compares: rates and differences with their intervals."""
    arms = {name: {key: arm[key] for key in ("passed", "n", "rate", "low", "high")}
            for name, arm in group["arms"].items() if arm["n"]}
    differences = {name: {key: gap[key] for key in ("pairs", "points", "low", "high", "p", "p_holm")}
                   for name, gap in group["differences"].items() if gap["points"] is not None}
    return {"policy": group["policy"], "pairs": group["pairs"], "tasks": group["tasks"],
            "design_effect": group["design_effect"], "arms": arms, "differences": differences}


def collect(recoup, project, package, failed, seed):
    """Adds tasks until so many runs have failed. The same command again makes only what is missing."""
    for tasks in range(30, 3000, 30):
        made = [last_object(recoup, project, "collect", "--env", package, "--policy", f"weak:{style}@0.3",
                            "--tasks", str(tasks), "--seed", str(seed))["success"] for style in STYLES]
        counts = {"episodes": sum(it["n"] for it in made), "failed": sum(it["n"] - it["passed"] for it in made)}
        if counts["failed"] >= failed:
            break
    return counts


def measure(recoup, package, failed, seed, sweep):
    with tempfile.TemporaryDirectory(prefix="recoup-repairs-") as folder:
        project = Path(folder) / "project"
        start = time.monotonic()
        result = collect(recoup, project, package, failed, seed)
        last_object(recoup, project, "diagnose")
        for source in ("rules", "expert"):
            answer = last_object(recoup, project, "replay", "--candidate", source)
            result[source] = summary(answer, source)
        result["seconds_without_sweep"] = time.monotonic() - start
        if sweep:
            answer = last_object(recoup, project, "replay", "--sweep", "--candidate", "expert", "--continuations", "1")
            result["expert at the decisive turn of the sweep"] = summary(answer, "expert")
            flips = last_object(recoup, project, "eval", "attribution", "--against", "flips")
            result["flips"] = {"swept": flips["swept"], "without_flip": flips["without_flip"]}
            for beside in ("alone", "with_siblings"):
                result["flips"][beside] = [{key: value for key, value in row.items() if key != "policies"}
                                           for row in flips[beside]]
        result["seconds"] = time.monotonic() - start
        return result


def show(package, result):
    print(f"{package}: {result['failed']} of {result['episodes']} failed, {result['seconds']:.0f} s")
    for source in ("rules", "expert", "expert at the decisive turn of the sweep"):
        if source not in result:
            continue
        answer = result[source]
        arms = ", ".join(f"{name} {arm['passed']}/{arm['n']}" for name, arm in answer["arms"].items() if arm["n"])
        print(f"  {source}: {answer['pairs']} pairs, {answer['unsupported']} unsupported; {arms}")
        for group in answer["groups"]:
            gap = group["differences"].get("repair-retry")
            if gap and gap["points"] is not None and gap["low"] is not None:
                print(f"    {group['policy']}: {gap['pairs']} pairs, repair-retry {gap['points']:+.0f} points "
                      f"[{gap['low']:.0f}, {gap['high']:.0f}], p {gap['p_holm']:.3f} (Holm)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recoup", help="the program")
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--failed", type=int, default=500, help="failed runs of each package, at least")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--no-sweep", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    results = {}
    for package in args.packages:
        results[package] = measure(args.recoup, package, args.failed, args.seed, not args.no_sweep)
        show(package, results[package])
        sys.stdout.flush()
        if args.out:
            args.out.write_text(json.dumps({"bench": "repairs", "seed": args.seed, "results": results}, indent=None) + "\n")


if __name__ == "__main__":
    main()
