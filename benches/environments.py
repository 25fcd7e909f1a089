#!/usr/bin/env python3
"""Measures environments: steps in memory, through bytes and in a worker, forks, hashes and matched replays,
beside TextWorld and BabyAI with a random policy each. Rounds are interleaved, so that a slow minute of the
machine hits all alike; compare only figures of one run.

    make bench-programs
    python3 benches/environments.py target/release/recoup target/release/examples/environment_speed \\
        --peers PYTHON     # with `textworld` and `minigrid`; without, the two are left out

A rate is printed by the wall and by the processor's time: on a busy machine only the second says what the
program needs.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import measuring

HERE = Path(__file__).resolve().parent
PACKAGES = ["quest", "shop", "desk", "toolchain", "repo"]
# 667 pairs of 5 arms by 3 continuations are 10,000 continuations.
PAIRS, ARMS, CONTINUATIONS = 667, 5, 3
GAME = ["--world-size", "12", "--nb-objects", "12", "--quest-length", "5", "--seed", "7"]
LEVEL = "BabyAI-GoToRedBall-v0"
# Figure, and the most (negative: the least) that it should be. What one thread does is judged by the
# processor's time, what two processes do together by the wall.
TARGETS = {
    "quest in memory": ("steps_per_cpu_s", -300_000), "shop in memory": ("steps_per_cpu_s", -300_000),
    "quest through bytes": ("steps_per_cpu_s", -50_000), "shop through bytes": ("steps_per_cpu_s", -50_000),
    "worker, batched": ("steps_per_s", -50_000), "worker, one step": ("step_us_p50", 40),
    "worker, start": ("spawn_ms_p50", 20),
    "matched replays": ("continuations_10000_s", 60),
}
# Of every package: up to 2 KiB of state, and by the byte beyond.
FORK_TARGETS = {
    "fork_us_p50": 25, "hash_us_p50": 3, "large_fork_ns_per_byte_p50": 10, "large_hash_ns_per_byte_p50": 10,
}
# Steps in quest over those of a peer, at least.
RATIOS = {"TextWorld": 50, "TextWorld, admissible commands": 50, "BabyAI": 10}


def child(command):
    """What a program prints on its last line, with what the kernel says it took."""
    output, took = measuring.run(command)
    return json.loads(output.decode().splitlines()[-1]) | {
        "total_wall_s": took["wall_s"], "total_user_s": took["user_s"], "total_system_s": took["system_s"]}


def parts(args, game):
    """Name → what measures it once."""
    def speed(*words):
        return lambda: child([args.speed, *words])

    def peer(*words):
        return lambda: child([args.peers, HERE / "environments_peers.py", *words])

    found = {f"{name} in memory": speed("heap", name) for name in PACKAGES}
    found |= {f"{name} through bytes": speed("bytes", name) for name in PACKAGES}
    found |= {f"fork of {name}": speed("fork", name) for name in PACKAGES}
    found["worker, start"] = speed("spawn", "quest", args.recoup)
    found["worker, one step"] = speed("single", "quest", args.recoup)
    found["worker, batched"] = speed("batched", "quest", args.recoup)
    found["matched replays"] = lambda: replays(args)
    if args.peers:
        found["TextWorld"] = peer("textworld", game)
        found["TextWorld, admissible commands"] = peer("textworld", game, "--admissible")
        found["BabyAI"] = peer("babyai", LEVEL)
    return found


def replays(args):
    """Failed runs of a weak policy whose failures the rules diagnose, each continued in all arms, from the command line into the store."""
    with tempfile.TemporaryDirectory(prefix="recoup-bench-") as project:
        common = ["--project", project, "--threads", "2", "--json"]
        weak = ["--policy", "weak:ignored-error@0.5", "--tasks", "1000", "--seed", "7"]
        child([args.recoup, "collect", "--env", "quest", *weak, *common])
        child([args.recoup, "diagnose", *common])
        found = child([args.recoup, "replay", "--candidate", "expert", "--limit", str(PAIRS), *common])
    assert found["pairs"] == PAIRS and len(found["arms"]) == ARMS and not found["unsupported"], found
    continuations = PAIRS * ARMS * CONTINUATIONS
    return {
        "pairs": found["pairs"], "continuations": continuations, "wall_s": found["total_wall_s"],
        "user_s": found["total_user_s"], "system_s": found["total_system_s"],
        "continuations_10000_s": found["total_wall_s"] * 10_000 / continuations,
        "continuations_10000_cpu_s": (found["total_user_s"] + found["total_system_s"]) * 10_000 / continuations,
    }


def make_game(python, folder):
    make = Path(python).parent / "tw-make"
    game = folder / "game.z8"
    subprocess.run([make, "custom", *GAME, "--output", game], check=True, capture_output=True)
    return game


def median(rounds):
    keys = [key for key, value in rounds[0].items() if isinstance(value, (int, float))]
    return {key: statistics.median(entry[key] for entry in rounds) for key in keys}


def versions(args):
    def output(command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    found = {"recoup": output([args.recoup, "--version"])}
    if args.peers:
        asked = "from importlib.metadata import version as v; print(v('textworld'), v('minigrid'), v('gymnasium'))"
        found |= dict(zip(("textworld", "minigrid", "gymnasium"), output([args.peers, "-c", asked]).split()))
        found["python"] = output([args.peers, "-c", "import platform; print(platform.python_version())"])
    return found


def ratios(results):
    """Steps in quest over those of the others, by the processor's time."""
    rate = {name: result["steps_per_cpu_s"] for name, result in results.items() if "steps_per_cpu_s" in result}
    return {name: rate["quest in memory"] / rate[name] for name in RATIOS if name in rate}


