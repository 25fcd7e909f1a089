"""Hindsight goals of failed weak-policy runs, blind: how many runs get one, how many of those the environment's own
verifier passes (withheld from relabeler and gates, asked afterwards to score), and how many it would have passed
among those refused.

    python3 benches/hindsight.py target/debug/recoup --seed 500 --json benches/results/hindsight.json
"""

import argparse
import json
import tempfile
from pathlib import Path

from measuring import machine, run

STYLES = ["skip-step", "ungrounded-id", "wrong-variant", "premature-stop", "ignored-error", "budget-overrun", "lost-state",
          "hallucinated-tool", "malformed-call", "false-claim", "loop"]
WEAK = [f"weak:{style}@0.3" for style in STYLES]
# In the store a weak policy nearly never buys a wrong thing: the expert in it puts it back. Random turns do.
POLICIES = {"desk": WEAK, "quest": WEAK, "toolchain": WEAK, "repo": WEAK, "shop": ["mixture:expert+random@0.5"]}
# Tasks for each policy that give at least 300 accepted goals (for the store, times 11).
TASKS = {"desk": 180, "quest": 110, "toolchain": 95, "repo": 140, "shop": 50}


ACCEPTED_MIN = 300


def rate(share):
    return f"{share['passed']} of {share['n']}, {share['rate']:.1%} [{share['low']:.1%}, {share['high']:.1%}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recoup", type=Path)
    parser.add_argument("--environments", nargs="+", default=list(POLICIES))
    parser.add_argument("--tasks", type=int, help="tasks for each policy (for the store, times 11) [default: enough for 300 goals]")
    parser.add_argument("--seed", type=int, default=500)
    parser.add_argument("--json", type=Path)
    flags = parser.parse_args()
    results = {}
    for name in flags.environments:
        with tempfile.TemporaryDirectory() as folder:
            recoup = [flags.recoup.resolve(), "--project", Path(folder) / "project", "--quiet"]
            tasks = (flags.tasks or TASKS[name]) * len(WEAK) // len(POLICIES[name])
            for policy in POLICIES[name]:
                run([*recoup, "collect", "--env", name, "--policy", policy, "--tasks", str(tasks), "--seed", str(flags.seed)])
            run([*recoup, "diagnose"])
            output, cost = run([*recoup, "relabel", "--blind", "--json"])
        answer = json.loads(output.splitlines()[-1])
        accepted = sum(answer["accepted"].values())
        results[name] = {"runs": tasks * len(POLICIES[name]), **{key: answer[key] for key in (
            "candidates", "accepted", "rejected", "verified", "verified_by_class", "missed", "distinct", "claims_mean", "background")},
            "user_s": round(cost["user_s"], 2)}
        print(f"{name:10} {accepted} of {answer['candidates']} failed runs relabeled; passed {rate(answer['verified'])}; "
              f"missed {rate(answer['missed'])}; {answer['distinct']} distinct; {answer['claims_mean']:.1f} claims; "
              f"{answer['candidates'] / max(cost['wall_s'], 1e-9):.0f} runs/s; refused {answer['rejected']}", flush=True)
        if flags.tasks is None and accepted < ACCEPTED_MIN:
            print(f"MISSED: {accepted} accepted goals, the aim is {ACCEPTED_MIN}")
    if flags.json:
        record = {"machine": machine(), "seed": flags.seed, "environments": results}
        flags.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
