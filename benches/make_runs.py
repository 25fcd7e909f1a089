#!/usr/bin/env python3
"""Writes a folder of agent runs in several formats, sized like real ones, the same bytes for the same arguments.

    python3 make_runs.py runs/                      # 50,228 runs
    python3 make_runs.py small/ --runs 5000

Chat messages and ShareGPT conversations (a run a line), tau-bench results (arrays), ATIF documents (a line each) and
SWE-agent trajectories (a file each). Every fourth run tries the task of the one before again; one in fifty is a near copy
of an earlier run under another task's name; some repeat a call that failed, and some hold an address or a key.
"""

import argparse
import json
import random
import sys
from pathlib import Path

from make_chat_jsonl import TOOL_DEFINITIONS, TOOLS, Writer

# Share of the runs, of 100; the SWE-agent's are files of their own.
SHARES = [("chat", 35), ("sharegpt", 20), ("tau", 20), ("atif", 15), ("swe", 10)]
# About the mean of a message's text in bytes and of the turns of a run, as in the public traces of each kind.
SIZES = {"chat": (350, 12), "sharegpt": (400, 8), "tau": (300, 12), "atif": (450, 10), "swe": (900, 16)}
TASK_TRIALS = 4
NEAR_COPY = 0.02
ARRAY_RUNS = 1000
ERRORS = ["Error: no such file or directory", "Traceback (most recent call last):\n  File \"main.py\", line 3\nKeyError: 'id'",
          "error: permission denied", "{\"error\": \"order not found\"}"]


