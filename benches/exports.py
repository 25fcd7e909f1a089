#!/usr/bin/env python3
"""Exports 50,000 generated runs in every format: rows per second, and the most memory that the program takes.

    cargo build --release -p recoup-cli
    python3 benches/exports.py target/release/recoup            # --runs N for fewer
"""

import argparse
import json
import tempfile
from pathlib import Path

import measuring

FORMATS = ["trl", "trl-prompt-completion", "axolotl", "llamafactory", "verl", "verl-rl", "openai", "tinker", "unsloth",
           "scout", "hf", "parquet"]
TOOLS = [{"type": "function", "function": {
    "name": "look_up", "description": "Looks an order up.",
    "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}}}]


def run(index):
    """A run of eleven messages; every other one succeeded."""
    messages = [{"role": "system", "content": "You look after orders. " * 8},
                {"role": "user", "content": f"Where is order {index}, and what was in it?"}]
    for step in range(4):
        order = f"A{index:06}-{step}"
        arguments = json.dumps({"order": order})
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": f"c{step}", "type": "function", "function": {"name": "look_up", "arguments": arguments}}]},
            {"role": "tool", "tool_call_id": f"c{step}", "content": f"order {order}: in transit, {index % 97} pieces " * 6},
        ]
    messages.append({"role": "assistant", "content": f"Order {index} is in transit."})
    return {"id": str(index), "task_id": f"order-{index}", "success": index % 2 == 0, "messages": messages, "tools": TOOLS}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recoup")
    parser.add_argument("--runs", type=int, default=50_000)
    arguments = parser.parse_args()
    figures = {**measuring.machine(), "runs": arguments.runs, "formats": {}}
    with tempfile.TemporaryDirectory() as folder:
        project, rows = Path(folder, "project"), Path(folder, "runs.jsonl")
        with rows.open("w") as file:
            file.writelines(json.dumps(run(index)) + "\n" for index in range(arguments.runs))
        recoup = [str(Path(arguments.recoup).resolve()), "--project", str(project), "--quiet"]
        measuring.run([*recoup, "import", str(rows)])
        for form in FORMATS:
            out = Path(folder, form)
            output, used = measuring.run([*recoup, "export", "success_sft", "--format", form, "--out", str(out), "--json"])
            written = json.loads(output.splitlines()[-1])["rows"]
            figures["formats"][form] = {"rows": written, "rows_per_s": round(written / used["wall_s"]), **used}
            print(f"{form:24} {written:8} rows {written / used['wall_s']:10.0f} rows/s "
                  f"{used['rss_bytes'] / 2**20:8.0f} MiB")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
