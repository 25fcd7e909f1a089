#!/usr/bin/env python3
"""Writes agent runs as OpenAI chat messages, of any size, the same bytes for the same arguments.

    python3 make_chat_jsonl.py runs.jsonl --bytes 400M               # 30 messages of about 1 kB a run
    python3 make_chat_jsonl.py runs.json --bytes 1G --array          # one JSON array on one line
    python3 make_chat_jsonl.py many.jsonl --runs 50000 --nodes 30 --message-bytes 200

Every run has its own content, so a store that keeps equal messages once gains nothing but the system
prompts and tool definitions that real runs share too.
"""

import argparse
import itertools
import json
import random
import sys

SYLLABLES = ["ba", "cor", "del", "en", "fir", "gra", "hol", "in", "jun", "ka", "lor", "mi", "nor", "o", "pel", "qua",
             "ris", "sol", "ta", "ul", "ver", "wes", "xi", "yon", "zu"]
SYSTEM_PROMPTS = 8
TOOLS = ["search", "read_file", "run_tests", "edit_file", "query", "get_order", "list_items", "submit"]
TOOL_DEFINITIONS = [
    {"type": "function", "function": {
        "name": name, "description": f"Does one {name} and returns what it gave.",
        "parameters": {"type": "object", "required": ["target"], "properties": {
            "target": {"type": "string"}, "limit": {"type": "integer"}, "note": {"type": "string"}}}}}
    for name in TOOLS]


class Writer:
    """Draws runs; all chance comes from one generator."""

    def __init__(self, seed, nodes, message_bytes):
        self.rng = random.Random(seed)
        self.nodes = nodes
        self.message_bytes = message_bytes
        # Letters weigh as in prose, so that compression finds what it finds in prose.
        self.words = sorted({"".join(self.rng.choices(SYLLABLES, k=self.rng.randrange(1, 4))) for _ in range(6000)})
        self.systems = [self.prose(3000) for _ in range(SYSTEM_PROMPTS)]

    def prose(self, size):
        words = self.rng.choices(self.words, k=max(size // 7, 1))
        for at in range(11, len(words), 12):
            words[at] += "."
        return " ".join(words)

    def log(self, size):
        """Lines as tools print them: paths, numbers, quotes, now and then a letter beyond ASCII."""
        lines = []
        for _ in range(max(size // 80, 1)):
            word, other = self.rng.choices(self.words, k=2)
            number = self.rng.randrange(10**9)
            lines.append(f'{number:>9} src/{word}/{other}.py:{number % 997} "{word} {other}" → {number / 1e4:.4f}')
        return "\n".join(lines)

    def record(self, size):
        """JSON as tools return it: in a message its every quote is escaped."""
        keys = self.rng.choices(self.words, k=max(size // 30, 1))
        return json.dumps({f"{key}_{at}": self.rng.choice([self.rng.randrange(10**6), self.prose(20), None, True])
                           for at, key in enumerate(keys)})

    def size(self):
        return int(self.rng.expovariate(1 / self.message_bytes)) + 20

    def run(self, number):
        messages = [
            {"role": "system", "content": self.systems[number % SYSTEM_PROMPTS]},
            {"role": "user", "content": f"Task {number}: {self.prose(self.size())}"},
        ]
        for step in range((self.nodes - 3) // 2):
            name = self.rng.choice(TOOLS)
            answer = self.rng.choice([self.log, self.record])
            arguments = {"target": self.prose(60), "limit": self.rng.randrange(1000), "note": self.prose(self.size())}
            call = f"call_{number}_{step}"
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [{
                    "id": call, "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)}}]},
                {"role": "tool", "tool_call_id": call, "name": name, "content": answer(self.size())},
            ]
        while len(messages) < self.nodes - 1:
            messages.append({"role": "user", "content": self.prose(self.size())})
        messages.append({"role": "assistant", "content": self.prose(self.size())})
        return {
            "id": f"run-{number}", "task_id": f"task-{number // 4}", "trial": number % 4, "model": "generated",
            "success": self.rng.random() < 0.4, "messages": messages, "tools": TOOL_DEFINITIONS,
        }


def size_of(text):
    units = {"k": 10**3, "M": 10**6, "G": 10**9}
    return int(float(text[:-1]) * units[text[-1]]) if text[-1] in units else int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--bytes", type=size_of, help="stop once the file has this size (400M, 2G)")
    parser.add_argument("--runs", type=int, help="stop after this many runs")
    parser.add_argument("--nodes", type=int, default=30, help="messages a run")
    parser.add_argument("--message-bytes", type=int, default=700,
                        help="about the mean size of a message's text; what JSON adds comes on top")
    parser.add_argument("--array", action="store_true", help="one JSON array instead of a run a line")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.bytes is None and args.runs is None:
        parser.error("give --bytes or --runs")

    writer = Writer(args.seed, args.nodes, args.message_bytes)
    separator, written, runs = (", " if args.array else "\n"), 0, 0
    with open(args.out, "w", encoding="utf-8", newline="\n") as out:
        written += out.write("[" if args.array else "")
        for number in itertools.count():
            if number == args.runs or (args.bytes is not None and written >= args.bytes):
                break
            line = json.dumps(writer.run(number), ensure_ascii=False)
            out.write(separator if number else "")
            out.write(line)
            written += len(line.encode()) + len(separator)
            runs += 1
        out.write("]" if args.array else "\n")
    print(f"{runs} runs, {written:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
