"""Rows a second of masked training rows: recoup, with every proof, beside `transformers`, on the same rows.

    python benches/templates.py PROGRAM TEMPLATE MODEL_DIR RUNS.json [RUNS.json ...] [--rows 200] [--rounds 5] [--out FILE]

PROGRAM is the example `template_cases` in release, TEMPLATE one with `{% generation %}`, MODEL_DIR holds
tokenizer.json, RUNS.json are runs of tau-bench. Needs transformers. Both sides take turns; of the rounds the
fastest counts. Seconds are the processor's, of the busiest thread, so that other work on the machine does not count.
`profile` is where one thread's time goes.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import measuring  # noqa: E402
from transformers import PreTrainedTokenizerFast, __version__  # noqa: E402


def rows(paths, most):
    out = []
    for path in paths:
        for run in json.loads(pathlib.Path(path).read_text(encoding="utf-8")):
            messages = []
            for message in run["traj"]:
                message = {key: value for key, value in message.items() if value is not None}
                for call in message.get("tool_calls", []):
                    arguments = call["function"]["arguments"]
                    if isinstance(arguments, str):
                        call["function"]["arguments"] = json.loads(arguments)
                messages.append(message)
            if messages and messages[-1]["role"] != "assistant":
                messages.pop()
            out.append({"messages": messages, "tools": None})
            if len(out) == most:
                return out
    return out


def peer(tokenizer, source, made):
    start = time.process_time()
    tokens = 0
    for row in made:
        encoded = tokenizer.apply_chat_template(
            row["messages"], chat_template=source, return_dict=True, return_assistant_tokens_mask=True
        )
        tokens += len(encoded["input_ids"])
    return time.process_time() - start, tokens


def peer_render(tokenizer, source, made):
    start = time.process_time()
    for row in made:
        tokenizer.apply_chat_template(row["messages"], chat_template=source, tokenize=False)
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("template")
    parser.add_argument("model")
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "results" / "templates.json")
    options = parser.parse_args()
    made = rows(options.runs, options.rows)
    source = pathlib.Path(options.template).read_text(encoding="utf-8")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(options.model)
    peers, renders, ours, two = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made), encoding="utf-8")

        def run(threads):
            command = [options.program, "time", options.template, str(path), options.model, str(threads)]
            return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

        for _ in range(options.rounds):
            seconds, tokens = peer(tokenizer, source, made)
            peers.append(seconds)
            renders.append(peer_render(tokenizer, source, made))
            ours.append(run(1))
            two.append(run(2))
    best, best_two = (min(each, key=lambda round_: round_["mask_seconds"]) for each in (ours, two))
    render = min(round_["render_seconds"] for round_ in ours)
    encoded = min(round_["render_and_encode_seconds"] for round_ in ours)
    whole = best["mask_seconds"]
    profile = {"rendering": render / whole, "tokenizing": (encoded - render) / whole, "spans and proofs": (whole - encoded) / whole}
    figures = {
        "bench": "templates",
        "machine": measuring.machine(),
        "transformers": __version__,
        "rows": len(made),
        "proved": best["proved"],
        "tokens": tokens,
        "transformers_rows_per_second": len(made) / min(peers),
        "recoup_rows_per_second": len(made) / whole,
        "recoup_two_threads_rows_per_second": len(made) / best_two["mask_seconds"],
        "transformers_render_seconds": min(renders),
        "recoup_render_seconds": render,
        "recoup_render_and_encode_seconds": encoded,
        "profile": profile,
        "render_factor": min(renders) / render,
        "factor": min(peers) / whole,
        "factor_two_threads": min(peers) / best_two["mask_seconds"],
    }
    options.out.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"rendering {figures['render_factor']:.1f} times transformers' rate, masked rows with every proof {figures['factor']:.1f} times at "
          f"one thread, {figures['factor_two_threads']:.1f} times at two; {figures['recoup_rows_per_second']:.0f} rows/s, {len(made)} rows, "
          f"{best['proved']} proved")
    print("one thread: " + ", ".join(f"{name} {share:.0%}" for name, share in profile.items()))
    for name, least in [("render_factor", 10), ("factor", 2), ("factor_two_threads", 4)]:
        if figures[name] < least:
            print(f"MISSED: {name} {figures[name]:.1f}, the aim is {least}")


if __name__ == "__main__":
    main()