def show(results, ratios):
    print(f"{'':32} {'a second':>10} {'a CPU second':>13}")
    for name, result in results.items():
        if "steps_per_s" in result:
            print(f"{name:32} {result['steps_per_s']:10,.0f} {result['steps_per_cpu_s']:13,.0f}")
    for name in PACKAGES:
        result = results[f"fork of {name}"]
        print(f"{'fork of ' + name:32} {result['fork_us_p50']:.1f} µs, hash {result['hash_us_p50']:.2f} µs, "
              f"states of {result['state_bytes_p50']:.0f} bytes", end="")
        if "large_fork_ns_per_byte_p50" in result:
            print(f"; beyond 2 KiB {result['large_fork_ns_per_byte_p50']:.1f} and "
                  f"{result['large_hash_ns_per_byte_p50']:.2f} ns a byte", end="")
        print()
    print(f"{'worker, start':32} {results['worker, start']['spawn_ms_p50']:.1f} ms")
    print(f"{'worker, one step':32} {results['worker, one step']['step_us_p50']:.1f} µs")
    replayed = results["matched replays"]
    print(f"{'10,000 matched continuations':32} {replayed['continuations_10000_s']:.1f} s, "
          f"{replayed['continuations_10000_cpu_s']:.1f} CPU seconds")
    for name, ratio in ratios.items():
        print(f"{ratio:8.0f} × the steps of {name}")
    targets = [(name, key, most) for name, (key, most) in TARGETS.items()]
    targets += [(f"fork of {name}", key, most) for name in PACKAGES for key, most in FORK_TARGETS.items()]
    figures = [(name, key, results[name].get(key, 0), most) for name, key, most in targets]
    figures += [(name, "ratio", ratio, -RATIOS[name]) for name, ratio in ratios.items()]
    for name, key, value, most in figures:
        missed = value > most if most > 0 else value < -most
        if missed:
            print(f"MISSED: {name}: {key} {value:,.1f}, should be {'at most' if most > 0 else 'at least'} {abs(most):,}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recoup", help="the program")
    parser.add_argument("speed", help="the example program")
    parser.add_argument("--peers", help="a Python with textworld and minigrid")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "environments.json")
    args = parser.parse_args()

    rounds = {}
    with tempfile.TemporaryDirectory(prefix="recoup-bench-") as folder:
        game = make_game(args.peers, Path(folder)) if args.peers else None
        for number in range(args.rounds):
            for name, measure in parts(args, game).items():
                rounds.setdefault(name, []).append(measure())
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    results = {name: median(entries) for name, entries in rounds.items()}
    found = ratios(results)
    show(results, found)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({
        "bench": "environments", "rounds": args.rounds, "machine": measuring.machine(), "versions": versions(args),
        "results": results, "ratios": found, "all_rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