class Runs:
    """Draws runs in one neutral form: a goal, turns of (thought, tool, arguments, result), a last word, an outcome."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.text = Writer(seed + 1, 0, 700)
        self.goal = ""
        self.recent = []

    def size(self, mean):
        return int(self.rng.expovariate(1 / mean)) + 20

    def draw(self, number, kind):
        mean, turns = SIZES[kind]
        rng = self.rng
        if number % TASK_TRIALS == 0 or not self.goal:
            self.goal = self.text.prose(self.size(mean))
        run = {"number": number, "task": f"{kind}-task-{number // TASK_TRIALS}", "goal": self.goal,
               "trial": number % TASK_TRIALS, "success": rng.random() < 0.35}
        if self.recent and rng.random() < NEAR_COPY:
            # A benchmark that was copied and renamed: one word of the goal and one result differ.
            copied = rng.choice(self.recent)
            run["goal"] = copied["goal"] + " " + rng.choice(self.text.words)
            run["turns"] = [dict(turn) for turn in copied["turns"]]
            run["turns"][-1]["result"] = self.text.log(200)
            run["last"] = copied["last"]
            return run
        run["turns"] = [self.turn(mean) for _ in range(max(2, int(rng.gauss(turns, turns / 3))))]
        if not run["success"] and rng.random() < 0.4:
            at = rng.randrange(len(run["turns"]))
            run["turns"][at]["result"] = rng.choice(ERRORS)
            run["turns"][at + 1:at + 1] = [dict(run["turns"][at]) for _ in range(rng.randrange(1, 4))]
        run["last"] = self.text.prose(self.size(mean))
        if rng.random() < 0.1:
            run["turns"][0]["result"] += f"\ncontact: user{number}@mail{number % 97}.example.com, +1 415 555 {number % 10000:04}"
        self.recent = self.recent[-199:] + [run]
        return run

    def turn(self, mean):
        rng = self.rng
        arguments = {"target": self.text.prose(40), "limit": rng.randrange(1000)}
        if rng.random() < 0.3:
            arguments["note"] = self.text.prose(self.size(mean))
        result = rng.choice([self.text.log, self.text.record])
        return {"thought": self.text.prose(self.size(mean // 2)), "tool": rng.choice(TOOLS), "arguments": arguments,
                "result": result(self.size(2 * mean))}


def chat_messages(run, system):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": run["goal"]}]
    for step, turn in enumerate(run["turns"]):
        call = f"call_{run['number']}_{step}"
        messages += [
            {"role": "assistant", "content": turn["thought"], "tool_calls": [{
                "id": call, "type": "function",
                "function": {"name": turn["tool"], "arguments": json.dumps(turn["arguments"])}}]},
            {"role": "tool", "tool_call_id": call, "name": turn["tool"], "content": turn["result"]},
        ]
    return messages + [{"role": "assistant", "content": run["last"]}]


def chat(run, system):
    return {"id": f"run-{run['number']}", "task_id": run["task"], "trial": run["trial"], "model": "generated",
            "success": run["success"], "messages": chat_messages(run, system), "tools": TOOL_DEFINITIONS}


def sharegpt(run, system):
    turns = [{"from": "human", "value": run["goal"]}]
    for turn in run["turns"]:
        turns += [
            {"from": "function_call", "value": json.dumps({"name": turn["tool"], "arguments": turn["arguments"]})},
            {"from": "observation", "value": turn["result"]}]
    turns.append({"from": "gpt", "value": run["last"]})
    return {"id": f"run-{run['number']}", "system": system, "tools": json.dumps(TOOL_DEFINITIONS),
            "success": run["success"], "conversations": turns}


def tau(run, system):
    reward = 1.0 if run["success"] else 0.0
    return {"task_id": run["number"] // TASK_TRIALS, "reward": reward, "trial": run["trial"],
            "info": {"task": {"user_id": f"user_{run['number']}", "actions": [], "instruction": run["goal"], "outputs": []},
                     "reward_info": {"reward": reward, "info": {"r_actions": reward, "gt_data_hash": "0" * 64}, "actions": []}},
            "traj": chat_messages(run, system)}


def atif(run, system):
    steps = [{"step_id": 1, "source": "system", "message": system}, {"step_id": 2, "source": "user", "message": run["goal"]}]
    for at, turn in enumerate(run["turns"]):
        call = f"call_{at}"
        steps.append({
            "step_id": len(steps) + 1, "source": "agent", "model_name": "generated", "message": turn["thought"],
            "tool_calls": [{"tool_call_id": call, "function_name": turn["tool"], "arguments": turn["arguments"]}],
            "observation": {"results": [{"source_call_id": call, "content": turn["result"]}]},
            "metrics": {"prompt_tokens": 2000, "completion_tokens": 100}})
    steps.append({"step_id": len(steps) + 1, "source": "agent", "model_name": "generated", "message": run["last"]})
    return {"schema_version": "ATIF-v1.7", "session_id": f"session-{run['number']}",
            "agent": {"name": "generated-agent", "version": "1.0", "model_name": "generated"}, "steps": steps,
            "extra": {"reward": 1.0 if run["success"] else 0.0}}


def swe(run, system):
    history = [{"role": "system", "content": system, "agent": "main", "message_type": "system_prompt"},
               {"role": "user", "content": run["goal"], "agent": "main", "message_type": "observation"}]
    steps = []
    for turn in run["turns"]:
        action = f"{turn['tool']} {json.dumps(turn['arguments'])}"
        response = f"{turn['thought']}\n```\n{action}\n```"
        history += [{"role": "assistant", "content": response, "thought": turn["thought"], "action": action, "agent": "main",
                     "message_type": "action"},
                    {"role": "user", "content": turn["result"], "agent": "main", "message_type": "observation"}]
        steps.append({"action": action, "observation": turn["result"], "response": response, "thought": turn["thought"],
                      "state": {"working_dir": "/repo"}, "execution_time": 0.1})
    return {"environment": "swe_main", "trajectory": steps, "history": history,
            "info": {"exit_status": "submitted" if run["success"] else "exit_cost", "submission": run["last"],
                     "model_stats": {"tokens_sent": 1000, "tokens_received": 100, "api_calls": len(steps)}}}


def line(row):
    return json.dumps(row, ensure_ascii=False) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", type=int, default=50_228)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    (args.out / "swe").mkdir(parents=True)
    runs = Runs(args.seed)
    systems = runs.text.systems
    written = number = 0
    for kind, share in SHARES:
        count = args.runs - number if kind == SHARES[-1][0] else args.runs * share // 100
        array, lines = [], None
        for at in range(count):
            run = runs.draw(number, kind)
            system = systems[number % len(systems)]
            number += 1
            row = {"chat": chat, "sharegpt": sharegpt, "tau": tau, "atif": atif, "swe": swe}[kind](run, system)
            if kind == "swe":
                path = args.out / "swe" / f"owner{run['number'] % 40}__repo-{run['number']}.traj"
                written += path.write_text(json.dumps(row, ensure_ascii=False), encoding="utf-8")
            elif kind == "tau":
                array.append(row)
                if len(array) == ARRAY_RUNS or at == count - 1:
                    path = args.out / f"tau-{at // ARRAY_RUNS}.json"
                    written += path.write_text(json.dumps(array, ensure_ascii=False), encoding="utf-8")
                    array = []
            else:
                lines = lines or (args.out / f"{kind}.jsonl").open("w", encoding="utf-8", newline="\n")
                written += lines.write(line(row))
        if lines:
            lines.close()
    print(f"{number} runs, about {written / 1e6:.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
