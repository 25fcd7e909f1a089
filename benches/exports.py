#!/usr/bin/env python3
"""Exports 50,000 generated runs in every format: rows per second, and the most memory that the program takes.

    make bench-programs
    python3 benches/exports.py target/release/recoup            # --runs N for fewer, --model DIR --template FILE for tokens

Seconds are the wall's, and beside them the processor's, which other work on the machine disturbs less.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import measuring

HERE = Path(__file__).resolve().parent
RSS_MAX = 500 * 10**6
# A format, and the view that fills it.
FORMATS = [*((form, "success_sft") for form in ["trl", "trl-messages", "trl-prompt-completion", "axolotl", "llamafactory", "verl",
                                                "verl-rl", "openai", "tinker", "unsloth", "scout", "hf", "parquet"]),
           ("trl-preference", "preference"), ("trl-kto", "kto"), ("atif", None)]
TOOLS = [{"type": "function", "function": {
    "name": "look_up", "description": "Looks an order up.",
    "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}}}]


def run(index):
    """A run of eleven messages. Two have a task: the first is right, the other differs in the last word, or asks three
    times for what is not there before it."""
    task, is_right = index // 2, index % 2 == 0
    messages = [{"role": "system", "content": "You look after orders. " * 8},
                {"role": "user", "content": f"Where is order {task}, and what was in it?"}]
    for step in range(4):
        order = f"A{task:06}-{step}"
        arguments = json.dumps({"order": order})
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": f"c{step}", "type": "function", "function": {"name": "look_up", "arguments": arguments}}]},
            {"role": "tool", "tool_call_id": f"c{step}", "content": f"order {order}: in transit, {task % 97} pieces " * 6},
        ]
    for step in range(4, 7 if index % 4 == 3 else 4):
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{step}", "type": "function", "function": {
                "name": "look_up", "arguments": json.dumps({"order": f"B{task:06}"})}}]},
            {"role": "tool", "tool_call_id": f"c{step}", "content": "Error: no such order"}]
    messages.append({"role": "assistant", "content": f"Order {task} is {'in transit' if is_right else 'lost'}."})
    return {"id": str(index), "task_id": f"order-{task}", "success": is_right, "messages": messages, "tools": TOOLS}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recoup")
    parser.add_argument("--runs", type=int, default=50_000)
    parser.add_argument("--model", help="folder of a model, for rows of tokens")
    parser.add_argument("--template", help="a chat template in place of its own")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "exports.json")
    arguments = parser.parse_args()
    model = ["--model", arguments.model] if arguments.model else []
    model += ["--template", arguments.template] if arguments.template else []
    formats = [*FORMATS, *([("trl-tokenized", "success_sft")] if model else [])]
    figures = {"bench": "exports", "machine": measuring.machine(), "runs": arguments.runs, "formats": {}}
    with tempfile.TemporaryDirectory() as folder:
        project, rows = Path(folder, "project"), Path(folder, "runs.jsonl")
        with rows.open("w") as file:
            file.writelines(json.dumps(run(index)) + "\n" for index in range(arguments.runs))
        recoup = [str(Path(arguments.recoup).resolve()), "--project", str(project), "--quiet"]
        measuring.run([*recoup, "import", str(rows)])
        measuring.run([*recoup, "diagnose"])
        for form, view in formats:
            out = Path(folder, form)
            words = ["export", *([view] if view else []), "--format", form, "--out", str(out), "--json"]
            words += ["--sibling-pairs"] if view == "preference" else []
            words += model if form == "trl-tokenized" else []
            output, used = measuring.run([*recoup, *words])
            said = json.loads(output.splitlines()[-1])
            written = said["rows"] if view else said["written"]
            rate, processor = round(written / used["wall_s"]), used["user_s"] + used["system_s"]
            bytes_ = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
            figures["formats"][form] = {"view": view, "rows": written, "bytes": bytes_, "rows_per_s": rate, **used}
            print(f"{form:24} {written:8} rows {bytes_ / 1e6:8.0f} MB {rate:8} rows/s {processor:8.1f} s processor "
                  f"{used['rss_bytes'] / 1e6:6.0f} MB of memory", flush=True)
            if used["rss_bytes"] > RSS_MAX:
                print(f"MISSED: {used['rss_bytes']} bytes of memory, the aim is {RSS_MAX}")
            shutil.rmtree(out)
    arguments.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
