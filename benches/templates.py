"""Rows a second of masked training rows: recoup, with every proof, beside `transformers`, on the same rows.

    python benches/templates.py PROGRAM TEMPLATE MODEL_DIR RUNS.json [RUNS.json ...] [--rows 200] [--rounds 5]

PROGRAM is the example `template_cases` in release, TEMPLATE one with `{% generation %}`, MODEL_DIR holds
tokenizer.json, RUNS.json are runs of tau-bench. Needs transformers. Both sides take turns; of the rounds the
fastest counts. Seconds are the processor's, of the busiest thread, so that other work on the machine does not count.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

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
    print(json.dumps({
        "transformers": __version__,
        "rows": len(made),
        "proved": best["proved"],
        "tokens": tokens,
        "load": os.getloadavg(),
        "transformers_rows_per_second": len(made) / min(peers),
        "recoup_rows_per_second": len(made) / best["mask_seconds"],
        "recoup_two_threads_rows_per_second": len(made) / best_two["mask_seconds"],
        "transformers_render_seconds": min(renders),
        "recoup_render_seconds": render,
        "recoup_render_and_encode_seconds": min(round_["render_and_encode_seconds"] for round_ in ours),
        "render_factor": min(renders) / render,
        "factor": min(peers) / best["mask_seconds"],
        "factor_two_threads": min(peers) / best_two["mask_seconds"],
    }, indent=1))


if __name__ == "__main__":
    main()
